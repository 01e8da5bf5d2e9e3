"""Tiny worlds of units that own several rows, and the exact loss of a clipped release.

The choice of the threshold is forced to each place in turn, the noise to 0: so the penalties, the
numbers and the scales are those that the mechanism has really used, and the probability of every
output follows from the laws' definitions. An output is a threshold and all numbers before they are
rounded, which can only tell more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from itertools import combinations_with_replacement
from unittest.mock import patch

from sqlrs.mechanisms import clipped
from sqlrs.mechanisms.clipped import ClippedVector
from sqlrs.mechanisms.vector_base import VectorDraw
from sqlrs.noise import Laplace
from sqlrs.noise.threshold import PRIOR_POWER
from tests.noise.sources import SeededBits
from tests.privacy.vector_worlds import ByDefinition, World
from tests.support.brute import Database, Row

PRECISE = Context(prec=60)
Rows = Mapping[str, Sequence[Row]]


@dataclass(frozen=True)
class UnitWorld:
    """A measure, and what a unit may own: rows of each table, with the id as their first column.

    ``most``: how many units there are besides those in which two databases differ.
    """

    world: World
    kinds: tuple[Rows, ...]
    most: int = 2

    def database(self, kinds: Sequence[Rows]) -> Database:
        """Each unit owns the rows of its kind."""
        found: dict[str, list[Row]] = {table.label: [] for table in self.world.tables}
        for number, kind in enumerate(kinds, 1):
            for label, rows in kind.items():
                found[label] += [(number, *row) for row in rows]
        return {**self.world.fixed, **found}

    def neighbours(self, *, strict: bool) -> Iterator[tuple[Database, Database]]:
        """A unit more; strict: also another unit, or other rows, in the place of one."""
        for count in range(self.most + 1):
            for common in combinations_with_replacement(self.kinds, count):
                without = self.database(common)
                larger = [self.database([*common, kind]) for kind in self.kinds]
                yield from ((without, one) for one in larger)
                if strict:
                    yield from ((a, b) for i, a in enumerate(larger) for b in larger[:i])


@dataclass(frozen=True)
class Choice:
    """The logarithm of the chance of a threshold, and what is released with it."""

    log_chance: Decimal
    numbers: tuple[int, ...]
    scale: Fraction


@dataclass
class Recorder:
    """Stands in for the choice of a threshold, the noise and the rounding, and takes notes."""

    place: int = 0
    penalties: tuple[Fraction, ...] = (Fraction(0),)
    numbers: tuple[int, ...] = ()
    scales: frozenset[Fraction] = frozenset()

    def choose(self, grid: object, penalties: Sequence[Fraction], bits: object) -> int:
        self.penalties = tuple(penalties)
        return self.place

    def sample(self, noise: Laplace, sensitivity: Fraction, bits: object) -> int:
        self.scales |= {noise.scale(sensitivity)}
        return 0

    def nearest(self, numerator: int, parts: int) -> int:
        self.numbers += (numerator,)
        return numerator


def choices(world: World, mechanism: ClippedVector, database: Database) -> tuple[Choice, ...]:
    """All thresholds that a release on this database may choose."""
    measurements = ByDefinition(world, database)
    draw = mechanism.prepare().measure(measurements, world.domains, world.ordinals)
    return choices_of(mechanism, draw)


def choices_of(mechanism: ClippedVector, draw: VectorDraw) -> tuple[Choice, ...]:
    """All thresholds that a release of these measurements may choose."""
    found = []
    notes = Recorder()

    def sample(noise: Laplace, sensitivity: Fraction, bits: object) -> int:
        return notes.sample(noise, sensitivity, bits)

    with (
        patch.object(clipped, "choose_threshold", lambda *given: notes.choose(*given)),
        patch.object(clipped, "nearest", lambda *given: notes.nearest(*given)),
        patch.object(Laplace, "sample", sample),
    ):
        for place in range(len(mechanism.grid)):
            notes = Recorder(place)
            draw(SeededBits(0))
            found.append(notes)
    logs = _log_chances(mechanism.grid, found[0].penalties)
    return tuple(
        Choice(log, each.numbers, *each.scales) for log, each in zip(logs, found, strict=True)
    )


def _log_chances(grid: Sequence[int], penalties: Sequence[Fraction]) -> list[Decimal]:
    """From the definition: weights t**-3 e**-p over their sum."""
    cubes = (Decimal(threshold**PRIOR_POWER) for threshold in grid)
    logs = [
        PRECISE.subtract(-decimal(penalty), PRECISE.ln(cube))
        for cube, penalty in zip(cubes, penalties, strict=True)
    ]
    total = Decimal(0)
    for log in logs:
        total = PRECISE.add(total, PRECISE.exp(log))
    return [PRECISE.subtract(log, PRECISE.ln(total)) for log in logs]


def decimal(value: Fraction) -> Decimal:
    return PRECISE.divide(Decimal(value.numerator), Decimal(value.denominator))


def loss(one: Sequence[Choice], other: Sequence[Choice]) -> Decimal:
    """The greatest loss over all outputs, in either direction.

    With a threshold and the scale of its noise, e**(-|z - n| / scale) falls most, against that
    around n', at the output z = n: by the sum of all |n - n'| / scale.
    """
    worst = Decimal(0)
    for here, there in zip(one, other, strict=True):
        assert here.scale == there.scale
        moved = sum(abs(a - b) for a, b in zip(here.numbers, there.numbers, strict=True))
        chosen = PRECISE.abs(PRECISE.subtract(here.log_chance, there.log_chance))
        worst = max(worst, PRECISE.add(chosen, decimal(moved / here.scale)))
    return worst


def worst_loss(world: UnitWorld, mechanism: ClippedVector, *, strict: bool) -> Decimal:
    """The greatest loss over all neighbours."""
    known: dict[object, tuple[Choice, ...]] = {}

    def of(database: Database) -> tuple[Choice, ...]:
        key = tuple((label, tuple(sorted(rows))) for label, rows in sorted(database.items()))
        if key not in known:
            known[key] = choices(world.world, mechanism, database)
        return known[key]

    return max(loss(of(a), of(b)) for a, b in world.neighbours(strict=strict))
