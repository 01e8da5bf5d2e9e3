"""What PostgreSQL's own statistics tell everybody about private rows, and hiding them."""

from __future__ import annotations

from collections.abc import Iterator

from psycopg.sql import SQL

from sqlrs.procedures.install import connected
from sqlrs.templates import template


def hide_script() -> str:
    """The script for a superuser, one transaction; it may be run again."""
    shown = SQL(template("procedures/shown_statistics.sql"))
    return SQL(template("procedures/hide_statistics.sql")).format(shown=shown).as_string()


def hide(url: str) -> None:
    """Run the script in one database."""
    with connected(url) as connection:
        connection.execute(hide_script().encode())


def warnings(url: str) -> Iterator[str]:
    """What a caller of a private count could read off the server, and how to close it."""
    with connected(url) as connection:
        shown = connection.execute(template("procedures/shown_statistics.sql")).fetchall()
        databases = connection.execute(template("procedures/open_databases.sql")).fetchall()
    if shown:
        yield (
            "PostgreSQL shows everybody its counters, sizes and row estimates, which tell about "
            "private rows; as a superuser run: sqlrs hide-statistics"
        )
    if databases:
        names = ", ".join(name for (name,) in databases)
        yield (
            f"everybody may connect to {names}, and the server's counters are in every database; "
            "run sqlrs hide-statistics there too, or REVOKE CONNECT ON DATABASE … FROM PUBLIC"
        )
