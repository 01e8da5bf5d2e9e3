"""Residuals: which sets are needed, their boundary, kept predicates, parts and key decisions."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlrs.errors import QueryRefused
from sqlrs.query import Query, Variable
from sqlrs.residuals.residual import Reading, Residuals, subsets
from tests.support.builders import EDGE, PATTERNS, atom, pattern, query, table
from tests.support.examples import examples

BAG = table("bag", "x", "y")
KEYED = table("keyed", "id", "ref", keys=["id"])
OPEN = table("open", "x", "y", private=False)


def names(variables: frozenset[Variable]) -> str:
    return "".join(sorted(v.name for v in variables))


def test_required_sets_leave_out_private_atoms_only() -> None:
    mixed = query(atom(BAG, "a", "b"), atom(OPEN, "b", "c"), atom(BAG, "c", "d"))
    required = set(Residuals(mixed).required)
    assert required == {frozenset({1, 2}), frozenset({0, 1}), frozenset({1})}


def test_a_fully_private_query_needs_the_empty_set_too() -> None:
    residuals = Residuals(pattern(PATTERNS["triangle"]))
    assert len(residuals.required) == 2**3 - 1
    assert residuals.assemble([frozenset()], {}) == {frozenset(): 1}


@pytest.mark.parametrize(
    ("members", "boundary"),
    [({0}, "ab"), ({0, 1}, "ac"), ({0, 2}, "abcd"), ({0, 1, 2}, "ad"), ({0, 1, 2, 3}, "")],
)
def test_boundary_of_the_square(members: set[int], boundary: str) -> None:
    residual = Residuals(pattern(PATTERNS["square"])).of(frozenset(members))
    assert names(residual.boundary) == boundary


def test_an_inequality_counts_only_inside_one_connected_piece() -> None:
    residuals = Residuals(pattern(PATTERNS["square"]))
    opposite = residuals.of(frozenset({0, 2}))
    assert {str(p) for p in opposite.inequalities} == {"a ≠ b", "c ≠ d"}
    assert [part.members for part in residuals.parts(opposite.members)] == [{0}, {2}]


def test_parts_linked_by_a_comparison_stay_together() -> None:
    wider = query(*(atom(BAG, *pair) for pair in ("ab", "cd", "ef")), less=[("b", "c")])
    pair = frozenset({0, 1})
    assert [p.members for p in Residuals(wider).parts(pair)] == [{0, 1}]
    relaxed = Residuals(wider, Reading(exact_comparisons=False))
    assert [p.members for p in relaxed.parts(pair)] == [{0}, {1}]
    assert relaxed.of(pair).comparisons == frozenset()


def test_the_count_itself_keeps_every_predicate() -> None:
    linked = query(
        atom(BAG, "a", "b"),
        atom(BAG, "c", "d"),
        different=["a c"],
        less=[("b", "d")],
        general=[(lambda b, c: b + c < 3, "b c")],
    )
    for exact in (True, False):
        count = Residuals(linked, Reading(exact_comparisons=exact)).of(linked.everything)
        assert set(count.predicates) == set(linked.predicates)


def test_parts_linked_through_a_chain_of_external_variables_stay_together() -> None:
    chained = query(
        atom(BAG, "a", "b"),
        atom(BAG, "z", "q"),
        atom(BAG, "y", "p"),
        atom(BAG, "c", "d"),
        less=[("b", "z"), ("z", "y"), ("y", "c")],
    )
    residuals = Residuals(chained, Reading())
    ends = residuals.of(frozenset({0, 3}))
    assert names(ends.external) == "yz"
    assert len(ends.comparisons) == 3
    assert [p.members for p in residuals.parts(ends.members)] == [{0, 3}]


def test_the_reading_is_one_for_the_whole_query() -> None:
    chained = query(
        *(atom(BAG, f"a{i}", f"b{i}") for i in range(5)),
        less=[(f"b{i}", f"b{i + 1}") for i in range(4)],
    )
    assert not Reading.of(chained, max_external=2).exact_comparisons
    assert Reading.of(chained, max_external=3).exact_comparisons


def test_keys_decide_and_bags_do_not() -> None:
    keyed = query(atom(KEYED, "i", "j"), atom(KEYED, "j", "k"), atom(BAG, "k", "l"))
    residuals = Residuals(keyed)
    assert not residuals.of(frozenset({0, 1})).decided  # the boundary k does not lead back to i
    backwards = query(atom(BAG, "x", "i"), atom(KEYED, "i", "j"), atom(KEYED, "j", "k"))
    residuals = Residuals(backwards)
    assert residuals.of(frozenset({1, 2})).decided
    assert not residuals.of(frozenset({0})).decided
    everything_known = query(atom(BAG, "a", "b"), atom(BAG, "a", "b"))
    assert not Residuals(everything_known).of(frozenset({0})).decided


def test_a_key_fixed_by_a_constant_decides() -> None:
    fixed = query(atom(KEYED, 7, "j"), atom(BAG, "j", "k"))
    assert Residuals(fixed).of(frozenset({0})).decided


def test_an_output_inside_the_closure_decides() -> None:
    projected = query(atom(BAG, "a", "b"), atom(BAG, "b", "c"), distinct="b")
    residuals = Residuals(projected)
    assert residuals.of(frozenset({0})).decided
    wider = query(atom(BAG, "a", "b"), atom(BAG, "b", "c"), distinct="a")
    assert not Residuals(wider).of(frozenset({0})).decided
    assert Residuals(wider).of(frozenset({1})).decided


def test_an_absent_value_is_never_read_as_zero() -> None:
    residuals = Residuals(pattern(PATTERNS["square"]))
    with pytest.raises(KeyError):
        residuals.assemble([frozenset({0, 1})], {})


def test_too_many_atoms_are_refused() -> None:
    long = query(*(atom(BAG, f"v{i}", f"v{i + 1}") for i in range(13)))
    with pytest.raises(QueryRefused, match="13 tables"):
        Residuals(long)
    crowded = query(*(atom(BAG, f"v{i}", f"v{i + 1}") for i in range(11)))
    with pytest.raises(QueryRefused, match="11 private tables; at most 10"):
        Residuals(crowded)
    free = replace(BAG, name="public", private=False)
    kinds = [BAG] * 10 + [free] * 2
    wide = query(*(atom(kind, f"v{i}", f"v{i + 1}") for i, kind in enumerate(kinds)))
    assert len(Residuals(wide).required) == 2**10 - 1


@st.composite
def small_queries(draw: st.DrawFn) -> Query:
    variables = "abcdef"
    tables = [EDGE, BAG, KEYED, OPEN]
    atoms = [
        atom(
            draw(st.sampled_from(tables)),
            draw(st.sampled_from(variables)),
            draw(st.sampled_from(variables)),
        )
        for _ in range(draw(st.integers(1, 4)))
    ]
    used = sorted({v.name for a in atoms for v in a.variables})
    pairs = list(combinations(used, 2))
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=3, unique=True)) if pairs else []
    less = draw(st.lists(st.sampled_from(pairs), max_size=3, unique=True)) if pairs else []
    return query(*atoms, different=[f"{x} {y}" for x, y in chosen], less=less)


@settings(max_examples=examples(80), deadline=None)
@given(small_queries(), st.integers(0, 3))
def test_kept_predicates_only_grow_with_the_set(q: Query, most: int) -> None:
    """K1: E' ⊆ E implies K(E') ⊆ K(E), without which the step bound fails."""
    residuals = Residuals(q, Reading.of(q, max_external=most))
    for bigger in subsets(q.everything):
        for smaller in subsets(bigger):
            touching = {
                p
                for p in residuals.of(smaller).predicates
                if not p.variables.isdisjoint(q.variables(smaller))
            }
            assert touching <= set(residuals.of(bigger).predicates)


@settings(max_examples=examples(80), deadline=None)
@given(small_queries())
def test_parts_partition_the_set_and_share_nothing(q: Query) -> None:
    residuals = Residuals(q)
    for members in subsets(q.everything):
        parts = residuals.parts(members)
        assert sorted(chain.from_iterable(p.members for p in parts)) == sorted(members)
        for one, other in combinations(parts, 2):
            assert one.variables.isdisjoint(other.variables)
            assert one.external.isdisjoint(other.external | other.variables)
        kept = {p for part in parts for p in part.predicates}
        assert kept == set(residuals.of(members).predicates)


def test_an_external_variable_bounded_on_one_side_restricts_nothing() -> None:
    chained = query(
        atom(BAG, "p", "a"), atom(BAG, "q", "b"), atom(BAG, "r", "c"), less=[("a", "b"), ("b", "c")]
    )
    residuals = Residuals(chained)
    assert residuals.of(frozenset({0})).external == frozenset()
    assert names(residuals.of(frozenset({0, 2})).external) == "b"
    bounded = query(atom(BAG, "p", "a"), atom(BAG, "q", "b"), less=[("a", "b"), ("b", 10)])
    assert names(Residuals(bounded).of(frozenset({0})).external) == "b"
