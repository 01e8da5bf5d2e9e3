"""Tiny worlds for vectors of groups, measured by definition, and the exact loss of a release.

The samplers are replaced by ones that add nothing and say which law they were asked for, with
which sensitivity; so is the noise on the published index of a scale. So the true numbers and the
laws are those that the mechanism has really used, and the probability of an output follows from the
laws' definitions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from itertools import combinations, product
from unittest.mock import patch

from sqlrs.catalog import Table
from sqlrs.measures import Contributions, KeyDomain, Ordinals, OwnedResults, PerUnit, Signed
from sqlrs.mechanisms.vector_base import GroupMeasurements, Summand, VectorMechanism
from sqlrs.noise import Laplace, PolyLaplace, error_bars
from sqlrs.noise.error_bars import Grid
from sqlrs.noise.lomax import Lomax
from sqlrs.query import Constant, Term, Variable
from sqlrs.residuals.residual import Members, Residuals
from tests.noise.oracle import rounded_probability
from tests.noise.sources import SeededBits
from tests.support import brute, weighted_brute
from tests.support.brute import Assignment, Database, Row

PRECISE = Context(prec=60)
Vector = tuple[int, ...]


@dataclass(frozen=True)
class World:
    """A measure, its groups, and the rows that its databases are made of.

    ``fixed``: the contents of public tables. ``group_of_row``: the group of a private row, where it
    has one by itself.
    """

    name: str
    terms: tuple[Signed, ...]
    groups: tuple[Row, ...]
    universe: Mapping[str, Sequence[Row]]
    fixed: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    most: int = 2
    group_of_row: Callable[[str, Row], object] | None = None

    @property
    def summands(self) -> tuple[Summand, ...]:
        return tuple(Summand(term, Residuals(term.query)) for term in self.terms)

    @property
    def domains(self) -> tuple[KeyDomain, ...]:
        if not self.terms[0].keys:
            return ()
        return (KeyDomain(tuple(range(len(self.terms[0].keys))), self.groups, "in the test"),)

    @property
    def ordinals(self) -> tuple[Ordinals, ...]:
        return tuple((i,) for i in range(len(self.groups))) if self.domains else ((),)

    @property
    def tables(self) -> tuple[Table, ...]:
        found = {a.table.label: a.table for term in self.terms for a in term.query.atoms}
        return tuple(table for table in found.values() if table.private)

    def databases(self) -> Iterator[Database]:
        """Every database with a few private rows."""
        for database in brute.databases(self.tables, self.universe, most=self.most):
            yield {**self.fixed, **{label: tuple(rows) for label, rows in database.items()}}

    def neighbours(
        self, database: Database, *, strict: bool
    ) -> Iterator[tuple[Database, Database]]:
        """Pairs with this database in common: a row more, or (strict) two rows exchanged."""
        for table in self.tables:
            larger = [
                {**database, table.label: (*database[table.label], row)}
                for row in self.universe[table.label]
                if brute.keys_hold(table, [*database[table.label], row])
            ]
            yield from ((database, other) for other in larger)
            if strict:
                yield from combinations(larger, 2)


@dataclass(frozen=True)
class ByDefinition:
    """Measurements of one database, all by brute force."""

    world: World
    database: Database

    def totals(
        self, signed: Signed, residuals: Residuals, domains: Sequence[KeyDomain]
    ) -> Mapping[Ordinals, int]:
        found: dict[Ordinals, int] = {}
        for result, weight in weighted_brute.results(signed.query, self.database):
            ordinals = _ordinals(signed.keys, domains, result)
            if ordinals is not None:
                found[ordinals] = found.get(ordinals, 0) + weight
        return found

    def values(
        self, residuals: Residuals, wanted: Iterable[Members], fold: object
    ) -> Mapping[Members, int]:
        return self._values(residuals, tuple(wanted), self.database)

    def _values(
        self, residuals: Residuals, wanted: Sequence[Members], database: Database
    ) -> Mapping[Members, int]:
        if residuals.query.weighted:
            return weighted_brute.residual_sums(residuals, wanted, database)
        return brute.residual_values(residuals, wanted, database)

    def contributions(
        self,
        parts: Sequence[tuple[Signed, Residuals]] | PerUnit,
        domains: Sequence[KeyDomain],
        grid: Sequence[int],
    ) -> Contributions:
        assert not isinstance(parts, PerUnit)
        numbers: dict[object, dict[Ordinals, int]] = {}
        for signed, _ in parts:
            (owner,) = set(signed.owners)
            for result, weight in weighted_brute.results(signed.query, self.database):
                ordinals, unit = _ordinals(signed.keys, domains, result), _value(owner, result)
                if ordinals is not None and unit is not None:
                    own = numbers.setdefault(unit, {})
                    own[ordinals] = own.get(ordinals, 0) + signed.coefficient * weight
        return placed(numbers.values(), grid)

    def owned_results(self, signed: Signed, residuals: Residuals, most: int) -> OwnedResults:
        raise NotImplementedError("tests/privacy/test_packed.py has results of several owners")

    def values_by_group(
        self,
        residuals: Residuals,
        wanted: Iterable[Members],
        keys: tuple[Term | None, ...],
        domains: Sequence[KeyDomain],
    ) -> Mapping[Ordinals, Mapping[Members, int]]:
        """Of the private rows of each group alone."""
        asked = tuple(wanted)
        owner = self.world.group_of_row
        assert owner is not None
        found = {}
        for ordinals, group in zip(self.world.ordinals, self.world.groups, strict=True):
            own = {
                table.label: [
                    row for row in self.database[table.label] if owner(table.label, row) == group[0]
                ]
                for table in self.world.tables
            }
            found[ordinals] = self._values(residuals, asked, {**self.database, **own})
        return found


def placed(units: Iterable[Mapping[Ordinals, int]], grid: Sequence[int]) -> Contributions:
    """The numbers of each unit, by the first threshold that is not below their sum without signs.

    Behind all thresholds where there is none.
    """
    places = len(grid) + 1
    number, below = [0] * places, [0] * places
    totals: dict[Ordinals, list[int]] = {}
    for own in units:
        size = sum(map(abs, own.values()))
        place = next((i for i, threshold in enumerate(grid) if size <= threshold), len(grid))
        number[place] += 1
        below[place] += sum(own.values()) < 0
        for group, value in own.items():
            totals.setdefault(group, [0] * places)[place] += value
    sums = {group: tuple(found) for group, found in totals.items()}
    return Contributions(tuple(grid), tuple(number), tuple(below), sums)


def _value(key: Term | None, result: Assignment) -> object:
    if isinstance(key, Variable):
        return result[key]
    return key.value if isinstance(key, Constant) else None


def _ordinals(
    keys: Sequence[Term | None], domains: Sequence[KeyDomain], result: Assignment
) -> Ordinals | None:
    found = []
    for domain in domains:
        row = tuple(_value(keys[key], result) for key in domain.keys)
        rows = domain.select
        assert isinstance(rows, tuple)
        if row not in rows:
            return None
        found.append(rows.index(row))
    return tuple(found)


Law = tuple[str, Fraction, int]


@dataclass(frozen=True)
class Released:
    """The true numbers of one database and the laws of the noise that they get.

    A law is its name, its scale and its shape: one for all numbers (lomax), or one for each.
    ``looks``: the indices of scales that error bars publish, and at which price each.
    """

    numbers: Vector
    laws: tuple[Law, ...]
    looks: tuple[tuple[int, Fraction], ...] = ()

    def log_chance(self, output: Vector) -> Decimal | None:
        """The logarithm of the chance of this output, None where it cannot be."""
        noise = tuple(a - b for a, b in zip(output, self.numbers, strict=True))
        if len(self.laws) == 1 and self.laws[0][0] == "lomax":
            return _log_of(*self.laws[0], noise)
        logs = [_log_of(*law, (n,)) for law, n in zip(self.laws, noise, strict=True)]
        found = Decimal(0)
        for log in logs:
            if log is None:
                return None
            found = PRECISE.add(found, log)
        return found


_known: dict[tuple[Law, Vector], Decimal | None] = {}


def _log_of(name: str, scale: Fraction, shape: int, noise: Vector) -> Decimal | None:
    # Neither the order of the numbers nor their signs matter in any of the laws.
    key = ((name, scale, shape), tuple(sorted(map(abs, noise))))
    if key not in _known:
        _known[key] = _fresh_log_of(*key[0], key[1])
    return _known[key]


def _fresh_log_of(name: str, scale: Fraction, shape: int, noise: Vector) -> Decimal | None:
    if scale == 0:
        return None if any(noise) else Decimal(0)
    if name == "lomax":
        return _log(lomax_probability(scale, shape, noise))
    (n,) = noise
    if name == "polylaplace":
        return _log(rounded_probability(shape, scale, n))
    rate = PRECISE.divide(Decimal(scale.denominator), Decimal(scale.numerator))
    t = PRECISE.exp(-rate)
    normal = PRECISE.divide(PRECISE.subtract(Decimal(1), t), PRECISE.add(Decimal(1), t))
    return PRECISE.subtract(PRECISE.ln(normal), PRECISE.multiply(rate, Decimal(abs(n))))


def _log(chance: Fraction) -> Decimal:
    top, bottom = Decimal(chance.numerator), Decimal(chance.denominator)
    return PRECISE.subtract(PRECISE.ln(top), PRECISE.ln(bottom))


def lomax_probability(scale: Fraction, shape: int, vector: Vector) -> Fraction:
    """P(rounded noise = vector), by inclusion and exclusion over the corners of its box."""
    half = Fraction(1, 2)
    sides = [(max(Fraction(0), abs(n) - half), abs(n) + half) for n in vector]
    total = Fraction(0)
    for corner in product((0, 1), repeat=len(vector)):
        reach = sum((side[c] for side, c in zip(sides, corner, strict=True)), Fraction(0))
        total += (-1) ** sum(corner) * (1 + reach / scale) ** -shape
    signs: int = 2 ** sum(1 for n in vector if n)
    return total / signs


def released(world: World, mechanism: VectorMechanism, database: Database) -> Released:
    """What the mechanism does on one database, without its noise."""
    measurements = ByDefinition(world, database)
    return recorded(mechanism, measurements, world.domains, world.ordinals)


def recorded(
    mechanism: VectorMechanism,
    measurements: GroupMeasurements,
    domains: Sequence[KeyDomain],
    groups: Sequence[Ordinals],
) -> Released:
    """What the mechanism does with some measurements, without its noise."""
    laws: list[Law] = []
    indices: list[int] = []
    prices: list[Fraction] = []
    place = Grid.index

    def index(self: Grid, target: Fraction) -> int:
        indices.append(place(self, target))
        return indices[-1]

    def geometric(epsilon: Fraction, bits: object) -> int:
        prices.append(epsilon)
        return 0

    def laplace(self: Laplace, sensitivity: Fraction, bits: object) -> int:
        laws.append((self.name, self.scale(sensitivity), 0))
        return 0

    def polylaplace(self: PolyLaplace, sensitivity: Fraction, bits: object) -> int:
        laws.append((self.name, self.scale(sensitivity), self.shape))
        return 0

    def lomax(self: Lomax, sensitivity: Fraction, bits: object) -> Vector:
        laws.append((self.name, self.scale(sensitivity), self.shape))
        return (0,) * self.size

    with contextlib.ExitStack() as stack:
        for kind, sample in ((Laplace, laplace), (PolyLaplace, polylaplace), (Lomax, lomax)):
            stack.enter_context(patch.object(kind, "sample", sample))
        stack.enter_context(patch.object(Grid, "index", index))
        stack.enter_context(patch.object(error_bars, "two_sided_geometric", geometric))
        draw = mechanism.prepare().measure(measurements, domains, groups)
        numbers = tuple(noisy.value for noisy in draw(SeededBits(0)))
    return Released(numbers, tuple(laws), tuple(zip(indices, prices, strict=True)))


def worst_loss(world: World, mechanism: VectorMechanism, *, strict: bool) -> Decimal:
    """The greatest privacy loss over all pairs of neighbours and all outputs that are tried."""
    return max(loss(*pair) for pair in pairs(world, mechanism, strict=strict))


def worst_steps(world: World, mechanism: VectorMechanism, *, strict: bool) -> Fraction:
    """The greatest privacy loss of the published indices alone."""
    return max(loss_of_looks(*pair) for pair in pairs(world, mechanism, strict=strict))


def pairs(
    world: World, mechanism: VectorMechanism, *, strict: bool
) -> set[tuple[Released, Released]]:
    """All neighbours as far as a release tells them apart."""
    known: dict[object, Released] = {}

    def of(database: Database) -> Released:
        key = tuple((label, tuple(sorted(rows))) for label, rows in sorted(database.items()))
        if key not in known:
            known[key] = released(world, mechanism, database)
        return known[key]

    found = {
        (of(one), of(other))
        for database in world.databases()
        for one, other in world.neighbours(database, strict=strict)
    }
    assert len(found) > 5
    return found


def loss_of_looks(one: Released, other: Released) -> Fraction:
    """The privacy loss of the published indices: a price for each step."""
    steps = Fraction(0)
    for (here, price), (there, same) in zip(one.looks, other.looks, strict=True):
        assert price == same
        steps += price * abs(here - there)
    return steps


def loss(one: Released, other: Released) -> Decimal:
    """The greatest loss at both centres, between and beyond them, and far out.

    To it comes that of the published indices, each a price for a step.
    """
    worst = Decimal(0)
    steps = loss_of_looks(one, other)
    sides = [sorted({a, b, a - 1, b + 1}) for a, b in zip(one.numbers, other.numbers, strict=True)]
    far = [(min(side) - 10**5, *side, max(side) + 10**5) for side in sides]
    for output in product(*far):
        logs = one.log_chance(output), other.log_chance(output)
        if logs == (None, None):
            continue
        if logs[0] is None or logs[1] is None:
            return Decimal("Infinity")
        worst = max(worst, PRECISE.abs(PRECISE.subtract(logs[0], logs[1])))
    return PRECISE.add(worst, PRECISE.divide(Decimal(steps.numerator), Decimal(steps.denominator)))
