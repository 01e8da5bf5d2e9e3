"""Install, list and remove functions on a server: each in one transaction of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import psycopg
from psycopg.rows import TupleRow

from sqlrs.errors import EngineFailed, SqlrsError, UsageError
from sqlrs.procedures.definition import Definition, check_function_name
from sqlrs.procedures.render import Grants, drop_query_script, install_script
from sqlrs.templates import template

Connection = psycopg.Connection[TupleRow]


@dataclass(frozen=True)
class Installed:
    """One installed function, as the owner sees it."""

    name: str
    dataset: str
    sql: str
    shape: int
    least_epsilon: Decimal
    repeats: bool
    installed_at: datetime
    roles: list[str]


@dataclass(frozen=True)
class Balance:
    """One budget, and how much of what is spent the journal of answers explains."""

    kind: str
    name: str
    cap: Decimal
    spent: Decimal
    recorded: Decimal


def install(url: str, definition: Definition, grants: Grants) -> None:
    """Run the script of a definition, unless a role that it would serve is unfit."""
    script = install_script(definition, grants)
    with _connected(url) as connection:
        _check_roles(connection, definition, grants)
        _run(connection, script)


def installed(url: str) -> tuple[Installed, ...]:
    """Every installed function, by name."""
    with _connected(url) as connection:
        if not _exists(connection):
            return ()
        rows = connection.execute(_template("installed")).fetchall()
    return tuple(Installed(*row) for row in rows)


def balances(url: str) -> tuple[Balance, ...]:
    """Every budget of the functions, analysts first, by name."""
    with _connected(url) as connection:
        if not _exists(connection):
            return ()
        rows = connection.execute(_template("all_balances")).fetchall()
    return tuple(Balance(*row) for row in rows)


def uninstall(url: str, name: str) -> None:
    """Remove one function; the ledger stays."""
    check_function_name(name)
    with _connected(url) as connection, connection.transaction():
        if not _exists(connection) or name not in _names(connection):
            raise UsageError(f"no function {name} is installed", hint="see sqlrs installed")
        _run(connection, drop_query_script(name))


def uninstall_everything(url: str) -> None:
    """Remove the schema with all functions and the ledger: every budget is forgotten."""
    with _connected(url) as connection:
        _run(connection, _template("drop_schema"))


def _check_roles(connection: Connection, definition: Definition, grants: Grants) -> None:
    private = [table for table in definition.tables if table.private]
    parameters: Mapping[str, Any] = {
        "roles": list(grants.roles),
        "owner": grants.owner,
        "schemas": [table.schema for table in private],
        "tables": [table.name for table in private],
    }
    for role, reason in connection.execute(_template("unfit_roles"), parameters):
        raise UsageError(
            f"role {role} {reason}",
            hint="grant the function to a role that has no other way to the private tables",
        )
    if grants.owner in grants.roles:
        raise UsageError("the owner of the functions cannot be one of their callers")


def _names(connection: Connection) -> set[str]:
    return {row[0] for row in connection.execute(_template("installed"))}


def _exists(connection: Connection) -> bool:
    row = connection.execute(_template("is_installed")).fetchone()
    return row is not None and bool(row[0])


def _run(connection: Connection, script: str) -> None:
    connection.execute(script.encode())


@contextmanager
def _connected(url: str) -> Iterator[Connection]:
    failure: SqlrsError
    try:
        with psycopg.connect(url, autocommit=True, client_encoding="utf8") as connection:
            yield connection
            return
    except psycopg.OperationalError as error:
        text = str(error).strip().partition("\n")[0]
        failure = EngineFailed(f"cannot reach PostgreSQL: {text}", code="connection_failed")
    except psycopg.Error as error:
        # Nothing of the data is read here, so the server's own words may be shown.
        text = str(error).strip().partition("\n")[0]
        failure = EngineFailed(f"PostgreSQL refused: {text}", code="install_failed")
    raise failure


def _template(name: str) -> str:
    return template(f"procedures/{name}.sql")
