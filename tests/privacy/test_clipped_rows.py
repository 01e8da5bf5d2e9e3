"""Single rows protected by clipping: the exact loss with statements that are run, and releases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import combinations, combinations_with_replacement

import duckdb
import pytest
from sqlglot import exp

from sqlrs import connect
from sqlrs.catalog import Table
from sqlrs.compiled import Compiled
from sqlrs.engines.open import open_engine
from sqlrs.errors import QueryRefused, UsageError
from sqlrs.measures import KeyDomain, Measure, Ordinals, Signed
from sqlrs.measuring.measurements import Measurements
from sqlrs.mechanisms import NAMES
from sqlrs.mechanisms.clipped import ClippedVector
from sqlrs.mechanisms.clipped_rows import clipped_rows_mechanism, clipped_rows_vector
from sqlrs.mechanisms.vector_base import Summand
from sqlrs.mechanisms.vector_exact import ExactVector
from sqlrs.query import Query, Variable, Weight
from sqlrs.residuals.residual import Residuals
from sqlrs.settings import Settings
from tests.privacy.unit_worlds import Choice, choices_of, loss
from tests.support.builders import INTEGER, TEXT, atom, query, table
from tests.support.engine_fixtures import BothEngines

Row = tuple[object, ...]
EPSILON = Decimal(1)
SLACK = Decimal("1e-40")
X = Variable("x", INTEGER)

ID = table("entry", "id", "x", "w", keys=["id"])
PAIR = table("entry", "a", "b", "x", keys=["a b"], types={"a": TEXT}, nullable="x")
BAG = table("entry", "x", "note", types={"note": TEXT}, nullable="x note")
PART = table("part", "x", "y", private=False)
# How often each x stands in the public table: skewed.
PARTS: list[Row] = [(1, 0), *[(2, y) for y in range(3)], *[(3, y) for y in range(9)]]


def by_id() -> Query:
    return query(atom(ID, "i", "x"), atom(PART, "x", "y"))


CASES: dict[str, tuple[Table, Query, list[Row]]] = {
    "a key": (ID, by_id(), [(i, x, 1) for i, x in enumerate([0, 1, 2, 3, 3])]),
    "a key of two columns": (
        PAIR,
        query(atom(PAIR, "a", "b", "x"), atom(PART, "x", "y")),
        [("u", 1, 1), ("u,1", 1, 3), ("v", 2, None), ("V", 2, 3), ("v", 1, 2)],
    ),
    "a bag": (
        BAG,
        query(atom(BAG, "x", None), atom(PART, "x", "y")),
        [(1, "a"), (3, "a"), (3, None), (3, "A")],
    ),
    "a sum": (
        ID,
        query(replace(atom(ID, "i", "x"), weight=Weight("w", 20)), atom(PART, "x", "y")),
        [(0, 1, 0), (1, 1, 16), (2, 3, 2), (3, 2, 20), (4, 1, 1)],
    ),
    "distinct": (
        ID,
        query(atom(ID, "i", "x"), atom(PART, "x", "y"), distinct="i y"),
        [(i, x, 1) for i, x in enumerate([0, 1, 2, 3])],
    ),
}


class World:
    """The releases of a mechanism on tiny databases, measured by statements that are run."""

    def __init__(self, of: Table, mechanism: ClippedVector, grouped: bool = False) -> None:
        self.table = of
        self.mechanism = mechanism
        self.domains: tuple[KeyDomain, ...] = ()
        self.groups: tuple[Ordinals, ...] = ((),)
        if grouped:
            values = exp.values([(0, 1), (1, 2), (2, 3)], alias="d", columns=["ordinal", "k0"])
            select = exp.select("ordinal", "k0").from_(values)
            self.domains = (KeyDomain((0,), select, "in the test"),)
            self.groups = ((0,), (1,), (2,))
        self._known: dict[object, tuple[Choice, ...]] = {}

    def at(self, rows: Sequence[Row], both: BothEngines) -> tuple[Choice, ...]:
        key = tuple(sorted(map(repr, rows)))
        if key not in self._known:
            both.load([self.table, PART], {"entry": rows, "part": PARTS})
            draw = self.mechanism.measure(
                Measurements(both.engines["duckdb"]), self.domains, self.groups
            )
            self._known[key] = choices_of(self.mechanism, draw)
        return self._known[key]


def neighbours(
    of: Table, rows: Sequence[Row], strict: bool
) -> Iterator[tuple[tuple[Row, ...], tuple[Row, ...]]]:
    """A row more; strict: another row in the place of one. Bags hold equal rows."""
    choose = combinations if of.keys else combinations_with_replacement
    for size in range(3):
        for common in choose(rows, size):
            larger = [(*common, row) for row in rows if not of.keys or row not in common]
            yield from ((common, one) for one in larger)
            if strict:
                yield from combinations(larger, 2)


def vector(of: Query, size: int = 1, *, strict: bool, most: int = 8) -> ClippedVector:
    signed = Signed(1, of, (X,) if size > 1 else ())
    return clipped_rows_vector(
        Measure((signed,)),
        [Summand(signed, Residuals(of))],
        size,
        epsilon=EPSILON,
        strict=strict,
        coverage=None,
        max_contribution=most,
    )


@pytest.mark.parametrize("name", CASES)
def test_the_exact_loss_is_at_most_epsilon(name: str, both_engines: BothEngines) -> None:
    of, asked, rows = CASES[name]
    world = World(of, vector(asked, strict=True))
    losses = [
        loss(world.at(a, both_engines), world.at(b, both_engines))
        for a, b in neighbours(of, rows, strict=True)
    ]
    assert Decimal("0.6") < max(losses) <= EPSILON + SLACK


def test_groups_move_twice_where_a_row_is_replaced(both_engines: BothEngines) -> None:
    of, asked, rows = CASES["a key"]
    for mechanism, fails in (
        (vector(asked, 3, strict=True), False),
        (vector(asked, 3, strict=False), True),
    ):
        world = World(of, mechanism, grouped=True)
        worst = max(
            loss(world.at(a, both_engines), world.at(b, both_engines))
            for a, b in neighbours(of, rows[:4], strict=True)
        )
        assert (worst > EPSILON) == fails


@pytest.mark.parametrize("name", CASES)
def test_contributions_are_those_of_the_rows(name: str, both_engines: BothEngines) -> None:
    """On both engines, against the definition; equal rows of a bag are one."""
    of, asked, rows = CASES[name]
    rows = rows if of.keys else rows * 2
    both_engines.load([of, PART], {"entry": rows, "part": PARTS})
    fan: Mapping[object, int] = {None: 0, 0: 0, 1: 1, 2: 3, 3: 9}
    place = [one.name for one in of.columns].index("x")
    sizes = [fan[row[place]] * (row[2] if name == "a sum" else 1) for row in rows]  # type: ignore[operator]
    if not of.keys:
        sizes = [2 * size for size in sizes[: len(rows) // 2]]
    mechanism = vector(asked, strict=True, most=2**20)
    assert not isinstance(mechanism.source, tuple) or len(mechanism.source) == 1
    for engine in both_engines.engines.values():
        source = [(one.signed, one.residuals) for one in mechanism.source]  # type: ignore[union-attr]
        found = Measurements(engine).contributions(source, (), (4, 8))
        assert found.units[1:] == (sum(4 < s <= 8 for s in sizes), sum(s > 8 for s in sizes))
        total = tuple(sum(s for s in sizes if a < s <= b) for a, b in ((0, 4), (4, 8), (8, 999)))
        assert found.totals[()] == total


def test_a_collation_does_not_make_two_rows_one() -> None:
    """Letters of both cases, commas and NULL: each row has a name of its own."""
    connection = duckdb.connect()
    connection.execute("SET default_collation = 'nocase'")
    connection.execute("CREATE TABLE entry (a VARCHAR, b VARCHAR, x BIGINT)")
    connection.execute("CREATE TABLE part AS SELECT 1 AS x FROM range(5)")
    rows = [("a", "b"), ("A", "b"), ("a,b", ""), ("a", None), ("", "a,b"), ("null", "b")]
    for row in rows:
        connection.execute("INSERT INTO entry VALUES (?, ?, 1)", row)
    engine = open_engine(connection)
    catalog = engine.catalog().declare(public=["part"])
    compiled = Compiled.of(
        "SELECT count(*) FROM entry JOIN part ON entry.x = part.x", catalog, Settings()
    )
    assert isinstance(compiled, Compiled)
    mechanism = vector(compiled.residuals.query, strict=True)
    source = [(one.signed, one.residuals) for one in mechanism.source]  # type: ignore[union-attr]
    found = Measurements(engine).contributions(source, (), (4, 8))
    assert found.units[1:] == (len(rows), 0)
    engine.close()


def test_keys_bound_what_a_row_adds() -> None:
    """Then one threshold is left, and all of epsilon is for the noise."""
    keyed = replace(PART, keys=frozenset({frozenset({"x"})}))
    found = vector(query(atom(PAIR, "a", "b", "x"), atom(keyed, "x", "y")), strict=True)
    assert found.grid == (1,)
    assert "each row contributes at most 1" in found.describe()
    assert vector(query(atom(BAG, "x")), strict=True).grid[-1] == 8


def test_only_results_of_one_private_row_are_served() -> None:
    refused = [
        query(atom(ID, "i", "x"), atom(ID, "j", "x")),
        query(atom(ID, "i", "x"), atom(table("other", "x"), "x")),
        query(atom(ID, "i", "x"), atom(PART, "x", "y"), distinct="y"),
        query(atom(BAG, "x"), distinct="x"),
        query(atom(replace(ID, rows_per_unit=2), "i", "x")),
    ]
    for asked in refused:
        with pytest.raises(QueryRefused) as error:
            vector(asked, strict=True)
        assert error.value.code == "clipping_needs_one_row"
    public = Signed(1, query(atom(PART, "x", "y")))
    exact = clipped_rows_mechanism(
        Measure((public,)),
        [Summand(public, Residuals(public.query))],
        1,
        epsilon=EPSILON,
        strict=True,
        error_bars=False,
        max_contribution=8,
    )
    assert isinstance(exact, ExactVector)


@pytest.fixture
def shop() -> duckdb.DuckDBPyConnection:
    """A skewed foreign key: one customer has half of the items."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE customer (id BIGINT PRIMARY KEY, region BIGINT)")
    connection.execute("CREATE TABLE item (cust BIGINT)")
    connection.execute("INSERT INTO customer SELECT i, i % 2 FROM range(2000) t(i)")
    connection.execute("INSERT INTO item SELECT i % 2000 FROM range(8000) t(i)")
    connection.execute("INSERT INTO item SELECT 7 FROM range(4000)")
    return connection


