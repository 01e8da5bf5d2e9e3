"""Isomorphic residuals: found exactly, checked against a search over all bijections."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import parse_one

from sqlrs.catalog import Column
from sqlrs.query import Comparison, Constant, Inequality, Query, Term, Variable, Weight
from sqlrs.residuals import isomorphism
from sqlrs.residuals.isomorphism import isomorphic, representatives
from sqlrs.residuals.residual import Residual, Residuals, subsets
from tests.support.builders import INTEGER, PATTERNS, atom, pattern, query, table
from tests.support.examples import examples
from tests.test_residuals import small_queries

BAG = table("bag", "x", "y")


def by_all_bijections(one: Residual, other: Residual) -> bool:
    """The definition: some bijection of atoms and of variables carries one onto the other."""
    left, right = sorted(one.members), sorted(other.members)
    variables = sorted(one.variables | one.external)
    targets = sorted(other.variables | other.external)
    if len(left) != len(right) or len(variables) != len(targets):
        return False
    return any(
        all(
            _same_atom(one, i, other, j, dict(zip(variables, image, strict=True)))
            for i, j in zip(left, order, strict=True)
        )
        and _same_rest(one, other, dict(zip(variables, image, strict=True)))
        for order in permutations(right)
        for image in permutations(targets)
    )


def _same_atom(
    one: Residual, i: int, other: Residual, j: int, image: dict[Variable, Variable]
) -> bool:
    a, b = one.query.atoms[i], other.query.atoms[j]
    moved = {(c, image[t] if isinstance(t, Variable) else t) for c, t in a.terms}
    same = a.table == b.table and set(a.filters) == set(b.filters) and a.weight == b.weight
    return same and moved == set(b.terms)


def _same_rest(one: Residual, other: Residual, image: dict[Variable, Variable]) -> bool:
    def moved(term: Term) -> Term:
        return image[term] if isinstance(term, Variable) else term

    return (
        {image[v] for v in one.boundary} == other.boundary
        and {image[v] for v in one.external} == other.external
        and (one.output is None) == (other.output is None)
        and {image[v] for v in one.output or ()} == (other.output or frozenset())
        and {image[v] for v in one.variables & one.query.never_null}
        == other.variables & other.query.never_null
        and {Inequality.between(image[p.left], image[p.right]) for p in one.inequalities}
        == other.inequalities
        and {Comparison(moved(p.left), moved(p.right), p.strict) for p in one.comparisons}
        == other.comparisons
    )


@st.composite
def weighted_queries(draw: st.DrawFn) -> Query:
    """Small queries, in half of which some rows count as often as their first column says."""
    whole = draw(small_queries())
    if draw(st.booleans()):
        return whole
    weights = st.sampled_from([None, 1, 5])
    atoms = []
    for one in whole.atoms:
        bound = draw(weights)
        column = one.table.columns[0]
        weighed = bound is not None and not column.nullable
        atoms.append(replace(one, weight=Weight(column.name, bound or 0) if weighed else None))
    return replace(whole, atoms=tuple(atoms))


@settings(max_examples=examples(30), deadline=None)
@given(weighted_queries())
def test_representatives_are_exactly_the_isomorphism_classes(q: Query) -> None:
    residuals = Residuals(q)
    all_of_them = [residuals.of(m) for m in subsets(q.everything) if m and len(m) <= 3]
    found = representatives(all_of_them)
    for one in all_of_them:
        for other in all_of_them:
            if len(one.variables | one.external) <= 5:
                same = found[one.members] == found[other.members]
                assert same == by_all_bijections(one, other), (str(one), str(other))


def test_the_square_needs_two_statements() -> None:
    residuals = Residuals(pattern(PATTERNS["square"]))
    undecided = residuals.undecided(residuals.required)
    assert len({r.members for r in representatives(undecided).values()}) == 2


def test_direction_matters() -> None:
    path = query(atom(BAG, "a", "b"), atom(BAG, "b", "c"), atom(BAG, "c", "d"))
    residuals = Residuals(path)
    first, last = residuals.of(frozenset({0})), residuals.of(frozenset({2}))
    assert representatives([first, last])[last.members] == last


def test_filters_and_constants_matter() -> None:
    fixed = query(atom(BAG, "a", 1), atom(BAG, "a", 2), atom(BAG, "a", 1))
    residuals = Residuals(fixed)
    one, two, again = (residuals.of(frozenset({i})) for i in range(3))
    found = representatives([one, two, again])
    assert found[two.members] == two
    assert found[again.members] == one
    assert isinstance(fixed.atoms[0].terms[1][1], Constant)


def test_a_computed_column_of_another_query_is_another_one() -> None:
    """Two sums of one statement weigh by columns of the same name, each of its own expression."""

    def weighed(text: str) -> Residual:
        column = Column("weight", INTEGER, nullable=False, computed=parse_one(text))
        bag = BAG.with_computed([column])
        first = replace(atom(bag, "a", "b"), weight=Weight("weight", 7))
        whole = query(first, atom(bag, "b", "c", alias="other"))
        return Residuals(whole).of(frozenset({0}))

    assert isomorphic(weighed("x + 1"), weighed("x + 1"))
    assert not isomorphic(weighed("x + 1"), weighed("y + 1"))


def test_wide_tables_are_matched_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of one row go together: trying them one by one would take 4**6 steps and more."""
    columns = "abcdefg"
    wide = table("wide", *columns, keys=[" ".join(columns)])
    star = query(*(atom(wide, "x", *(f"{c}{i}" for c in columns[1:])) for i in range(5)))
    steps = []
    monkeypatch.setattr(isomorphism, "spend", lambda: steps.append(1))
    residuals = Residuals(star)
    four = [residuals.of(star.everything - {i}) for i in range(5)]
    assert len({r.members for r in representatives(four).values()}) == 1
    assert len(steps) <= 4 * 5
