"""Single rewrites of the planner, on small data and against brute force."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import duckdb
import pytest

from sqlrs.dialects import dialect_named
from sqlrs.errors import UsageError
from sqlrs.measuring.evaluate import Evaluator
from sqlrs.measuring.sampling import read_statistics
from sqlrs.planning.bounding import bounding
from sqlrs.planning.canonical import canonical, twins
from sqlrs.planning.choose import choose
from sqlrs.planning.decompose import decompose
from sqlrs.planning.inclusion_exclusion import Planner, quotients
from sqlrs.planning.index_hints import index_hints
from sqlrs.planning.join_order import cheapest
from sqlrs.planning.parts import Parts
from sqlrs.planning.problem import Problem
from sqlrs.planning.structure import Structure, numbered
from sqlrs.planning.table_statistics import Statistics
from sqlrs.query import Inequality, Query, Variable
from sqlrs.residuals.isomorphism import representatives
from sqlrs.residuals.residual import Residuals
from sqlrs.sql.factorised import StatementBuilder
from sqlrs.sql.write import statement_of
from sqlrs.trees.naming import column_names
from tests.planning.adapters import Direct
from tests.support import brute
from tests.support.builders import EDGE, INTEGER, PATTERNS, atom, pattern, query, table
from tests.support.kept import assert_kept

GOLDEN = Path(__file__).parent / "golden"
SHAPES = {
    **PATTERNS,
    "path4": "ab bc cd de",
    "cycle5": "ab bc cd de ea",
    "star4": "ab ac ad ae",
    "clique4": "ab ac ad bc bd cd",
    "bow_tie": "ab bc ca ad de ea",
}


@pytest.fixture(scope="module")
def graph() -> Iterator[Direct]:
    """A directed graph with a hub and two overlapping cliques; not symmetric."""
    rng = random.Random(5)
    edges = {(a, b) for a, b in product(range(6), repeat=2) if a != b}
    edges |= {(a, b) for a, b in product(range(4, 9), repeat=2) if a < b}
    edges |= {(0, v) for v in range(9, 14)} | {(rng.randrange(14), v) for v in range(14)}
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        snapshot = Direct(connection)
        snapshot.fill(EDGE, sorted(edges))
        yield snapshot


@pytest.mark.parametrize("name", SHAPES)
def test_every_residual_of_a_pattern(name: str, graph: Direct) -> None:
    residuals = Residuals(pattern(SHAPES[name]))
    # One of those that differ in names alone.
    parts = set(representatives(residuals.undecided(residuals.required)).values())
    wanted = [residuals.of(residuals.query.everything), *sorted(parts, key=str)]
    plain = Evaluator(graph, residuals.query, "duckdb", "plain")
    expected = [plain(residual).value for residual in wanted]
    for how in ("factorised", "pruned", "auto"):
        evaluator = Evaluator(graph, residuals.query, "duckdb", how)
        assert [evaluator(residual).value for residual in wanted] == expected, how
        together = [value for batch in evaluator.together(wanted) for value in batch.run()]
        assert together == expected, how


def test_the_plain_plan_agrees_with_the_definition(graph: Direct) -> None:
    query = pattern("ab bc ca")
    residuals = Residuals(query)
    database = {"edge": graph.run("SELECT src, dst FROM edge")}
    for residual in [residuals.of(query.everything), *residuals.undecided(residuals.required)]:
        plan = choose(residual, how="plain")
        expected = brute.residual_value(residual, database)
        assert graph.scalar(statement_of(plan, "duckdb")) == expected


def test_counts_beyond_64_bits(graph: Direct) -> None:
    many = table("many", "p")
    graph.fill(many, [(1,)] * 3000)
    star = query(*(atom(many, "a") for _ in range(6)))
    plan = choose(Residuals(star).of(star.everything), how="factorised")
    assert graph.scalar(statement_of(plan, "duckdb")) == 3000**6 > 2**63


def test_a_bound_is_never_below_a_group(graph: Direct) -> None:
    residuals = Residuals(pattern("ab bc cd da"))
    problem = Problem.of(residuals.of(frozenset({0, 1, 2})))
    assert {v.name for v in problem.free} == {"a", "d"}
    database = {"edge": graph.run("SELECT src, dst FROM edge")}
    edges = set(database["edge"])
    (a,) = [v for v in problem.free if v.name == "a"]
    easier = bounding(problem, [a])
    assert [len(leaf.variables) for leaf in easier.leaves] == [2, 2, 1]
    bound = Planner(Statistics()).bound(easier)
    building = choose(residuals.of(frozenset({0, 1, 2})), how="pruned")
    assert building.name == "pruned"
    statement = StatementBuilder(dialect_named("duckdb"), frozenset({"edge"}))
    rows, columns = statement.totals(bound)
    assert list(columns.values()) == ["a"]
    bounds = dict(graph.rows(statement.finished(rows)))
    for a0, d0 in product(range(14), repeat=2):
        paths = sum(
            (a0, b) in edges and (b, c) in edges and (c, d0) in edges
            for b, c in product(range(14), repeat=2)
            if len({a0, b, c, d0}) == 4
        )
        assert paths <= int(bounds.get(a0, 0))


@pytest.mark.parametrize("keyed", [True, False])
def test_only_a_leaf_with_a_key_is_read_twice(keyed: bool) -> None:
    of = EDGE if keyed else table("edge", "src", "dst")
    triangle = pattern("ab bc ca", of=of)
    problem = Problem.of(Residuals(triangle).of(triangle.everything))
    parts = Parts(Structure.of(problem, Statistics(), frozenset(), numbered(problem)))
    path = parts.joined(parts.single(1), parts.single(2))
    assert path is not None
    assert (parts.filtered(path) is not None) == keyed


def test_equal_steps_are_saved_once_and_bounds_have_an_end() -> None:
    star = pattern(" ".join(f"a{leaf}" for leaf in "bcdefgh"))
    residuals = Residuals(star)
    for members in (star.everything, star.everything - {0}):
        problem = Problem.of(residuals.of(members))
        for forced in (frozenset[Inequality](), problem.inequalities):
            assert decompose(problem, Statistics(), forced).cost > 0
    assert choose(residuals.of(star.everything - {0})).lines()


def test_the_plan_does_not_depend_on_what_was_planned_before() -> None:
    path = pattern("ab bc cd de")

    def planned(members: frozenset[int]) -> str:
        return statement_of(choose(Residuals(path).of(members)), "duckdb").sql("duckdb")

    cheapest.cache_clear()
    first = planned(frozenset({1, 2, 3}))
    cheapest.cache_clear()
    for members in Residuals(path).required:
        if members:
            planned(members)
    assert planned(frozenset({1, 2, 3})) == first
    assert cheapest.cache_info().hits > 0


def test_inclusion_and_exclusion_coefficients() -> None:
    star = pattern("ab ac ad")
    problem = Problem.of(Residuals(star).of(star.everything))
    apart = frozenset(p for p in problem.inequalities if "a" not in {v.name for v in p.variables})
    found = quotients(problem, apart)
    assert found is not None
    # d(d−1)(d−2) = d³ − 3d² + 2d, and equal edges are one edge.
    assert sorted((sign, len(q.leaves)) for sign, q in found) == [(-3, 2), (2, 1)]


def test_a_star_of_seven_has_few_corrections() -> None:
    star = pattern("ab ac ad ae af ag ah")
    problem = Problem.of(Residuals(star).of(star.everything))
    apart = frozenset(p for p in problem.inequalities if "a" not in {v.name for v in p.variables})
    found = quotients(problem, apart)
    assert found is not None
    # Stirling numbers of the first kind: d(d−1)…(d−6) as a polynomial in d.
    assert sorted((len(q.leaves), sign) for sign, q in found) == [
        (1, 720), (2, -1764), (3, 1624), (4, -735), (5, 175), (6, -21)
    ]  # fmt: skip


def test_twins_are_exchangeable_one_by_one() -> None:
    def groups(text: str, free: str = "") -> set[str]:
        whole = Problem.of(Residuals(pattern(text)).of(frozenset(range(len(text.split())))))
        whole = replace(whole, free=frozenset(v for v in whole.variables if v.name in free))
        found: dict[int, str] = {}
        for variable, number in twins(whole).items():
            found[number] = found.get(number, "") + variable.name
        return set(found.values())

    assert groups("ab ac ad") == {"a", "bcd"}
    assert groups("ab ac ad", "c") == {"a", "bd", "c"}
    assert groups("ab ca ad") == {"a", "bd", "c"}
    # Turning a cycle changes nothing, exchanging two of its corners does.
    assert groups("ab bc ca") == {"a", "b", "c"}
    assert groups("ab ba") == {"ab"}


def test_contradictory_identifications_vanish() -> None:
    path = pattern("ab bc")
    problem = Problem.of(Residuals(path).of(path.everything))
    b, c = (Variable(n, INTEGER) for n in "bc")
    only = frozenset({Inequality.between(b, c)})
    [(sign, quotient)] = quotients(replace(problem, inequalities=only), only) or []
    assert sign == -1
    assert [v.name for v in quotient.variables] == ["a", "b"]
    pairs = problem.inequalities
    assert quotients(
        problem, frozenset(p for p in pairs if {v.name for v in p.variables} == {"a", "c"})
    )
    assert len(pairs) == 3


def test_forms_are_equal_exactly_for_isomorphic_problems() -> None:
    def form(text: str, free: str = "") -> object:
        whole = Problem.of(Residuals(pattern(text)).of(frozenset(range(len(text.split())))))
        marks = {v: v.name in free for v in whole.variables}
        return canonical(whole.leaves, whole.conditions, dict(marks)).form

    assert form("ab bc") == form("xy yz") == form("bc ab")
    assert form("ab bc") != form("ab cb")
    assert form("ab bc", "a") != form("ab bc", "c")
    assert form("ab bc ca") == form("ca ab bc")
    assert form("ab bc ca da") != form("ab bc ca ad")


def test_statistics_of_a_table(graph: Direct) -> None:
    wide = table("facts", "id", "kind", keys=["id"], nullable="kind")
    graph.fill(wide, [(i, None if i % 3 == 0 else min(i, 50)) for i in range(3000)])
    joined = query(atom(wide, "x", "k"), atom(wide, "y", "k"))
    found = read_statistics(graph, joined)
    kind = found.repetition(wide, "kind")
    values = [min(i, 50) for i in range(3000) if i % 3]
    frequencies = [values.count(v) for v in set(values)]
    assert found.size(wide) == 3000
    assert kind.distinct == len(frequencies)
    assert kind.squares == sum(f * f for f in frequencies)
    assert kind.most == max(frequencies)
    assert found.repetition(wide, "id").most == 1
    assert repr(found) == "Statistics(private)"


def test_column_names_do_not_collide() -> None:
    names = column_names([Variable(n, INTEGER) for n in ("A", "a", "a b", "results")])
    assert sorted(names.values()) == ["a", "a_2", "a_b", "results_2"]


def test_a_step_does_not_hide_a_table_of_its_name(graph: Direct) -> None:
    odd = table("seeds_a", "p", "q", keys=["p q"])
    graph.fill(odd, [(1, 2), (1, 3), (2, 3), (4, 3)])
    path = query(atom(odd, "a", "b"), atom(odd, "b", "c"), atom(odd, "c", "a"), different="a b c")
    residual = Residuals(path).of(frozenset({0, 1}))
    values = {
        how: graph.scalar(statement_of(choose(residual, how=how), "duckdb"))
        for how in ("plain", "factorised", "pruned")
    }
    assert set(values.values()) == {1}


def test_unknown_plans_are_refused() -> None:
    whole = pattern("ab")
    with pytest.raises(UsageError, match="no plan 'quick'"):
        choose(Residuals(whole).of(whole.everything), how="quick")


def test_index_hints_name_every_joined_column_first() -> None:
    assert index_hints(pattern("ab bc ca")) == ("edge (src, dst)", "edge (dst, src)")


def golden_cases() -> Iterator[tuple[str, Query, frozenset[int], str]]:
    square, triangles = pattern(PATTERNS["square"]), pattern(PATTERNS["two_triangles"])
    yield "square_count", square, square.everything, "factorised"
    yield "two_triangles_count", triangles, triangles.everything, "factorised"
    yield "two_path", square, frozenset({0, 1}), "pruned"
    yield "three_path", square, frozenset({0, 1, 2}), "pruned"
    distinct = query(
        atom(EDGE, "a", "b"), atom(EDGE, "b", "c"), atom(EDGE, "c", "d"), distinct="a d"
    )
    yield "distinct_ends", distinct, distinct.everything, "factorised"


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize("case", list(golden_cases()), ids=lambda case: case[0])
def test_golden_statements(case: tuple[str, Query, frozenset[int], str], dialect: str) -> None:
    name, whole, members, how = case
    plan = choose(Residuals(whole).of(members), how=how)
    text = "\n".join(
        [
            *(f"-- {line}" for line in plan.lines()),
            statement_of(plan, dialect).sql(dialect, pretty=True),
            "",
        ]
    )
    assert_kept(GOLDEN / f"{name}.{dialect}.sql", text)
