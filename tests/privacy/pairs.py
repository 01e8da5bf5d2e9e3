"""Two neighbouring databases through the whole pipeline: SQL text -> measured values -> S.

`Pipeline` compiles a query as a release does and evaluates it on a DuckDB connection with the plans
a release uses; `compare` checks on one pair of neighbours what the privacy proofs assume:

"count"   the measured count is what DuckDB says of the analyst's own text,
"step"    T(I) ≤ Ψ_r(T(I')) for the table r of the changed row,
"local"   |q(I) − q(I')| ≤ L(T(I)), and ≤ S(I),
"smooth"  decay · S(I) ≤ S(I'), for the refined and for the paper's sensitivity.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import duckdb
from sqlglot import exp

from sqlrs.catalog import Catalog, Routine, Table
from sqlrs.compiled import Compiled
from sqlrs.compiler.simplify import Contradiction
from sqlrs.engines.base import Row, one_integer
from sqlrs.measuring.measure import Measured, measure
from sqlrs.mechanisms.smooth import paper, refined
from sqlrs.residuals.residual import Members
from sqlrs.sensitivity.refined import released_sensitivity
from sqlrs.sensitivity.residual_bound import residual_sensitivity
from sqlrs.sensitivity.steps import compile_recursion
from sqlrs.sensitivity.weights import Weights
from sqlrs.settings import Settings
from tests.support.brute import keys_hold
from tests.support.special import definition

Rows = tuple[tuple[Any, ...], ...]
Identity = tuple[str | None, str]
Contents = Mapping[Identity, Rows]

MECHANISMS = (
    refined(Decimal(1), None, None),
    refined(Decimal("0.3"), 2, None),
    refined(Decimal(4), 10, None),
    paper(Decimal(2), None, None),
)
# Bounds that no mechanism of the above uses, where other distances decide.
WEIGHTS = (Weights(Fraction(1, 2)), Weights(Fraction(4, 5)))


class World:
    """One DuckDB connection that is filled again and again; an engine as `measure` wants it."""

    dialect = "duckdb"

    def __init__(self) -> None:
        self.connection = duckdb.connect(config={"threads": 1})
        self._filled: dict[Identity, tuple[str, ...]] = {}

    def create(self, catalog: Catalog) -> None:
        """Empty tables of the catalog, and no others of the same names."""
        for table in catalog.tables:
            columns = ", ".join(map(definition, table.columns))
            self.connection.execute(f'CREATE OR REPLACE TABLE "{table.name}" ({columns})')
        self._filled = {table.identity: () for table in catalog.tables}

    def fill(self, contents: Contents) -> None:
        """Make the tables hold exactly these rows."""
        for identity, rows in contents.items():
            # By their texts: values that are equal, as 'a' and 'A' may be, are not the same rows.
            written = tuple(repr(row) for row in rows)
            if self._filled[identity] == written:
                continue
            self.connection.execute(f'DELETE FROM "{identity[1]}"')
            if rows:
                marks = ", ".join(f"({', '.join('?' for _ in row)})" for row in rows)
                values = [value for row in rows for value in row]
                self.connection.execute(f'INSERT INTO "{identity[1]}" VALUES {marks}', values)
            self._filled[identity] = written

    def numbers(self, texts: Sequence[str]) -> list[int]:
        """The one integer of each statement, all of them in one round."""
        together = f"SELECT {', '.join(f'({text})' for text in texts)}"
        (row,) = self.connection.execute(together).fetchall()
        return [one_integer([(value,)]) for value in row]

    @contextmanager
    def snapshot(self) -> Iterator[_Snapshot]:
        """The seam that `measure` reads through; nothing else writes here."""
        yield _Snapshot(self)


@dataclass(frozen=True)
class _Snapshot:
    world: World

    def scalar(self, statement: exp.Expression) -> int:
        return self.world.numbers([statement.sql(dialect="duckdb")])[0]

    def rows(self, statement: exp.Expression) -> list[Row]:
        return self.world.connection.execute(statement.sql(dialect="duckdb")).fetchall()

    def catalog(self) -> Catalog:
        raise NotImplementedError("what is measured is compiled already")

    def routines(self, names: Collection[str]) -> tuple[Routine, ...]:
        raise NotImplementedError("what is measured is compiled already")

    def interrupt(self) -> None:
        raise NotImplementedError("nothing here runs long")


@dataclass(frozen=True)
class _Recorder(_Snapshot):
    """Keeps the statements for one integer and answers the i-th of them with i."""

    statements: list[str] = field(default_factory=list)
    dialect = "duckdb"

    @contextmanager
    def snapshot(self) -> Iterator[_Recorder]:
        yield self

    def scalar(self, statement: exp.Expression) -> int:
        self.statements.append(statement.sql(dialect="duckdb"))
        return len(self.statements)


@dataclass(frozen=True)
class Point:
    """One database as the pipeline sees it."""

    direct: int
    count: int
    values: Mapping[Members, int]
    sensitivities: tuple[tuple[Fraction, Fraction], ...]
    """Of each mechanism and each further sequence of weights: S and the decay."""


class Pipeline:
    """A query, compiled once, on many databases. Statements are made once, by `measure` itself."""

    def __init__(
        self,
        sql: str,
        catalog: Catalog,
        settings: Settings | None = None,
    ) -> None:
        self.sql = sql
        self.settings = settings or Settings(plan="plain")
        compiled = Compiled.of(sql, catalog, self.settings)
        self._recorded: tuple[list[str], Measured] | None = None
        self.never = isinstance(compiled, Contradiction)
        if isinstance(compiled, Contradiction):
            return
        self.residuals = compiled.residuals

    @property
    def wanted(self) -> tuple[Members, ...]:
        """The sets that some mechanism needs."""
        found = {m for mechanism in MECHANISMS for m in mechanism.bound.wanted(self.residuals)}
        return tuple(sorted(found, key=sorted))

    def _statements(self, world: World) -> tuple[list[str], Measured]:
        """The statements of the first database serve all others: a plan never changes a value."""
        if self._recorded is None:
            recorder = _Recorder(world)
            measured = measure(recorder, self.residuals, self.wanted, plan=self.settings.plan)
            self._recorded = recorder.statements, measured
        return self._recorded

    def at(self, world: World, *, fresh: bool = False) -> Point:
        """The point of the world's present contents; ``fresh`` runs `measure` itself again."""
        if self.never:
            return Point(world.numbers([self.sql])[0], 0, {}, ())
        if fresh:
            measured = measure(world, self.residuals, self.wanted, plan=self.settings.plan)
            (direct,) = world.numbers([self.sql])
            count, values = measured.count, measured.values
        else:
            texts, recorded = self._statements(world)
            direct, *results = world.numbers([self.sql, *texts])
            # The recorder answered the i-th statement with i.
            found = {e.residual.members: results[e.value - 1] for e in recorded.evaluations}
            count = found[self.residuals.query.everything]
            values = self.residuals.assemble(self.wanted, found)
        return Point(direct, count, values, tuple(self._sensitivities(values)))

    def _sensitivities(self, values: Mapping[Members, int]) -> Iterator[tuple[Fraction, Fraction]]:
        for mechanism in MECHANISMS:
            weights = mechanism.noise.weights
            yield mechanism.bound.fold(self.residuals, values, weights).value, weights.decay
        for weights in WEIGHTS:
            yield released_sensitivity(self.residuals, values, weights).value, weights.decay
            yield residual_sensitivity(self.residuals, values, weights).value, weights.decay

    def compare(self, table: Table, here: Point, there: Point) -> list[str]:
        """What fails on two databases that differ in a row of the table, in this direction."""
        failed = []
        if here.count != here.direct:
            failed.append("count")
        if self.never:
            return failed
        changed = abs(here.count - there.count)
        recursion = compile_recursion(self.residuals)
        mine = tuple(here.values[m] for m in recursion.coordinates)
        others = tuple(there.values[m] for m in recursion.coordinates)
        steps = [step for step in recursion.steps if step.table == table.label]
        grown = steps[0](others) if steps else others
        if any(value > bound for value, bound in zip(mine, grown, strict=True)):
            failed.append("step")
        if changed > recursion.last(mine):
            failed.append("local")
        for (ours, decay), (theirs, _) in zip(here.sensitivities, there.sensitivities, strict=True):
            if changed > ours:
                failed.append("local")
            if decay * ours > theirs:
                failed.append("smooth")
        return sorted(set(failed))


def neighbours(
    contents: Contents,
    tables: Sequence[Table],
    values: Mapping[str, Sequence[Any]],
    random: Random,
    most: int,
) -> list[tuple[Table, Contents]]:
    """Databases that differ in one row of one private table: all, or a random part of them."""
    found: list[tuple[Table, Contents]] = []
    for table in tables:
        rows = contents[table.identity]
        without = [rows[:i] + rows[i + 1 :] for i in range(len(rows))]
        columns = [
            [*values[c.type.name], None] if c.nullable else list(values[c.type.name])
            for c in table.columns
        ]
        new = list(product(*columns))
        own: list[Rows] = list(without)
        for base in (rows, *without):
            few = len(new) * (1 + len(rows)) <= most
            picked = new if few else random.sample(new, min(4, len(new)))
            own += [(*base, row) for row in picked if keys_hold(table, [*base, row])]
        found += [(table, {**contents, table.identity: other}) for other in own]
    return found if len(found) <= most else random.sample(found, most)
