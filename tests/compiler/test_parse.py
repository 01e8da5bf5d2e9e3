"""Names: quoting, case, schemas, Unicode and reserved words, by dialect."""

from __future__ import annotations

import pytest

from sqlrs.catalog import Catalog, Column, Table, View
from sqlrs.compiler.compile import compile_query
from sqlrs.errors import QueryRefused
from sqlrs.query import Query
from tests.compiler.schema import BIGINT, TEXT, declared, table

MIXED = Table(
    "Straße",
    (Column("Select", BIGINT), Column("größe", BIGINT), Column("a b", BIGINT)),
    schema="Data",
)
TWINS = (
    Table("t", (Column("x", BIGINT),), schema="one"),
    Table("t", (Column("y", BIGINT),), schema="two"),
)


def catalog(dialect: str, *tables: Table, path: tuple[str, ...] = ("main",)) -> Catalog:
    return Catalog(dialect, tables, search_path=path)


def compiled(sql: str, known: Catalog) -> Query:
    query = compile_query(sql, known)
    assert isinstance(query, Query)
    return query


def code(sql: str, known: Catalog) -> str:
    with pytest.raises(QueryRefused) as caught:
        compile_query(sql, known)
    return caught.value.code


def test_duckdb_ignores_case_even_inside_quotes() -> None:
    known = catalog("duckdb", MIXED, path=("data",))
    sql = 'SELECT count(*) FROM DATA."straße" AS S WHERE s."SELECT" = 1 AND "A b" < s.größe'
    assert dict(compiled(sql, known).atoms[0].terms)["Select"].type is BIGINT


def test_duckdb_folds_ascii_letters_only() -> None:
    known = catalog("duckdb", MIXED, path=("Data",))
    assert code("SELECT count(*) FROM straße WHERE GRÖSSE = 1", known) == "unknown_column"
    assert code("SELECT count(*) FROM straße WHERE grÖße = 1", known) == "unknown_column"


@pytest.mark.parametrize(
    ("name", "known"),
    [('"Edge"', "Edge"), ("Edge", "edge"), ("EDGE", "edge"), ('"edge"', "edge")],
)
def test_postgres_folds_what_is_not_quoted(name: str, known: str) -> None:
    tables = catalog("postgres", table(known, src=BIGINT))
    assert compiled(f"SELECT count(*) FROM {name}", tables).atoms[0].table.name == known


@pytest.mark.parametrize(("name", "known"), [("Edge", "Edge"), ('"EDGE"', "edge")])
def test_postgres_keeps_what_is_quoted(name: str, known: str) -> None:
    tables = catalog("postgres", table(known, src=BIGINT))
    assert code(f"SELECT count(*) FROM {name}", tables) == "unknown_table"


def test_the_search_path_decides_between_tables_of_one_name() -> None:
    for path, column in ((("one", "two"), "x"), (("two", "one"), "y")):
        known = catalog("duckdb", *TWINS, path=path)
        compiled(f"SELECT count(*) FROM t WHERE {column} = 1", known)
        compiled("SELECT count(*) FROM two.t WHERE y = 1", known)
        query = compiled("SELECT count(*) FROM one.t AS a JOIN two.t AS b ON x = y", known)
        assert [atom.table.schema for atom in query.atoms] == ["one", "two"]


def test_a_schema_outside_the_search_path_must_be_named() -> None:
    assert code("SELECT count(*) FROM t", catalog("duckdb", *TWINS)) == "unknown_table"


def test_a_cte_hides_a_table_but_not_its_qualified_name() -> None:
    known = catalog("duckdb", table("t", x=BIGINT))
    sql = "WITH t AS (SELECT x AS y FROM t) SELECT count(*) FROM t WHERE y = 1"
    compiled(sql, known)
    compiled("WITH t AS (SELECT x AS y FROM t) SELECT count(*) FROM main.t WHERE x = 1", known)


def test_a_cte_that_nobody_reads_is_still_checked() -> None:
    known = catalog("duckdb", table("t", x=BIGINT))
    sql = "WITH u AS (SELECT missing FROM t) SELECT count(*) FROM t"
    assert code(sql, known) == "unknown_column"


