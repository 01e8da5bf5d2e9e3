"""Rows that count as often as a column says: every plan, measurement and bound counts weights."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlrs.catalog import ColumnType, Family
from sqlrs.measuring.measure import measure
from sqlrs.measuring.measurements import Measurements
from sqlrs.planning.choose import choose
from sqlrs.planning.inclusion_exclusion import Planner
from sqlrs.planning.limits import limit
from sqlrs.planning.passing import passed
from sqlrs.planning.plan import Factorised, Pruned
from sqlrs.planning.problem import Problem
from sqlrs.planning.symmetry import ordered
from sqlrs.planning.table_statistics import Repetition, Statistics
from sqlrs.query import Atom, Query, Weight
from sqlrs.residuals.residual import Residual, Residuals
from sqlrs.sql.plain import plain
from sqlrs.sql.write import statement_of
from tests.planning.adapters import Direct
from tests.planning.strategies import TABLES, evaluate, queries, rows_of
from tests.support import brute
from tests.support.builders import atom, query, table
from tests.support.examples import examples
from tests.support.weights import COLUMNS, weighing

PRICE = table("price", "p", "q", *COLUMNS, keys=["p q"])
SALE = table("sale", "p", "q", *COLUMNS)
OPEN = table("open_edge", "p", "q", keys=["p q"])
PLANS = ("plain", "factorised", "pruned", "auto")


pytestmark = pytest.mark.usefixtures("one_seed")


@dataclass(frozen=True)
class Engine:
    """As much of an engine as a measurement needs."""

    direct: Direct

    @property
    def dialect(self) -> str:
        return self.direct.dialect

    @contextmanager
    def snapshot(self) -> Iterator[Direct]:
        yield self.direct


def price(pair: str, column: str | None = "few") -> Atom:
    return weighing(atom(PRICE, *pair), column)


def sale(pair: str, column: str | None = None) -> Atom:
    return weighing(atom(SALE, *pair), column)


def residual_of(inside: list[Atom], outside: str = "", different: str = "") -> Residual:
    """The atoms inside, and edges between pairs of variables outside."""
    edges = [atom(OPEN, *pair) for pair in outside.split()]
    whole = query(*inside, *edges, different=different)
    return Residuals(whole).of(frozenset(range(len(inside))))


SHAPES = {
    # All that a price is about is free, so a bound for c leaves it nothing but its heaviest row.
    "a heaviest row": residual_of([price("ab"), sale("bx"), sale("xc")], "ab bc"),
    # Others hold all that a price is about: without a weight a bound could do without it.
    "held by others": residual_of([sale("bx"), price("bx"), sale("xc")], "bc"),
    "a filter": residual_of([sale("ab"), sale("bc"), price("ca")], "", "a b c"),
    "a filter of paths": residual_of([sale("ab"), sale("bc"), price("ac"), sale("cd")], "da"),
    "another way round": residual_of([price("xa"), price("xb"), sale("xc")], "ay by"),
    # Where x and y are the same, both prices are one row, whose weight counts twice.
    "one row twice": residual_of([price("ax"), price("ay"), sale("xb"), sale("yc")], "", "x y"),
    "one row by two weights": residual_of(
        [price("ax"), price("ay", "many"), sale("xb")], "", "x y"
    ),
    "one row with and without": residual_of([price("ax"), price("ay", None)], "", "x y"),
    "a completion": residual_of([price("ab"), sale("bx"), sale("xa", "few")], "ab xz"),
    "both": residual_of([price("ab", "many"), sale("bc", "many"), sale("cd", "few")], "da"),
    "nothing in common": residual_of([price("ab"), sale("cd", "many")], "", "b c"),
}


def statistics() -> Iterator[Statistics | None]:
    """Sizes and skew that lead to many plans."""
    yield None
    for sizes in product((10.0, 1e7), repeat=2):
        rows = {PRICE.identity: sizes[0], SALE.identity: sizes[1]}
        for share in (1e-1, 1e-4):
            yield Statistics(
                rows,
                {
                    (of.identity, c): Repetition(
                        max(rows[of.identity] * share, 1.0),
                        rows[of.identity] / share,
                        min(rows[of.identity], 1e3),
                    )
                    for of in (PRICE, SALE)
                    for c in ("p", "q")
                },
            )


def drawn(rng: random.Random) -> dict[str, list[tuple[object, ...]]]:
    def cells(column: str) -> int:
        return rng.choice([0, 1, 2, COLUMNS[column] - 1, COLUMNS[column]])

    def rows(number: int) -> list[tuple[int, int]]:
        return [(rng.randrange(4), rng.randrange(4)) for _ in range(number)]

    return {
        PRICE.name: [(*pair, *map(cells, COLUMNS)) for pair in sorted(set(rows(9)))],
        SALE.name: [(*pair, *map(cells, COLUMNS)) for pair in rows(7)],
    }


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_in_which_a_rewrite_could_lose_a_weight(name: str, on_duckdb: Direct) -> None:
    residual = SHAPES[name]
    plans = {
        statement_of(plan, "duckdb").sql("duckdb"): plan
        for known in statistics()
        for how in PLANS
        for plan in [choose(residual, known, how=how)]
    }
    for seed in range(6):
        rows = drawn(random.Random(f"{name} {seed}"))
        for of in (PRICE, SALE):
            on_duckdb.fill(of, rows[of.name])
        expected = brute.residual_value(residual, rows)
        for text, plan in plans.items():
            (found,) = on_duckdb.run(text)
            assert found == (expected,), "\n".join([f"seed {seed}", plan.name, *plan.lines()])


def test_ranks_and_running_sums_carry_weights(on_duckdb: Direct) -> None:
    """A triangle of 2 · 3 · 1 from three corners; 2 · (3 + 3) + 3 · 3 for days in order."""
    on_duckdb.fill(PRICE, [(1, 2, 2, 0), (2, 3, 3, 0), (3, 1, 1, 0)])
    on_duckdb.fill(SALE, [(1, 1, 2, 0), (1, 2, 3, 0), (1, 3, 3, 0)])
    triangle = query(*map(price, ("ab", "bc", "ca")), different="a b c")
    in_order = query(sale("xs", "few"), sale("xt", "few"), less=[("s", "t")])
    for whole, rewrite, expected in ((triangle, ordered, 18), (in_order, passed, 21)):
        residual = Residuals(whole).of(whole.everything)
        total = rewrite(Problem.of(residual), Planner(Statistics()))
        assert total is not None
        plan = Factorised(residual, total)
        assert on_duckdb.scalar(statement_of(plan, "duckdb")) == expected


@pytest.mark.parametrize("kind", [Factorised, Pruned])
def test_weights_do_not_keep_a_residual_from_a_plan(kind: type) -> None:
    how = "factorised" if kind is Factorised else "pruned"
    for name in ("a heaviest row", "held by others", "a filter of paths", "both"):
        assert isinstance(choose(SHAPES[name], how=how), kind), name


def check_measurement(whole: Query, data: st.DataObject, snapshot: Direct) -> None:
    rows = {of.name: data.draw(rows_of(of)) for of in TABLES}
    for of in TABLES:
        snapshot.fill(of, rows[of.name])
    residuals = Residuals(whole)
    measured = measure(Engine(snapshot), residuals, residuals.required)
    assert measured.count == brute.count(whole, rows, evaluate=evaluate)
    expected = brute.residual_values(residuals, residuals.required, rows, evaluate=evaluate)
    assert measured.values == expected
    together = Measurements(Engine(snapshot)).enough(residuals, residuals.required, None)
    assert (together.count, together.values) == (measured.count, expected)


def weighted(most_atoms: int) -> st.SearchStrategy[Query]:
    return queries(most_atoms).filter(lambda whole: bool(whole.weighted))


@settings(max_examples=examples(25), deadline=None)
@given(weighted(3), st.data())
def test_measured_values_on_duckdb(on_duckdb: Direct, whole: Query, data: st.DataObject) -> None:
    """Parts that keys decide, atoms outside E and external variables included."""
    check_measurement(whole, data, on_duckdb)


@settings(max_examples=examples(10), deadline=None)
@given(weighted(3), st.data())
def test_measured_values_on_postgres(
    on_postgres: Direct, whole: Query, data: st.DataObject
) -> None:
    check_measurement(whole, data, on_postgres)


NARROW = [ColumnType(Family.INTEGER, name) for name in ("SMALLINT", "INTEGER", "BIGINT")]


@pytest.mark.parametrize("engine", ["on_duckdb", "on_postgres"])
@pytest.mark.parametrize("kind", NARROW, ids=lambda kind: kind.name)
@pytest.mark.parametrize("how", PLANS)
def test_sums_beyond_the_type_of_a_weight(
    how: str, kind: ColumnType, engine: str, request: pytest.FixtureRequest
) -> None:
    """Two columns of a row multiplied, and the rows summed, each beyond the column's own type."""
    snapshot: Direct = request.getfixturevalue(engine)
    largest = {"SMALLINT": 2**15, "INTEGER": 2**31, "BIGINT": 2**56}[kind.name] - 1
    of = table("narrow", "p", "q", "w", types={"w": kind}, keys=["p q"])
    snapshot.fill(of, [(p, q, largest) for p in range(3) for q in range(3)])
    heavy = [replace(atom(of, *pair), weight=Weight("w", largest)) for pair in ("ax", "bx")]
    residuals = Residuals(query(*heavy, atom(of, "a", "z")))
    for members, results in (({0, 1, 2}, 81), ({0, 1}, 9)):
        residual = residuals.of(frozenset(members))
        plan = choose(residual, how=how)
        value = snapshot.scalar(statement_of(plan, snapshot.dialect))
        assert value == results * largest**2, members


