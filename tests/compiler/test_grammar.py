"""Nothing is ignored: unread arguments, words that the parser skips, broken text are refused."""

from __future__ import annotations

import pytest
import sqlglot
from duckdb import Error as DuckDBError
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sqlrs.compiler.compile import compile_query
from sqlrs.compiler.coverage import check_coverage
from sqlrs.compiler.grammar import _NODES, check_grammar
from sqlrs.compiler.inline import inline
from sqlrs.compiler.lower import lower
from sqlrs.compiler.source import Source
from sqlrs.compiler.understand import read_select
from sqlrs.errors import QueryRefused, Span
from tests.compiler.schema import CATALOG
from tests.support import sql_cases
from tests.support.examples import examples
from tests.support.strategies import ALL, databases, load, queries

WIDE = """
WITH c(x) AS MATERIALIZED (SELECT DISTINCT src FROM main.edge)
SELECT count(DISTINCT a.src) AS n FROM edge AS a JOIN (SELECT * FROM edge AS b) AS d(p, q) ON TRUE
JOIN edge e USING (src) WHERE a.src IN (1, 2) AND a.dst BETWEEN 1 AND 2 AND NOT (a.src IS NULL)
AND EXISTS (SELECT 1 FROM person WHERE name LIKE 'a' ESCAPE '!' OR name ILIKE 'b')
AND CAST(a.src AS DECIMAL(10, 2)) / 2 > -1.5 AND a.dst // 2 = 1 AND 'a' || 'b' = 'ab'
AND (a.src, a.dst) IN (SELECT dst, src FROM edge) AND TRY_CAST('1' AS INT) = 1
AND DATE '2026-01-01' + INTERVAL '1' DAY > '2026-01-01' AND a.src IS DISTINCT FROM NULL
"""


def test_every_argument_outside_the_whitelist_is_refused() -> None:
    source = Source(WIDE, "duckdb", sqlglot.tokenize(WIDE, read="duckdb"))
    tree = sqlglot.parse_one(WIDE, read="duckdb")
    check_grammar(tree, source, CATALOG)
    tried = set()
    for node in list(tree.walk()):
        for name in set(type(node).arg_types) - _NODES.get(
            type(node), frozenset(type(node).arg_types)
        ):
            before = node.args.get(name)
            for value in (True, exp.Literal.number(1), [exp.Literal.number(1)]):
                node.args[name] = value
                try:
                    check_grammar(tree, source, CATALOG)
                except QueryRefused:
                    tried.add((type(node), name))
                else:
                    raise AssertionError(f"{type(node).__name__}.{name} is ignored")
            node.args[name] = before
    assert len(tried) > 70
    assert {(exp.Table, "sample"), (exp.Select, "hint"), (exp.Join, "side")} <= tried


@pytest.mark.parametrize("skipped", ["SKIPPED", "'text'", "7", '"name"', "*", "FINAL"])
def test_a_word_that_is_not_in_the_tree_is_refused(skipped: str) -> None:
    read = "SELECT count(*) FROM edge"
    written = f"{read} {skipped}"
    source = Source(written, "duckdb", sqlglot.tokenize(written, read="duckdb"))
    with pytest.raises(QueryRefused) as caught:
        check_coverage(sqlglot.parse_one(read, read="duckdb"), source)
    assert caught.value.code == "not_understood"
    assert caught.value.span == Span(len(read) + 1, len(written))


_INSERTED = (
    """
LEFT|RIGHT|FULL|OUTER|SEMI|ANTI|NATURAL|CROSS|LATERAL|NOT|DISTINCT|ALL|ONLY|LIMIT 1|OFFSET 1|*|(|)
,|+ 1|IS NULL|AND|OR|WHERE|AS x|= 1|< 2|TABLESAMPLE 50%|USING SAMPLE 1|ORDER BY 1|GROUP BY 1|HAVING
FILTER (WHERE FALSE)|OVER ()|UNION|EXCEPT|IGNORE NULLS|COLLATE nocase|::TEXT|FOR UPDATE|/* x */
WITH ORDINALITY|JOIN r ON TRUE|, r|USING (a)|BETWEEN 0 AND 1|IN (1)|EXISTS (SELECT 1 FROM r)
EXCLUDE (a)|t0|r|-|[1]|ASOF|POSITIONAL|FROM|SELECT|INNER|JOIN|NULL|TRUE|IS TRUE|IN|AS|.a|'p'|0.5
""".strip()
    .replace("\n", "|")
    .split("|")
)


@given(st.data())
@settings(max_examples=examples(80))
def test_mangled_text_is_refused_or_counted_as_the_engine_counts_it(data: st.DataObject) -> None:
    database = data.draw(databases(max_rows=3))
    words = data.draw(queries(database.catalog, ALL)).split(" ")
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.integers(0, len(words)))
        if data.draw(st.booleans()):
            words.insert(at, data.draw(st.sampled_from(_INSERTED)))
        else:
            del words[at : at + 1]
    sql = " ".join(words)
    try:
        lowered = lower(inline(read_select(sql, database.catalog), database.catalog))
    except QueryRefused as error:
        assert error.describe()
        return
    try:
        with load(database) as connection:
            found = connection.execute(sql).fetchall()
    except DuckDBError:
        return
    assert found == [(sql_cases.count(lowered, database.by_name),)]


@given(st.text(max_size=60))
@settings(max_examples=examples(100))
def test_any_text_is_refused_not_a_crash(text: str) -> None:
    for sql in (text, f"SELECT count(*) FROM edge WHERE {text}"):
        try:
            compile_query(sql, CATALOG)
        except QueryRefused as error:
            assert error.describe()
