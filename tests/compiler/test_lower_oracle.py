"""The strongest test of the compiler: the count of the compiled query is the count of the SQL."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sqlrs.compiler.compile import compile_query
from sqlrs.compiler.inline import inline
from sqlrs.compiler.lower import lower
from sqlrs.compiler.simplify import Contradiction
from sqlrs.compiler.understand import read_select
from tests.support import sql_cases
from tests.support.examples import examples
from tests.support.strategies import ALL, TinyDatabase, databases, load, queries


def _counted(database: TinyDatabase, sql: str) -> int:
    with load(database) as connection:
        found = connection.execute(sql).fetchone()
    assert found is not None
    return int(found[0])


@given(st.data())
@settings(max_examples=examples(60))
def test_the_compiled_query_counts_what_the_sql_counts(data: st.DataObject) -> None:
    database = data.draw(databases())
    sql = data.draw(queries(database.catalog, ALL))
    expected = _counted(database, sql)

    lowered = lower(inline(read_select(sql, database.catalog), database.catalog))
    assert sql_cases.count(lowered, database.by_name) == expected

    compiled = compile_query(sql, database.catalog)
    if isinstance(compiled, Contradiction):
        assert expected == 0
    else:
        assert sql_cases.count(compiled, database.by_name) == expected
