"""Install, list and remove functions on a server: each in one transaction of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal

import psycopg
from psycopg.rows import TupleRow

from sqlrs.errors import EngineFailed, SqlrsError, UsageError
from sqlrs.procedures.definition import check_function_name
from sqlrs.procedures.render import AnyDefinition, Grants, drop_query_script, install_script
from sqlrs.records import dataclass
from sqlrs.templates import template
from sqlrs.units import ROW

# Raised by sql_templates/procedures/check_roles.sql and upgrade.sql.
_UNFIT_ROLE = "RS001"
_UNFIT_VERSION = "RS002"

Connection = psycopg.Connection[TupleRow]


@dataclass(frozen=True)
class Installed:
    """One installed function, as the owner sees it.

    ``edition`` is that of the sqlrs that installed it, None before there were editions. ``unit``:
    whom its dataset protects.
    """

    name: str
    dataset: str
    sql: str
    shape: int
    least_epsilon: Decimal
    repeats: bool
    roles: list[str]
    edition: str | None
    unit: str = ROW


@dataclass(frozen=True)
class Balance:
    """One budget, and how much of what is spent the journal of answers explains.

    ``spent`` is None where its counter was lost or reset: nothing is answered until it is restored.
    """

    kind: str
    name: str
    cap: Decimal
    spent: Decimal | None
    recorded: Decimal


def install(url: str, definition: AnyDefinition, grants: Grants) -> None:
    """Run the script of a definition; it refuses a role that has another way to the data."""
    script = install_script(definition, grants)
    with connected(url) as connection:
        _run(connection, script)


def installed(url: str) -> tuple[Installed, ...]:
    """Every installed function, by name."""
    with connected(url) as connection:
        if not _exists(connection):
            return ()
        rows = connection.execute(_template("installed")).fetchall()
        units = _units(connection)
    found = (Installed(*row) for row in rows)
    return tuple(replace(one, unit=units.get(one.dataset, ROW)) for one in found)


def _units(connection: Connection) -> dict[str, str]:
    """Whom each dataset protects; before version 5 there were no units."""
    if not connection.execute(_template("has_units")).fetchall():
        return {}
    return {str(name): str(unit) for name, unit in connection.execute(_template("units"))}


def balances(url: str) -> tuple[Balance, ...]:
    """Every budget of the functions, analysts first, by name."""
    with connected(url) as connection:
        if not _exists(connection):
            return ()
        rows = connection.execute(_template("all_balances")).fetchall()
    return tuple(Balance(*row) for row in rows)


def uninstall(url: str, name: str) -> None:
    """Remove one function; the ledger stays."""
    check_function_name(name)
    with connected(url) as connection, connection.transaction():
        if not _exists(connection) or name not in _names(connection):
            raise UsageError(f"no function {name} is installed", hint="see sqlrs installed")
        _run(connection, drop_query_script(name))


def uninstall_everything(url: str) -> None:
    """Remove the schema with all functions and the ledger: every budget is forgotten."""
    with connected(url) as connection:
        _run(connection, _template("drop_schema"))


def _names(connection: Connection) -> set[str]:
    return {row[0] for row in connection.execute(_template("installed"))}


def _exists(connection: Connection) -> bool:
    row = connection.execute(_template("is_installed")).fetchone()
    return row is not None and bool(row[0])


def _run(connection: Connection, script: str) -> None:
    connection.execute(script.encode())


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    """A connection of the owner's; whatever fails becomes an error of ours."""
    try:
        with psycopg.connect(url, autocommit=True, client_encoding="utf8") as connection:
            yield connection
            return
    except psycopg.Error as error:
        failure = _failure(error)
    raise failure


def _failure(error: psycopg.Error) -> SqlrsError:
    if error.sqlstate in (_UNFIT_ROLE, _UNFIT_VERSION):
        return UsageError(error.diag.message_primary or "", hint=error.diag.message_hint)
    # Nothing of the data is read here, so the server's own words may be shown.
    text = str(error).strip().partition("\n")[0]
    if error.sqlstate is None:
        return EngineFailed(f"cannot reach PostgreSQL: {text}", code="connection_failed")
    return EngineFailed(
        f"PostgreSQL refused: {text}", hint=error.diag.message_hint, code="install_failed"
    )


def _template(name: str) -> str:
    return template(f"procedures/{name}.sql")
