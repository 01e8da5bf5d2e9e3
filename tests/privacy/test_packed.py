"""The whole release of results with several owners: its exact privacy loss between neighbours.

What is released is a threshold and a number of parts. The chance of threshold j is proportional to
t_j^-2.5 e^(-gamma s_j), and of parts z then to e^(-epsilon_2 |z - n_j| / S_j): of all z the ratio
is largest where it is e^(epsilon_2 |n_j - n'_j| / S_j). So the largest loss is a maximum over j.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sqlrs.errors import UsageError
from sqlrs.measures import Measure, OwnedResults, Signed
from sqlrs.mechanisms import packed, packing_solver
from sqlrs.mechanisms.packed import Certified, PackedNumber, packed_number
from sqlrs.mechanisms.vector_base import Summand
from sqlrs.mechanisms.wished_vector import WishedCut
from sqlrs.noise import Laplace
from sqlrs.noise.falling_threshold import Penalty
from sqlrs.query import Constant, Variable
from sqlrs.residuals.residual import Reading, Residuals
from sqlrs.sensitivity import packing_scores
from sqlrs.sensitivity.clipping import PARTS
from sqlrs.sensitivity.packing import CutPacking
from tests.noise.sources import SeededBits
from tests.support.builders import INTEGER, TEXT, atom, query, table
from tests.support.packings import Weights, hypergraphs, owned, without

EDGE = table("edge", "src", "dst", keys=["src dst"])
EDGES = query(atom(EDGE, "a", "b"))
OWNERS = (Variable("a", INTEGER), Variable("b", INTEGER))
EPSILON = Decimal(1)


def summand(coefficient: int = 1) -> Summand:
    return Summand(Signed(coefficient, EDGES, (), OWNERS), Residuals(EDGES, Reading()))


def mechanism(*, strict: bool = False, largest: int = 4, **further: object) -> PackedNumber:
    made = PackedNumber(summand(), (), EPSILON, strict, largest, 100)
    return replace(made, **further)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Given:
    """Measurements that know the results already."""

    results: OwnedResults

    def owned_results(self, signed: Signed, residuals: Residuals, most: int) -> OwnedResults:
        return self.results

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"{name} is not asked for")


@dataclass(frozen=True)
class Law:
    """By threshold: the logarithm of its chance, what noise is added to, the noise's own scale."""

    logs: tuple[Decimal, ...]
    parts: tuple[int, ...]
    scales: tuple[Fraction, ...]


def law(
    own: PackedNumber, weights: Weights, read: Callable[[Weights], OwnedResults] = owned
) -> Law:
    """As the mechanism itself draws: once for each threshold, all that it draws from taken down."""
    draw = own.measure(Given(read(weights)), (), [()])  # type: ignore[arg-type]
    penalties: list[Fraction] = []
    parts: list[int] = []
    scales: list[Fraction] = []

    def sample(noise: Laplace, moved: Fraction, bits: object) -> int:
        scales.append(noise.scale(moved))
        return 0

    def nearest(numerator: int, of: int) -> int:
        assert of == PARTS
        parts.append(numerator)
        return 0

    for place in range(len(own.grid)):

        def choose(
            grid: Sequence[int], found: Iterable[Penalty], bits: object, here: int = place
        ) -> int:
            penalties[:] = [one.own for one in found][::-1]
            return here

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(packed, "choose_falling", choose)
            patch.setattr(packed, "nearest", nearest)
            patch.setattr(Laplace, "sample", sample)
            draw(SeededBits(0))
    return Law(_log_chances(own.grid, penalties or [Fraction(0)]), tuple(parts), tuple(scales))


def _log_chances(grid: Sequence[int], penalties: Sequence[Fraction]) -> tuple[Decimal, ...]:
    with localcontext(prec=40):
        logs = [
            Decimal("-2.5") * Decimal(t).ln() - Decimal(p.numerator) / Decimal(p.denominator)
            for t, p in zip(grid, penalties, strict=True)
        ]
        total = sum((log.exp() for log in logs), Decimal(0)).ln()
        return tuple(log - total for log in logs)


