"""Outer joins, NOT EXISTS, NOT IN and UNION ALL as signed sums, against both engines."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sqlrs.catalog import Catalog, Column, ColumnType, Family, Table
from sqlrs.compiler.cut import cut
from sqlrs.compiler.grammar import check_grammar
from sqlrs.compiler.inline import inline_aggregate
from sqlrs.compiler.lower import lower
from sqlrs.compiler.parse import parse_query
from sqlrs.compiler.simplify import Contradiction, simplify
from sqlrs.compiler.source import read_source
from sqlrs.engines.base import Opened
from sqlrs.errors import QueryRefused
from sqlrs.measuring.measurements import Measurements
from sqlrs.query import Query
from sqlrs.residuals.residual import Residuals
from tests.support.engine_fixtures import BothEngines
from tests.support.examples import examples

_INT = ColumnType(Family.INTEGER, "INTEGER")
_TEXT = ColumnType(Family.TEXT, "VARCHAR")


def _table(name: str, *columns: Column, key: str | None = "id") -> Table:
    return Table(
        name,
        columns,
        frozenset({frozenset({key})}) if key is not None else frozenset[frozenset[str]](),
    )


TABLES = (
    _table("a", Column("id", _INT, False), Column("x", _INT), Column("t", _TEXT)),
    _table("b", Column("id", _INT, False), Column("x", _INT), Column("y", _INT)),
    _table("c", Column("id", _INT, False), Column("y", _INT, False)),
    _table("bag", Column("x", _INT), Column("y", _INT), key=None),
)

ANSWERED = [
    "SELECT count(*) FROM a LEFT JOIN b ON a.x = b.x",
    "SELECT count(*) FROM a LEFT OUTER JOIN b ON a.x = b.x AND a.id > 1",
    "SELECT count(*) FROM a LEFT JOIN b ON a.x = b.x WHERE b.id IS NULL",
    "SELECT count(*) FROM a LEFT JOIN b ON a.x = b.x WHERE b.id IS NOT NULL",
    "SELECT count(*) FROM a LEFT JOIN b ON a.x = b.x WHERE b.y IS NULL OR b.y > 1",
    "SELECT count(*) FROM a LEFT JOIN b ON a.x = b.x WHERE coalesce(b.y, 1) = 1",
    "SELECT count(*) FROM a LEFT JOIN b ON a.x = b.x WHERE NOT (b.y > 1)",
    "SELECT count(*) FROM a LEFT JOIN b ON a.x = b.x WHERE b.y IS DISTINCT FROM 1",
    "SELECT count(*) FROM a LEFT JOIN b ON a.x = b.x WHERE "
    "CASE WHEN b.id IS NULL THEN 'none' ELSE 'some' END = 'none' AND a.id < 3",
    "SELECT count(b.y) FROM a LEFT JOIN b ON a.x = b.x",
    "SELECT count(a.x) FROM a LEFT JOIN b ON a.x = b.x",
    "SELECT count(*) FROM a LEFT JOIN bag ON a.x = bag.x AND bag.y < a.id",
    "SELECT count(*) FROM bag RIGHT JOIN a ON a.x = bag.x WHERE bag.y IS NULL",
    "SELECT count(*) FROM a FULL JOIN b ON a.x = b.x",
    "SELECT count(*) FROM a FULL OUTER JOIN b ON a.x = b.x WHERE a.id IS NULL OR b.id IS NULL",
    "SELECT count(*) FROM a LEFT JOIN b USING (x) WHERE x > 1",
    "SELECT count(*) FROM a RIGHT JOIN b USING (x) WHERE x > 1",
    "SELECT count(*) FROM a FULL JOIN b USING (id) WHERE id > 1",
    "SELECT count(*) FROM a NATURAL LEFT JOIN c",
    "SELECT count(*) FROM a LEFT JOIN b ON a.x = b.x LEFT JOIN c ON b.y = c.y",
    "SELECT count(*) FROM a LEFT JOIN b ON a.x = b.x LEFT JOIN c ON a.id = c.id WHERE c.y IS NULL",
    "SELECT count(*) FROM a JOIN b ON a.id = b.id LEFT JOIN c ON c.y = b.y AND c.id <> a.id",
    "SELECT count(*) FROM a LEFT JOIN (b JOIN c ON b.y = c.y) ON a.x = b.x",
    "SELECT count(*) FROM a LEFT JOIN (SELECT x, 1 AS flag FROM b) AS d ON a.x = d.x "
    "WHERE d.flag IS NULL",
    "SELECT count(*) FROM a CROSS JOIN c LEFT JOIN b ON a.x = b.x AND c.y = b.y",
    "SELECT count(*) FROM a, c LEFT JOIN b ON c.y = b.y WHERE a.id = c.id",
    "SELECT count(*) FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.x = a.x)",
    "SELECT count(*) FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.x = a.x AND b.y > 1) "
    "AND NOT EXISTS (SELECT 1 FROM c WHERE c.id = a.id)",
    "SELECT count(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.x = a.x) "
    "AND NOT EXISTS (SELECT 1 FROM c WHERE c.y = a.x)",
    "SELECT count(*) FROM a WHERE id NOT IN (SELECT id FROM c)",
    "SELECT count(*) FROM a WHERE NOT id IN (SELECT y FROM c WHERE c.id > 1)",
    "SELECT count(*) FROM (SELECT id FROM a UNION ALL SELECT y FROM c) AS u WHERE u.id > 1",
    "WITH u AS (SELECT id, x FROM a UNION ALL SELECT id, y FROM b) "
    "SELECT count(x) FROM u JOIN c ON u.id = c.id",
    "SELECT count(*) FILTER (WHERE b.y > 1 OR b.y IS NULL) FROM a LEFT JOIN b ON a.x = b.x",
]


@cache
def signed(sql: str, catalog: Catalog) -> list[tuple[int, Query]]:
    """The signed sum that the one count of a statement is."""
    source = read_source(sql, catalog.dialect)
    (below,) = cut(parse_query(source), catalog, source).belows
    check_grammar(below.select, source, catalog, sums=True)
    (aggregate,) = below.aggregates
    parts = inline_aggregate(below, aggregate, catalog, source)
    lowered = [(coefficient, simplify(lower(flat))) for coefficient, flat in parts]
    return [(c, query) for c, query in lowered if not isinstance(query, Contradiction)]


_SMALL = st.one_of(st.none(), st.integers(0, 3))
_IDS = st.lists(st.integers(0, 3), unique=True, max_size=3)


@st.composite
def _rows(draw: st.DrawFn) -> dict[str, list[tuple[object, ...]]]:
    texts = st.one_of(st.none(), st.sampled_from("pq"))
    return {
        "a": [(i, draw(_SMALL), draw(texts)) for i in draw(_IDS)],
        "b": [(i, draw(_SMALL), draw(_SMALL)) for i in draw(_IDS)],
        "c": [(i, draw(st.integers(0, 3))) for i in draw(_IDS)],
        "bag": draw(st.lists(st.tuples(_SMALL, _SMALL), max_size=3)),
    }


@settings(max_examples=examples(5), deadline=None)
@given(rows=_rows())
def test_the_sum_is_what_the_engine_counts(
    both_engines: BothEngines, rows: dict[str, list[tuple[object, ...]]]
) -> None:
    both_engines.load(TABLES, rows)
    for engine in both_engines.engines.values():
        catalog = engine.catalog()
        with engine.snapshot() as snapshot:
            measurements = Measurements(Opened(snapshot, engine.dialect))
            for sql in ANSWERED:
                parts = signed(sql, catalog)
                total = sum(c * measurements.count(Residuals(query)) for c, query in parts)
                plain = snapshot.scalar(exp.maybe_parse(sql, dialect=engine.dialect))
                assert total == plain, sql


REFUSED = {
    "SELECT count(DISTINCT b.y) FROM a LEFT JOIN b ON a.x = b.x": "distinct",
    "SELECT count(*) FROM bag LEFT JOIN a ON a.x = bag.x": "semi_join_needs_key",
    "SELECT count(*) FROM a WHERE x NOT IN (SELECT x FROM b)": "negated_subquery",
    "SELECT count(*) FROM a WHERE id NOT IN (SELECT x FROM b)": "negated_subquery",
    "SELECT count(*) FROM a WHERE EXISTS (SELECT 1 FROM b LEFT JOIN c ON b.y = c.y "
    "WHERE b.x = a.x)": "outer_join",
    "SELECT count(*) FROM a LEFT JOIN (b LEFT JOIN c ON b.y = c.y) ON a.x = b.x": "outer_join",
    "SELECT count(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.x = a.x AND NOT EXISTS "
    "(SELECT 1 FROM c WHERE c.y = b.y))": "negated_subquery",
    "SELECT count(*) FROM a WHERE a.id = 1 OR NOT EXISTS (SELECT 1 FROM b WHERE b.x = a.x)": (
        "negated_subquery"
    ),
    "SELECT count(*) FROM (SELECT id FROM a UNION SELECT y FROM c) AS u": "set_operation",
    "SELECT count(*) FROM (SELECT id FROM a UNION ALL SELECT t FROM a) AS u": "set_operation",
    "SELECT count(*) FROM a LEFT JOIN b ON a.x = b.x AND NOT EXISTS "
    "(SELECT 1 FROM c WHERE c.y = b.y)": "negated_subquery",
    "SELECT count(*) FROM a LEFT JOIN b ON a.x = b.x LEFT JOIN b AS b2 ON a.x = b2.x LEFT JOIN "
    "b AS b3 ON a.x = b3.x LEFT JOIN b AS b4 ON a.x = b4.x": "too_complex",
}


@pytest.mark.parametrize(("sql", "code"), REFUSED.items())
def test_what_is_no_such_sum_is_refused(sql: str, code: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        signed(sql, Catalog("duckdb", TABLES))
    assert refused.value.code == code


def test_a_left_join_is_three_counts() -> None:
    parts = signed(ANSWERED[0], Catalog("duckdb", TABLES))
    assert [coefficient for coefficient, _ in parts] == [1, 1, -1]
    assert [len(query.atoms) for _, query in parts] == [2, 1, 2]
    assert [query.distinct is None for _, query in parts] == [True, True, False]


def test_rows_without_a_partner_need_no_join() -> None:
    """A key is never NULL, so that no result of the join itself has it NULL."""
    sql = "SELECT count(*) FROM a LEFT JOIN b ON a.x = b.x WHERE b.id IS NULL"
    parts = signed(sql, Catalog("duckdb", TABLES))
    assert [(c, len(query.atoms)) for c, query in parts] == [(1, 1), (-1, 2)]
    nullable = sql.replace("b.id", "b.y")
    assert len(signed(nullable, Catalog("duckdb", TABLES))) == 3
