"""Statements as texts: all neighbours of tiny databases, with the exact privacy loss of a release.

From the text on everything is real: parsing, the choice of the mechanism, what the engine measures.
Only the samplers are replaced, by ones that add nothing and tell their law.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations, combinations_with_replacement

import duckdb
import pytest

import sqlrs
from sqlrs.before_charge import Groups, mechanisms_of
from sqlrs.compiled import CompiledStatement
from sqlrs.engines.base import Opened, Snapshot
from sqlrs.measuring.measurements import Measurements
from sqlrs.mechanisms.vector_base import VectorMechanism
from sqlrs.mechanisms.vector_constant import ConstantVector
from sqlrs.mechanisms.vector_general import GeneralVector
from sqlrs.mechanisms.vector_smooth import ParallelVector, SingleNumber
from tests.privacy.vector_worlds import Released, loss, recorded

# The chances are exact but for the last of 60 digits.
ROUNDED = Decimal("1e-40")
SCHEMA = """
CREATE TABLE ward (w_id INTEGER PRIMARY KEY, w_name VARCHAR);
CREATE TABLE kind (k_x INTEGER, k_g INTEGER);
CREATE TABLE person (
    p_id INTEGER PRIMARY KEY, p_ward INTEGER, p_sex VARCHAR CHECK (p_sex IN ('f', 'm')));
CREATE TABLE visit (
    v_person INTEGER NOT NULL, v_cost INTEGER CHECK (v_cost BETWEEN -1 AND 2),
    v_kind INTEGER NOT NULL CHECK (v_kind BETWEEN 0 AND 1));
INSERT INTO ward VALUES (0, 'A'), (1, 'B'), (2, NULL);
INSERT INTO kind VALUES (0, 0), (0, 1), (1, 1), (1, 1);
"""

Row = tuple[object, ...]
# The rows of person and of visit.
Contents = tuple[tuple[Row, ...], tuple[Row, ...]]
PERSONS: tuple[Row, ...] = ((0, 0, "f"), (0, 1, None), (1, 1, "m"))
VISITS: tuple[Row, ...] = ((0, 2, 0), (0, -1, 1), (1, None, 0))


@dataclass
class Tiny:
    """A database whose private tables hold now these rows, now those."""

    connection: duckdb.DuckDBPyConnection
    database: sqlrs.Database

    def mechanisms(self, sql: str) -> set[type[VectorMechanism]]:
        """What releases the statement's measures."""
        compiled = CompiledStatement.of(sql, self.database.catalog, self.database.settings)
        with self.database.engine.snapshot() as snapshot:
            return {type(one) for one, _ in self._released(compiled, snapshot)}

    def worst(self, sql: str, *, strict: bool) -> Decimal:
        """The greatest loss of a measure over all neighbours, as a multiple of its price."""
        compiled = CompiledStatement.of(sql, self.database.catalog, self.database.settings)
        known: dict[Contents, list[tuple[Decimal, Released]]] = {}

        def of(contents: Contents) -> list[tuple[Decimal, Released]]:
            key = (tuple(sorted(contents[0], key=str)), tuple(sorted(contents[1], key=str)))
            if key not in known:
                self._fill(key)
                with self.database.engine.snapshot() as snapshot:
                    known[key] = [
                        (mechanism.prices[0], released)
                        for mechanism, released in self._released(compiled, snapshot)
                    ]
            return known[key]

        found = set()
        names = {table.name for query in compiled.queries for table in query.tables}
        for one, other in neighbours("person" in names, "visit" in names, strict=strict):
            for (price, here), (same, there) in zip(of(one), of(other), strict=True):
                assert price == same
                if here != there:
                    found.add((price, here, there))
        return max(loss(here, there) / price for price, here, there in found)

    def _fill(self, contents: Contents) -> None:
        self.connection.execute("DELETE FROM person; DELETE FROM visit")
        for name, rows in zip(("person", "visit"), contents, strict=True):
            for row in rows:
                self.connection.execute(f"INSERT INTO {name} VALUES (?, ?, ?)", row)

    def _released(
        self, compiled: CompiledStatement, snapshot: Snapshot
    ) -> Iterator[tuple[VectorMechanism, Released]]:
        settings, engine = self.database.settings, self.database.engine
        groups = Groups.read(compiled.statement.aggregations, snapshot, settings)
        mechanisms = mechanisms_of(compiled, groups, Decimal(1), None, settings)
        measurements = Measurements(Opened(snapshot, engine.dialect))
        for asked, one in mechanisms.items():
            yield one, recorded(one, measurements, asked[0], groups.of[asked])


