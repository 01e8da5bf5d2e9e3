"""What each unit contributes to a statement: against the text itself, with and without the unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import cast

import pytest
from duckdb import DuckDBPyConnection
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sqlrs.catalog import Catalog, Column, ColumnType, Family, Table, Value
from sqlrs.compiler.statement import compile_statement
from sqlrs.engines.open import open_engine
from sqlrs.measures import Measure, PerUnit, Signed
from sqlrs.measuring.measurements import Measurements
from sqlrs.query import Constant, Term
from sqlrs.residuals.residual import Residuals
from sqlrs.sensitivity.unit_size import measure_size_bound
from sqlrs.units import Link, Owner, Unit
from tests.support import units
from tests.support.brute import Database, Row
from tests.support.examples import examples
from tests.support.strategies import TinyDatabase, load

_INT = ColumnType(Family.INTEGER, "INTEGER")
_KEY = frozenset({frozenset({"id"})})
_TO_A = Link(("a",), (None, "a"), ("id",))
TABLES = (
    Table("a", (Column("id", _INT, False), Column("u", _INT), Column("x", _INT)), _KEY,
          owners=(Owner("u"),)),
    Table("b", (Column("id", _INT, False), Column("u", _INT), Column("x", _INT)), _KEY,
          owners=(Owner("u"),)),
    Table("c", (Column("a", _INT), Column("y", _INT)), owners=(Owner("u", (_TO_A,)),)),
    Table("p", (Column("id", _INT, False), Column("y", _INT)), _KEY, private=False),
)  # fmt: skip
CATALOG = Catalog("duckdb", TABLES, unit=Unit("a.u"))

STATEMENTS = [
    "SELECT count(*) FROM a",
    "SELECT count(*) FROM c",
    "SELECT count(x) FROM a WHERE x < 2",
    "SELECT count(*) FROM a JOIN b ON a.u = b.u AND a.x <> b.x",
    "SELECT count(*) FROM c JOIN a ON c.a = a.id JOIN b ON a.u = b.u",
    "SELECT count(*) FROM c JOIN a ON c.y = a.id AND c.a = a.id",
    "SELECT count(*) FROM a LEFT JOIN b ON a.u = b.u AND a.x = b.x",
    "SELECT count(b.x) FROM a LEFT JOIN b ON a.u = b.u",
    "SELECT count(*) FROM a LEFT JOIN b ON a.u = b.u WHERE b.x IS NULL",
    "SELECT count(*) FROM a FULL JOIN b ON a.u = b.u",
    "SELECT count(*) FROM a LEFT JOIN c ON c.a = a.id",
    "SELECT count(*) FROM a LEFT JOIN p ON a.x = p.id",
    "SELECT count(*) FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.u = a.u)",
    "SELECT count(*) FROM a WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.a = a.id AND y > 1)",
    "SELECT count(*) FROM a WHERE NOT EXISTS (SELECT 1 FROM p WHERE p.y = a.x)",
    "SELECT count(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.u = a.u AND b.x < a.x)",
    "SELECT count(*) FROM a WHERE u IN (SELECT u FROM b WHERE x = 1)",
    "SELECT count(*) FROM (SELECT u FROM a UNION ALL SELECT u FROM b) t",
    "SELECT count(DISTINCT u) FROM a",
    "SELECT count(DISTINCT (u, x)) FROM a",
    "SELECT count(DISTINCT a) FROM c",
    "SELECT count(DISTINCT a.id) FROM a JOIN b ON a.u = b.u",
    "SELECT count(DISTINCT a.u) FROM a JOIN c ON c.a = a.id JOIN p ON c.y = p.y",
    "SELECT sum(x) FROM a",
    "SELECT sum(a.x * b.x) FROM a JOIN b ON a.u = b.u",
    "SELECT sum(a.x) FROM a LEFT JOIN b ON a.u = b.u AND a.x < b.x",
    "SELECT sum(x) FILTER (WHERE x > 0) FROM b",
    "SELECT sum(c.y * p.y) FROM c JOIN p ON c.y = p.id",
    "SELECT count(*) FROM a WHERE u = 1",
]

_SMALL = st.one_of(st.none(), st.integers(-1, 3))
_IDS = st.lists(st.integers(0, 3), unique=True, max_size=4)


@st.composite
def _rows(draw: st.DrawFn) -> dict[str, list[Row]]:
    unit = st.one_of(st.none(), st.integers(0, 2))
    return {
        "a": [(i, draw(unit), draw(_SMALL)) for i in draw(_IDS)],
        "b": [(i, draw(unit), draw(_SMALL)) for i in draw(_IDS)],
        "c": draw(st.lists(st.tuples(_SMALL, _SMALL), max_size=4)),
        "p": [(i, draw(_SMALL)) for i in draw(_IDS)],
    }


def _of_unit(term: Signed, unit: Value) -> Signed | None:
    """The term with a unit's id in the place of its owner."""
    [owner] = term.owners
    if isinstance(owner, Constant):
        return term if owner.value == unit else None

    def bound(given: Term) -> Term:
        return Constant(unit, given.type) if given == owner else given

    query = term.query
    atoms = tuple(
        replace(atom, terms=tuple((column, bound(t)) for column, t in atom.terms))
        for atom in query.atoms
    )
    distinct = None if query.distinct is None else query.distinct - {owner}
    assert all(owner not in p.variables for p in query.predicates)
    return Signed(term.coefficient, replace(query, atoms=atoms, distinct=distinct))


