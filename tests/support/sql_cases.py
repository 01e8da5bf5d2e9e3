"""Random SQL on random data as values: what the brute-force oracle needs to judge compiled SQL.

`evaluator` makes an `Evaluate` for `tests.support.brute`: the opaque conditions of a compiled query
are trees, whose truth on given values is asked of DuckDB, value by value. `domain` gives every
external variable values enough, also for texts and arithmetic. `Case.of` compiles SQL against an
engine.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise, product
from typing import Any

import duckdb
from sqlglot import exp

from sqlrs.catalog import Catalog, Family, Table
from sqlrs.compiled import Compiled
from sqlrs.compiler.simplify import Contradiction
from sqlrs.engines.base import Engine
from sqlrs.measuring.measure import Measured, measure
from sqlrs.query import Constant, Query, Variable
from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity.refined import reached
from sqlrs.settings import Settings
from tests.support import brute
from tests.support.special import DAYS, Special, place_of
from tests.support.strategies import Row, TinyDatabase

TOGETHER = 3
_TYPES = {
    Family.INTEGER: "BIGINT",
    Family.DECIMAL: "DECIMAL(18, 3)",
    Family.FLOAT: "DOUBLE",
    Family.TEXT: "VARCHAR",
    Family.DATE: "DATE",
    Family.TIMESTAMP: "TIMESTAMP",
}


def evaluator(query: Query) -> brute.Evaluate:
    """An `Evaluate` for the opaque conditions of a compiled query."""
    columns = {
        c.name: _TYPES.get(c.type.family, "VARCHAR") for a in query.atoms for c in a.table.columns
    }
    arguments: dict[Hashable, tuple[str, ...]] = {}
    for general in query.generals:
        types = tuple(_TYPES[v.type.family] for v in general.arguments)
        # One condition may stand between texts here and between numbers there: texts show.
        if general.condition not in arguments or "VARCHAR" not in types:
            arguments[general.condition] = types

    def evaluate(condition: Hashable, values: object) -> bool:
        assert isinstance(condition, exp.Expression)
        if isinstance(values, dict):
            types = tuple(columns[name] for name in values)
            return _truth(_duckdb(condition), tuple(values), types, tuple(values.values()))
        assert isinstance(values, tuple)
        names = tuple(f"v{i}" for i in range(len(values)))
        types = arguments[condition]
        if any(isinstance(v, str) and not isinstance(v, Special) for v in values):
            types = ("VARCHAR",) * len(values)
        return _truth(_duckdb(condition), names, types, values)

    return evaluate


@cache
def _duckdb(condition: exp.Expression) -> str:
    """The text of a condition, its arguments as columns."""
    tree = condition.copy().transform(
        lambda n: exp.column(n.name, quoted=True) if isinstance(n, exp.Placeholder) else n
    )
    return tree.sql(dialect="duckdb")


@cache
def _truth(condition: str, names: tuple[str, ...], types: tuple[str, ...], values: Row) -> bool:
    columns = ", ".join(
        f'CAST(? AS {kind}) AS "{name}"'
        if value is None or isinstance(value, Special)
        else f'? AS "{name}"'
        for name, kind, value in zip(names, types, values, strict=True)
    )
    sql = f"SELECT ({condition}) IS TRUE FROM (SELECT {columns or 1})"
    found = _connection().execute(sql, list(values)).fetchone()
    assert found is not None
    return bool(found[0])


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def count(query: Query, database: brute.Database) -> int:
    """The count of a compiled query by brute force, its opaque conditions asked of DuckDB."""
    return brute.count(query, database, evaluate=evaluator(query))


def domain(query: Query, database: brute.Database, *, wide: int = 0) -> brute.Domain:
    """Every value that can make a difference; ``wide`` adds integers for arithmetic.

    Between two values that occur, as many others matter as variables range over the domain
    together: at most ``TOGETHER`` by the settings that the tests use.
    """
    never_null = brute.never_null_variables(query)

    def values(variable: Variable) -> list[object]:
        family = variable.type.family
        occurring = _occurring(query, database, family)
        if family is Family.INTEGER:
            near = {v + n for v in occurring for n in range(-TOGETHER, TOGETHER + 1)}
            found: list[object] = sorted({*near, *(range(-wide, wide + 1) if wide else ())})
        elif any(isinstance(v, Special) for v in occurring):
            known = {place for v in occurring if (place := place_of(v)) is not None}
            places = {place + n for place in known for n in range(-TOGETHER, TOGETHER + 1)}
            found = [Special("?", place, True) for place in sorted(places)]
        elif family is Family.DATE:
            steps = [timedelta(days=n) for n in range(-TOGETHER, TOGETHER + 1)]
            found = sorted({v + step for v in occurring for step in steps})
        else:
            found = _dense(occurring)
        return found if variable in never_null else [*found, None]

    return values


def _occurring(query: Query, database: brute.Database, family: Family) -> list[Any]:
    """The values of one family in the data and in the query's comparisons."""
    found = {
        row[[c.name for c in atom.table.columns].index(column)]
        for atom in query.atoms
        for column, term in atom.terms
        if term.type.family is family
        for row in database[atom.table.label]
    }
    constants: set[Any] = {
        side.value
        for p in query.comparisons
        for side in (p.left, p.right)
        if isinstance(side, Constant) and side.type.family is family
    }
    if family is Family.FLOAT:
        constants = {float(str(value)) for value in constants}
    return sorted((found | constants) - {None})