def neighbours(persons: bool, visits: bool, *, strict: bool) -> Iterator[tuple[Contents, Contents]]:
    """Databases with a row more than another one, and (strict) with one row exchanged.

    ``persons``, ``visits``: whether that table has rows; both have fewer than one alone.
    """
    most = 1 if persons and visits else 2
    for own in bags(PERSONS if persons else (), most):
        taken = {person[0] for person in own}
        if len(taken) < len(own):
            continue
        for other in bags(VISITS if visits else (), most):
            added: list[list[Contents]] = [
                [((*own, row), other) for row in PERSONS if persons and row[0] not in taken],
                [(own, (*other, row)) for row in VISITS if visits],
            ]
            for larger in added:
                yield from (((own, other), more) for more in larger)
                if strict:
                    yield from combinations(larger, 2)


def bags(rows: tuple[Row, ...], most: int) -> Iterator[tuple[Row, ...]]:
    for size in range(most + 1):
        yield from combinations_with_replacement(rows, size)


def opened(neighbourhood: str) -> Tiny:
    connection = duckdb.connect()
    connection.execute(SCHEMA)
    settings = sqlrs.Settings(neighbours=neighbourhood)
    return Tiny(connection, sqlrs.connect(connection, public=["ward", "kind"], settings=settings))


@pytest.fixture(scope="module")
def strict() -> Iterator[Tiny]:
    tiny = opened("strict")
    with tiny.database:
        yield tiny


@pytest.fixture(scope="module")
def add_remove() -> Iterator[Tiny]:
    tiny = opened("add-remove")
    with tiny.database:
        yield tiny


SEXES = "SELECT p_sex, count(*) FROM person GROUP BY p_sex"
PAIRS = (
    "SELECT a.v_kind, count(*) FROM visit a JOIN visit b ON a.v_kind = b.v_kind GROUP BY a.v_kind"
)
DISTINCT = "SELECT k_g, count(DISTINCT v_person) FROM visit JOIN kind ON k_x = v_kind GROUP BY k_g"
OF_ONE_PERSON = (
    "SELECT a.v_kind, count(*) FROM visit a JOIN visit b ON a.v_person = b.v_person "
    "GROUP BY a.v_kind"
)
LEFT = "person LEFT JOIN visit ON v_person = p_id AND v_kind = 0"
STATEMENTS: dict[str, type[VectorMechanism]] = {
    SEXES: ConstantVector,
    PAIRS: ParallelVector,
    DISTINCT: ConstantVector,
    OF_ONE_PERSON: GeneralVector,
    "SELECT w_name, count(*) FROM ward LEFT JOIN person ON p_ward = w_id "
    "GROUP BY w_name": ConstantVector,
    "SELECT w_name, count(*) FROM person LEFT JOIN ward ON p_ward = w_id "
    "GROUP BY w_name": ConstantVector,
    "SELECT sum(v_cost) FROM visit": ConstantVector,
    "SELECT k_g, sum(v_cost) FROM kind JOIN visit ON k_x = v_kind GROUP BY k_g": ConstantVector,
    "SELECT v_kind, count(v_cost), count(*) FILTER (WHERE v_cost > 0) FROM visit "
    "GROUP BY v_kind": ConstantVector,
    "SELECT k, count(*) FROM (SELECT v_kind AS k FROM visit UNION ALL "
    "SELECT v_person FROM visit WHERE v_person IN (0, 1)) AS u GROUP BY k": ConstantVector,
    f"SELECT v_kind, sum(v_cost) FROM {LEFT} GROUP BY v_kind": GeneralVector,
    f"SELECT count(*) FROM {LEFT}": SingleNumber,
    # Each table's part counts several times.
    "SELECT sum(a.v_cost + 9 * b.v_cost) FROM visit a JOIN visit b "
    "ON a.v_kind = b.v_kind": SingleNumber,
    "SELECT sum(v_cost + 9 * least(greatest(1 - k_x, 0), 1)) FROM visit "
    "JOIN kind ON k_x = v_kind": ConstantVector,
    "SELECT p_sex, count(*) FROM person WHERE p_id NOT IN (SELECT v_person FROM visit) "
    "GROUP BY p_sex": ConstantVector,
}


@pytest.mark.parametrize("sql", STATEMENTS)
def test_no_neighbour_is_told_apart_by_more_than_the_price(strict: Tiny, sql: str) -> None:
    assert strict.mechanisms(sql) == {STATEMENTS[sql]}
    assert Decimal("0.1") < strict.worst(sql, strict=True) <= 1 + ROUNDED


@pytest.mark.parametrize("sql", [SEXES, PAIRS, OF_ONE_PERSON])
def test_nor_a_row_that_comes_or_goes(add_remove: Tiny, sql: str) -> None:
    assert Decimal("0.4") < add_remove.worst(sql, strict=False) <= 1 + ROUNDED


def test_an_exchanged_row_needs_twice_the_noise(add_remove: Tiny) -> None:
    assert add_remove.worst(SEXES, strict=True) > Decimal("1.9")
