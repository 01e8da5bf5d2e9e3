"""The ledger's schema, version by version: which one a ledger has, and the steps to the newest.

A new version is one more function at the end of MIGRATIONS. It says in full what it does, for a
ledger that may be years old, and is never changed again; ledger_tables.py has the result. Each step
is one transaction together with the number that it leads to: a crash leaves the version before or
after.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    inspect,
    select,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import ExecutableDDLElement
from sqlalchemy.sql.compiler import DDLCompiler

from sqlrs.errors import UsageError
from sqlrs.ledger.ledger_tables import SCHEMA, TICKET, VERSION, Epsilon, Moment, OptionalMoment
from sqlrs.templates import template

Migration = Callable[[Connection], None]

# Version 1 does not say that it is one: it is known by these tables.
_FIRST = MetaData()
Table(
    "sqlrs_budgets",
    _FIRST,
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("cap", Epsilon, nullable=False),
    Column("spent", Epsilon, nullable=False),
)
Table(
    "sqlrs_releases",
    _FIRST,
    Column("ticket", TICKET, primary_key=True),
    Column("at", Moment, nullable=False),
    Column("analyst", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("query", Text, nullable=False),
    Column("mechanism", Text, nullable=False),
    Column("epsilon", Epsilon, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("answer", Text),
    Column("fingerprint", Text, nullable=False),
    Index("sqlrs_releases_by_fingerprint", "fingerprint"),
    Index("sqlrs_releases_by_analyst", "analyst"),
    # A ticket is never given twice, even where lines of the journal were deleted.
    sqlite_autoincrement=True,
)
_FIRST_RECORDED = 2


def make_tables(connection: Connection) -> None:
    """Version 1: budgets and the journal."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(template("ledger/postgresql_adopt.sql"))
    _FIRST.create_all(connection)


def record_version(connection: Connection) -> None:
    """Version 2: a table that holds the version's number."""
    version = Table("sqlrs_version", MetaData(), Column("version", Integer, nullable=False))
    version.create(connection)


class _AddColumn(ExecutableDDLElement):
    """ALTER TABLE … ADD COLUMN, which SQLAlchemy lacks."""

    def __init__(self, table: Table, column: Column[Any]) -> None:
        self.table, self.column = table, column


@compiles(_AddColumn)
def _written(add: _AddColumn, compiler: DDLCompiler, **_: object) -> str:
    table = compiler.preparer.format_table(add.table)
    return f"ALTER TABLE {table} ADD COLUMN {compiler.get_column_specification(add.column)}"


def add_column(connection: Connection, table: str, column: Column[Any]) -> None:
    """Add a column to a table that has rows: it may be null, or has a server_default for them."""
    connection.execute(_AddColumn(Table(table, MetaData(), column), column))


def record_units(connection: Connection) -> None:
    """Version 3: who is protected; all charges before were about single rows."""
    add_column(
        connection, "sqlrs_releases", Column("unit", Text, nullable=False, server_default="row")
    )
    add_column(connection, "sqlrs_budgets", Column("unit", Text))
    budgets = Table(
        "sqlrs_budgets",
        MetaData(),
        Column("kind", Text),
        Column("spent", Epsilon),
        Column("unit", Text),
    )
    charged = (budgets.c.kind == "dataset") & (budgets.c.spent != Decimal(0))
    connection.execute(budgets.update().where(charged).values(unit="row"))