def _dense(values: list[Any]) -> list[object]:
    """The values with points between neighbours, below the first and above the last."""
    if not values:
        return []
    if isinstance(values[0], str):
        # t, ta, taa, … lie before the next text that occurs, as those are single letters here.
        return [t + "a" * i for t in ["A", *values] for i in range(TOGETHER + 1)]
    step = timedelta(days=1) if isinstance(values[0], datetime) else type(values[0])(1)
    ends = [values[0] - step, *values, values[-1] + step]
    points = [
        low + (high - low) * i / (TOGETHER + 1)
        for low, high in pairwise(ends)
        for i in range(TOGETHER + 1)
    ]
    return [*points, ends[-1]]


@dataclass(frozen=True)
class Case:
    """One compiled query with the rows it is judged on, by label."""

    residuals: Residuals
    wanted: tuple[Members, ...]
    rows: dict[str, list[Row]]

    @classmethod
    def of(
        cls, sql: str, catalog: Catalog, database: TinyDatabase, settings: Settings
    ) -> Case | None:
        """The case, or None for a query that no data satisfies."""
        compiled = Compiled.of(sql, catalog, settings)
        if isinstance(compiled, Contradiction):
            return None
        residuals = compiled.residuals
        wanted = tuple(dict.fromkeys((*residuals.required, *reached(residuals))))
        by_name = database.by_name
        rows = {table.label: by_name[table.name] for table in catalog.tables}
        return cls(residuals, wanted, rows)

    @property
    def query(self) -> Query:
        return self.residuals.query

    def count(self, rows: brute.Database | None = None) -> int:
        """The count by brute force."""
        return count(self.query, self.rows if rows is None else rows)

    def values(self, rows: brute.Database | None = None, wide: int = 0) -> dict[Members, int]:
        """Every wanted T_E by brute force over every external value."""
        given = self.rows if rows is None else rows
        return brute.residual_values(
            self.residuals,
            self.wanted,
            given,
            domain=domain(self.query, given, wide=wide),
            evaluate=evaluator(self.query),
        )

    def measured(self, engine: Engine, plan: str = "auto") -> Measured:
        """The same by SQL on an engine."""
        return measure(engine, self.residuals, self.wanted, plan=plan)


def universe(tables: Iterable[Table]) -> dict[str, list[Row]]:
    """Every row a neighbour may add: the values of the strategies and some beyond."""
    found = {}
    of_family: dict[Family, list[object]] = {
        Family.TEXT: ["o", "p", "pa", "q"],
        Family.DATE: list(DAYS.values),
    }
    for table in tables:
        choices: list[Sequence[object]] = []
        for column in table.columns:
            values = of_family.get(column.type.family, [-1, 0, 1, 2, 3])
            choices.append([*values, None] if column.nullable else values)
        found[table.label] = list(product(*choices))
    return found


def declared(catalog: Catalog, database: TinyDatabase) -> Catalog:
    """An engine's catalog with the tables public that the case declares public."""
    public = [table.name for table in database.catalog.tables if not table.private]
    return catalog.declare(public=public)


Rows = Mapping[str, list[Row]]
