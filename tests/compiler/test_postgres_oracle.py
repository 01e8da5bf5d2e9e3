"""PostgreSQL reads the analyst's SQL as the compiler does."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql as compose

from sqlrs.compiler.inline import inline
from sqlrs.compiler.lower import lower
from sqlrs.compiler.understand import read_select
from tests.support import sql_cases
from tests.support.examples import examples
from tests.support.postgres_server import PostgresServer
from tests.support.strategies import ALL, TinyDatabase, databases, queries


def _counted(connection: psycopg.Connection, database: TinyDatabase, sql: str) -> int:
    with connection.transaction(force_rollback=True):
        for table in database.catalog.tables:
            name = compose.Identifier(table.name)
            columns = compose.SQL(", ").join(
                compose.SQL("{} {}").format(compose.Identifier(c.name), compose.SQL(c.type.name))
                for c in table.columns
            )
            connection.execute(compose.SQL("CREATE TABLE {} ({})").format(name, columns))
            marks = compose.SQL(", ").join(compose.Placeholder() * len(table.columns))
            insert = compose.SQL("INSERT INTO {} VALUES ({})").format(name, marks)
            for row in database.rows[table.identity]:
                connection.execute(insert, row)
        found = connection.execute(sql.encode()).fetchone()
    assert found is not None
    return int(found[0])


@pytest.mark.postgres
def test_the_compiled_query_counts_what_postgres_counts(postgres_server: PostgresServer) -> None:
    with postgres_server.database() as url, psycopg.connect(url, autocommit=True) as connection:

        @given(st.data())
        @settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
        def check(data: st.DataObject) -> None:
            database = data.draw(databases())
            sql = data.draw(queries(database.catalog, ALL))
            known = replace(database.catalog, dialect="postgres", search_path=("public",))
            lowered = lower(inline(read_select(sql, known), known))
            assert sql_cases.count(lowered, database.by_name) == _counted(connection, database, sql)

        check()
