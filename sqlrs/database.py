"""The Python surface: connect to data, ask private counts, look at plans and diagnostics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from sqlrs.answer import Answer
from sqlrs.catalog import Catalog
from sqlrs.diagnose import Diagnosis, diagnose, diagnose_all
from sqlrs.engines.base import Engine
from sqlrs.engines.open import open_engine
from sqlrs.errors import QueryRefused, UsageError
from sqlrs.explain import Explanation
from sqlrs.ledger import Ledger, MemoryLedger
from sqlrs.measure import Progress
from sqlrs.release import Compiled, Number, Request, Settings, release
from sqlrs.simplify import Contradiction
from sqlrs.statements import Statement, statements

Keys = Mapping[str, Sequence[str] | Sequence[Sequence[str]]]


def connect(
    target: object = "duckdb://",
    *,
    private: Iterable[str] | None = None,
    public: Iterable[str] = (),
    keys: Keys | None = None,
    tables: Mapping[str, str | Path] | None = None,
    ledger: Ledger | None = None,
    analyst: str = "analyst",
    dataset: str = "data",
    settings: Settings | None = None,
    memory_limit: str | None = None,
    temp_directory: str | Path | None = None,
    timeout: float | None = None,
) -> Database:
    """Open a database: a URL, a SQLAlchemy engine, or an open duckdb or psycopg connection.

    A table that is not declared public is private. ``keys`` maps a table to the columns of a key,
    or to a list of keys; each is checked once against the data. Without a ``ledger`` every charge
    is recorded in memory and nothing limits the total.
    """
    engine = open_engine(
        target,
        tables=tables or {},
        memory_limit=memory_limit,
        temp_directory=temp_directory,
        timeout=timeout,
    )
    try:
        declared = {table: _as_keys(key) for table, key in (keys or {}).items()}
        catalog = engine.catalog().declare(private=private, public=public, keys=declared)
        engine.check_keys(catalog, declared)
    except BaseException:
        engine.close()
        raise
    return Database(
        engine,
        catalog,
        ledger=MemoryLedger() if ledger is None else ledger,
        analyst=analyst,
        dataset=dataset,
        settings=settings or Settings(),
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
    ) -> None:
        self.engine = engine
        self.catalog = catalog
        self.ledger = ledger
        self.analyst = analyst
        self.dataset = dataset
        self.settings = settings

    def count(
        self,
        sql: str,
        epsilon: Number,
        *,
        mechanism: str = "polylaplace",
        shape: int | None = None,
        error_bars: Number | None = None,
        analyst: str | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """A private count: charged to the ledger first, then computed, then released with noise."""
        return release(
            Request(
                sql=sql,
                epsilon=epsilon,
                mechanism=mechanism,
                shape=shape,
                error_bars=error_bars,
                analyst=analyst or self.analyst,
                dataset=self.dataset,
            ),
            engine=self.engine,
            catalog=self.catalog,
            ledger=self.ledger,
            settings=self.settings,
            progress=progress,
        )

    def explain(
        self,
        sql: str,
        epsilon: Number = 1,
        *,
        mechanism: str = "polylaplace",
        shape: int | None = None,
    ) -> Explanation | Contradiction:
        """The query graph, residuals, plans and error multiple, from the schema alone."""
        noise = Request(sql=sql, epsilon=epsilon, mechanism=mechanism, shape=shape).noise()
        compiled = Compiled.of(sql, self.catalog, self.settings)
        if isinstance(compiled, Contradiction):
            return compiled
        return Explanation(compiled.residuals, noise, self.catalog.dialect, self.settings.plan)

    def sql(self, sql: str, dialect: str | None = None) -> tuple[Statement, ...]:
        """The statement of the count and of each residual, as text of the dialect."""
        compiled = Compiled.of(sql, self.catalog, self.settings)
        if isinstance(compiled, Contradiction):
            return ()
        return statements(compiled.residuals, dialect or self.catalog.dialect, self.settings.plan)

    def sensitivity(
        self,
        sql: str,
        method: str = "refined",
        beta: Number = "0.1",
        *,
        progress: Progress | None = None,
    ) -> Diagnosis:
        """A sensitivity of the query on the data. For the owner: the result is not private."""
        return diagnose(
            sql,
            method=method,
            beta=beta,
            engine=self.engine,
            catalog=self.catalog,
            settings=self.settings,
            progress=progress,
        )

    def sensitivities(
        self, sql: str, beta: Number = "0.1", *, progress: Progress | None = None
    ) -> dict[str, Diagnosis | QueryRefused]:
        """All sensitivities side by side. For the owner: the results are not private."""
        return diagnose_all(
            sql,
            beta=beta,
            engine=self.engine,
            catalog=self.catalog,
            settings=self.settings,
            progress=progress,
        )

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


def _as_keys(key: Sequence[str] | Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """One key or several, as several."""
    if isinstance(key, str) or not key:
        raise UsageError("a key is a list of columns", hint='write ["src", "dst"]')
    columns = [column for column in key if isinstance(column, str)]
    if len(columns) == len(key):
        return (tuple(columns),)
    return tuple(tuple(one) for one in key)