@pytest.mark.parametrize("engine", ["on_duckdb", "on_postgres"])
@pytest.mark.parametrize("strict", [True, False])
def test_swept_weights(strict: bool, engine: str, request: pytest.FixtureRequest) -> None:
    """The heaviest value of z lies in no more than two intervals, not in the most."""
    snapshot: Direct = request.getfixturevalue(engine)
    span = table("span", "low", "high", "w")
    point = table("point", "at")
    pairs = [("l", "z"), ("z", "h")]
    whole = query(
        replace(atom(span, "l", "h"), weight=Weight("w", 10**17)),
        atom(point, "z"),
        less=pairs if strict else (),
        at_most=() if strict else pairs,
    )
    heavy = 10**17
    rows: list[tuple[object, ...]] = [(0, 9, 1), (1, 9, 1), (2, 8, 0), (20, 30, heavy)]
    rows += [(30, 40, heavy - 1), (29, 31, heavy)]
    snapshot.fill(span, rows)
    residual = Residuals(whole).of(frozenset({0}))
    value = snapshot.scalar(statement_of(choose(residual), snapshot.dialect))
    assert value == brute.residual_value(residual, {"span": rows, "point": []})
    assert value == heavy + (0 if strict else heavy + heavy - 1)


def test_no_weight_counts_nothing_and_an_empty_join_too(on_duckdb: Direct) -> None:
    for rows in ([], [(0, 1, 0, 0), (1, 2, 0, 0)]):
        on_duckdb.fill(PRICE, rows)
        on_duckdb.fill(SALE, rows)
        for inside, outside in (([price("ab")], ""), ([price("ab"), sale("bc", "few")], "ac")):
            for how in PLANS:
                plan = choose(residual_of(inside, outside), how=how)
                assert on_duckdb.scalar(statement_of(plan, "duckdb")) == 0


