"""Clipped releases: all neighbours of tiny worlds of units, with exact probabilities."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from unittest.mock import PropertyMock, patch

import pytest

from sqlrs.errors import UsageError
from sqlrs.measures import Contributions, Measure, PerUnit, Signed
from sqlrs.mechanisms import clipped
from sqlrs.mechanisms.clipped import ClippedVector, clipped_vector
from sqlrs.mechanisms.unit_choice import unit_mechanism
from sqlrs.mechanisms.vector_exact import ExactVector
from sqlrs.noise.error_bars import DEFAULT_COVERAGE
from sqlrs.query import Query, Variable, Weight
from sqlrs.sensitivity import clipping
from sqlrs.sensitivity.clipping import PARTS, clipped_number, fine_grid
from tests.noise.sources import SeededBits
from tests.privacy.unit_worlds import Rows, UnitWorld, worst_loss
from tests.privacy.vector_worlds import ByDefinition, World
from tests.support.builders import INTEGER, atom, query, table

P, G = Variable("p", INTEGER), Variable("g", INTEGER)
VISIT = table("visit", "person", "ward", "kind", "cost")
PUBLIC = table("beds", "ward", private=False)
TINY = Decimal("1e-40")
FEW = {4: (1, 2, 3, 4), 16: (1, 2, 5, 16)}


def visits(*rows: tuple[int, int, int]) -> Rows:
    """Rows of (ward, kind, cost)."""
    return {"visit": rows}


def counted(kind: int | None = None, weight: bool = False) -> Query:
    one = atom(VISIT, "p", "g", kind)
    return query(replace(one, weight=Weight("cost", 100)) if weight else one)


def term(of: Query, coefficient: int = 1, *, grouped: bool = False) -> Signed:
    return Signed(coefficient, of, (G,) if grouped else (), (P,))


BEDS = Signed(1, query(atom(PUBLIC, "g")), (G,))
# How much one unit has: nothing, below, at and above thresholds.
COSTS = (
    visits(),
    visits((0, 0, 1)),
    visits((0, 0, 2)),
    visits((0, 0, 5), (0, 0, 11)),
    visits((0, 0, 16)),
    visits((0, 0, 40), (1, 0, 3)),
)
COUNTS = tuple(visits(*[(0, 0, 1)] * n) for n in (0, 1, 2, 4, 5))
SIGNS = (
    visits((0, 0, 16)),
    visits((0, 1, 16)),
    visits((0, 0, 3), (0, 1, 2)),
    visits((0, 1, 50)),
    visits((0, 0, 1)),
)
WARDS = (
    visits((0, 0, 16)),
    visits((1, 0, 16)),
    visits((0, 0, 3), (1, 0, 4)),
    visits((0, 0, 9), (1, 0, 90)),
    visits((7, 0, 16), (0, 0, 1)),
    visits((1, 0, 2)),
)


def world(name: str, *terms: Signed, groups: int = 2) -> World:
    return World(name, terms, tuple((i,) for i in range(groups)), {}, {"beds": [(0,), (0,), (1,)]})


COUNT = UnitWorld(world("count", term(counted())), COUNTS)
SUM = UnitWorld(world("sum", term(counted(weight=True))), COSTS)
DIFFERENCE = UnitWorld(
    world("difference", term(counted(0, weight=True)), term(counted(1, weight=True), -1)), SIGNS
)
GROUPS = UnitWorld(world("groups", term(counted(weight=True), grouped=True), BEDS), WARDS)
SIGNED_GROUPS = UnitWorld(
    world(
        "signed groups",
        term(counted(0, weight=True), grouped=True),
        term(counted(1, weight=True), -1, grouped=True),
    ),
    (*SIGNS, visits((0, 0, 8), (1, 1, 8)), visits((1, 0, 2))),
)
ONE_GROUP = UnitWorld(world("one group", term(counted(weight=True), grouped=True), groups=1), WARDS)


def _bound(of: UnitWorld, bounds: tuple[int | None, ...]) -> int | None:
    """What one unit contributes at most, from a bound of each term; without any, data decide it."""
    total = 0
    for term, bound in zip(of.world.terms, bounds, strict=bool(bounds)):
        if not term.query.private:
            continue
        if bound is None:
            return None
        total += abs(term.coefficient) * bound
    return total if bounds else None


def mechanism(
    of: UnitWorld,
    epsilon: str = "1",
    *,
    strict: bool,
    limit: int = 16,
    bounds: tuple[int | None, ...] = (),
    grid: tuple[int, ...] | None = None,
) -> ClippedVector:
    summands, measure = of.world.summands, Measure(of.world.terms)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clipped, "measure_size_bound", lambda _: _bound(of, bounds))
        found = unit_mechanism(
            measure,
            summands,
            len(of.world.ordinals),
            grouped=bool(of.world.domains),
            epsilon=Decimal(epsilon),
            strict=strict,
            error_bars=False,
            max_contribution=limit,
            max_owned_results=1,
        )
    assert isinstance(found, ClippedVector)
    return found if grid is None else replace(found, grid=grid)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("of", "limit", "reached"),
    [
        (COUNT, 4, "0.97"),
        (SUM, 16, "0.98"),
        (DIFFERENCE, 16, "0.98"),
        (GROUPS, 16, "0.98"),
        (SIGNED_GROUPS, 16, "0.98"),
        (ONE_GROUP, 16, "0.98"),
    ],
    ids=lambda one: one.world.name if isinstance(one, UnitWorld) else None,
)
def test_no_release_costs_more_than_epsilon_and_some_cost_it(
    of: UnitWorld, limit: int, reached: str, strict: bool
) -> None:
    shares = []
    for epsilon in (1, 20):
        chosen = mechanism(of, str(epsilon), strict=strict, limit=limit, grid=FEW[limit])
        found = worst_loss(of, chosen, strict=strict)
        assert found <= epsilon + TINY
        shares.append(found / epsilon)
    assert max(shares) >= Decimal(reached)


def test_two_moves_are_needed_where_two_are_made() -> None:
    """Signed sums and groups under strict neighbours, with the noise of one move alone."""
    for of in (DIFFERENCE, GROUPS):
        once = replace(mechanism(of, strict=True, grid=FEW[16]), moves=1)
        assert worst_loss(of, once, strict=False) <= 1 + TINY
        assert worst_loss(of, once, strict=True) > Decimal("1.3")
    assert mechanism(SUM, strict=True).moves == 1
    assert mechanism(ONE_GROUP, strict=True).moves == 1


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("of", [SUM, GROUPS], ids=["sum", "groups"])
def test_a_gamma_twice_as_large_is_seen(of: UnitWorld, strict: bool) -> None:
    right = mechanism(of, "20", strict=strict, grid=FEW[16])
    doubled = PropertyMock(return_value=2 * right.choice_epsilon)
    with patch.object(ClippedVector, "choice_epsilon", doubled):
        assert worst_loss(of, right, strict=strict) > 24


def test_a_threshold_outside_the_grid_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units cut to twice the threshold that is told, with the noise of the one that is."""
    right = mechanism(SUM, strict=True, grid=(1, 2, 4))
    assert worst_loss(SUM, right, strict=True) <= 1 + TINY

    def farther(contributions: Contributions, place: int) -> int:
        grid = tuple(2 * threshold for threshold in contributions.grid)
        return clipped_number(replace(contributions, grid=grid), place)

    monkeypatch.setattr("sqlrs.mechanisms.clipped.clipped_number", farther)
    assert worst_loss(SUM, right, strict=True) > Decimal("1.3")