def test_a_derived_table_sees_nothing_outside_itself() -> None:
    known = catalog("duckdb", table("t", "x", x=BIGINT))
    sql = "SELECT count(*) FROM t AS a JOIN (SELECT x FROM t AS b WHERE b.x = a.x) AS d USING (x)"
    assert code(sql, known) == "unknown_column"
    inside = "(SELECT x FROM t AS b WHERE b.x = a.x) AS d"
    sql = f"SELECT count(*) FROM t AS a WHERE EXISTS (SELECT 1 FROM {inside})"
    assert code(sql, known) == "unknown_column"


def test_inner_names_hide_outer_ones_in_a_semi_join() -> None:
    known = catalog("duckdb", table("t", "x", x=BIGINT, y=BIGINT), table("s", x=BIGINT))
    sql = "SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM s WHERE x = 1 AND y = 2)"
    first, second = compiled(sql, known).atoms
    assert str(dict(first.terms)["y"]) == "2"
    assert str(dict(first.terms)["x"]) == "t.x"
    assert str(dict(second.terms)["x"]) == "1"


def test_a_view_in_another_view_and_its_errors_stand_where_it_is_named() -> None:
    base = table("t", x=BIGINT, y=TEXT)
    views = (View("v", "SELECT x AS a FROM t WHERE y = 'p';"), View("w", "SELECT a FROM v"))
    known = Catalog("duckdb", (base,), (*views, View("bad", "SELECT zz FROM v")))
    query = compiled("SELECT count(*) FROM w WHERE w.a = 3", known)
    assert {column: str(term) for column, term in query.atoms[0].terms} == {"x": "3", "y": "'p'"}
    sql = "SELECT count(*) FROM w\nJOIN bad ON TRUE"
    with pytest.raises(QueryRefused) as caught:
        compile_query(sql, known)
    assert caught.value.span is not None
    assert caught.value.span.line_and_column(sql) == (2, 6)
    assert sql[caught.value.span.start : caught.value.span.end] == "bad"


def test_functions_that_the_owner_declares_are_known() -> None:
    base = table("t", x=BIGINT, y=TEXT)
    sql = "SELECT count(*) FROM t WHERE Sounds_like(y) = 'A1' AND st_area(x) > 2"
    assert code(sql, Catalog("duckdb", (base,))) == "unknown_function"
    known = Catalog("duckdb", (base,), functions=(declared("sounds_like"), declared("st_area")))
    assert [f.columns for f in compiled(sql, known).atoms[0].filters] == [{"x", "y"}]


def test_a_view_as_postgres_prints_it_can_be_read() -> None:
    base = table("t", x=BIGINT, y=TEXT)
    printed = """ SELECT a.x,
    b.y AS other
   FROM t a
     JOIN t b ON a.x = b.x
  WHERE ((a.y)::text = ANY (ARRAY['p'::text, 'q'::text])) AND (b.y ~~ 'p%'::text);"""
    known = Catalog("postgres", (base,), (View("v", printed),), search_path=("public",))
    query = compiled("SELECT count(*) FROM v WHERE other = 'pp'", known)
    assert [len(atom.filters) for atom in query.atoms] == [1, 1]
    assert str(dict(query.atoms[1].terms)["y"]) == "'pp'"


def test_what_is_too_much_for_the_compiler_is_refused_not_a_crash() -> None:
    known = catalog("duckdb", table("edge", src=BIGINT))
    chain = "w0 AS (SELECT src FROM edge), " + ", ".join(
        f"w{i} AS (SELECT src FROM w{i - 1})" for i in range(1, 300)
    )
    assert code(f"WITH {chain} SELECT count(*) FROM w299", known) == "too_complex"


def test_a_number_of_thousands_of_digits_is_left_to_the_engine() -> None:
    known = catalog("duckdb", table("edge", src=BIGINT))
    query = compiled(f"SELECT count(*) FROM edge WHERE src < {'9' * 5000}", known)
    assert len(query.atoms[0].filters) == 1
