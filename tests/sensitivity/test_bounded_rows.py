"""Units of few rows in several tables: S bounds what one moves and is smooth, on tiny databases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from unittest.mock import patch

import pytest

from sqlrs.catalog import Table
from sqlrs.errors import QueryRefused
from sqlrs.query import Query, Weight
from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity import bounded_rows
from sqlrs.sensitivity.bounded_rows import (
    UnitRecursion,
    bounded_is_quick,
    bounded_reached,
    bounded_sensitivity,
    refuse_much_work,
)
from sqlrs.sensitivity.recursion import Vector, largest
from sqlrs.sensitivity.refined import reached, released_sensitivity
from sqlrs.sensitivity.steps import compile_recursion
from sqlrs.sensitivity.weights import Weights
from sqlrs.units import Link, Owner
from tests.sensitivity.few_row_worlds import Content, Row, Truncate, Units, bags, few
from tests.support import brute, weighted_brute
from tests.support.builders import atom, query, table

FAST = Weights(Fraction(1, 2))
SLOW = Weights(Fraction(9, 10))


def owned(of: Table, rows: int, owner: Owner | None = None) -> Table:
    return replace(of, owners=(owner or Owner("u"),), max_rows=rows)


R = owned(table("r", "u", "x"), 2)
S = owned(table("s", "u", "x"), 1)
FLAG = owned(table("flag", "u", "x", "f"), 1)
KEYED = owned(table("keyed", "u", "a", "b", keys=["a", "b"]), 2)
ORDERS = owned(table("orders", "o", "u", keys=["o"]), 1)
LINE = owned(table("line", "o", "x"), 2, Owner("u", (Link(("o",), (None, "orders"), ("o",)),)))
COST = owned(table("cost", "u", "x", "w"), 2)


class Measured:
    """A query's number and bounds on instances, each computed once."""

    def __init__(self, q: Query, *, single_rows: bool = False) -> None:
        self.query = q
        self.residuals = Residuals(q)
        self.single_rows = single_rows
        self.counted = Residuals(q.unweighted)
        self._known: dict[object, tuple[int, list[Fraction]]] = {}
        self._folded: dict[object, list[Fraction]] = {}

    def at(self, instance: Mapping[str, tuple[Row, ...]]) -> tuple[int, list[Fraction]]:
        key = tuple(sorted(instance.items()))
        if key not in self._known:
            self._known[key] = weighted_brute.total(self.query, instance), self._bounds(instance)
        return self._known[key]

    def _bounds(self, instance: Mapping[str, tuple[Row, ...]]) -> list[Fraction]:
        find = reached if self.single_rows else bounded_reached
        wanted = find(self.residuals)
        counts = brute.residual_values(self.counted, wanted, instance)
        sums: Mapping[Members, int] = {}
        if self.query.weighted:
            sums = weighted_brute.residual_sums(self.residuals, wanted, instance)
        key = (*counts.items(), *sums.items())
        if key not in self._folded:
            self._folded[key] = [
                released_sensitivity(self.residuals, counts, weights).value
                if self.single_rows
                else bounded_sensitivity(self.residuals, counts, sums, weights).value
                for weights in (FAST, SLOW)
            ]
        return self._folded[key]


def failures(measured: Measured, units: Units, truncate: Truncate = few) -> tuple[int, set[str]]:
    """How many pairs of neighbours were looked at, and what failed on one of them."""
    failed: set[str] = set()
    looked = 0
    for common in units.common(truncate):
        around = [measured.at(units.instance(one)) for one in units.around(common, truncate)]
        for (count, bounds), (other, other_bounds) in combinations(around, 2):
            looked += 1
            if abs(count - other) > min(*bounds, *other_bounds):
                failed.add("local")
            for weights, one, two in zip((FAST, SLOW), bounds, other_bounds, strict=True):
                if weights.decay * max(one, two) > min(one, two):
                    failed.add("smooth")
    return looked, failed


def rows_of_r_and_s(unit: int) -> list[Content]:
    """Also more rows than are used."""
    domain = [(unit, x) for x in range(2)]
    return [{"r": r, "s": s} for r, s in product(bags(domain, 3), bags(domain, 2))]