def test_a_bound_of_the_query_ends_the_grid() -> None:
    for of in (COUNT, SUM, GROUPS):
        bounds = (5, *[None] * (len(of.world.terms) - 1))
        assert mechanism(of, strict=True, bounds=bounds).grid == (1, 2, 3, 4, 5)
    both = mechanism(DIFFERENCE, strict=True, bounds=(2, 3))
    assert both.grid[-1] == 5
    assert mechanism(DIFFERENCE, strict=True, bounds=(2, None)).grid[-1] == 16
    tripled = UnitWorld(world("tripled", term(counted(), 3)), COUNTS)
    assert mechanism(tripled, strict=True, bounds=(2,)).grid[-1] == 6
    assert mechanism(COUNT, strict=True, bounds=(0,)).grid == (1,)


def test_what_counts_once_for_each_unit_needs_no_choice() -> None:
    present = (visits(), visits((0, 0, 0)), visits((1, 0, 0)))
    for of in (
        UnitWorld(world("persons", term(counted())), present),
        UnitWorld(world("persons by ward", term(counted(), grouped=True)), present),
    ):
        for strict in (False, True):
            found = mechanism(of, strict=strict, bounds=(1,))
            assert found.choice_epsilon == 0
            assert found.noise.epsilon == 1
            assert Decimal("0.99") <= worst_loss(of, found, strict=strict) <= 1 + TINY


