"""Groups: how far one row moves the vector of all of them, and the readings that fell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import pytest

from sqlrs.query import Constant, Query, Variable
from sqlrs.sensitivity.signed import vector_sensitivity
from tests.sensitivity import sums
from tests.sensitivity.exhaustive import Row, Shape
from tests.sensitivity.sums import Keys, check_sums, weigh
from tests.support.builders import INTEGER, atom, query, table

FAST = (Fraction(1, 2),)
VISIT = table("visit", "id", "ward", "w")
PERSON = table("person", "id")
GROUP = table("grouped", "id", "g", private=False)
HOME = table("home", "id", "g", keys=["id"])
FLOW = table("flow", "src", "dst")

VISITS: Sequence[Row] = [(i, g, w) for i in (0,) for g in (0, 1) for w in (0, 1, 2)]
EDGES: Sequence[Row] = [(a, b) for a in (0, 1) for b in (0, 1)]
MANY: Mapping[str, Sequence[Row]] = {"person": [(0,), (1,)], "grouped": [(0, 0), (0, 1), (1, 1)]}


def keys(*names: str | None) -> Keys:
    return tuple(None if name is None else Variable(name, INTEGER) for name in names)


WARDS = Shape("wards", query(atom(VISIT, "i", "g")), universe={"visit": VISITS}, most=2)
MIDDLE = Shape(
    "middle", query(atom(FLOW, "a", "b"), atom(FLOW, "b", "c")), universe={"flow": EDGES}
)
WITH_KEYS = Shape(
    "distinct",
    query(atom(PERSON, "x"), atom(GROUP, "x", "g"), distinct="x g"),
    universe=MANY,
    most=3,
)

GROUPED: list[tuple[Shape, Keys]] = [
    (WARDS, keys("g")),
    (WARDS, (*keys("g", None), Constant(7, INTEGER))),
    (
        replace(WARDS, name="sum of wards", query=weigh(WARDS.query, visit1=("w", 2))),
        keys("g"),
    ),
    (MIDDLE, keys("b")),
    (MIDDLE, keys("a")),
    (MIDDLE, keys("a", "c")),
    (
        Shape(
            "many groups a row",
            query(atom(PERSON, "x"), atom(GROUP, "x", "g")),
            universe=MANY,
        ),
        keys("g"),
    ),
    (
        Shape(
            "group of another private table",
            query(atom(PERSON, "x"), atom(HOME, "x", "g")),
            universe={"person": [(0,), (1,)], "home": EDGES},
        ),
        keys("g"),
    ),
    (WITH_KEYS, keys("g")),
    (
        Shape(
            "distinct ends",
            query(atom(FLOW, "a", "b"), atom(FLOW, "b", "c"), distinct="a c"),
            universe={"flow": EDGES},
        ),
        keys("c"),
    ),
]


@pytest.mark.parametrize(("shape", "by"), GROUPED, ids=lambda it: getattr(it, "name", ""))
def test_the_bound_without_groups_bounds_the_vector(shape: Shape, by: Keys) -> None:
    report = check_sums(shape, keys=by)
    assert report.pairs >= 50
    assert not report.failed, report.example


def without_keys(asked: Query) -> Query:
    assert asked.distinct is not None
    return replace(asked, distinct=asked.distinct - set(keys("g")))


def test_distinct_results_need_the_keys_in_their_output() -> None:
    """A person of two groups moves count(DISTINCT x) by one and the vector by two."""
    report = check_sums(WITH_KEYS, keys=keys("g"), bounded=without_keys(WITH_KEYS.query))
    assert "vector" in report.failed
    assert not report.failed & {"smooth", "above"}


def test_a_replaced_row_moves_two_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: with S in place of 2 S a replacement is seen to go beyond it."""

    def once(sensitivity: Fraction, *, grouped: bool, strict: bool) -> Fraction:
        return vector_sensitivity(sensitivity, grouped=grouped, strict=False)

    monkeypatch.setattr(sums, "vector_sensitivity", once)
    assert check_sums(WARDS, keys=keys("g")).failed == {"vector"}


def test_the_factor_of_a_replacement() -> None:
    cases: Mapping[tuple[bool, bool], int] = {
        (False, False): 3,
        (False, True): 3,
        (True, False): 3,
        (True, True): 6,
    }
    for (grouped, strict), expected in cases.items():
        assert vector_sensitivity(Fraction(3), grouped=grouped, strict=strict) == expected