def loss(own: PackedNumber, one: Law, other: Law) -> Decimal:
    """The largest logarithm of the ratio of two chances, either way."""
    worst = Decimal(0)
    with localcontext(prec=40):
        for place in range(len(own.grid)):
            chosen = abs(one.logs[place] - other.logs[place])
            moved = abs(one.parts[place] - other.parts[place])
            assert one.scales[place] == other.scales[place]
            noise = Fraction(moved) / one.scales[place]
            worst = max(worst, chosen + Decimal(noise.numerator) / Decimal(noise.denominator))
    return worst


def worlds() -> list[Weights]:
    """Graphs with loops and repetitions, some sets of three, and crowded ones."""
    return [
        *list(hypergraphs(3, 2, sizes=(1, 2)))[::7],
        *list(hypergraphs(3, 1)),
        {frozenset({0, 3}): 9, frozenset({1, 3}): 9, frozenset({2, 3}): 9},
        {frozenset({0}): 2, frozenset({1}): 2, frozenset({0, 3}): 2, frozenset({1, 3}): 2},
        {
            frozenset({0}): 2,
            frozenset({2}): 2,
            frozenset({0, 1}): 2,
            frozenset({1, 2}): 2,
            frozenset({1, 3}): 2,
        },
    ]


def neighbours(weights: Weights, *, strict: bool) -> Iterator[Weights]:
    """Without one unit; strict: with another one in its place, whose results are of any kind."""
    for unit in range(4):
        less = without(weights, unit)
        if less != weights:
            yield less
        if strict and less != weights:
            for times in (1, 3):
                yield {**less, frozenset({unit}): times}
                yield {**less, frozenset({unit, (unit + 1) % 3}): times}


def worst(own: PackedNumber, found: Sequence[Weights]) -> Decimal:
    known: dict[frozenset[tuple[frozenset[int], int]], Law] = {}

    def law_of(weights: Weights) -> Law:
        key = frozenset(weights.items())
        if key not in known:
            known[key] = law(own, weights)
        return known[key]

    return max(
        loss(own, law_of(weights), law_of(other))
        for weights in found
        for other in neighbours(weights, strict=own.strict)
    )


@pytest.mark.parametrize("strict", [False, True])
def test_no_output_tells_more_than_epsilon(strict: bool) -> None:
    found = worst(mechanism(strict=strict), worlds()[:: 5 if strict else 2])
    assert Decimal("0.6") < found <= EPSILON


def test_one_threshold_needs_no_choice() -> None:
    own = mechanism(largest=1)
    assert own.grid == (1,) and own.noise.epsilon == EPSILON and not own.choice_epsilon
    assert Decimal("0.9") < worst(own, worlds()[:40]) <= EPSILON


# Controls: each of these mistakes must show as a loss beyond epsilon.


def test_a_gamma_that_is_too_large_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "gamma", lambda epsilon, *, strict: 3 * epsilon)
    assert worst(mechanism(), worlds()[-3:]) > EPSILON


def test_a_gamma_twice_as_large_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unit 3 lowers the score of threshold 2, four others keep 1 from being chosen."""
    crowded = {**worlds()[-1], **{frozenset({unit}): 2 for unit in range(10, 14)}}
    own = replace(mechanism(largest=2), epsilon=Decimal(20))
    assert worst(own, [crowded]) <= 20
    right = packing_scores.gamma
    monkeypatch.setattr(
        packed, "gamma", lambda epsilon, *, strict: 2 * right(epsilon, strict=strict)
    )
    assert worst(own, [crowded]) > 23


def test_a_threshold_outside_the_grid_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units cut to twice the threshold that is told, with the noise of the one that is."""
    own, found = mechanism(), worlds()[:60]
    assert worst(own, found) <= EPSILON
    right = PackedNumber.cut

    def farther(
        self: PackedNumber, certified: Certified, place: int, public: int, *rest: Any
    ) -> object:
        return right(self, lambda threshold: certified(2 * threshold), place, public, *rest)

    monkeypatch.setattr(PackedNumber, "cut", farther)
    assert worst(own, found) > EPSILON