def test_a_limit_holds_the_bound_of_each_weight() -> None:
    known = Statistics({PRICE.identity: 5.0, SALE.identity: 7.0})
    residual = residual_of([price("ab", "many"), sale("bc", "few"), sale("cd")], "bd")
    assert limit(residual, known) == 5 * COLUMNS["many"] * 7 * COLUMNS["few"] * 7


def test_what_keys_decide_counts_the_bounds() -> None:
    """{0}: the key decides the price; {1} and ∅ leave out rows that count at most their bounds."""
    whole = query(price("ab", "many"), sale("ab", "few"))
    residuals = Residuals(whole)
    few, many = COLUMNS["few"], COLUMNS["many"]
    wanted = [frozenset({0}), frozenset({1}), frozenset[int]()]
    found = residuals.assemble(wanted, {frozenset({1}): 7})
    assert [found[members] for members in wanted] == [many * few, 7 * many, many * few]
    unweighted = Residuals(whole.unweighted).assemble(wanted, {frozenset({1}): 7})
    assert [unweighted[members] for members in wanted] == [1, 7, 1]


def test_weights_of_distinct_outputs_are_never_measured(on_duckdb: Direct) -> None:
    whole = replace(query(price("ab"), sale("bc"), distinct="a b"))
    residuals = Residuals(whole)
    with pytest.raises(AssertionError, match="never measured"):
        measure(Engine(on_duckdb), residuals, residuals.required)
    with pytest.raises(AssertionError, match="never measured"):
        Measurements(Engine(on_duckdb)).count(residuals)
    with pytest.raises(ValueError, match="distinct"):
        plain(residuals.of(whole.everything))
    with pytest.raises(ValueError, match="distinct"):
        Problem.of(residuals.of(whole.everything))


def test_plans_say_that_they_sum() -> None:
    residual = residual_of([price("ab"), sale("bc")], "ac")
    assert any("× few" in line for line in choose(residual, how="factorised").lines())
    assert "sum per value" in choose(residual, how="plain").lines()[0]
    bare = residual_of([price("ab", None), sale("bc")], "ac")
    lines = [line for how in PLANS for line in choose(bare, how=how).lines()]
    assert not any("sum" in line or "×" in line for line in lines)
