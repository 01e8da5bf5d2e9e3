"""The whole release of a wished error on all neighbours of tiny graphs: the exact privacy loss.

What leaves is the pair of the published scale and the answer. Its loss may not exceed what the two
charges add up to, outcome by outcome; negative controls charge or smooth too little.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import combinations, product

import pytest

from sqlrs.mechanisms.base import Noisy
from sqlrs.mechanisms.clipped import ClippedVector
from sqlrs.mechanisms.wished_vector import WishedCut
from sqlrs.noise import Laplace, PolyLaplace, RandomBits
from sqlrs.noise.published_scale import SHAPES, PublishedScale
from tests.privacy.test_clipped import DIFFERENCE, GROUPS, SUM, mechanism
from tests.privacy.unit_worlds import Choice, UnitWorld, choices_of, decimal
from tests.privacy.vector_worlds import ByDefinition
from tests.support.brute import Database

EDGES = tuple(product(range(2), range(2)))
MAXIMUM = Decimal(3)
WISH = Fraction(20)

Graph = frozenset[tuple[int, int]]


def graphs() -> Iterator[Graph]:
    """All graphs on two nodes."""
    for size in range(len(EDGES) + 1):
        yield from map(frozenset, combinations(EDGES, size))


@cache
def count(graph: Graph) -> int:
    """Pairs of edges where one begins as the other ends, by brute force."""
    return sum(one[1] == other[0] for one, other in product(graph, graph))


@cache
def local(graph: Graph, distance: int) -> int:
    """The largest change by one edge on graphs that many edges away, by brute force."""
    nearby = {graph}
    for _ in range(distance):
        nearby |= {one ^ {edge} for one in nearby for edge in EDGES}
    return max(abs(count(one) - count(one ^ {edge})) for one in nearby for edge in EDGES)


def smooth(graph: Graph, decay: Fraction) -> Fraction:
    """The smooth sensitivity itself: as many steps as there are edges lead everywhere."""
    return max(decay**k * local(graph, k) for k in range(len(EDGES) + 1))


def worst_loss(scale: PublishedScale, *, decay: Fraction, looks: float = 1.0) -> float:
    """The largest loss beyond what is charged, over neighbours and outcomes; at most 0 if right.

    ``looks``: how much of the price of the estimate is charged.
    """
    values = {graph: (count(graph), smooth(graph, decay)) for graph in graphs()}
    pairs = {(values[graph], values[graph ^ {edge}]) for graph in values for edge in EDGES}
    return max(_pair(scale, *pair, looks) for pair in pairs)


def _pair(
    scale: PublishedScale, ours: tuple[int, Fraction], theirs: tuple[int, Fraction], looks: float
) -> float:
    epsilon2 = float(scale.epsilon)
    one, other = scale.scale(ours[1]), scale.scale(theirs[1])
    here, there = (scale._grid.index(found * scale.multiple) for found in (one, other))
    worst = -math.inf
    for index in range(1, max(here, there) + 20, 3):
        looked = epsilon2 * (abs(index - there) - abs(index - here) - looks)
        shape = scale.least_shape(index, WISH)
        if shape is None:
            worst = max(worst, looked)
            continue
        law = scale.laws[shape]
        for answer in (-200, -3, 0, 1, 2, 3, 5, 9, 40, 1000):
            chance = _chance(law, one, answer - ours[0]), _chance(law, other, answer - theirs[0])
            loss = looked + math.log(chance[0] / chance[1])
            worst = max(worst, loss - float(law.epsilon))
    return worst


@cache
def _chance(law: PolyLaplace, scale: Fraction, noise: int) -> Fraction:
    """The exact probability of this noise; no graph here has no sensitivity."""
    size = abs(noise)
    both = law.tail(scale, size) - law.tail(scale, size + 1)
    return both if not size else both / 2


def test_the_loss_of_the_pair_is_at_most_what_is_charged() -> None:
    scale = PublishedScale(MAXIMUM)
    assert worst_loss(scale, decay=scale.weights.decay) <= 1e-9


def test_the_wish_takes_several_prices_there() -> None:
    """The test above would say little if one shape were taken always."""
    scale = PublishedScale(MAXIMUM)
    taken = {scale.least_shape(index, WISH) for index in range(1, 60)}
    assert len(taken & set(SHAPES)) > 3


def test_an_estimate_that_is_not_charged_is_seen() -> None:
    """Negative control: the scale tells something, so it must be paid for."""
    scale = PublishedScale(MAXIMUM)
    assert worst_loss(scale, decay=scale.weights.decay, looks=0.0) > 0.05


def test_weights_of_another_price_are_seen() -> None:
    """Negative control: a bound that is smooth for the largest price only is not enough."""
    scale = PublishedScale(MAXIMUM)
    assert worst_loss(scale, decay=Fraction(1, 8)) > 0.05


def cut_loss(
    of: UnitWorld, wished: WishedCut, error: Fraction, *, strict: bool, looks: int = 1
) -> Decimal:
    """The largest loss beyond what is charged where a threshold is told first; at most 0 if right.

    ``looks``: how much of the price of the choice is charged.
    """
    known: dict[object, tuple[Choice, ...]] = {}
    prices = [wished.least(place, error) for place in range(len(wished.cut.thresholds))]

    def outcomes(database: Database) -> tuple[Choice, ...]:
        key = tuple((label, tuple(sorted(rows))) for label, rows in sorted(database.items()))
        if key not in known:
            measurements = ByDefinition(of.world, database)
            looked = wished.measure(measurements, of.world.domains, of.world.ordinals)

            def draw(bits: RandomBits) -> tuple[Noisy, ...]:
                place = looked.publish(bits)
                return looked.noisy(place, prices[place] or wished.best(place), bits)

            assert isinstance(wished.cut, ClippedVector)
            known[key] = choices_of(wished.cut, draw)
        return known[key]

    worst = Decimal("-inf")
    for one, other in of.neighbours(strict=strict):
        pairs = zip(outcomes(one), outcomes(other), strict=True)
        for place, (here, there) in enumerate(pairs):
            assert here.scale == there.scale
            beyond = abs(here.log_chance - there.log_chance) - looks * wished.look
            priced = prices[place]
            if priced is not None:
                moved = sum(abs(a - b) for a, b in zip(here.numbers, there.numbers, strict=True))
                beyond += decimal(moved / here.scale) - priced.epsilon
            worst = max(worst, beyond)
    return worst


def wished_cut(of: UnitWorld, *, strict: bool) -> WishedCut:
    return WishedCut(mechanism(of, "2", strict=strict, grid=(1, 2, 5, 16)))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("of", [SUM, DIFFERENCE, GROUPS], ids=lambda one: one.world.name)
def test_a_threshold_and_the_numbers_after_it_lose_at_most_what_is_charged(
    of: UnitWorld, strict: bool
) -> None:
    wished, error = wished_cut(of, strict=strict), Fraction(12)
    prices = [wished.least(place, error) for place in range(4)]
    # The wish takes several prices, and is not granted at the largest threshold.
    assert len({one.epsilon for one in prices if one is not None}) > 1 and prices[-1] is None
    found = cut_loss(of, wished, error, strict=strict)
    assert Decimal("-0.05") < found <= Decimal("1e-40")


def test_a_threshold_that_is_not_charged_is_seen() -> None:
    """Negative control: the choice tells something, so it must be paid for."""
    assert cut_loss(SUM, wished_cut(SUM, strict=True), Fraction(12), strict=True, looks=0) > 0.1


def test_noise_of_the_threshold_below_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: numbers that are cut at one threshold, with the noise of a smaller one."""
    smaller = Laplace.scale
    monkeypatch.setattr(Laplace, "scale", lambda law, moved: smaller(law, moved / 2))
    assert cut_loss(SUM, wished_cut(SUM, strict=True), Fraction(12), strict=True) > 0.1