def record_grants(connection: Connection) -> None:
    """Version 4: notes, expiry and windows of budgets, what owners did, what analysts ask for."""
    for name in ("note", "renew", "window_start"):
        column = Column(name, Text, nullable=False, server_default="")
        add_column(connection, "sqlrs_budgets", column)
    add_column(connection, "sqlrs_budgets", Column("expires", OptionalMoment))
    spent = Column("window_spent", Epsilon, nullable=False, server_default="0")
    add_column(connection, "sqlrs_budgets", spent)
    made = MetaData()
    Table(
        "sqlrs_acts",
        made,
        Column("number", TICKET, primary_key=True),
        Column("at", Moment, nullable=False),
        Column("who", Text, nullable=False),
        Column("act", Text, nullable=False),
        Column("kind", Text, nullable=False),
        Column("name", Text, nullable=False),
        Column("cap", Epsilon, nullable=False),
        Column("renew", Text, nullable=False),
        Column("expires", OptionalMoment),
        Column("why", Text, nullable=False),
        Column("request", TICKET),
        sqlite_autoincrement=True,
    )
    Table(
        "sqlrs_requests",
        made,
        Column("number", TICKET, primary_key=True),
        Column("at", Moment, nullable=False),
        Column("analyst", Text, nullable=False),
        Column("dataset", Text, nullable=False),
        Column("epsilon", Epsilon, nullable=False),
        Column("why", Text, nullable=False),
        Column("state", Text, nullable=False),
        sqlite_autoincrement=True,
    )
    made.create_all(connection)


# In the order of the versions: the first leads to version 1.
MIGRATIONS: tuple[Migration, ...] = (make_tables, record_version, record_units, record_grants)


def newest() -> int:
    """The version that the code works with."""
    return len(MIGRATIONS)


def check_version(connection: Connection) -> None:
    """Refuse a ledger that another version of the code has changed since it was opened."""
    version = _recorded(connection)
    refuse_newer(version)
    if version != newest():
        raise UsageError(
            f"the ledger has gone back to version {version}",
            hint="was a backup restored? Lower the caps by what was spent since, and open it again",
            code="ledger_version",
        )


def refuse_newer(version: int) -> None:
    """Refuse what was not known when this code was written: it may mean something else."""
    if version > newest():
        raise UsageError(
            f"the ledger has version {version}, and this sqlrs knows versions up to {newest()}",
            hint="upgrade sqlrs here too; a ledger never goes back to an older version",
            code="ledger_version",
        )


def version_of(connection: Connection) -> int:
    """The version of a ledger, 0 where there is none yet; refuses tables that are of no version."""
    tables = _tables(connection)
    if VERSION.name in tables:
        return _recorded(connection)
    if tables.isdisjoint(_FIRST.tables):
        return 0
    if all(has_shape(connection, table) for table in _FIRST.tables.values()):
        return 1
    if VERSION.name in _tables(connection):
        # Somebody else has brought it on between the two looks.
        return _recorded(connection)
    raise UsageError(
        "the ledger's tables are of no version that sqlrs knows",
        hint="bring back its newest backup, or start another ledger with caps that are lower by "
        "what was spent in this one",
        code="ledger_version",
    )


def _tables(connection: Connection) -> set[str]:
    return set(inspect(connection).get_table_names(_schema(connection)))


def advance(connection: Connection) -> None:
    """Bring a ledger one version on, within a transaction that keeps all others out."""
    version = version_of(connection)
    if version < newest():
        MIGRATIONS[version](connection)
        if version + 1 >= _FIRST_RECORDED:
            connection.execute(VERSION.delete())
            connection.execute(VERSION.insert().values(version=version + 1))


def _recorded(connection: Connection) -> int:
    rows = connection.execute(select(VERSION.c.version)).scalars().all()
    # SQLite keeps a text in a column of numbers.
    if len(rows) == 1 and isinstance(rows[0], int) and rows[0] >= _FIRST_RECORDED:
        return rows[0]
    raise UsageError(
        "the ledger does not say which version it has",
        hint="its table sqlrs_version must have one row; bring back the newest backup",
        code="ledger_version",
    )


def has_shape(connection: Connection, described: Table) -> bool:
    """Whether a table stands in the database as described: its columns, their types, its key."""
    schema = _schema(connection)
    if not inspect(connection).has_table(described.name, schema):
        return False
    found = Table(described.name, MetaData(), schema=schema, autoload_with=connection)
    return _shape(connection, found) == _shape(connection, described)


def _shape(connection: Connection, table: Table) -> set[tuple[str, str, bool | None, bool]]:
    return {
        (one.name, one.type.compile(connection.dialect), one.nullable, one.primary_key)
        for one in table.columns
    }


def _schema(connection: Connection) -> str | None:
    return SCHEMA if connection.dialect.name == "postgresql" else None
