"""The choice of a mechanism for groups by public facts, what it says, and what it releases."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from statistics import fmean

import duckdb
import pytest
from sqlglot import exp

from sqlrs.answer import Interval
from sqlrs.engines.base import Opened
from sqlrs.errors import UsageError
from sqlrs.measures import KeyDomain
from sqlrs.measuring.measurements import Measurements
from sqlrs.mechanisms.base import Noisy
from sqlrs.mechanisms.vector import vector_mechanism
from sqlrs.mechanisms.vector_base import GroupMeasurements, VectorMechanism
from sqlrs.mechanisms.vector_general import GeneralVector
from tests.noise.oracle import deviation_allowed, polylaplace_tail
from tests.noise.sources import SeededBits
from tests.planning.adapters import Direct
from tests.privacy.test_vector_loss import (
    ALIKE,
    KIND,
    LOOKUP,
    PAIRS,
    SIGNED,
    SUM_OF_JOIN,
    SUM_OF_ONE,
    SUM_OF_PAIRS,
    by_group,
    groups,
    mechanism,
    one_table,
    two_private,
)
from tests.privacy.vector_worlds import ByDefinition, Released, World, recorded, released
from tests.support.brute import Database
from tests.support.builders import atom, query

SEED = 20261118
SAMPLES = 3_000
ERROR_RATE = 1e-6

PUBLIC = World(
    "public tables alone",
    (by_group(query(atom(KIND, "x", "g"))), by_group(query(atom(KIND, "g", "x")), -3)),
    groups(2),
    {},
    {"kind": [(0, 0), (0, 1), (1, 1), (5, 1)]},
)
NOTHING = replace(PUBLIC, terms=(), groups=((),))


def draws(
    world: World, chosen: VectorMechanism, database: Database, times: int
) -> list[list[Noisy]]:
    """Several releases with reproducible noise."""
    draw = chosen.prepare().measure(ByDefinition(world, database), world.domains, world.ordinals)
    source = SeededBits(SEED)
    return [list(draw(source)) for _ in range(times)]


# Public facts choose, and are all that is said.


@pytest.mark.parametrize(
    ("world", "strict", "bars", "said"),
    [
        (
            one_table(3),
            True,
            "0.5",
            "laplace noise for each of 3 groups, epsilon 1: standard error 2.83 and median error "
            "1.39 times the sensitivity, which the query alone fixes, error bars of coverage 0.95, "
            "free of charge",
        ),
        (
            one_table(1),
            True,
            None,
            "laplace noise, epsilon 1: standard error 1.41 and median error 0.693 times the "
            "sensitivity, which the query alone fixes",
        ),
        (
            two_private(2),
            False,
            None,
            "lomax noise for 2 groups at once, epsilon 1: standard error 2.19 and median error "
            "0.942 times the sensitivity, in each: one private row may change many groups",
        ),
        (
            two_private(3),
            True,
            "0.1",
            "lomax noise for 3 groups at once, epsilon 1: standard error 3.86 and median error "
            "1.78 times the sensitivity, in each: one private row may change many groups, error "
            "bars of coverage 0.95, epsilon 0.1: 1.45 times as wide as if the scale were known",
        ),
        (
            PAIRS,
            True,
            "0.2",
            "polylaplace noise for each of 2 groups, epsilon 0.5: standard error 3.33 and median "
            "error 1.47 times the sensitivity, which is that of the group's own rows: each private "
            "row is in one group, error bars of coverage 0.95, epsilon 0.1: 1.45 times as wide as "
            "if the scale were known",
        ),
        (PUBLIC, True, "0.2", "no noise: no private row takes part"),
    ],
    ids=lambda value: value.name if isinstance(value, World) else None,
)
def test_what_is_said(world: World, strict: bool, bars: str | None, said: str) -> None:
    assert mechanism(world, "1", strict=strict, bars=bars).describe() == said


def test_prices_are_those_of_the_request() -> None:
    def prices(world: World, bars: str | None) -> tuple[str, ...]:
        return tuple(map(str, mechanism(world, "0.3", strict=True, bars=bars).prices))

    assert prices(one_table(2), "0.1") == ("0.3",)
    assert prices(two_private(2), None) == ("0.3",)
    assert prices(two_private(2), "0.1") == ("0.3", "0.1")
    assert prices(two_private(1), "0.1") == ("0.3", "0.1")
    assert prices(PAIRS, "0.1") == ("0.3", "0.1")
    assert prices(PUBLIC, "0.1") == ("0",)


def test_more_groups_than_epsilon_allows_are_refused_before_anything_is_read() -> None:
    def law(epsilon: str, size: int) -> VectorMechanism:
        return vector_mechanism(
            two_private(2).summands,
            size,
            grouped=True,
            epsilon=Decimal(epsilon),
            strict=True,
            error_bars=None,
        )

    chosen = law("0.5", 10_000)
    assert isinstance(chosen, GeneralVector)
    assert chosen.noise.share == Fraction(2, 5)
    assert 1 / chosen.noise.weights.decay - 1 >= Fraction(1, 100_000)
    with pytest.raises(UsageError, match="too small for so many groups") as caught:
        law("0.39", 10_000)
    assert caught.value.hint == "give at least 0.4, or ask for fewer groups"
    law("0.4", 10_000)


@pytest.mark.parametrize(("size", "grouped"), [(2, False), (0, False), (-1, True)])
def test_a_number_without_groups_is_one(size: int, grouped: bool) -> None:
    with pytest.raises(ValueError, match="one number"):
        vector_mechanism(
            (), size, grouped=grouped, epsilon=Decimal(1), strict=False, error_bars=None
        )


def test_a_mechanism_serves_its_own_number_of_groups() -> None:
    prepared = mechanism(one_table(2), "1", strict=False).prepare()
    world = one_table(3)
    for asked in (world.ordinals, world.ordinals[:1], (world.ordinals[0],) * 2):
        with pytest.raises(ValueError, match="another number of groups"):
            prepared.measure(ByDefinition(world, {"visit": ()}), world.domains, asked)


# What is released.


def test_public_tables_are_exact() -> None:
    chosen = mechanism(PUBLIC, "1", strict=True, bars="0.1")
    coverage = Fraction(19, 20)
    [found] = draws(PUBLIC, chosen, PUBLIC.fixed, 1)
    assert found == [
        Noisy(1 - 3 * 2, Interval(-5, -5, coverage)),
        Noisy(3 - 3 * 1, Interval(0, 0, coverage)),
    ]
    assert (chosen.name, chosen.coverage) == ("exact", coverage)


def test_a_measure_without_terms_is_0() -> None:
    chosen = vector_mechanism(
        (), 1, grouped=False, epsilon=Decimal(1), strict=True, error_bars=None
    )
    draw = chosen.prepare().measure(ByDefinition(PUBLIC, {}), (), ((),))
    assert draw(SeededBits(SEED)) == (Noisy(0),)


def test_no_groups_are_nothing() -> None:
    chosen = vector_mechanism(
        PAIRS.summands, 0, grouped=True, epsilon=Decimal(1), strict=True, error_bars=None
    )
    assert chosen.prices == (Decimal(0),)
    domains = (KeyDomain((0,), (), "empty"),)
    draw = chosen.prepare().measure(ByDefinition(PAIRS, {"visit": ()}), domains, ())
    assert draw(SeededBits(SEED)) == ()


DATABASES: dict[str, tuple[World, Database]] = {
    "laplace": (one_table(3), {"visit": ((0, 0), (0, 0), (2, 0))}),
    "lomax": (
        two_private(3),
        {"entry": ((0,),) * 6, "link": ((0, 0), (0, 0), (0, 2))},
    ),
    "polylaplace": (PAIRS, {"visit": ((0, 0),) * 9 + ((1, 0),) * 2}),
}


@pytest.mark.parametrize("name", DATABASES)
@pytest.mark.parametrize("strict", [False, True], ids=["rows", "strict"])
def test_each_number_has_its_spread(name: str, strict: bool) -> None:
    """The empirical law of each number against the exact one, and a scale 40 % off is noticed.

    Error rate 1e-6 for each number by the inequality of Dvoretzky, Kiefer and Wolfowitz.
    """
    world, database = DATABASES[name]
    chosen = mechanism(world, "1", strict=strict)
    assert chosen.name == name
    expected = released(world, chosen, database)
    found = draws(world, chosen, database, SAMPLES)
    allowed = deviation_allowed(SAMPLES, ERROR_RATE)
    for place, number in enumerate(expected.numbers):
        noises = sorted(noisy[place].value - number for noisy in found)
        assert gap(expected, place, noises, Fraction(1)) <= allowed, f"seed {SEED}"
        assert gap(expected, place, noises, Fraction(7, 5)) > allowed, f"seed {SEED}"
        mean = fmean(math.copysign(1, noise) for noise in noises if noise)
        assert abs(mean) < 2 * allowed, f"seed {SEED}"


def gap(expected: Released, place: int, noises: list[int], factor: Fraction) -> float:
    """The largest distance of both distribution functions, at all sizes that occur."""
    name, scale, shape = expected.laws[place if len(expected.laws) > 1 else 0]
    sizes = sorted(abs(noise) for noise in noises)
    worst, seen = 0.0, 0
    for size in sorted(set(sizes)):
        while seen < len(sizes) and sizes[seen] <= size:
            seen += 1
        at_most = 1 - beyond(name, scale * factor, shape, size)
        worst = max(worst, abs(seen / len(sizes) - at_most))
    return worst


def beyond(name: str, scale: Fraction, shape: int, size: int) -> float:
    """P(|noise| > size), from the definitions."""
    if name == "laplace":
        t = math.exp(-1 / float(scale))
        return 2 * t ** (size + 1) / (1 + t)
    y = (size + 0.5) / float(scale)
    if name == "lomax":
        return float((1 + y) ** -shape)
    return float(polylaplace_tail(shape, Fraction(y)))


@pytest.mark.parametrize(
    "strict", [pytest.param(False, marks=pytest.mark.slow), True], ids=["rows", "strict"]
)
@pytest.mark.parametrize("world", [one_table(2), two_private(3), PAIRS], ids=lambda w: w.name)
def test_intervals_hold_the_truth_as_often_as_they_say(world: World, strict: bool) -> None:
    """Hoeffding's inequality, error rate 1e-6; a quarter of the width must be seen to fail."""
    database = {
        "visit": ((0, 0),) * 5 + ((1, 0),),
        "entry": ((0,),) * 4,
        "link": ((0, 0), (0, 0), (0, 1)),
    }
    chosen = mechanism(world, "1", strict=strict, bars="0.4")
    truth = released(world, chosen, database).numbers
    allowed = deviation_allowed(SAMPLES, ERROR_RATE)
    found = draws(world, chosen, database, SAMPLES)
    for place, number in enumerate(truth):
        held = narrow = 0
        for noisy in found:
            bars, value = noisy[place].error_bars, noisy[place].value
            assert bars is not None and bars.low + bars.high == 2 * value
            held += bars.low <= number <= bars.high
            narrow += abs(number - value) <= (bars.high - bars.low) // 8
        assert held / SAMPLES >= 0.95 - allowed, f"seed {SEED}"
        assert narrow / SAMPLES < 0.95 - allowed, f"seed {SEED}"
    if chosen.name == "lomax":
        assert all(
            len({n.error_bars.high - n.value for n in f if n.error_bars}) == 1 for f in found
        )