def _total(terms: list[Signed], measurements: Measurements) -> int:
    total = 0
    for term in terms:
        found = measurements.totals(term, Residuals(term.query), ())
        total += term.coefficient * sum(found.values())
    return total


def _by_unit(per_unit: PerUnit, connection: DuckDBPyConnection) -> dict[int, int]:
    """What each unit contributes by a statement about one unit at a time."""
    select = cast(exp.Query, per_unit.select).sql(dialect="duckdb")
    found: dict[int, int] = {}
    for owner, number in connection.execute(select).fetchall():
        found[owner] = found.get(owner, 0) + int(number or 0)
    return found


def _written(texts: list[str], rows: Database) -> list[Fraction]:
    """What each text says of these rows; a sum of none is 0."""
    by_identity = {t.identity: list(rows[t.label]) for t in TABLES}
    found = []
    with load(TinyDatabase(CATALOG, by_identity)) as connection:
        for sql in texts:
            [value] = connection.execute(sql).fetchone() or [None]
            found.append(Fraction(value or 0))
    return found


def _measure(sql: str) -> Measure:
    [aggregation] = compile_statement(sql, CATALOG).aggregations
    [measure] = aggregation.measures
    return measure


MEASURES: Mapping[str, Measure] = {sql: _measure(sql) for sql in STATEMENTS}


@given(rows=_rows(), texts=st.lists(st.sampled_from(STATEMENTS), min_size=4, max_size=4))
@settings(max_examples=examples(15), deadline=None)
def test_what_units_contribute_is_what_their_absence_changes(
    rows: dict[str, list[Row]], texts: list[str]
) -> None:
    whole = _written(texts, units.owned_rows(CATALOG, rows))
    database = TinyDatabase(CATALOG, {t.identity: rows[t.label] for t in TABLES})
    with load(database) as connection:
        measurements = Measurements(open_engine(connection))
        for sql, value in zip(texts, whole, strict=True):
            measure = MEASURES[sql]
            total = _total(list(measure.terms), measurements)
            if measure.per_unit is not None:
                total = sum(_by_unit(measure.per_unit, connection).values())
            assert total * measure.unit == value, sql
        for unit in units.units_in(CATALOG, rows):
            assert isinstance(unit, int)
            others = units.owned_rows(CATALOG, units.without_unit(CATALOG, rows, unit))
            for sql, before, left in zip(texts, whole, _written(texts, others), strict=True):
                measure = MEASURES[sql]
                own = [part for term in measure.terms if (part := _of_unit(term, unit))]
                contributed = _total(own, measurements)
                if measure.per_unit is not None:
                    contributed = _by_unit(measure.per_unit, connection).get(unit, 0)
                assert contributed * measure.unit == before - left, (sql, unit)
                size = measure_size_bound(measure)
                assert size is None or abs(contributed) <= size, (sql, unit)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_every_term_has_one_owner(sql: str) -> None:
    assert all(len(term.owners) == 1 for term in MEASURES[sql].terms)
