"""Largest counts of parts that meet in the boundary, multiplied: the same as of the whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlrs.catalog import Table
from sqlrs.planning.choose import choose
from sqlrs.planning.inclusion_exclusion import Planner
from sqlrs.planning.leaves import Completions, TableRows
from sqlrs.planning.plan import Factorised
from sqlrs.planning.problem import Problem
from sqlrs.planning.same_values import same_values
from sqlrs.planning.separate import reduced, separate
from sqlrs.planning.table_statistics import Statistics
from sqlrs.residuals.residual import Residual, Residuals
from sqlrs.sql import plain as emit
from sqlrs.sql.write import statement_of
from tests.planning.adapters import Direct
from tests.planning.strategies import TABLES, rows_of
from tests.support.builders import EDGE, atom, query, table
from tests.support.examples import examples
from tests.support.weights import weighed, weighing

BOW_TIE = [atom(EDGE, *p) for p in ("xa", "ab", "bx", "xc", "cd", "dx")]


def values(residual: Residual, snapshot: Direct) -> Iterator[int]:
    """The largest count by every way that this residual has."""
    planner = Planner(Statistics())
    problem = Problem.of(residual)
    smaller = reduced(problem)
    for total in (planner.exact(smaller), separate(problem, planner), separate(smaller, planner)):
        if total is not None:
            yield snapshot.scalar(statement_of(Factorised(residual, total), "duckdb"))


@st.composite
def open_flowers(draw: st.DrawFn) -> Residual:
    """Leaves and paths that meet in x; what closed them is gone, so that all ends are free."""
    petals, closing, names = [], [], ["x"]
    for i in range(draw(st.integers(2, 3))):
        tables = st.sampled_from(TABLES[:2])
        ends = ("x", f"b{i}")
        kind = draw(st.sampled_from(["leaf", "path"]))
        if kind == "leaf":
            ways = [draw(st.permutations(ends))]
        else:
            ways = [["x", f"a{i}"], [f"a{i}", f"b{i}"]]
            names.append(f"a{i}")
        petals += [atom(draw(tables), *way) for way in ways]
        closing.append(atom(draw(tables), *ends))
        names.append(f"b{i}")
    pairs = st.lists(st.sampled_from(names), min_size=2, max_size=2, unique=True)
    different = [" ".join(pair) for pair in draw(st.lists(pairs, max_size=3))]
    whole = query(*draw(weighed(petals)), *closing, different=different)
    return Residuals(whole).of(frozenset(range(len(petals))))


@settings(max_examples=examples(60))
@given(open_flowers(), st.data())
def test_the_largest_count_stays(
    on_duckdb: Direct, residual: Residual, data: st.DataObject
) -> None:
    for one in TABLES[:2]:
        on_duckdb.fill(one, data.draw(rows_of(one)))
    expected = on_duckdb.scalar(emit.plain(residual))
    assert set(values(residual, on_duckdb)) == {expected}


@st.composite
def open_stars(draw: st.DrawFn) -> Residual:
    """Edges from and to x, which is summed out; their other ends, some the same, are free."""
    edges, gone = [], []
    for i in range(draw(st.integers(2, 4))):
        end = draw(st.sampled_from([f"a{i}", "a0"]))
        ways = ("x", end) if draw(st.booleans()) else (end, "x")
        edges.append(atom(draw(st.sampled_from(TABLES[:2])), *ways))
        gone.append(atom(TABLES[0], end, f"z{i}"))
    names = sorted({str(v) for one in edges for v in one.variables})
    pairs = st.lists(st.sampled_from(names), min_size=2, max_size=2, unique=True)
    different = [" ".join(pair) for pair in draw(st.lists(pairs, max_size=2))]
    whole = query(*draw(weighed(edges)), *gone, different=different)
    return Residuals(whole).of(frozenset(range(len(edges))))


@settings(max_examples=examples(50))
@given(open_stars(), st.data())
def test_leaves_that_another_one_stands_for(
    on_duckdb: Direct, residual: Residual, data: st.DataObject
) -> None:
    for one in TABLES[:2]:
        on_duckdb.fill(one, data.draw(rows_of(one)))
    expected = on_duckdb.scalar(emit.plain(residual))
    assert set(values(residual, on_duckdb)) == {expected}


def kept(
    *inequalities: str,
    of: Table = TABLES[0],
    edges: str = "xa bx xc dx",
    weight: str | None = None,
) -> int:
    """How many leaves of a star are left."""
    star = [weighing(atom(of, *p), weight) for p in edges.split()]
    gone = [atom(EDGE, v, f"z{v}") for v in "abcd" if v in edges]
    residual = Residuals(query(*star, *gone, different=inequalities)).of(
        frozenset(range(len(star)))
    )
    return len(reduced(Problem.of(residual)).leaves)


def test_which_leaves_another_one_stands_for(on_duckdb: Direct) -> None:
    assert kept() == 2
    assert kept("a c") == 3
    assert kept("a c", "b d") == 4
    # Rows that repeat count for themselves, so none can go; nor can those that have a weight.
    assert kept(of=table("bag", "src", "dst")) == 4
    assert kept(weight="few") == 4
    # A negative control: with a ≠ c the two edges from x must be different ones.
    on_duckdb.fill(EDGE, [(0, 1), (2, 1)])
    star = [atom(EDGE, "x", "a"), atom(EDGE, "x", "c")]
    gone = [atom(EDGE, "a", "y"), atom(EDGE, "c", "z")]
    for different, expected in ((), 2), (("a c",), 0):
        residual = Residuals(query(*star, *gone, different=different)).of(frozenset({0, 1}))
        assert on_duckdb.scalar(emit.plain(residual)) == expected
        assert set(values(residual, on_duckdb)) == {expected}


def open_bow_tie(*inequalities: str) -> Residual:
    """Both triangles without the edge that closes them: paths x a b and x c d; x, b, d are free."""
    return Residuals(query(*BOW_TIE, different=inequalities)).of(frozenset({0, 1, 3, 4}))


def names(total_of: Residual) -> list[list[str]] | None:
    total = separate(Problem.of(total_of), Planner(Statistics()))
    if total is None:
        return None
    return [sorted(map(str, one.variables)) for one in total.terms[0].join.inputs]


def test_what_separates() -> None:
    assert names(open_bow_tie()) == [["x"], ["x"]]
    # b and d are compared, so that a large count of one may rule out that of the other.
    assert names(open_bow_tie("b d")) is None
    assert names(open_bow_tie("a c")) is None
    assert names(open_bow_tie("a x", "c x")) == [["x"], ["x"]]


@pytest.mark.parametrize("inequalities", [(), ("b d",), ("a c",), ("a x", "b x", "b d")])
def test_comparisons_across_the_parts(inequalities: tuple[str, ...], on_duckdb: Direct) -> None:
    """From 0 most paths lead to 9, by different ways: b ≠ d and a ≠ c matter."""
    on_duckdb.fill(EDGE, [(0, 1), (0, 2), (0, 3), (1, 9), (2, 9), (3, 9), (1, 8), (2, 7)])
    residual = open_bow_tie(*inequalities)
    expected = on_duckdb.scalar(emit.plain(residual))
    assert set(values(residual, on_duckdb)) == {expected}
    assert expected == {(): 9, ("b d",): 3, ("a c",): 6}.get(inequalities, 3)


def test_a_leaf_alone_counts_its_most_frequent_completion() -> None:
    problem = Problem.of(Residuals(query(*BOW_TIE)).of(frozenset({0, 1, 5})))
    smaller = reduced(problem)
    assert {str(v) for v in problem.free - smaller.free} == {"d"}
    kinds = [type(leaf) for leaf in smaller.leaves]
    assert kinds == [TableRows, TableRows, Completions]
    assert isinstance(last := smaller.leaves[-1], Completions) and last.maximised == ("src",)


def left_of(edges: str, gone: str, *inequalities: str) -> Residual:
    """Some edges of a query, of which those that are gone decide what is free."""
    some = edges.split()
    atoms = [atom(EDGE, *pair) for pair in (*some, *gone.split())]
    return Residuals(query(*atoms, different=inequalities)).of(frozenset(range(len(some))))


def test_a_leaf_that_an_inner_variable_stands_for(on_duckdb: Direct) -> None:
    """Where x leads to m it leads somewhere: no edge from x to a c of its own takes anything away.

    Where x is summed out it does, since all x have to lead to the same c, and so it does where c is
    compared.
    """
    on_duckdb.fill(EDGE, [(0, 1), (2, 3), (1, 9), (3, 9), (0, 4), (2, 5)])
    for residual, leaves, expected in (
        (left_of("xm mb xc", "bx cz"), 2, 1),
        (left_of("xm mb xc", "by cz"), 3, 1),
        (left_of("xm mb xc", "bx cz", "b c"), 3, 1),
        (left_of("xm mb", "by"), 2, 2),
    ):
        assert len(reduced(Problem.of(residual)).leaves) == leaves
        assert on_duckdb.scalar(emit.plain(residual)) == expected
        assert set(values(residual, on_duckdb)) == {expected}


def test_residuals_that_reduced_are_alike_have_one_value() -> None:
    residuals = Residuals(query(*BOW_TIE))
    parts = [residuals.of(frozenset(m)) for m in ((0, 1), (0, 1, 3), (0, 1, 5), (0, 2, 3, 5))]
    same = same_values(parts)
    assert [sorted(same[part.members].members) for part in parts] == [
        [0, 1],
        [0, 1],
        [0, 1, 5],
        [0, 1],
    ]
    apart = Residuals(query(*BOW_TIE, different=["b c", "a d"]))
    assert len({one.members for one in same_values(map(apart.of, same)).values()}) == 4


@st.composite
def several_edges(draw: st.DrawFn) -> Residuals:
    """Some edges between few variables, so that residuals are alike in many ways."""
    pairs = st.lists(st.sampled_from("abcd"), min_size=2, max_size=2, unique=True)
    edges = draw(st.lists(pairs, min_size=3, max_size=6))
    atoms = [atom(TABLES[draw(st.sampled_from([0, 0, 1]))], *pair) for pair in edges]
    held = sorted({v for pair in edges for v in pair})
    different = [
        " ".join(p) for p in draw(st.lists(pairs, max_size=2)) if held == sorted({*held, *p})
    ]
    return Residuals(query(*draw(weighed(atoms)), different=different))


@settings(max_examples=examples(50))
@given(several_edges(), st.data())
def test_residuals_with_one_value(
    on_duckdb: Direct, residuals: Residuals, data: st.DataObject
) -> None:
    for one in TABLES[:2]:
        on_duckdb.fill(one, data.draw(rows_of(one)))
    number = len(residuals.query.atoms)
    sets = (
        frozenset(i for i in range(number) if code >> i & 1) for code in range(1, 2**number - 1)
    )
    parts = residuals.undecided(sets)
    found = {part.members: on_duckdb.scalar(emit.plain(part)) for part in parts}
    for members, first in same_values(parts).items():
        assert found[members] == found[first.members]


def test_parts_that_share_nothing_stay_together(on_duckdb: Direct) -> None:
    """Each of the two paths shares a variable with an edge that is gone, none with the other."""
    on_duckdb.fill(EDGE, [(0, 1)])
    whole = query(*(atom(EDGE, *p) for p in ("ab", "bc", "cd", "de", "ef")))
    residual = Residuals(whole).of(frozenset({0, 1, 3, 4}))
    assert separate(Problem.of(residual), Planner(Statistics())) is None
    assert set(values(residual, on_duckdb)) == {0}


def test_conditions_inside_a_part_hold(on_duckdb: Direct) -> None:
    """Without a ≠ x the way over the loop at 0 would be the best one."""
    on_duckdb.fill(EDGE, [(0, 0), (0, 5), (0, 1), (1, 5)])
    residual = open_bow_tie("a x", "c x")
    total = separate(Problem.of(residual), Planner(Statistics()))
    assert total is not None
    expected = on_duckdb.scalar(emit.plain(residual))
    assert expected == 1 < on_duckdb.scalar(emit.plain(open_bow_tie()))
    assert on_duckdb.scalar(statement_of(Factorised(residual, total), "duckdb")) == expected


def test_conditions_on_shared_variables_hold(on_duckdb: Direct) -> None:
    """x and y are in both parts, and so is x ≠ y: at the loop of 0 it would be 4."""
    on_duckdb.fill(EDGE, [(0, 0), (0, 1), (1, 0)])
    ways = [atom(EDGE, *p) for p in ("xa", "ay", "xb", "by")]
    whole = query(*ways, atom(EDGE, "x", "y"), different="x y")
    residual = Residuals(whole).of(frozenset({0, 1, 2, 3}))
    expected = on_duckdb.scalar(emit.plain(residual))
    assert expected == 1
    assert set(values(residual, on_duckdb)) == {expected}


def test_a_condition_that_one_leaf_alone_reads_holds(on_duckdb: Direct) -> None:
    """x and y are shared, but only the edge between them can read x ≠ y: no loop counts."""
    on_duckdb.fill(EDGE, [(0, 0), (0, 1), (0, 2)])
    parts = [atom(EDGE, *p) for p in ("xa", "ab", "xy", "yc", "cd")]
    gone = [atom(EDGE, *p) for p in ("bx", "dy", "yx")]
    residual = Residuals(query(*parts, *gone, different="x y")).of(frozenset(range(5)))
    total = separate(Problem.of(residual), Planner(Statistics()))
    assert total is not None and len(total.terms[0].join.inputs) == 3
    assert on_duckdb.scalar(emit.plain(residual)) == 0
    assert set(values(residual, on_duckdb)) == {0}


@pytest.mark.parametrize("nullable", ["", "p q"])
def test_rows_that_repeat_and_rows_without_a_value(nullable: str, on_duckdb: Direct) -> None:
    """(0, 5) three times: with two edges from 0 that is 6. A NULL joins nothing, however often."""
    bag = table("bag", "p", "q", nullable=nullable)
    empty = [(0, None)] * 5 if nullable else []
    on_duckdb.fill(bag, [(0, 5), (0, 5), (0, 5), (0, 6), *empty])
    on_duckdb.fill(EDGE, [(0, 1), (0, 2)])
    whole = query(atom(EDGE, "x", "a"), atom(bag, "x", "c"), atom(EDGE, "c", "x"))
    residual = Residuals(whole).of(frozenset({0, 1}))
    assert {str(v) for v in residual.boundary} == {"x", "c"}
    assert on_duckdb.scalar(emit.plain(residual)) == 6
    assert set(values(residual, on_duckdb)) == {6}


def test_a_plan_says_what_it_takes_apart() -> None:
    lines = choose(open_bow_tie(), how="factorised").lines()
    assert sum(line.startswith("largest count per (x)") for line in lines) == 1
    assert "count per (x): [x] ⋈ [x]" in lines