# On a database.


@pytest.fixture(scope="module")
def snapshot() -> Iterator[Direct]:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        yield Direct(connection)


def listed(world: World) -> tuple[KeyDomain, ...]:
    """The groups as a statement."""
    if not world.domains:
        return ()
    values = [
        exp.Select(expressions=[exp.alias_(exp.convert(group[0]), "k0")]) for group in world.groups
    ]
    tree: exp.Query = values[0]
    for one in values[1:]:
        tree = exp.union(tree, one, distinct=False)
    return (KeyDomain((0,), tree, "listed"),)


@pytest.mark.parametrize("strict", [False, True], ids=["rows", "strict"])
@pytest.mark.parametrize(
    "world",
    [
        one_table(2),
        LOOKUP,
        two_private(2),
        SIGNED,
        PAIRS,
        ALIKE,
        SUM_OF_ONE,
        SUM_OF_JOIN,
        SUM_OF_PAIRS,
    ],
    ids=lambda world: world.name,
)
def test_a_database_measures_what_the_definitions_say(
    snapshot: Direct, world: World, strict: bool
) -> None:
    chosen = mechanism(world, "1", strict=strict, bars="0.5")
    tables = {a.table.label: a.table for term in world.terms for a in term.query.atoms}
    some = list(world.databases())
    for database in some[:: max(1, len(some) // 6)] + some[-1:]:
        for label, table in tables.items():
            snapshot.fill(table, database[label])
        # The rows of a snapshot stay as they are; these are others.
        measurements: GroupMeasurements = Measurements(Opened(snapshot, "duckdb"))
        found = recorded(chosen, measurements, listed(world), world.ordinals)
        assert found == released(world, chosen, database)