def test_noise_of_a_smaller_threshold_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = packing_scores.moved_parts
    monkeypatch.setattr(packed, "moved_parts", lambda threshold: right(threshold) / 2)
    assert worst(mechanism(), worlds()[:60]) > EPSILON


def test_a_forgotten_owner_is_caught() -> None:
    star = {frozenset({0, u}): 1 for u in range(1, 9)}

    def forgetting(weights: Weights) -> OwnedResults:
        return owned({frozenset({max(own)}): w for own, w in weights.items()})

    own = mechanism()
    assert loss(own, law(own, star), law(own, {})) <= EPSILON
    assert loss(own, law(own, star, forgetting), law(own, {}, forgetting)) > EPSILON


LIES: list[Callable[[CutPacking], object]] = [
    lambda cut: (np.zeros(len(cut.weights)), np.zeros(cut.units)),
    lambda cut: (np.ones(len(cut.weights)), np.ones(cut.units)),
    lambda cut: (np.full(len(cut.weights), np.nan), np.full(cut.units, np.inf)),
]


@pytest.mark.parametrize("lie", LIES)
def test_a_solver_that_lies_costs_no_privacy(
    lie: Callable[[CutPacking], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing_solver, "guess", lambda cut, way, deadline: lie(cut))
    assert worst(mechanism(), worlds()[-20:]) <= EPSILON


def test_a_bound_that_nobody_certified_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Believing the prices of a solver that lies where the unit is there, and only there."""

    def lie(cut: CutPacking, way: object, deadline: object) -> object:
        return np.zeros(len(cut.weights)), np.zeros(cut.units)

    monkeypatch.setattr(packing_solver, "guess", lie)
    monkeypatch.setattr(
        CutPacking, "certified", lambda self, solution, prices: self.at_most(prices)
    )
    rest = {frozenset({u}): 3 for u in range(1, 9)}
    more = {**rest, **{frozenset({0, u}): 3 for u in range(1, 9)}}
    own = mechanism()
    assert loss(own, law(own, more), law(own, rest)) > EPSILON


def test_draws_are_near_the_clipped_sum() -> None:
    weights = {frozenset({u, u + 1}): 3 for u in range(0, 200, 2)}
    own = replace(mechanism(largest=2**40), epsilon=Decimal(100), coverage=Fraction(19, 20))
    draw = own.measure(Given(owned(weights, 2)), (), [()])  # type: ignore[arg-type]
    (noisy,) = draw(SeededBits(1))
    # Never below, and each threshold above is an eighth as likely as the one before.
    assert noisy.clipping is not None and noisy.clipping.threshold in (4, 8, 16)
    assert abs(noisy.value - 300) < 10
    assert noisy.error_bars is not None
    assert noisy.error_bars.low <= 300 <= noisy.error_bars.high
    (empty,) = own.measure(Given(owned({}, 2)), (), [()])(SeededBits(1))  # type: ignore[arg-type]
    assert abs(empty.value) < 10


def test_a_coefficient_is_part_of_what_a_unit_has() -> None:
    weights = {frozenset({u, u + 1}): 3 for u in range(0, 200, 2)}
    own = replace(mechanism(largest=2**40), summand=summand(5), epsilon=Decimal(500))
    (noisy,) = own.measure(Given(owned(weights, 2)), (), [()])(SeededBits(1))  # type: ignore[arg-type]
    assert abs(noisy.value - 1500) < 10
    assert noisy.clipping is not None and noisy.clipping.threshold in (16, 32)


def test_what_cannot_be_packed_is_refused() -> None:
    common = {
        "epsilon": EPSILON,
        "strict": True,
        "coverage": None,
        "max_contribution": 2**40,
        "max_owned_results": 10,
        "packing_seconds": 10.0,
    }
    measure = Measure((summand().signed,))

    def made(summands: Sequence[Summand], *, grouped: bool = False) -> PackedNumber:
        return packed_number(measure, summands, grouped=grouped, **common)  # type: ignore[arg-type]

    with pytest.raises(ValueError, match="without groups"):
        made([summand()], grouped=True)
    for wrong in ([summand(-1)], [summand(), summand(2)]):
        with pytest.raises(ValueError, match="one sum"):
            made(wrong)
    assert made([summand()]).grid[-1] == 2**40
    assert "packing" in made([summand()]).describe()


def test_owners_are_variables_of_one_kind() -> None:
    one = summand()
    constant = Constant(5, INTEGER)
    other = query(atom(table("t", "a", "b", types={"b": TEXT}), "a", "b"))
    for signed in (
        replace(one.signed, owners=()),
        replace(one.signed, owners=(OWNERS[0], constant)),
        Signed(1, other, (), (Variable("a", INTEGER), Variable("b", TEXT))),
    ):
        with pytest.raises(ValueError, match=r"owners|unit"):
            mechanism(summand=Summand(signed, Residuals(signed.query, Reading())))


def test_a_missing_solver_is_refused_before_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "highspy", None)
    with pytest.raises(UsageError, match=r"sqlrs\[lp\]"):
        mechanism().prepare()


# With a wished error the choice is told and charged first, then noise of a price that it allows.


def wished_loss(wished: WishedCut, error: Fraction, looks: int = 1) -> Decimal:
    """The largest loss beyond both charges over outcomes; ``looks``: charges of the choice."""
    own = wished.cut
    assert isinstance(own, PackedNumber)
    prices = [wished.least(place, error) for place in range(len(own.grid))]
    known: dict[frozenset[tuple[frozenset[int], int]], tuple[Law, list[tuple[int, Fraction]]]] = {}

    def outcome(weights: Weights) -> tuple[Law, list[tuple[int, Fraction]]]:
        """The chances of thresholds; then what noise is added to, and the noise's own scale."""
        key = frozenset(weights.items())
        if key not in known:
            drawn = law(own, weights)
            looked = wished.measure(Given(owned(weights)), (), [()])  # type: ignore[arg-type]
            used = []
            for place, priced in enumerate(prices):
                scales: list[Fraction] = []

                def sample(
                    noise: Laplace, moved: Fraction, bits: object, seen: list[Fraction] = scales
                ) -> int:
                    seen.append(noise.scale(moved))
                    return 0

                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(Laplace, "sample", sample)
                    looked.noisy(place, priced or wished.best(place), SeededBits(0))
                (scale,) = scales
                used.append((drawn.parts[place], scale))
            known[key] = drawn, used
        return known[key]

    worst = Decimal("-inf")
    for weights in (*worlds()[::60], *worlds()[-3:]):
        for other in neighbours(weights, strict=own.strict):
            (one, ours), (two, theirs) = outcome(weights), outcome(other)
            for place, priced in enumerate(prices):
                beyond = abs(one.logs[place] - two.logs[place]) - looks * wished.look
                if priced is not None:
                    (parts, scale), (others, same) = ours[place], theirs[place]
                    assert scale == same
                    moved = Fraction(abs(parts - others)) / scale
                    beyond += Decimal(moved.numerator) / Decimal(moved.denominator)
                    beyond -= priced.epsilon
                worst = max(worst, beyond)
    return worst


@pytest.mark.parametrize("strict", [False, True])
def test_a_wish_loses_at_most_what_its_two_charges_add_up_to(strict: bool) -> None:
    own = replace(mechanism(strict=strict, largest=8), epsilon=Decimal(3))
    wished, error = WishedCut(own), Fraction(13)
    prices = [wished.least(place, error) for place in range(len(own.grid))]
    # The wish takes several prices, and is not granted at the largest threshold.
    assert len({one.epsilon for one in prices if one is not None}) > 1 and prices[-1] is None
    assert all(one is None or one.epsilon + wished.look <= own.epsilon for one in prices)
    assert wished_loss(wished, error) <= Decimal("1e-30")
    # Control: the choice tells something, so it must be paid for.
    assert wished_loss(wished, error, looks=0) > Decimal("0.1")
