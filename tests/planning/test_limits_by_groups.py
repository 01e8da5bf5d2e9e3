"""Groups of whole tables that lead: limits of what conditions leave, and few are enough again."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import pytest
from sqlglot import exp

from sqlrs.catalog import ColumnType, Family
from sqlrs.epsilon import parse_epsilon
from sqlrs.measuring.evaluate import Evaluator
from sqlrs.measuring.measure import measure
from sqlrs.measuring.measurements import Measurements
from sqlrs.mechanisms.folding import refined_folding
from sqlrs.noise import PolyLaplace
from sqlrs.planning import leading as leading_planning
from sqlrs.planning.plan import ByKeptGroups, KeptGroups
from sqlrs.query import Filter
from sqlrs.residuals.residual import Residuals
from sqlrs.sensitivity.refined import reached, released_sensitivity
from sqlrs.trees.kept import Kept
from tests.planning.adapters import Direct, Lasting
from tests.support.builders import atom, query, table

WEIGHTS = [PolyLaplace(parse_epsilon(one), 5).weights for one in ("1", "0.6", "0.2")]
ORDERS = table("orders", "id", "customer", keys=["id"])
PART = table("part", "id", keys=["id"])
CUSTOMER = table("customer", "id", keys=["id"])
LINE = table("line", "orders", "part", "number")


pytestmark = pytest.mark.usefixtures("all_is_kept")


@pytest.fixture(scope="module", autouse=True)
def few_lead() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leading_planning, "LEADING_BY_ONE", 4)
        yield


def below(most: int) -> Filter:
    test = exp.LT(this=exp.column("number"), expression=exp.Literal.number(most))
    return Filter(test, frozenset({"number"}))


def lines(most: int) -> Residuals:
    """Lines with their orders, customers and parts, some of the lines alone."""
    filtered = replace(atom(LINE, "o", "p", "n"), filters=(below(most),))
    others = (atom(ORDERS, "o", "c"), atom(PART, "p"), atom(CUSTOMER, "c"))
    return Residuals(query(filtered, *others))


def fill(snapshot: Direct, rng: random.Random, popular: int) -> None:
    # Of customer 3 are all orders from the 30th on.
    snapshot.fill(ORDERS, [(o, o % 9 if o < 30 else 3) for o in range(90)])
    snapshot.fill(PART, [(p,) for p in range(16)])
    snapshot.fill(CUSTOMER, [(c,) for c in range(9)])
    orders = [rng.randrange(30) for _ in range(280)] + [
        rng.randrange(30, 90) for _ in range(popular)
    ]
    rows = [(o, rng.randrange(16), rng.randrange(9)) for o in orders]
    snapshot.fill(LINE, rows)


def sensitivities(
    residuals: Residuals, snapshot: Direct, turns: Sequence[int]
) -> tuple[list[Fraction], list[Fraction], list[int]]:
    """By the definition, and as one release after the other finds it, with its statements."""
    wanted = reached(residuals)
    source, kept = Lasting(snapshot, {}), Kept()
    exact = measure(source, residuals, wanted, plan="plain").values
    true, found, read = [], [], []
    for turn in turns:
        weights = WEIGHTS[turn]
        folding = refined_folding(residuals, weights)
        source.read.clear()
        enough = Measurements(source, kept=kept).enough(residuals, wanted, folding)
        read.append(len(source.read))
        own = released_sensitivity(residuals, enough.values, weights).value
        found.append(own if enough.settled is None else enough.settled)
        true.append(released_sensitivity(residuals, exact, weights).value)
    return true, found, read


@pytest.mark.parametrize("seed", range(12))
def test_every_release_finds_the_same_sensitivity(on_duckdb: Direct, seed: int) -> None:
    """Whatever the others have left out, and for another price too."""
    rng = random.Random(seed)
    fill(on_duckdb, rng, rng.randrange(100))
    turns = [0, 0, 0, 0, *(rng.randrange(3) for _ in range(8))]
    true, found, _ = sensitivities(lines(rng.randrange(1, 9)), on_duckdb, turns)
    assert found == true


def test_what_cannot_matter_is_read_no_more(on_duckdb: Direct) -> None:
    """One customer leads: once limits say so, the count and its lines are all that is read."""
    fill(on_duckdb, random.Random(1), 100)
    true, found, read = sensitivities(lines(7), on_duckdb, [0] * 6)
    assert found == true
    assert read[-1] == 2 < min(read[:2]), read


def test_a_limit_that_is_too_low_would_show(
    on_duckdb: Direct, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KeptGroups, "most", 0)
    fill(on_duckdb, random.Random(1), 100)
    true, found, _ = sensitivities(lines(7), on_duckdb, [1] * 6)
    assert found != true


def test_the_groups_that_may_reach_a_number() -> None:
    groups = KeptGroups(((1,), (2,), (3,), (4,)), (9, 5, 5, 4), 4)
    assert groups.that_may_reach(5) == KeptGroups(((1,), (2,), (3,)), (9, 5, 5), 4)
    assert groups.that_may_reach(6) == groups.that_may_reach(9) == KeptGroups(((1,),), (9,), 5)
    assert groups.that_may_reach(4) is groups
    assert groups.most == 9
    assert KeptGroups((), (), 0).most == 0


@pytest.mark.parametrize("seed", range(8))
def test_few_groups_are_enough_again(on_duckdb: Direct, seed: int) -> None:
    """What led with the condition is found among those that could, and in the rows of no other."""
    rng = random.Random(seed)
    fill(on_duckdb, rng, 100)
    residuals = lines(rng.randrange(3, 9))
    by_customer = residuals.of(frozenset({0, 1, 2}))
    value = Evaluator(on_duckdb, residuals.query, "duckdb", "plain")(by_customer).value
    source, kept = Lasting(on_duckdb, {}), Kept()
    plans = []
    for _ in range(5):
        with source.snapshot() as snapshot:
            found = Evaluator(snapshot, residuals.query, "duckdb", kept=kept)(by_customer)
        assert found.value == value
        plans.append(found.plan)
    first = next(plan for plan in plans if isinstance(plan, ByKeptGroups))
    last = plans[-1]
    assert isinstance(last, ByKeptGroups)
    assert len(last.groups.keys) < len(first.groups.keys)
    assert last.groups.counts[-1] >= value > last.groups.least


@pytest.mark.parametrize(
    ("kind", "first", "kept_groups"),
    [("UBIGINT", 5, True), ("UBIGINT", 2**64 - 1000, False), ("HUGEINT", -(10**29), False)],
)
def test_groups_are_listed_where_64_bits_hold_them(
    on_duckdb: Direct, kind: str, first: int, kept_groups: bool
) -> None:
    """They stand in the statement as such numbers; others are no reason for a release to fail."""
    wide = ColumnType(Family.INTEGER, kind)
    orders = table("orders", "id", "customer", keys=["id"], types={"id": wide, "customer": wide})
    line = table("line", "orders", "part", "number", types={"orders": wide})
    on_duckdb.fill(orders, [(first + o, first + o % 9) for o in range(90)])
    on_duckdb.fill(PART, [(p,) for p in range(16)])
    rng = random.Random(first)
    rows = [(first + rng.randrange(90), rng.randrange(16), rng.randrange(9)) for _ in range(280)]
    on_duckdb.fill(line, rows)
    some = replace(atom(line, "o", "p", "n"), filters=(below(4),))
    joined = query(some, atom(orders, "o", "c"), atom(PART, "p"))
    residual = Residuals(joined).of(frozenset({0, 2}))
    value = Evaluator(on_duckdb, joined, "duckdb", "plain")(residual).value
    source, kept = Lasting(on_duckdb, {}), Kept()
    used = False
    for _ in range(5):
        with source.snapshot() as snapshot:
            found = Evaluator(snapshot, joined, "duckdb", kept=kept)(residual)
        assert found.value == value
        used |= isinstance(found.plan, ByKeptGroups)
    assert used == kept_groups