def rows_of_flag(unit: int) -> list[Content]:
    return [{"flag": rows} for rows in bags([(unit, x, f) for x in (0, 1) for f in (0, 1)], 2)]


def keyed_rows(unit: int) -> list[Content]:
    """Two keys, so that there may be no way from one neighbour to the other row by row."""
    domain = [(unit, a + 2 * unit, b + 2 * unit) for a in (0, 1) for b in (0, 1)]
    found = [
        rows
        for rows in bags(domain, 2)
        if len({row[1] for row in rows}) == len({row[2] for row in rows}) == len(rows)
    ]
    return [{"keyed": rows} for rows in found]


def orders_with_lines(unit: int) -> list[Content]:
    """Up to two orders, of which one is used, with up to three lines in all."""
    orders = [2 * unit, 2 * unit + 1]
    found: list[Content] = []
    for kept in ([], orders[:1], orders):
        lines = bags([(o, x) for o in kept for x in range(2 - len(kept) // 2)], 3)
        found += [{"orders": tuple((o, unit) for o in kept), "line": own} for own in lines]
    return found


MEETING = Units((R, S), rows_of_r_and_s)
FLAGS = Units((FLAG,), rows_of_flag, 3)
KEYS = Units((KEYED,), keyed_rows, 3)
CHAIN = Units((ORDERS, LINE), orders_with_lines)

WORLDS: dict[str, tuple[Query, Units]] = {
    "units meet": (query(atom(R, "u", "x"), atom(S, "v", "x"), different="u v"), MEETING),
    "units meet, or one by itself": (query(atom(R, "u", "x"), atom(S, "v", "x")), MEETING),
    "three rows": (
        query(atom(R, "u", "x"), atom(R, "v", "x"), atom(S, "w", "x"), different="u v w"),
        MEETING,
    ),
    "distinct pairs": (
        query(atom(R, "u", "x"), atom(S, "v", "x"), distinct="u v"),
        MEETING,
    ),
    "in order": (query(atom(R, "u", "x"), atom(R, "v", "y"), less=[("x", "y")]), MEETING),
    "constants": (query(atom(FLAG, "u", "x", 0), atom(FLAG, "v", "x", 1)), FLAGS),
    "two keys": (query(atom(KEYED, "u", "a", "b"), atom(KEYED, "v", "c", "d")), KEYS),
    "a chain": (query(atom(LINE, "o", "x"), atom(ORDERS, "o", "u")), CHAIN),
    "chains that meet": (
        query(
            atom(LINE, "o", "x"),
            atom(ORDERS, "o", "u"),
            atom(LINE, "p", "x"),
            atom(ORDERS, "p", "v"),
            different="u v",
        ),
        CHAIN,
    ),
}


@pytest.mark.parametrize("name", WORLDS)
def test_all_tiny_databases_and_all_their_neighbours(name: str) -> None:
    asked, units = WORLDS[name]
    looked, failed = failures(Measured(asked), units)
    assert looked > 200
    assert not failed


def test_a_sum_of_weights() -> None:
    def contents(unit: int) -> list[Content]:
        domain = [(unit, x, w) for x in (0, 1) for w in (0, 3)]
        return [{"cost": rows} for rows in bags(domain, 3)]

    asked = query(
        replace(atom(COST, "u", "x"), weight=Weight("w", 3)), atom(COST, "v", "x"), different="u v"
    )
    measured = Measured(asked)
    looked, failed = failures(measured, Units((COST,), contents))
    assert looked > 200
    assert not failed
    # Where all rows weigh little, the sums tell so.
    light = {"cost": ((0, 0, 0), (1, 0, 0), (2, 0, 0))}
    heavy = {"cost": ((0, 0, 3), (1, 0, 3), (2, 0, 3))}
    assert all(a < b for a, b in zip(measured.at(light)[1], measured.at(heavy)[1], strict=True))


@pytest.mark.parametrize("name", ["units meet", "two keys", "chains that meet"])
def test_the_bound_of_single_rows_is_too_small(name: str) -> None:
    asked, units = WORLDS[name]
    assert failures(Measured(asked, single_rows=True), units)[1]


def test_rows_must_move_the_values_of_those_that_follow() -> None:
    """Row by row without a step between: as many times what the first row can move."""

    def still(self: UnitRecursion, values: Vector) -> tuple[int, Vector]:
        change = sum(turn.step.rows * largest(turn.gains, values) for turn in self.turns)
        return change, UNIT(self, values)[1]

    UNIT = UnitRecursion.unit
    asked, units = WORLDS["units meet, or one by itself"]
    with patch.object(UnitRecursion, "unit", still):
        assert "local" in failures(Measured(asked), units)[1]


def test_all_rows_without_truncation_are_too_many() -> None:
    asked, units = WORLDS["constants"][0], replace(FLAGS, size=2)
    assert not failures(Measured(asked), units)[1]
    assert "local" in failures(Measured(asked), units, lambda _, rows: list(rows))[1]


def test_truncation_behind_a_filter_uses_more_rows() -> None:
    """Each atom with the rows that it keeps for itself: a unit then plays both roles at once."""
    asked, units = WORLDS["constants"]

    def behind(of: Table, rows: Sequence[Row]) -> list[Row]:
        return [kept for f in (0, 1) for kept in few(of, [row for row in rows if row[2] == f])]

    assert "local" in failures(Measured(asked), units, behind)[1]


def test_truncation_by_what_a_row_holds_of_a_chain_is_not_by_unit() -> None:
    """So many rows for each order are more than so many for each owner of orders."""
    asked = query(atom(LINE, "o", "x"))

    def by_order(of: Table, rows: Sequence[Row]) -> list[Row]:
        orders = sorted({row[0] for row in rows}, key=repr)
        return [kept for o in orders for kept in few(of, [row for row in rows if row[0] == o])]

    assert not failures(Measured(asked), CHAIN)[1]
    assert "local" in failures(Measured(asked), CHAIN, by_order)[1]


@pytest.mark.parametrize("name", WORLDS)
def test_the_path_ends_late_enough(name: str) -> None:
    """The same number as without any end: all distances far beyond the turning point."""
    asked, units = WORLDS[name]
    residuals = Residuals(asked)
    recursion = UnitRecursion.of(compile_recursion(residuals), asked)
    own = units.contents(0)
    for common in (own[0], own[len(own) // 2], own[-1]):
        instance = units.instance([common, units.contents(1)[-1]])
        wanted = bounded_reached(residuals)
        values = brute.residual_values(residuals, wanted, instance)
        vector = tuple(values[members] for members in recursion.recursion.coordinates)
        best = Fraction(0)
        for k in range(150):
            change, vector = recursion.unit(vector)
            best = max(best, SLOW[k] * change)
        assert bounded_sensitivity(residuals, values, {}, SLOW).value == best


def test_one_row_of_one_table_is_the_bound_of_that_row() -> None:
    """With one private table and one row a unit, the path is that of the refined bound."""
    one = owned(table("r", "u", "x"), 1)
    residuals = Residuals(query(atom(one, "u", "x"), atom(one, "v", "x")))
    instance = {"r": ((0, 0), (1, 0), (2, 1))}
    values = brute.residual_values(residuals, reached(residuals), instance)
    assert (
        bounded_sensitivity(residuals, values, {}, SLOW).value
        == released_sensitivity(residuals, values, SLOW).value
    )


def test_too_much_work_is_refused_without_data(monkeypatch: pytest.MonkeyPatch) -> None:
    residuals = Residuals(WORLDS["three rows"][0])
    refuse_much_work(residuals, SLOW)
    assert bounded_is_quick(residuals, FAST)
    assert not bounded_is_quick(residuals, Weights(Fraction(9999, 10000)))
    monkeypatch.setattr(bounded_rows, "MAX_WORK", 10)
    with pytest.raises(QueryRefused) as refused:
        refuse_much_work(residuals, SLOW)
    assert refused.value.code == "too_many_rows_per_unit"


def test_a_table_without_a_bound_has_no_such_sensitivity() -> None:
    with pytest.raises(ValueError, match="no bound"):
        refuse_much_work(Residuals(query(atom(table("r", "u", "x"), "u", "x"))), SLOW)