ITEMS = "SELECT count(*) FROM customer JOIN item ON item.cust = customer.id"


def test_a_skewed_key_costs_less_noise(shop: duckdb.DuckDBPyConnection) -> None:
    """The one customer is cut away: an error of 4000 at most, and little noise beside it."""
    data = connect(shop, public=["item"])
    answer = data.count(ITEMS, epsilon=10, mechanism="clipped", error_bars=1)
    assert answer.mechanism == "clipped"
    assert answer.epsilon == 10
    assert answer.clipping is not None
    assert answer.clipping.threshold < 100
    assert answer.error_bars is not None
    assert abs(answer.value - 8000) < 1000
    assert data.count(ITEMS, epsilon=10, mechanism="clipped", error_bars=1).repeated
    assert "each row cut to" in str(data.explain(ITEMS, mechanism="clipped"))


def test_statements_may_name_it(shop: duckdb.DuckDBPyConnection) -> None:
    data = connect(shop, public=["item"])
    sql = (
        "SELECT region, count(*) AS n FROM customer JOIN item ON item.cust = customer.id "
        "WHERE region IN (0, 1) GROUP BY region ORDER BY 1"
    )
    found = data.query(sql, epsilon=100, mechanism="clipped")
    (_, without), (_, with_many) = ((int(str(r)), int(str(n))) for r, n in found.rows)
    assert abs(without - 4000) < 2000
    assert 2000 < with_many < 10_000
    missing = (
        "SELECT count(*) FROM customer WHERE NOT EXISTS "
        "(SELECT 1 FROM item WHERE item.cust = customer.id)"
    )
    assert data.count(missing, epsilon=100, mechanism="clipped").epsilon == 100
    with pytest.raises(UsageError):
        data.query(sql, epsilon=1, mechanism="polylaplace")


def test_what_it_does_not_serve_is_not_charged(shop: duckdb.DuckDBPyConnection) -> None:
    data = connect(shop, public=["item"])
    with pytest.raises(QueryRefused):
        data.count(
            "SELECT count(*) FROM customer a JOIN customer b ON a.region = b.region",
            epsilon=1,
            mechanism="clipped",
        )
    with pytest.raises(UsageError, match="no shape"):
        data.count(ITEMS, epsilon=1, mechanism="clipped", shape=4)
    assert "clipped" in NAMES
