"""The Python surface: connect to data, ask private counts, look at plans and diagnostics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sqlrs.answer import Answer
from sqlrs.catalog import Catalog, Value
from sqlrs.compiled import Compiled, CompiledStatement, compiled_text
from sqlrs.compiler.simplify import Contradiction
from sqlrs.engines.base import Engine
from sqlrs.engines.file_schema import Declared
from sqlrs.engines.open import TYPES, open_engine
from sqlrs.engines.owner_values import typed_bounds, typed_domains
from sqlrs.epsilon import MAX_ERROR, parse_epsilon
from sqlrs.errors import QueryRefused, UsageError
from sqlrs.inputs import arguments
from sqlrs.inputs.bigquery import check_unit_column, without_clause
from sqlrs.inputs.said_owners import SaidOwner, owners_by_table, rows_by_table, unit_name
from sqlrs.inputs.said_values import SaidBounds, SaidDomain, said_bounds_of, said_domains
from sqlrs.inputs.signatures import Signature, signatures
from sqlrs.ledger import Ledger, MemoryLedger
from sqlrs.measuring.work import Progress
from sqlrs.mechanisms import CLIPPED, DEFAULT
from sqlrs.release import release, release_table
from sqlrs.settings import Number, Request, Settings, Wish

if TYPE_CHECKING:
    # What not every count needs is imported when it is asked for.
    from sqlrs.owner.diagnose import Diagnosis
    from sqlrs.owner.dry_run import DryRun
    from sqlrs.owner.explain import Explanation
    from sqlrs.owner.explain_statement import StatementExplanation
    from sqlrs.owner.statements import Statement
    from sqlrs.prices import Prices
    from sqlrs.table_answer import TableAnswer
    from sqlrs.wished_steps import WishDesk

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


class Database:
    """A connection whose tables may be counted privately."""

    def __init__(
        self,
        engine: Engine,
        catalog: Catalog,
        *,
        ledger: Ledger,
        analyst: str,
        dataset: str,
        settings: Settings,
        schema_only: bool = False,
    ) -> None:
        self.engine = engine
        self.catalog = catalog
        self.ledger = ledger
        self.analyst = analyst
        self.dataset = dataset
        self.settings = settings
        self.schema_only = schema_only

    def count(
        self,
        sql: str,
        epsilon: Number | None = None,
        *,
        error: Number | None = None,
        max_epsilon: Number | None = None,
        mechanism: str = DEFAULT,
        shape: int | None = None,
        error_bars: Number | None = None,
        analyst: str | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """A private count: charged to the ledger first, then computed, then released with noise.

        With ``error`` instead of ``epsilon``: as much of ``max_epsilon`` as makes half of the 95 %
        interval no larger than that. A count over public tables alone is exact and costs nothing.
        """
        self._require_rows()
        sql, epsilon = self._asked(sql, epsilon)
        wish = wish_of(epsilon, error, max_epsilon)
        if wish is not None and (
            mechanism not in (DEFAULT, CLIPPED) or shape is not None or error_bars is not None
        ):
            raise UsageError(
                "with a wished error the mechanism, the shape and the error bars follow from it",
                hint="leave them out; clipped alone may be named",
            )
        request = Request(
            sql=sql,
            epsilon=wish.maximum if wish is not None else _price(epsilon),
            mechanism=mechanism,
            shape=shape,
            error_bars=error_bars,
            analyst=self.analyst if analyst is None else analyst,
            dataset=self.dataset,
        )
        if wish is not None:
            from sqlrs.wished_release import release_wished

            return release_wished(request, wish, self._desk(progress))
        return release(
            request,
            engine=self.engine,
            catalog=self.catalog,
            ledger=self.ledger,
            settings=self.settings,
            progress=_checked_progress(progress),
        )

    def query(
        self,
        sql: str,
        epsilon: Number | None = None,
        *,
        error: Number | None = None,
        max_epsilon: Number | None = None,
        mechanism: str = DEFAULT,
        error_bars: Number | None = None,
        analyst: str | None = None,
        progress: Progress | None = None,
    ) -> TableAnswer:
        """The private answer of a statement: groups, sums, several aggregates, as a table.

        Charged once, whatever stands around its aggregates: HAVING, ORDER BY, LIMIT, arithmetic.
        ``error`` and ``max_epsilon`` as for ``count``: for one count or sum, grouped or not.
        """
        self._require_rows()
        sql, epsilon = self._asked(sql, epsilon)
        wish = wish_of(epsilon, error, max_epsilon)
        request = Request(
            sql=sql,
            epsilon=wish.maximum if wish is not None else _price(epsilon),
            mechanism=mechanism,
            error_bars=error_bars,
            analyst=self.analyst if analyst is None else analyst,
            dataset=self.dataset,
        )
        if wish is not None:
            from sqlrs.wished_release import release_wished_table

            return release_wished_table(request, wish, self._desk(progress))
        return release_table(
            request,
            engine=self.engine,
            catalog=self.catalog,
            ledger=self.ledger,
            settings=self.settings,
            progress=_checked_progress(progress),
        )

    def price(
        self,
        sql: str,
        *,
        error: Number | None = None,
        max_epsilon: Number = 1,
        analyst: str | None = None,
    ) -> Prices:
        """What is known of the price of an answer without spending any: nothing is charged.

        Where the query fixes its sensitivity: the epsilon of a wished error. Elsewhere the widths
        as multiples of the sensitivity, or by the scale that an earlier question released.
        """
        self._require_rows()
        request = Request(
            sql=sql,
            epsilon=max_epsilon,
            analyst=self.analyst if analyst is None else analyst,
            dataset=self.dataset,
        )
        # With no wish, one that any price grants.
        wish = Wish(MAX_ERROR if error is None else error, max_epsilon)
        from sqlrs.prices import prices_of

        return prices_of(request, wish, self._desk(None), wished=error is not None)

    def dry_run(self, sql: str, epsilon: Number = 1, *, progress: Progress | None = None) -> DryRun:
        """Run a query as a release would and say how long that took: for the owner's eyes alone.

        Nothing is charged, and the answer is dropped.
        """
        from sqlrs.owner.dry_run import dry_run

        self._require_rows()
        sql, asked = self._asked(sql, epsilon)
        return dry_run(
            Request(sql=sql, epsilon=_price(asked), dataset=self.dataset),
            engine=self.engine,
            catalog=self.catalog,
            settings=replace(self.settings, refused_queries=()),
            progress=_checked_progress(progress),
        )

    def _asked(self, sql: str, epsilon: Number | None) -> tuple[str, Number | None]:
        """The text and the price, also where both are written as BigQuery wants them."""
        clause = without_clause(arguments.text("sql", sql))
        unit = self.catalog.unit
        check_unit_column(clause.unit_column, None if unit is None else unit.name)
        if clause.epsilon is None:
            return clause.sql, epsilon
        if epsilon is not None and parse_epsilon(epsilon) != parse_epsilon(clause.epsilon):
            raise UsageError("the text and the caller name different epsilons", hint="give one")
        return clause.sql, clause.epsilon

    def _desk(self, progress: Progress | None) -> WishDesk:
        from sqlrs.wished_steps import WishDesk

        return WishDesk(
            self.engine, self.catalog, self.ledger, self.settings, _checked_progress(progress)
        )

    def explain(
        self,
        sql: str,
        epsilon: Number = 1,
        *,
        mechanism: str = DEFAULT,
        shape: int | None = None,
        error_bars: Number | None = None,
    ) -> Explanation | StatementExplanation | Contradiction:
        """The query graph, residuals, plans and error multiple, from the schema alone.

        Of a statement with groups also how many there are; public rows are read for that.
        """
        request = Request(
            sql=sql, epsilon=epsilon, mechanism=mechanism, shape=shape, error_bars=error_bars
        )
        from sqlrs.owner.explain import Explanation
        from sqlrs.owner.explain_statement import explained

        chosen = request.chosen_mechanism()
        compiled = compiled_text(sql, self.catalog, self.settings)
        if isinstance(compiled, Contradiction):
            return compiled
        if isinstance(compiled, CompiledStatement):
            return explained(compiled, request, self.engine, self.catalog, self.settings)
        return Explanation(
            compiled.residuals,
            chosen,
            self.catalog.dialect,
            self.settings.plan,
            self.settings.sizes,
        )

    def sql(self, sql: str, dialect: str | None = None) -> tuple[Statement, ...]:
        """The statement of the count and of each residual, as text of the dialect."""
        from sqlrs.owner.statements import statements

        compiled = Compiled.of(sql, self.catalog, self.settings)
        if isinstance(compiled, Contradiction):
            return ()
        return statements(
            compiled.residuals,
            self.catalog.dialect if dialect is None else dialect,
            self.settings.plan,
        )

    def sensitivity(
        self,
        sql: str,
        method: str = "refined",
        beta: Number = "0.1",
        *,
        progress: Progress | None = None,
    ) -> Diagnosis:
        """A sensitivity of the query on the data. For the owner: the result is not private."""
        from sqlrs.owner.diagnose import diagnose

        self._require_rows()
        return diagnose(
            sql,
            method=method,
            beta=beta,
            engine=self.engine,
            catalog=self.catalog,
            settings=self.settings,
            progress=_checked_progress(progress),
        )

    def sensitivities(
        self, sql: str, beta: Number = "0.1", *, progress: Progress | None = None
    ) -> dict[str, Diagnosis | QueryRefused]:
        """All sensitivities side by side. For the owner: the results are not private."""
        from sqlrs.owner.diagnose import diagnose_all

        self._require_rows()
        return diagnose_all(
            sql,
            beta=beta,
            engine=self.engine,
            catalog=self.catalog,
            settings=self.settings,
            progress=_checked_progress(progress),
        )

    def _require_rows(self) -> None:
        if self.schema_only:
            raise UsageError("this database was opened for its schema only; no key was checked")

    def close(self) -> None:
        """Close the connection."""
        self.engine.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def wish_of(
    epsilon: Number | None, error: Number | None, max_epsilon: Number | None
) -> Wish | None:
    """The wish, None where a price is given instead; one of the two is needed."""
    if (epsilon is None) == (error is None):
        raise UsageError(
            "give either epsilon or a wished error",
            hint="epsilon=1 spends that much; error=100, max_epsilon=1 as much as the error takes",
        )
    if error is None:
        if max_epsilon is not None:
            raise UsageError("max_epsilon is for a wished error", hint="give error too")
        return None
    if max_epsilon is None:
        raise UsageError(
            "a wished error needs the most that it may cost", hint="give max_epsilon, such as 1"
        )
    return Wish(error, max_epsilon)


def _price(epsilon: Number | None) -> Number:
    if epsilon is None:
        raise UsageError("no epsilon was given")
    return epsilon


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


def _checked_progress(given: Progress | None) -> Progress | None:
    # One that cannot be called would fail after the charge.
    if given is not None and not callable(given):
        raise UsageError("progress must be a function, or None")
    return given


def _names(what: str, given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Names of tables; a text is one name, not a list of letters."""
    if given is None:
        return ()
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Iterable) or not all(isinstance(n, str) for n in (*names,)):
        raise UsageError(f"{what} holds names of tables", hint=f'write {what}=["visit"]')
    return tuple(names)
