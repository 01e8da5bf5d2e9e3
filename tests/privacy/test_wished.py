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

from sqlrs.noise import PolyLaplace
from sqlrs.noise.published_scale import SHAPES, PublishedScale

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