@pytest.mark.parametrize("of", [SUM, GROUPS], ids=["sum", "groups"])
def test_a_bound_that_does_not_hold_costs_accuracy_alone(
    of: UnitWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Units behind the grid are cut as others are; if they were kept, that would be seen."""
    for bound in (1, 4):
        bounds = (bound, *[None] * (len(of.world.terms) - 1))
        found = mechanism(of, strict=True, bounds=bounds)
        assert worst_loss(of, found, strict=True) <= 1 + TINY

    def kept(contributions: Contributions, place: int, *groups: object) -> object:
        sums = tuple(map(sum, contributions.totals.values())) or (0,)
        return sums[0] if not groups else (*sums, 0)[:2]

    monkeypatch.setattr("sqlrs.mechanisms.clipped.clipped_number", kept)
    monkeypatch.setattr("sqlrs.mechanisms.clipped.clipped_parts", kept)
    assert worst_loss(of, replace(found, grid=(1,)), strict=True) > 2


def test_a_result_of_two_units_that_names_one_is_seen() -> None:
    """Who pays for the visits: a payer has many results of other units."""
    payer = table("payer", "person", "ward")
    both = query(atom(VISIT, "p", "g", None, None), atom(payer, "q", "g"))
    kinds: tuple[Rows, ...] = (
        {"visit": [(0, 0, 0)], "payer": []},
        {"visit": [], "payer": [(0,)]},
    )
    of = UnitWorld(world("payers", Signed(1, both, (), (P,))), kinds, most=3)
    assert worst_loss(of, mechanism(of, strict=False, limit=1), strict=False) > 2


def test_what_has_no_single_owner_is_not_clipped() -> None:
    summands = SUM.world.summands
    nobody = replace(summands[0], signed=replace(summands[0].signed, owners=()))
    right = mechanism(SUM, strict=True)
    with pytest.raises(ValueError, match="one owner"):
        replace(right, source=(nobody,))
    with pytest.raises(ValueError, match="escape"):
        replace(right, public=summands)
    with pytest.raises(ValueError, match="one owner"):
        replace(right, source=GROUPS.world.summands[1:])
    for wrong in ({"grid": ()}, {"grid": (2, 1)}, {"grid": (0, 1)}, {"size": 0}, {"moves": 3}):
        with pytest.raises(ValueError):
            replace(right, **wrong)


def test_public_parts_are_added_outside_of_the_cut() -> None:
    database = GROUPS.database([visits((0, 0, 90), (1, 0, 9))])
    found = replace(mechanism(GROUPS, "1000", strict=True), grid=(1,), epsilon=Decimal(1000))
    draw = found.measure(
        ByDefinition(GROUPS.world, database), GROUPS.world.domains, GROUPS.world.ordinals
    )
    assert [noisy.value for noisy in draw(SeededBits(1))] == [2, 1]


def test_error_bars_are_free_and_hold_the_number_after_the_cut() -> None:
    """Coverage at least 19/20 of the clipped number: 300 draws, below 0.88 once in 10**5."""
    for of in (SUM, GROUPS):
        database = of.database([visits((0, 0, 7), (1, 0, 4))] * 3)
        found = replace(mechanism(of, strict=True), coverage=DEFAULT_COVERAGE, grid=(4, 8))
        assert found.prices == (Decimal(1),)
        measurements = ByDefinition(of.world, database)
        draw = found.measure(measurements, of.world.domains, of.world.ordinals)
        asked = [(s.signed, s.residuals) for s in of.world.summands if s.private]
        cut = measurements.contributions(asked, of.world.domains, found.grid)
        held, bits = 0, SeededBits(5)
        for _ in range(300):
            first = draw(bits)[0]
            assert first.error_bars is not None and first.clipping is not None
            place = found.grid.index(int(first.clipping.threshold))
            if of is SUM:
                exact = Fraction(clipping.clipped_number(cut, place))
            else:
                exact = Fraction(clipping.clipped_parts(cut, place, [(0,)])[0], PARTS) + 2
            held += first.error_bars.low <= exact <= first.error_bars.high
        assert held >= 264


def test_the_answer_says_what_was_cut() -> None:
    cents = Fraction(1, 100)
    measure = Measure(SUM.world.terms, cents)
    found = clipped_vector(
        measure,
        SUM.world.summands,
        1,
        epsilon=Decimal(1),
        strict=True,
        coverage=None,
        max_contribution=1000,
    )
    assert found.grid[-1] == 100_000
    said = found.clipping(found.grid.index(256))
    assert said.threshold == Fraction(64, 25)
    assert said.standard_error == pytest.approx(2.56 * 2**0.5 / 0.7)
    assert found.describe() == (
        "clipped: each unit cut to one of 62 thresholds from 0.01 to 1000, chosen with epsilon "
        "0.3, and laplace noise, epsilon 0.7: standard error 2.02 and median error 0.99 times "
        "the threshold"
    )
    bars = replace(found, grid=(1,), size=3, moves=2, coverage=DEFAULT_COVERAGE)
    assert bars.describe() == (
        "clipped: each unit contributes at most 0.01, and laplace noise for each of 3 groups, "
        "epsilon 1: standard error 2.83 and median error 1.39 times the threshold, free error "
        "bars of coverage 0.95 around the number after the cut"
    )


def test_which_mechanism_is_chosen() -> None:
    def chosen(
        measure: Measure, *terms: int, size: int = 1, max_contribution: int = 2**40
    ) -> object:
        summands = tuple(GROUPS.world.summands[i] for i in terms)
        return unit_mechanism(
            measure,
            summands,
            size,
            grouped=True,
            epsilon=Decimal(1),
            strict=True,
            error_bars=True,
            max_contribution=max_contribution,
            max_owned_results=1,
        )

    assert isinstance(chosen(Measure((BEDS,)), 1), ExactVector)
    assert isinstance(chosen(Measure(GROUPS.world.terms), 0, 1, size=0), ExactVector)
    whole = chosen(Measure(GROUPS.world.terms), 0, 1, size=2)
    assert isinstance(whole, ClippedVector)
    assert (len(whole.public), whole.coverage, whole.grid) == (
        1,
        DEFAULT_COVERAGE,
        fine_grid(2**40),
    )
    by_unit = PerUnit("select", frozenset({VISIT}), signed=True, most=7)
    found = chosen(Measure((), per_unit=by_unit))
    assert isinstance(found, ClippedVector)
    assert (found.source, found.moves, found.grid[-1]) == (by_unit, 2, 7)
    unsigned = chosen(
        Measure((), Fraction(1, 10**30), PerUnit("select", frozenset({VISIT}))),
        max_contribution=2**100,
    )
    assert isinstance(unsigned, ClippedVector)
    assert (unsigned.moves, unsigned.grid[-1]) == (1, clipping.MOST_THRESHOLD)


def test_an_epsilon_that_cannot_be_split_is_refused() -> None:
    with pytest.raises(UsageError, match="too small"):
        mechanism(SUM, "0.000001", strict=True)
    assert mechanism(COUNT, "0.000001", strict=True, bounds=(1,)).noise.epsilon == Decimal(
        "0.000001"
    )
    longest = mechanism(SUM, "0.12345678901234567891", strict=True)
    parts = Fraction(longest.choice_epsilon) + Fraction(longest.noise.epsilon)
    assert parts == Fraction("0.12345678901234567891")
    assert longest.choice_epsilon == Decimal("0.0370370367037")
