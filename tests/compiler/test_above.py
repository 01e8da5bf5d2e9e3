"""What may stand above the cuts, and what is refused with its place."""

from __future__ import annotations

import pytest
from sqlglot import exp

from sqlrs.catalog import Catalog
from sqlrs.compiler.above import check_above, to_duckdb
from sqlrs.compiler.complexity import parse_tokens
from sqlrs.compiler.source import Source, read_source
from sqlrs.dialects import dialect_named
from sqlrs.engines.released import ReleasedRelation, afterwards
from sqlrs.errors import QueryRefused
from sqlrs.refusals import REFUSALS

RELATIONS = [
    ReleasedRelation(
        "released_0",
        (("k0", "VARCHAR"), ("a0", "BIGINT")),
        (("A", 10), ("B", 30), (None, -2)),
    ),
    ReleasedRelation("public_0", (("ward", "VARCHAR"), ("beds", "INTEGER")), (("A", 3),)),
]
COLUMNS = {one.name: dict(one.columns) for one in RELATIONS}


def read(sql: str, dialect: str) -> tuple[exp.Query, Source]:
    source = read_source(sql, dialect)
    [tree] = parse_tokens(source.tokens, source.text, dialect)
    assert isinstance(tree, exp.Query)
    return tree, source


def checked(sql: str, dialect: str) -> exp.Query:
    tree, source = read(sql, dialect)
    check_above(tree, source, Catalog(dialect, ()))
    return to_duckdb(tree, COLUMNS, source)


