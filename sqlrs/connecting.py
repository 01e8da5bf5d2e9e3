"""How data is opened: what an owner says of it in Python is checked, then there is a Database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlrs.catalog import Value
from sqlrs.database import Database
from sqlrs.engines.file_schema import Declared
from sqlrs.engines.open import TYPES, open_engine
from sqlrs.engines.owner_values import typed_bounds, typed_domains
from sqlrs.errors import UsageError
from sqlrs.inputs import arguments
from sqlrs.inputs.said_owners import SaidOwner, owners_by_table, rows_by_table, unit_name
from sqlrs.inputs.said_values import SaidBounds, SaidDomain, said_bounds_of, said_domains
from sqlrs.inputs.signatures import Signature, signatures
from sqlrs.ledger import Ledger, MemoryLedger
from sqlrs.settings import Number, Settings

_LEDGER_STEPS = ("repeat", "reserve", "settle", "fail", "remaining")

Domain = SaidDomain | str | Sequence[Value] | Mapping[str, Value]
Keys = Mapping[str, Sequence[str] | Sequence[Sequence[str]]]
Owners = str | SaidOwner | Sequence[str | SaidOwner]


def connect(
    target: object = "duckdb://",
    *,
    private: str | Iterable[str] | None = None,
    public: str | Iterable[str] = (),
    keys: Keys | None = None,
    tables: Mapping[str, Any] | None = None,
    types: Mapping[str, Declared] | None = None,
    graphs: Mapping[str, str] | None = None,
    rows_per_unit: Mapping[str, int] | None = None,
    unit: str | None = None,
    owners: Mapping[str, Owners] | None = None,
    max_rows: Mapping[str, int] | None = None,
    domains: Mapping[str, Domain] | None = None,
    bounds: Mapping[str, SaidBounds | Sequence[Number]] | None = None,
    neighbours: str | None = None,
    functions: Mapping[str, str | Signature] | None = None,
    ledger: Ledger | None = None,
    analyst: str = "analyst",
    dataset: str = "data",
    settings: Settings | None = None,
    memory_limit: str | None = None,
    temp_directory: str | Path | None = None,
    max_temp_directory_size: str | None = None,
    threads: int | None = None,
    timeout: float | None = None,
    schema_only: bool = False,
) -> Database:
    """Open a database: a URL, a path, a SQLAlchemy engine, an open duckdb or psycopg connection.

    A Spark session serves, too. A path is a DuckDB or SQLite file, a file of data, or a folder in
    which each is a table.

    A table that is not declared public is private. ``keys`` maps a table to the columns of a key,
    or to a list of keys; each is checked once against the data. Without a ``ledger`` every charge
    is recorded in memory and nothing limits the total.

    ``tables`` maps names to files, folders, wildcards, data frames (pandas, polars, Arrow) or lists
    of dictionaries. ``types`` declares the columns of those that carry no types; without it the
    columns of a file are inferred once and recorded beside it. ``graphs`` reads a table as an edge
    list, ``"directed"`` or ``"undirected"``. ``rows_per_unit`` says of a table how many of its rows
    one protected unit may have. ``schema_only`` reads no row, and answers nothing that needs one.

    ``unit`` protects more than a row: one person, say, with everything that it owns. It names the
    column of the ids, ``"patient.id"``, or is a word where no table lists the units. ``owners``
    maps a table to the column that holds the id, ``{"visit": "patient"}``, to several,
    ``{"edge": ["src", "dst"]}``, or to columns that hold the key of a table that has an owner,
    ``{"lineitem": ("l_orderkey", "orders")}`` or ``"l_orderkey -> orders"``; what is left out is
    found by the foreign keys. At most ``max_rows`` rows of a unit are used of a table,
    ``{"visit": 20}``.

    ``domains`` says which values a column has, where answers are grouped by it: a list, ``{"from":
    0, "to": 120}``, or a column of a public table, ``"ward.name"``. ``bounds`` says between which
    numbers a column is summed, ``[0, 5000]``; for floating point with the step to which it is
    rounded, ``[0, 300, 0.1]``. Both are by ``"table.column"`` and replace what the schema says.
    ``neighbours`` says what is hidden: ``"strict"``, also that a row or unit was replaced, or
    ``"add-remove"``; it goes before what the ``settings`` say.

    ``functions`` maps functions of the database to the types they take and return, ``{"bmi":
    "(double, double) -> double"}``. You vouch that they have no side effects and depend on their
    arguments alone; what the database says about that is checked, now and before each answer.
    ``memory_limit``, ``temp_directory``, ``max_temp_directory_size`` and ``threads`` are for a
    DuckDB that is opened here.
    """
    if isinstance(target, str):
        arguments.path("the database URL", target)
    declared = {} if keys is None else arguments.keys(keys)
    said_of_values = {} if domains is None else said_domains(domains)
    said_for_sums = {} if bounds is None else said_bounds_of(bounds)
    unit = arguments.optional(unit_name, "unit", unit)
    said_owners = {} if owners is None else owners_by_table("owners", owners)
    most_rows = {} if max_rows is None else rows_by_table("max_rows", max_rows)
    _check_unit(unit, rows_per_unit, said_owners, most_rows)
    vouched = {} if functions is None else signatures("functions", functions)
    ledger = MemoryLedger() if ledger is None else _checked_ledger(ledger)
    settings = Settings() if settings is None else _checked_settings(settings)
    if neighbours is not None:
        settings = replace(settings, neighbours=neighbours)
    for name, who in (("analyst", analyst), ("dataset", dataset)):
        arguments.text(name, who)
    engine = open_engine(
        target,
        tables=tables if tables is not None else {},
        types=types,
        graphs=graphs,
        memory_limit=memory_limit,
        temp_directory=temp_directory,
        max_temp_directory_size=max_temp_directory_size,
        threads=threads,
        timeout=timeout,
    )
    try:
        found_catalog = engine.catalog()
        catalog = found_catalog.declare(
            private=_names("private", private),
            public=_names("public", public),
            keys=declared,
            rows_per_unit=rows_per_unit,
            domains=typed_domains(found_catalog, said_of_values),
            bounds=typed_bounds(found_catalog, said_for_sums),
        )
        if unit is not None:
            from sqlrs.unit_declaration import with_unit

            catalog = with_unit(catalog, unit, said_owners, most_rows)
        if vouched:
            from sqlrs.engines.declared import declared_functions

            with engine.snapshot() as snapshot:
                found = declared_functions(snapshot, catalog, vouched, TYPES[engine.dialect])
                catalog = replace(catalog, functions=found)
        if not schema_only:
            engine.check_keys(catalog, declared)
    except BaseException:
        engine.close()
        raise
    return Database(
        engine,
        catalog,
        ledger=ledger,
        analyst=analyst,
        dataset=dataset,
        settings=settings,
        schema_only=schema_only,
    )


def _check_unit(unit: str | None, rows_per_unit: object, *others: Mapping[str, object]) -> None:
    if unit is None and any(others):
        raise UsageError(
            "owners and max_rows are about a unit, and none is declared",
            hint='name the column of its ids: unit="patient.id", --unit patient.id',
        )
    if unit is not None and rows_per_unit:
        raise UsageError(
            "rows_per_unit says how many rows a unit has, but a unit is declared with all its rows",
            hint="leave out rows_per_unit; max_rows limits how many rows of a unit are used",
        )


def _checked_ledger(given: Ledger) -> Ledger:
    known = all(callable(getattr(given, step, None)) for step in _LEDGER_STEPS)
    if isinstance(given, type) or not known:
        raise UsageError(
            f"a value of type {type(given).__name__} is no ledger",
            hint="give sqlrs.MemoryLedger(), or sqlrs.ledger.store.StoreLedger(URL)",
        )
    return given


def _checked_settings(given: Settings) -> Settings:
    if not isinstance(given, Settings):
        raise UsageError(
            "settings must be sqlrs.Settings", hint="write sqlrs.Settings(solver=True)"
        )
    return given


def _names(what: str, given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Names of tables; a text is one name, not a list of letters."""
    if given is None:
        return ()
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Iterable) or not all(isinstance(n, str) for n in (*names,)):
        raise UsageError(f"{what} holds names of tables", hint=f'write {what}=["visit"]')
    return tuple(names)
