"""Packings: bounds and scores against the definition, whatever a solver says."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlrs.errors import EngineFailed, UsageError
from sqlrs.measures import OwnedResults
from sqlrs.mechanisms import interior_packing, packing_solver
from sqlrs.mechanisms.interior_packing import interior_guess, is_for_interior
from sqlrs.mechanisms.packing_solver import CertifiedSums, Deadline, certified_sum, load_highs
from sqlrs.sensitivity.exact_packing import exact_packing
from sqlrs.sensitivity.packing import Array, CutPacking, Packing, RankedResults, numbered
from sqlrs.sensitivity.packing_scores import GAP, doublings, gamma, moved_parts, scores
from tests.support.examples import examples
from tests.support.packings import Weights, clipped, hypergraphs, owned, without

GRID = (1, 2, 4)
SETS = [frozenset(s) for n in (1, 2, 3, 4) for s in combinations(range(4), n)]
WEIGHTS = st.dictionaries(st.sampled_from(SETS), st.integers(1, 40), max_size=9)


PLENTY = 60.0


def largest(weights: Weights) -> int:
    units = {u for own in weights for u in own}
    return max((sum(w for own, w in weights.items() if u in own) for u in units), default=0)


@given(weights=WEIGHTS, threshold=st.integers(1, 64))
@settings(max_examples=examples(100), deadline=None)
def test_certified_sums_are_hardly_above_the_definition(weights: Weights, threshold: int) -> None:
    found, prices = CertifiedSums(owned(weights), PLENTY).at(threshold)
    exact = clipped(weights, threshold)
    assert exact <= found <= exact + GAP * threshold
    # The prices bound Q at every smaller threshold too.
    for smaller in {1, threshold // 2, threshold - 1} - {0}:
        assert clipped(weights, smaller) <= found - (threshold - smaller) * prices


@given(
    weights=WEIGHTS,
    threshold=st.integers(1, 64),
    names=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=4, max_size=4, unique=True),
    rng=st.randoms(use_true_random=False),
)
@settings(max_examples=examples(100), deadline=None)
def test_a_unit_is_what_has_its_name_wherever_it_stands(
    weights: Weights, threshold: int, names: list[int], rng: random.Random
) -> None:
    """Names may be any whole numbers; units stand in any order, and results in several rows."""
    rows: list[list[int]] = []
    parts: list[int] = []
    for own, weight in weights.items():
        first = rng.randrange(weight)
        for part in (first, weight - first) if first else (weight,):
            row = [*own, *rng.choices(sorted(own), k=4 - len(own))]
            rng.shuffle(row)
            rows.append([names[u] for u in row])
            parts.append(part)
    columns = tuple([row[i] for row in rows] for i in range(4))
    found, _ = CertifiedSums(OwnedResults(columns, parts), PLENTY).at(threshold)
    exact = clipped(weights, threshold)
    assert exact <= found <= exact + GAP * threshold


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), min_size=2, max_size=30))
@settings(max_examples=examples(100), deadline=None)
def test_names_become_numbers_and_stay_apart(names: list[int]) -> None:
    half = len(names) // 2
    columns = [np.array(part, dtype=np.int64) for part in (names[:half], names[half : 2 * half])]
    found, count = numbered(columns)
    pairs = list(zip(np.concatenate(columns).tolist(), np.concatenate(found).tolist(), strict=True))
    assert all(0 <= number < count for _, number in pairs)
    assert len(set(pairs)) == len({name for name, _ in pairs}) == len({n for _, n in pairs})


def merged(owners: Array, weights: Array, nobody: int) -> dict[frozenset[int], int]:
    """By sets of units; no set may stand twice."""
    rows = [frozenset(row) - {nobody} for row in owners.tolist()]
    assert len(set(rows)) == len(rows)
    return dict(zip(rows, weights.tolist(), strict=True))


@given(weights=WEIGHTS.filter(bool), threshold=st.integers(1, 64))
@settings(max_examples=examples(100), deadline=None)
def test_one_order_of_results_serves_all_thresholds(weights: Weights, threshold: int) -> None:
    if threshold >= largest(weights):
        return
    packing = Packing.of(owned(weights))
    ranked = RankedResults.of(packing.owners, packing.weights, packing.shares)
    units = [int(u) for u in np.argsort(-packing.shares, kind="stable")]
    cut = [u for u in units if packing.shares[u] > threshold]
    expected: dict[frozenset[int], int] = {}
    nobody = len(packing.shares)
    for row, weight in zip(np.stack(packing.owners, axis=1), packing.weights, strict=True):
        some = frozenset(cut.index(u) for u in row.tolist() if u != nobody and u in cut)
        expected[some] = expected.get(some, 0) + int(weight)
    expected.pop(frozenset(), None)
    assert merged(*ranked.cut_to(len(cut)), len(cut)) == expected


@given(weights=WEIGHTS.filter(bool), threshold=st.integers(1, 64))
@settings(max_examples=examples(100), deadline=None)
def test_the_interior_method_finds_what_can_be_certified(weights: Weights, threshold: int) -> None:
    if threshold >= largest(weights):
        return
    cut = Packing.of(owned(weights)).cut_to(threshold)
    guess = interior_guess(cut, int)
    assert guess is not None and cut.certified(*guess) is not None


@pytest.mark.parametrize("seed", range(2))
def test_the_interior_method_and_the_simplex_method_agree(seed: int) -> None:
    """Some hundred units in cliques and beyond, results of weights from 0 to thousands."""
    numbers = np.random.default_rng(seed)
    names = numbers.integers(0, 60 * (1 + seed), (20_000, 3))
    weights = numbers.integers(0, 3, len(names)) * 10 ** numbers.integers(0, 4, len(names))
    results = OwnedResults(tuple(names[:, i].tolist() for i in range(3)), weights.tolist())
    packing = Packing.of(results)
    assert is_for_interior(packing.cut_to(packing.largest // 64))
    for threshold in (packing.largest // 2, packing.largest // 64):
        cut = packing.cut_to(threshold)
        found = interior_guess(cut, int)
        other = packing_solver.guess(cut, {"solver": "simplex"}, Deadline.after(PLENTY))
        assert found is not None and other is not None
        here, there = cut.certified(*found), cut.certified(*other)
        assert here is not None and there is not None
        assert abs(here[0] - there[0]) <= GAP * threshold


def test_the_interior_method_needs_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Teams that share people: 16 steps, and 32 where what results miss is left to later steps."""
    numbers = np.random.default_rng(0)
    triples: set[tuple[int, ...]] = set()
    for _ in range(150):
        size = min(45, 3 + int(4 * numbers.pareto(1.0)))
        people = (40 * numbers.pareto(0.8, size)).astype(int) % 1500
        triples.update(combinations(sorted(set(people.tolist())), 3))
    columns = tuple([row[i] for row in sorted(triples)] for i in range(3))
    packing = Packing.of(OwnedResults(columns, [1] * len(triples)))
    cut = packing.cut_to(packing.largest // 8)
    assert is_for_interior(cut)
    monkeypatch.setattr(interior_packing, "_MOST_STEPS", 24)
    guess = interior_guess(cut, int)
    assert guess is not None and cut.certified(*guess) is not None


def test_equations_that_rounding_has_spoilt_are_solved() -> None:
    """Two units that share all their results, hardly apart from one."""
    matrix = np.array([[1.0, 1.0], [1.0, 1.0 - 1e-14]])
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(matrix)
    lower = interior_packing._lower(matrix.copy())
    assert np.allclose(lower @ lower.T, matrix, rtol=1e-7)
    with pytest.raises(np.linalg.LinAlgError):
        interior_packing._lower(-np.eye(2))


def test_numbers_without_sense_end_the_interior_method() -> None:
    cut = Packing.of(owned({frozenset({0, 1}): 3, frozenset({1}): 4})).cut_to(2)
    for weights in (np.full(len(cut.weights), np.nan), np.full(len(cut.weights), np.inf)):
        odd = CutPacking(cut.threshold, cut.kept, cut.units, cut.owners, weights)
        assert interior_guess(odd, int) is None


def test_the_definition_by_prices_is_that_by_solutions() -> None:
    """The other side of the duality, with solutions in whole halves: two units for each result."""
    for weights in hypergraphs(3, 2, sizes=(2,)):
        for threshold in GRID:
            best = Fraction(0)
            ranges = [range(2 * w + 1) for w in weights.values()]
            for halves in _all(ranges):
                loads = [
                    sum(x for own, x in zip(weights, halves, strict=True) if u in own)
                    for u in range(3)
                ]
                if max(loads) <= 2 * threshold:
                    best = max(best, Fraction(sum(halves), 2))
            assert clipped(weights, threshold) == best


def _all(ranges: list[range]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    for values in ranges:
        found = [(*before, v) for before in found for v in values]
    return found


def test_three_units_that_share_in_pairs_have_three_halves() -> None:
    weights = {frozenset(pair): 1 for pair in combinations(range(3), 2)}
    assert CertifiedSums(owned(weights), PLENTY).at(1)[0] == Fraction(3, 2)


def test_a_unit_more_raises_a_clipped_sum_by_the_threshold_at_most() -> None:
    forgotten = 0
    for weights in hypergraphs(3, 2):
        for unit in range(3):
            less = without(weights, unit)
            for threshold in GRID:
                moved = clipped(weights, threshold) - clipped(less, threshold)
                assert 0 <= moved <= threshold
                # The control: whoever forgets that the unit owns its results does not cut it.
                others = _forgetting(weights, unit)
                forgotten += clipped(others, threshold) - clipped(less, threshold) > threshold
    assert forgotten


def _forgetting(weights: Weights, unit: int) -> Weights:
    found: dict[frozenset[int], int] = {}
    for units, weight in weights.items():
        others = units - {unit} or {9}
        found[frozenset(others)] = found.get(frozenset(others), 0) + weight
    return found


def bounds_of(weights: Weights, slack: set[int]) -> Mapping[int, Fraction]:
    """Bounds as an enemy would choose them among those that can be certified."""
    return {t: clipped(weights, t) + (GAP * t if t in slack else 0) for t in (1, 2, 4, 8)}


def raw(bounds: Mapping[int, Fraction]) -> list[Fraction]:
    return [(bounds[2 * t] - bounds[t]) / t for t in GRID]


def shown(bounds: Mapping[int, Fraction]) -> list[Fraction]:
    own = [one.own for one in scores(GRID, lambda t: (bounds[t], Fraction(0)))]
    return own[::-1]


def test_scores_move_as_far_as_gamma_allows_for() -> None:
    """By −1−3κ to 2+3κ for a unit more, by 3+3κ either way for another one, with any slack."""
    low, high = -1 - 3 * GAP, 2 + 3 * GAP
    assert high - low == 1 / gamma(Fraction(1), strict=False)
    assert 1 / gamma(Fraction(1), strict=True) == 2 * (3 + 3 * GAP)
    seen: set[Fraction] = set()
    by_rest: dict[tuple[tuple[frozenset[int], int], ...], list[list[Fraction]]] = {}
    for weights in [*hypergraphs(3, 2, sizes=(1, 2)), *hypergraphs(3, 1)]:
        less = without(weights, 2)
        # All that is above is at its worst where the two sides use opposite slacks.
        for slack in (set[int](), {1, 4}, {2, 8}):
            here = bounds_of(weights, slack)
            there = bounds_of(less, {1, 2, 4, 8} - slack)
            for before, after in ((raw(there), raw(here)), (shown(there), shown(here))):
                moved = [a - b for a, b in zip(after, before, strict=True)]
                assert low <= min(moved) and max(moved) <= high
                seen |= set(moved)
            by_rest.setdefault(tuple(sorted(less.items(), key=str)), []).append(shown(here))
    assert max(seen) >= 2
    for found in by_rest.values():
        for place in range(len(GRID)):
            each = [one[place] for one in found]
            assert max(each) - min(each) <= 3 + 3 * GAP


def test_a_unit_more_can_lower_a_score_by_one() -> None:
    """At τ two units have no room for b, so v gets it; at 2τ they fill b, and v adds nothing."""
    less = {frozenset(own): 1 for own in ("a", "c", "ab", "bc")}
    numbered = {frozenset("abcv".index(u) for u in own): w for own, w in less.items()}
    more = {**numbered, frozenset({1, 3}): 1}
    before = [clipped(numbered, t) for t in (1, 2)]
    after = [clipped(more, t) for t in (1, 2)]
    assert [*map(int, before), *map(int, after)] == [2, 4, 3, 4]


def test_scores_fall_with_the_threshold_and_know_what_is_below() -> None:
    for weights in list(hypergraphs(3, 3, sizes=(1, 2)))[::37]:
        sums = CertifiedSums(owned(weights), PLENTY)
        found = list(scores(doublings(16), sums.at))
        assert len(found) == 5
        for larger, smaller in pairwise(found):
            assert smaller.own >= larger.own >= 0
            assert smaller.own >= larger.below


def test_the_noise_is_for_a_whole_number_of_parts() -> None:
    for threshold in (1, 2, 3, 2**40):
        assert moved_parts(threshold).denominator == 1
        assert moved_parts(threshold) == 2**16 * (threshold + GAP * threshold)


@pytest.mark.parametrize(
    "lie",
    [
        lambda cut: (np.zeros(len(cut.weights)), np.zeros(cut.units)),
        lambda cut: (np.ones(len(cut.weights)), np.ones(cut.units)),
        lambda cut: (np.full(len(cut.weights), np.nan), np.full(cut.units, np.nan)),
        lambda cut: (np.full(len(cut.weights), np.inf), np.full(cut.units, -np.inf)),
        lambda cut: (np.full(len(cut.weights), -1e300), np.full(cut.units, 1e300)),
        lambda cut: (np.zeros(0), np.zeros(0)),
        lambda cut: (np.zeros((len(cut.weights), 1)), np.zeros((cut.units, 1))),
        lambda cut: None,
    ],
)
def test_a_solver_that_lies_changes_nothing(
    lie: Callable[[CutPacking], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing_solver, "guess", lambda cut, way, deadline: lie(cut))
    monkeypatch.setattr(interior_packing, "is_for_interior", lambda cut: True)
    monkeypatch.setattr(interior_packing, "interior_guess", lambda cut, left: lie(cut))
    for weights in list(hypergraphs(3, 1))[::5]:
        for threshold in GRID:
            found, _ = CertifiedSums(owned(weights), PLENTY).at(threshold)
            exact = clipped(weights, threshold)
            assert exact <= found <= exact + GAP * threshold


@given(weights=WEIGHTS.filter(bool), threshold=st.integers(1, 30), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=examples(100), deadline=None)
def test_any_guess_bounds_from_both_sides(weights: Weights, threshold: int, seed: int) -> None:
    if threshold >= largest(weights):
        return
    cut = Packing.of(owned(weights)).cut_to(threshold)
    numbers = np.random.default_rng(seed)
    solution = numbers.uniform(-0.5, 1.5, len(cut.weights))
    prices = numbers.uniform(-0.5, 1.5, cut.units)
    exact = clipped(weights, threshold)
    upper, summed = cut.at_most(prices)
    assert cut.at_least(solution) <= exact <= upper
    assert summed <= cut.units
    found = cut.certified(solution, prices)
    assert found is None or exact <= found[0] <= exact + GAP * threshold


def test_no_guess_is_too_far_out_for_the_numbers_that_judge_it() -> None:
    """All results belong to all units: what these have beyond the threshold fills 64 bits."""
    units, results = 64, 2**19 + 2**10
    owners = np.broadcast_to(np.arange(units), (results, units))
    cut = CutPacking(1, 0, units, owners, np.ones(results, dtype=np.int64))
    each = np.ones(results)
    assert cut.at_least(each) <= 1
    assert cut.certified(each, np.zeros(units)) is None
    # One result is all that a unit may keep, and one unit's price says so.
    first = np.zeros(results)
    first[0] = 1
    assert cut.certified(first, np.eye(units)[0]) == (Fraction(1), Fraction(1))


@pytest.mark.parametrize("times", [2**25, 2**58, 2**70, 10**30])
def test_large_weights_are_exact(times: int) -> None:
    weights = {frozenset({0, 1}): 3, frozenset({1, 2}): 2, frozenset({0, 2}): 2, frozenset({3}): 5}
    grown = {units: times * weight + 1 for units, weight in weights.items()}
    for threshold in (1, times, 3 * times):
        found, _ = CertifiedSums(owned(grown), PLENTY).at(threshold)
        exact = clipped(grown, threshold)
        assert exact <= found <= exact + GAP * threshold
    assert CertifiedSums(owned(grown), PLENTY).at(6 * times)[0] == sum(grown.values())


def test_nothing_at_all() -> None:
    assert not any(CertifiedSums(owned({}), PLENTY).at(1))


def test_the_exact_method_agrees_with_the_definition() -> None:
    for weights in list(hypergraphs(3, 2))[::29]:
        rows = [sorted(own) + [3] * (3 - len(own)) for own in weights]
        for threshold in (1, 3):
            solution, prices = exact_packing(rows, list(weights.values()), 3, threshold, int)
            exact = clipped(weights, threshold)
            assert threshold * sum(solution) == exact
            assert all(price >= 0 for price in prices)
            left = (
                w * max(Fraction(0), 1 - sum(prices[u] for u in own)) for own, w in weights.items()
            )
            assert threshold * sum(prices) + sum(left) == exact


def test_time_ends_it_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = {frozenset(pair): 3 for pair in combinations(range(4), 2)}
    cut = Packing.of(owned(weights)).cut_to(2)
    with pytest.raises(EngineFailed, match="in time"):
        certified_sum(cut, Deadline(-math.inf))
    monkeypatch.setattr(packing_solver, "guess", lambda *_: None)
    steps = iter([1.0, 1.0])

    class Short(Deadline):
        def left(self) -> float:
            found = next(steps, None)
            if found is None:
                raise EngineFailed("over", code="timeout")
            return found

    with pytest.raises(EngineFailed, match="over"):
        certified_sum(cut, Short(0))


def test_a_missing_solver_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "highspy", None)
    with pytest.raises(UsageError, match="several units") as found:
        load_highs()
    assert "pip install 'sqlrs[lp]'" in str(found.value)


def test_results_of_the_same_cut_units_are_one() -> None:
    """Ten thousand pairs with one large unit each, by hand: the rest is never cut."""
    columns = ([0] * 5000 + [1] * 5000, list(range(2, 10_002)))
    results = owned({})
    results = type(results)(columns, [1] * 10_000)
    cut = Packing.of(results).cut_to(100)
    assert (cut.kept, cut.units, cut.weights.tolist()) == (0, 2, [100, 100])
    assert CertifiedSums(results, PLENTY).at(100)[0] == 200
    guess: Array = np.zeros(2)
    assert cut.certified(guess, guess) is None