REFUSED = {
    "SELECT * FROM read_csv('/etc/passwd')": "table_form",
    "SELECT * FROM generate_series(1, 10)": "table_form",
    "SELECT * FROM unnest(ARRAY[1, 2])": "table_form",
    "SELECT * FROM (VALUES (1), (2)) AS t(x)": "table_form",
    "SELECT a0 FROM released_0, LATERAL (SELECT a0 + 1) AS t": "lateral",
    "SELECT a0 FROM released_0 TABLESAMPLE SYSTEM (10)": "table_sample",
    "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x FROM r) SELECT x FROM r": "recursive",
    "SELECT random() FROM released_0": "volatile_function",
    "SELECT now() FROM released_0": "volatile_function",
    "SELECT CURRENT_DATE FROM released_0": "volatile_function",
    "SELECT gen_random_uuid() FROM released_0": "volatile_function",
    "SELECT repeat(k0, 1000000000) FROM released_0": "unknown_function",
    "SELECT lpad(k0, 1000000000, 'x') FROM released_0": "unknown_function",
    "SELECT getenv('HOME') FROM released_0": "volatile_function",
    "SELECT pg_read_file('x') FROM released_0": "volatile_function",
    "SELECT no_such_function(a0) FROM released_0": "unknown_function",
    "SELECT replace(replace(replace(k0, 'a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'), 'a', "
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'), 'a', 'aaaaaaaaaaaaaaa') FROM released_0": "text_growth",
    "WITH a AS (SELECT k0 || k0 || k0 || k0 AS x FROM released_0), "
    "b AS (SELECT x || x || x || x AS x FROM a) SELECT x || x || x || x AS x FROM b": "text_growth",
    "SELECT string_agg(k0, ',') FROM released_0": "aggregate",
    "SELECT stddev(a0) FROM released_0": "aggregate",
    "SELECT median(a0) FROM released_0": "aggregate",
    "SELECT array_agg(a0) FROM released_0": "aggregate",
    "SELECT ntile(4) OVER (ORDER BY a0) FROM released_0": "window",
    "SELECT sum(a0) OVER w FROM released_0 WINDOW w AS (ORDER BY a0)": "window",
    "SELECT sum(a0) OVER (ORDER BY a0 RANGE BETWEEN 5 PRECEDING AND CURRENT ROW) "
    "FROM released_0": "window",
    "SELECT lag(a0, a0) OVER (ORDER BY a0) FROM released_0": "window",
    "SELECT row_number() FROM released_0": "window",
    "SELECT count(DISTINCT a0) OVER () FROM released_0": "window",
    "SELECT a0 FROM released_0 LIMIT 1 + 1": "limit",
    "SELECT a0 FROM released_0 OFFSET (SELECT 1)": "limit",
    "SELECT a0 FROM released_0 FETCH FIRST 3 ROWS WITH TIES": "limit",
    "SELECT DISTINCT ON (k0) k0, a0 FROM released_0": "distinct",
    "SELECT k0, sum(a0) FROM released_0 GROUP BY ROLLUP (k0)": "group_by",
    "SELECT k0, sum(a0) FROM released_0 GROUP BY GROUPING SETS ((k0), ())": "group_by",
    "SELECT k0 FROM released_0 INTERSECT SELECT ward FROM public_0": "set_operation",
    "SELECT k0 FROM released_0 EXCEPT SELECT ward FROM public_0": "set_operation",
    "SELECT k0 FROM released_0 NATURAL JOIN public_0": "join_form",
    "SELECT k0 FROM released_0 FOR UPDATE": "locking",
    "SELECT $1 + a0 FROM released_0": "parameter",
    "SELECT (a0, k0) FROM released_0": "unsupported",
    "SELECT ARRAY[a0] FROM released_0": "unknown_function",
    "SELECT a0::json FROM released_0": "unsupported",
    "SELECT k0 SIMILAR TO 'a' FROM released_0": "unknown_function",
    "SELECT DATE '2024-13-01' FROM released_0": "bad_literal",
    "SELECT a0 = 1 = TRUE FROM released_0": "ambiguous_condition",
}


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize("sql", REFUSED)
def test_the_rest_is_refused_with_its_place(sql: str, dialect: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        checked(sql, dialect)
    assert refused.value.code in (REFUSED[sql], "unsupported", "unknown_function", "syntax_error")
    if dialect == "postgres":
        assert refused.value.code == REFUSED[sql]
    assert refused.value.span is not None
    assert refused.value.hint or not REFUSALS[refused.value.code].hint


@pytest.mark.parametrize(
    ("sql", "code"),
    {
        "SELECT nothing FROM released_0": "unknown_column",
        "SELECT t.a0 FROM released_0": "unknown_column",
        "SELECT a0 FROM visit": "unknown_table",
        "SELECT a.a0 FROM released_0 AS a, public_0 AS a": "duplicate_alias",
        "SELECT a0 FROM released_0 AS a, released_0 AS b": "ambiguous_name",
        "SELECT x.n FROM (SELECT a0 AS n, a0 AS N FROM released_0) AS x": "ambiguous_name",
        'SELECT x.n FROM (SELECT a0 AS n, a0 AS "N" FROM released_0) AS x': "ambiguous_name",
        "SELECT a0 AS n, k0 AS n FROM released_0 ORDER BY n": "ambiguous_name",
        "SELECT x FROM (SELECT a0 FROM released_0) AS t(x, y)": "wrong_columns",
        "SELECT a0 FROM released_0 UNION SELECT ward, beds FROM public_0": "wrong_columns",
        "SELECT a0 FROM released_0 UNION SELECT ward FROM public_0": "type_mismatch",
        "SELECT * FROM released_0 AS r JOIN public_0 AS w USING (ward)": "unknown_column",
    }.items(),
)
def test_names_of_postgres_are_resolved_or_refused(sql: str, code: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        checked(sql, "postgres")
    assert refused.value.code == code


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_a_statement_of_many_parts_runs(dialect: str) -> None:
    sql = """
        WITH per AS (SELECT k0 AS ward, sum(a0) AS n FROM released_0 GROUP BY k0)
        SELECT coalesce(p.ward, 'none') AS ward, n, w.beds,
               rank() OVER (ORDER BY n DESC NULLS LAST) AS place,
               CASE WHEN n > 0 THEN 'some' ELSE 'none' END AS kind
        FROM per AS p LEFT JOIN public_0 AS w ON p.ward = w.ward
        WHERE EXISTS (SELECT 1 FROM public_0) AND p.n NOT IN (SELECT beds FROM public_0)
        ORDER BY place LIMIT 2
    """
    found = afterwards(checked(sql, dialect), RELATIONS)
    assert found.rows == (("B", 30, None, 1, "some"), ("A", 10, 3, 2, "some"))


def test_duckdb_reads_its_own_as_written() -> None:
    sql = "SELECT k0, a0 / 4 AS x, a0 // 4 AS y FROM released_0 ORDER BY x DESC"
    assert afterwards(checked(sql, "duckdb"), RELATIONS).rows[0] == ("B", 7.5, 7)
    assert dialect_named("duckdb").runs_above
    assert not dialect_named("postgres").runs_above
