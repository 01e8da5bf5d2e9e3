"""Domains of group keys: their values on both engines, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date

import pytest

from sqlrs.compiler.domains import find_domains
from sqlrs.errors import QueryRefused
from tests.compiler.domain_cases import (
    DIALECTS,
    FINITE,
    HELD,
    LEFT,
    PUBLIC,
    TABLES,
    catalog_of,
    domains_of,
    flat_of,
    rows_of,
)
from tests.support.engine_fixtures import BothEngines


@pytest.fixture(scope="module")
def engines(both_engines: BothEngines) -> Iterator[BothEngines]:
    both_engines.load(TABLES, PUBLIC)
    yield both_engines


def values(engines: BothEngines, body: str, key: str) -> list[object]:
    """The values of one key, the same on both engines."""
    found = []
    for dialect in DIALECTS:
        [domain] = domains_of(dialect, body, key)
        assert domain.keys == (0,)
        found.append([row[0] for row in rows_of(domain, dialect, engines)])
    assert found[0] == found[1]
    return sorted(found[0], key=lambda one: (one is None, one))


@pytest.mark.parametrize(
    ("key", "expected"),
    FINITE,
)
def test_values_of_the_schema_and_of_finite_expressions(
    engines: BothEngines, key: str, expected: list[object]
) -> None:
    assert values(engines, "FROM visit", key) == expected


@pytest.mark.parametrize(
    ("where", "key", "expected"),
    LEFT,
)
def test_values_that_the_query_leaves(
    engines: BothEngines, where: str, key: str, expected: list[object]
) -> None:
    assert values(engines, f"FROM visit WHERE {where}", key) == expected


@pytest.mark.parametrize(
    ("body", "key", "expected"),
    HELD,
)
def test_values_in_public_tables(
    engines: BothEngines, body: str, key: str, expected: list[object]
) -> None:
    assert values(engines, body, key) == expected


JOINED = "FROM visit v, nation n, region r WHERE v.nation = n.n_key AND n.n_region = r.r_key"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_keys_of_joined_public_tables_come_in_real_combinations(
    engines: BothEngines, dialect: str
) -> None:
    public, private = domains_of(dialect, JOINED, "r.r_name", "v.grade", "v.nation")
    assert (public.keys, private.keys) == ((0, 2), (1,))
    pairs = [("north", 10), ("north", 11), ("south", 12), ("south", 14)]
    assert rows_of(public, dialect, engines) == pairs
    assert public.origin == "region.r_name, nation.n_key (public table)"
    assert private.origin == "CHECK of visit.grade"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_public_tables_that_nothing_connects_stay_apart(dialect: str) -> None:
    found = domains_of(dialect, "FROM visit v, nation n, region r", "r.r_name", "n.n_name")
    assert [domain.keys for domain in found] == [(0,), (1,)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_public_table_inside_exists_is_no_source(dialect: str) -> None:
    inside = "EXISTS (SELECT 1 FROM nation n WHERE n.n_region = v.number)"
    assert refused(dialect, f"FROM visit v WHERE {inside}", "v.number").code == "unknown_domain"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_alternatives_of_an_outer_join_are_united(engines: BothEngines, dialect: str) -> None:
    """visit LEFT JOIN nation: the join, all visits, the visits that have a nation."""
    catalog = catalog_of(dialect)
    keys = ("n.n_name", "v.grade", "n.n_region")
    join = flat_of("FROM visit v JOIN nation n ON v.nation = n.n_key", *keys, catalog=catalog)
    alone = flat_of("FROM visit v", "NULL", "v.grade", "NULL", catalog=catalog)
    with_partner = flat_of(
        "FROM visit v WHERE EXISTS (SELECT 1 FROM nation n WHERE v.nation = n.n_key)",
        *("NULL", "v.grade", "NULL"),
        catalog=catalog,
    )
    names, grades = find_domains([join, alone, with_partner], catalog)
    assert (names.keys, grades.keys) == ((0, 2), (1,))
    pairs = [(None, None), ("a", 1), ("a", 2), ("b", 1), ("c", 2), ("d", None)]
    assert rows_of(names, dialect, engines) == sorted(pairs, key=repr)
    assert rows_of(grades, dialect, engines) == [(n,) for n in range(1, 6)]
    assert names.origin == "nation.n_name, nation.n_region (public table); NULL without a partner"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_branches_of_a_union_add_their_values(engines: BothEngines, dialect: str) -> None:
    catalog = catalog_of(dialect)
    ones = flat_of("FROM visit WHERE number = 1", "number", "'x'", catalog=catalog)
    others = flat_of("FROM visit WHERE number IN (1, 2)", "number", "name = 'a'", catalog=catalog)
    with pytest.raises(ValueError, match="different numbers of keys"):
        find_domains([ones, replace(others, keys=others.keys[:1])], catalog)
    numbers, texts = find_domains(
        [ones, replace(others, keys=(others.keys[0], ones.keys[1]))], catalog
    )
    assert rows_of(numbers, dialect, engines) == [(1,), (2,)]
    assert rows_of(texts, dialect, engines) == [("x",)]
    assert texts.origin == "a constant"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("key", "without", "expected"),
    [
        ("extract(month FROM v.held)", "extract(month FROM NULL)", [1, None]),
        ("v.grade + 1", "(NULL) + 1", [2, 3, 4, 5, 6, None]),
        ("lower(v.status)", "lower(CAST(NULL AS text))", ["f", "o", "p", None]),
        ("coalesce(v.status, 'none')", "coalesce(NULL, 'none')", ["F", "O", "P", "none"]),
        ("v.grade > 2", "NULL > 2", [False, True, None]),
        ("v.held", "NULL", [date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 3), None]),
        ("CASE WHEN v.name IS NULL THEN 1 ELSE 2 END", "CASE WHEN NULL IS NULL THEN 1 ELSE 2 END",
         [1, 2]),
    ],
)  # fmt: skip
def test_keys_over_the_missing_side(
    engines: BothEngines, dialect: str, key: str, without: str, expected: list[object]
) -> None:
    """nation LEFT JOIN visit: without a partner the key is what its NULL makes of it."""
    catalog = catalog_of(dialect)
    join = flat_of("FROM nation n JOIN visit v ON v.nation = n.n_key", key, catalog=catalog)
    alone = flat_of("FROM nation n", without, catalog=catalog)
    for alternatives in ([join, alone], [alone, join], [alone, alone, join]):
        [domain] = find_domains(alternatives, catalog)
        found = [row[0] for row in rows_of(domain, dialect, engines)]
        assert sorted(found, key=lambda one: (one is None, one)) == expected


def refused(dialect: str, body: str, *keys: str) -> QueryRefused:
    with pytest.raises(QueryRefused) as caught:
        domains_of(dialect, body, *keys)
    return caught.value


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("body", "key"),
    [
        ("FROM visit", "name"),
        ("FROM visit", "number"),
        ("FROM visit", "score"),
        ("FROM visit", "at"),
        ("FROM visit", "hidden"),  # refers to a private table
        ("FROM visit", "wide"),  # too many to write out
        ("FROM visit", "lower(name)"),
        ("FROM visit", "cost"),
        ("FROM visit", "floor(score / 10)"),
        ("FROM visit", "floor(score)"),
        ("FROM visit", "floor(cost / 10) + cost"),
        ("FROM visit", "floor(0 - cost)"),
        ("FROM visit", "floor(cost * 1000000000)"),
        ("FROM visit", "round(cost, 1)"),
        ("FROM visit WHERE score > 0", "floor(score)"),
        ("FROM visit", "number / 10"),
        ("FROM visit", "number % 0"),
        ("FROM visit", "number % grade"),
        ("FROM visit", "score % 3"),
        ("FROM visit", "10 / grade"),
        ("FROM visit", "CAST(status AS integer)"),
        ("FROM visit", "sqrt(grade)"),
        ("FROM visit", "grade + number"),
        ("FROM visit", "wide % 1000000"),
        ("FROM visit", "age * age + wide"),
        ("FROM visit", "extract(year FROM day)"),
        ("FROM visit", "extract(second FROM at)"),
        ("FROM visit", "extract(hour FROM (at - at))"),
        ("FROM visit", "extract(hour FROM ((at - at) + INTERVAL '1 hour'))"),
        ("FROM visit", "date_trunc('month', day)"),
        ("FROM visit", "CASE WHEN number > 1 THEN name ELSE 'b' END"),
        ("FROM visit a, visit b", "a.grade + b.grade"),
        ("FROM visit WHERE number > 3", "number"),
        ("FROM visit WHERE number BETWEEN 1 AND 1000001", "number"),
        ("FROM visit WHERE number IN (1, 2) OR grade = 1", "number"),
        ("FROM visit WHERE number IN (1, 2) OR number > 9", "number"),
        ("FROM visit WHERE number IN (1, grade)", "number"),
        ("FROM visit WHERE NOT number IN (1, 2)", "number"),
        ("FROM visit WHERE score BETWEEN 0 AND 3", "score"),
        ("FROM visit WHERE day BETWEEN '2024-01-01' AND 'infinity'", "day"),
        ("FROM visit WHERE at BETWEEN '2024-01-01' AND '2024-01-02'", "at"),
        ("FROM visit WHERE at >= '2024-01-01'", "date_trunc('month', at)"),
        ("FROM visit WHERE at >= '2024-01-01' AND at < '2024-01-02'", "date_trunc('second', at)"),
        ("FROM visit WHERE at >= '2024-01-01' AND at < '2034-01-02'", "date_trunc('minute', at)"),
        ("FROM visit WHERE name BETWEEN 'a' AND 'b'", "name"),
        ("FROM visit v, nation n WHERE v.number < n.n_key", "v.number"),
        ("FROM visit v, nation n WHERE v.nation = n.n_key", "v.number + n.n_key"),
    ],
)
def test_what_is_not_known_is_refused(dialect: str, body: str, key: str) -> None:
    error = refused(
        dialect,
        body,
        "visit.grade" if "visit v" not in body and "visit a" not in body else "1",
        key,
    )
    assert error.code == "unknown_domain"
    assert "not known without the private rows" in error.message
    assert error.text is not None and error.span is not None
    assert error.text[error.span.start : error.span.end].strip("()") in f"{key}"
    assert error.hint is not None and "[domain]" in error.hint


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("where", "key"),
    [
        ("number BETWEEN 5 AND 3", "number"),
        ("number > 3 AND number < 4", "number"),
        ("day BETWEEN '2024-01-02' AND '2024-01-01'", "day"),
        ("number = NULL", "number"),
        ("number = 9000000000", "number"),
        ("grade > 5", "grade"),
        ("at >= '2024-01-02' AND at < '2024-01-02'", "date_trunc('day', at)"),
        ("number BETWEEN 5 AND 3", "number + 1"),
    ],
)
def test_conditions_that_leave_no_value_are_named(dialect: str, where: str, key: str) -> None:
    error = refused(dialect, f"FROM visit WHERE {where}", key)
    assert error.code == "unknown_domain"
    assert "so there is no group" in error.message


def test_a_function_of_the_database_in_place_of_the_series_is_not_called() -> None:
    catalog = replace(catalog_of("duckdb"), hidden=frozenset({"generate_series"}))
    for key in ("grade", "extract(month FROM day)", "number % 3"):
        with pytest.raises(QueryRefused) as caught:
            find_domains([flat_of("FROM visit", key, catalog=catalog)], catalog)
        assert caught.value.code == "unknown_domain"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_origins_are_in_words(dialect: str) -> None:
    found = domains_of(
        dialect,
        "FROM visit WHERE number IN (1, 2) AND place BETWEEN 1 AND 9",
        *("status", "number", "place", "extract(month FROM day)", "sure", "lower(status)"),
        *("CASE WHEN name = 'a' THEN 1 ELSE 2 END", "name = 'a'", "nation"),
    )
    assert [domain.origin for domain in found] == [
        "CHECK of visit.status",
        "IN (…) of the query",
        "the range of the query",
        "12 months",
        "sure is BOOLEAN",
        "computed from CHECK of visit.status",
        "2 branches of CASE",
        "true and false",
        "visit.nation REF",
    ]
