"""A test double of the backend: real counts from DuckDB, fixed noise, a budget in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal

import duckdb
from sqlglot import exp, parse_one

from sqlrs.answer import Answer
from sqlrs.errors import BudgetExhausted, EngineFailed, Interrupted, QueryRefused, Span
from sqlrs.proxy.backend import (
    Cancellation,
    CountOutcome,
    ExposedColumn,
    ExposedSchema,
    ExposedTable,
    HistoryRow,
    Hold,
    TableOutcome,
    TextRow,
    at_once,
)
from sqlrs.quoting import Quote, Sketch
from sqlrs.table_answer import TableAnswer

EDGES = [(a, b) for a in range(12) for b in range(12) if a != b and (a * b) % 5 != 2]
NOISE = 1000


class DoubleChecker:
    """Refuses all but simple counts over edge and person."""

    def check(self, sql: str) -> None:
        tree = parse_one(sql, read="postgres")
        if not isinstance(tree, exp.Select) or not isinstance(tree.selects[0].unalias(), exp.Count):
            raise QueryRefused("only count(*) is answered", hint="write SELECT count(*)")
        for node in tree.find_all(exp.Window, exp.Group, exp.Limit, exp.Having, exp.Union):
            raise QueryRefused(f"{node.key.upper()} is not supported")
        for node in tree.find_all(exp.Anonymous):
            span = Span(node.meta["start"], node.meta["end"] + 1)
            raise QueryRefused("this function is not supported", span=span, text=sql)
        allowed = {"edge", "person"}
        if {table.name for table in tree.find_all(exp.Table)} - allowed:
            raise QueryRefused("there is no such table", sqlstate="42P01")

    def sketch(self, sql: str) -> Sketch:
        raise QueryRefused("there is no console here")


class DoubleBackend:
    """Answers ``count(*)`` over edge and person; its noise is the constant NOISE."""

    def __init__(self, budget: Decimal = Decimal(10)) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("CREATE TABLE edge (src BIGINT, dst BIGINT)")
        self._connection.executemany("INSERT INTO edge VALUES (?, ?)", EDGES)
        self._connection.execute(
            "CREATE TABLE person (id INT, name TEXT, born DATE, height DOUBLE)"
        )
        self._connection.execute("INSERT INTO person VALUES (1, 'Ada', '1815-12-10', 1.65)")
        self._lock = threading.Lock()
        self.budget = budget
        self.spent: dict[str, Decimal] = {}
        self.rows: dict[str, list[HistoryRow]] = {}
        self.seconds = 0.0
        self.waiting = 0
        self.breaks: Exception | None = None
        self.ill: str | None = None

    def schema(self) -> ExposedSchema:
        edge = ExposedTable(
            "edge",
            (ExposedColumn("src", "bigint", False), ExposedColumn("dst", "bigint", False)),
            (("src", "dst"),),
        )
        person = ExposedTable(
            "person",
            (
                ExposedColumn("id", "integer", False),
                ExposedColumn("name", "text"),
                ExposedColumn("born", "date"),
                ExposedColumn("height", "double precision"),
            ),
            (("id",),),
        )
        return ExposedSchema((edge, person))

    def checker(self) -> DoubleChecker:
        return DoubleChecker()

    def count(
        self,
        analyst: str,
        sql: str,
        *,
        epsilon: Decimal,
        error_bars: Decimal | None,
        cancel: Cancellation,
        hold: Hold = at_once,
        error: Decimal | None = None,
    ) -> CountOutcome:
        self.checker().check(sql)
        cost = epsilon + (error_bars or 0)
        with self._lock:
            for row in self.rows.get(analyst, []):
                if (row.sql, row.epsilon) == (sql, cost) and row.answer is not None:
                    return CountOutcome(row.answer, cost, repeated=True)
            spent = self.spent.get(analyst, Decimal(0)) + cost
            if spent > self.budget:
                raise BudgetExhausted("the budget is exhausted")
            self.spent[analyst] = spent
        with self._lock:
            self.waiting += 1
        try:
            if cancel.wait(self.seconds):
                raise Interrupted("stopped")
        finally:
            with self._lock:
                self.waiting -= 1
        if self.breaks is not None:
            raise self.breaks
        text = parse_one(sql, read="postgres").sql(dialect="duckdb")
        found = self._connection.cursor().execute(text).fetchone()
        if found is None:
            raise EngineFailed("the database failed")
        answer = int(found[0]) + NOISE
        hold()
        with self._lock:
            row = HistoryRow(datetime.now(UTC), sql, cost, "released", answer)
            self.rows.setdefault(analyst, []).insert(0, row)
        bars = None if error_bars is None else (answer - 7, answer + 7)
        return CountOutcome(answer, cost, bars)

    def table(
        self,
        analyst: str,
        sql: str,
        *,
        types: Sequence[int],
        epsilon: Decimal,
        error_bars: Decimal | None,
        cancel: Cancellation,
        hold: Hold = at_once,
        error: Decimal | None = None,
    ) -> TableOutcome:
        raise QueryRefused("there are only counts here")

    def answer(self, analyst: str, sql: str, **how: object) -> Answer | TableAnswer:
        raise QueryRefused("there is no console here")

    def quote(self, analyst: str, sql: str, **how: object) -> tuple[Quote, bool]:
        raise QueryRefused("there is no console here")

    def explain(
        self, sql: str, *, epsilon: Decimal, error_bars: Decimal | None, cancel: Cancellation
    ) -> str:
        return f"a count at epsilon {epsilon}"

    def read(
        self, sql: str, *, rows: int, characters: int, cancel: Cancellation
    ) -> Sequence[TextRow]:
        raise QueryRefused("nothing here is public")

    def trouble(self) -> str | None:
        return self.ill

    def remaining(self, analyst: str) -> Decimal:
        return self.budget - self.spent.get(analyst, Decimal(0))

    def own_budget(self, analyst: str) -> None:
        return None

    def dataset_budget(self) -> None:
        return None

    def history(self, analyst: str, limit: int) -> Sequence[HistoryRow]:
        return self.rows.get(analyst, [])[:limit]
