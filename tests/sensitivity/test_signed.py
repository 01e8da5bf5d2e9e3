"""Signed sums: outer joins, NOT EXISTS, NOT IN and UNION ALL as sums of conjunctive queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import pytest

from sqlrs.query import Query, Variable
from sqlrs.residuals.residual import Residuals
from sqlrs.sensitivity.bound import Bound
from sqlrs.sensitivity.signed import all_constant, signed_sensitivity, vector_sensitivity
from tests.sensitivity.exhaustive import Row, Rows, Shape, insertions, instances
from tests.sensitivity.sums import Keys, SumWorld, weigh
from tests.support import weighted_brute
from tests.support.builders import INTEGER, atom, query, table

Database = Mapping[str, Rows]
Terms = Sequence[tuple[int, Query, Keys]]

A = table("a", "id", "v", keys=["id"])
B = table("b", "id", "a", "u", keys=["id"], nullable="a")
V = Variable("v", INTEGER)
UNIVERSE: Mapping[str, Sequence[Row]] = {
    "a": [(0, 0), (0, 1), (1, 1)],
    "b": [(0, 0, 0), (0, 0, 1), (1, 0, 2), (1, None, 1), (2, 1, 1)],
}


def on_b(u: object) -> bool:
    """The part of θ that reads B alone."""
    return u != 0


def p(v: object, u: object) -> bool:
    """WHERE: true for some rows with either side NULL, and not for all that replace the NULL."""
    return (v == 1 and u is None) or v is None or u == 1


def theta(a: Row, b: Row) -> bool:
    return b[1] is not None and a[0] == b[1] and on_b(b[2])


# Outer joins by their definition.


def left(database: Database) -> list[tuple[Row | None, Row | None]]:
    found: list[tuple[Row | None, Row | None]] = []
    for a in database["a"]:
        matched = [b for b in database["b"] if theta(a, b)]
        found += [(a, b) for b in matched] or [(a, None)]
    return found


def right(database: Database) -> list[tuple[Row | None, Row | None]]:
    found: list[tuple[Row | None, Row | None]] = []
    for b in database["b"]:
        matched = [a for a in database["a"] if theta(a, b)]
        found += [(a, b) for a in matched] or [(None, b)]
    return found


def full(database: Database) -> list[tuple[Row | None, Row | None]]:
    return left(database) + [(a, b) for a, b in right(database) if a is None]


def kept(pairs: list[tuple[Row | None, Row | None]]) -> int:
    return sum(p(a and a[1], b and b[2]) for a, b in pairs)


# The same as signed sums.

INNER = query(
    atom(A, "k", "v"),
    atom(B, "j", "k", "u", where=on_b, reads="u"),
    general=[(p, "v u")],
)
A_ALONE = query(atom(A, "k", "v", where=lambda v: p(v, None), reads="v"))
A_MATCHED = query(
    atom(A, "k", "v", where=lambda v: p(v, None), reads="v"),
    atom(B, "j", "k", "u", where=on_b, reads="u"),
    distinct="k v",
)
B_ALONE = query(atom(B, "j", "k", "u", where=lambda u: p(None, u), reads="u"))
B_MATCHED = query(
    atom(A, "k", "v"),
    atom(B, "j", "k", "u", where=lambda u: on_b(u) and p(None, u), reads="u"),
    distinct="j",
)
LEFT: Terms = [(1, INNER, (V,)), (1, A_ALONE, (V,)), (-1, A_MATCHED, (V,))]
RIGHT: Terms = [(1, INNER, (V,)), (1, B_ALONE, (None,)), (-1, B_MATCHED, (None,))]
FULL: Terms = [*LEFT, *RIGHT[1:]]
EVERY_A = query(atom(A, "k", "v"))
SOME_B = query(atom(A, "k", "v"), atom(B, "j", "k", "u", where=on_b, reads="u"), distinct="k v")


@dataclass(frozen=True)
class Case:
    """A query that is no conjunctive one: its value, and the signed sum that replaces it."""

    name: str
    value: Callable[[Database], int]
    terms: Terms


CASES = [
    Case("left join", lambda d: kept(left(d)), LEFT),
    Case("right join", lambda d: kept(right(d)), RIGHT),
    Case("full join", lambda d: kept(full(d)), FULL),
    Case(
        "not exists",
        lambda d: sum(not any(theta(a, b) for b in d["b"]) for a in d["a"]),
        [(1, EVERY_A, (V,)), (-1, SOME_B, (V,))],
    ),
    Case(
        "union all",
        lambda d: len(d["a"]) + len(d["b"]),
        [(1, EVERY_A, (V,)), (1, query(atom(B, "j", None, "v")), (V,))],
    ),
    Case(
        "a sum with both signs",
        lambda d: sum(1 if row[1] else -2 for row in d["a"]),
        [
            (1, query(atom(A, "k", "v", where=lambda v: v == 1, reads="v")), (V,)),
            (-2, query(atom(A, "k", "v", where=lambda v: v == 0, reads="v")), (V,)),
        ],
    ),
    Case(
        "a weighted sum with both signs",
        lambda d: sum((1 if row[0] else -1) * int(str(row[2])) for row in d["b"]),
        [
            (
                1,
                weigh(
                    query(atom(B, "j", None, "v", where=lambda j: j != 0, reads="id")), b1=("u", 2)
                ),
                (V,),
            ),
            (
                -1,
                weigh(
                    query(atom(B, "j", None, "v", where=lambda j: j == 0, reads="id")), b1=("u", 2)
                ),
                (V,),
            ),
        ],
    ),
]
ALL_TABLES = Shape(
    "a and b", query(atom(A, "k", "v"), atom(B, "j", "k", "u")), universe=UNIVERSE, most=3
)


def value(terms: Terms, database: Database) -> int:
    return sum(c * weighted_brute.total(q, database) for c, q, _ in terms)


def vector(terms: Terms, database: Database) -> dict[tuple[object, ...], int]:
    found: dict[tuple[object, ...], int] = {}
    for c, asked, keys in terms:
        for group, own in weighted_brute.vector(asked, keys, database).items():
            found[group] = found.get(group, 0) + c * own
    return found


Fold = Callable[[list[tuple[int, Bound]]], Bound]


def failures(terms: Terms, fold: Fold = signed_sensitivity) -> tuple[int, set[str]]:
    """How many pairs of neighbours were looked at, and what failed on one of them."""
    worlds = [SumWorld(replace(ALL_TABLES, query=asked)) for _, asked, _ in terms]
    decay = worlds[0].weights[0].decay
    known: dict[object, tuple[int, dict[tuple[object, ...], int], Fraction]] = {}

    def at(database: Database) -> tuple[int, dict[tuple[object, ...], int], Fraction]:
        key = tuple((label, tuple(sorted(rows, key=repr))) for label, rows in database.items())
        if key not in known:
            bounds = [
                (c, Bound(world.at(database).bounds[0]))
                for (c, _, _), world in zip(terms, worlds, strict=True)
            ]
            known[key] = value(terms, database), vector(terms, database), fold(bounds).value
        return known[key]

    failed: set[str] = set()
    looked = 0
    for database in instances(ALL_TABLES):
        larger: dict[str, list[Database]] = {}
        for _, label, rows in insertions(ALL_TABLES, database):
            larger.setdefault(label, []).append({**database, label: rows})
        for others in larger.values():
            for one, other in product([database, *others], repeat=2):
                looked += 1
                (here, groups, bound), (there, other_groups, other_bound) = at(one), at(other)
                if abs(here - there) > min(bound, other_bound):
                    failed.add("local")
                if decay * bound > other_bound:
                    failed.add("smooth")
                replaced = one is not database and other is not database
                if weighted_brute.distance(groups, other_groups) > vector_sensitivity(
                    bound, grouped=True, strict=replaced
                ):
                    failed.add("vector")
    return looked, failed


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_signed_sum_is_the_query(case: Case) -> None:
    seen = set[int]()
    for database in instances(ALL_TABLES):
        seen.add(case.value(database))
        assert case.value(database) == value(case.terms, database)
    assert len(seen) > 2


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_bound_of_a_signed_sum(case: Case) -> None:
    looked, failed = failures(case.terms)
    assert looked > 200
    assert not failed


def largest(parts: list[tuple[int, Bound]]) -> Bound:
    """The negative control: the largest part in place of all of them."""
    return max((Bound(abs(c) * bound.value) for c, bound in parts), key=lambda bound: bound.value)


def signs_kept(parts: list[tuple[int, Bound]]) -> Bound:
    """The negative control: what is taken away is taken away from the bound too."""
    return Bound(max(Fraction(0), sum((c * b.value for c, b in parts), Fraction(0))))


@pytest.mark.parametrize("fold", [largest, signs_kept])
def test_bounds_that_do_not_add_up_are_caught(fold: Fold) -> None:
    terms = next(case.terms for case in CASES if case.name == "a sum with both signs")
    assert "local" in failures(terms, fold)[1]


def wrong_terms() -> Iterator[tuple[str, Terms]]:
    filtered = query(
        atom(A, "k", "v", where=lambda v: p(v, None), reads="v"),
        atom(B, "j", "k", "u", where=on_b, reads="u"),
        general=[(p, "v u")],
        distinct="k v",
    )
    yield "p moved into the semi-join", [*LEFT[:2], (-1, filtered, (V,))]
    everything = query(
        atom(A, "k", "v", where=lambda v: p(v, None), reads="v"),
        atom(B, "j", "k", "u"),
        distinct="k v",
    )
    yield "θ left out of the semi-join", [*LEFT[:2], (-1, everything, (V,))]
    plain = query(atom(A, "k", "v", where=lambda v: p(v, 1), reads="v"))
    yield "p read as if B were there", [LEFT[0], (1, plain, (V,)), LEFT[2]]
    several = replace(A_MATCHED, distinct=None)
    yield "a join in place of the semi-join", [*LEFT[:2], (-1, several, (V,))]


@pytest.mark.parametrize("terms", dict(wrong_terms()).values(), ids=dict(wrong_terms()))
def test_other_readings_of_a_left_join_are_not_it(terms: Terms) -> None:
    assert any(kept(left(d)) != value(terms, d) for d in instances(ALL_TABLES))


def test_not_in_is_not_exists_only_without_null() -> None:
    """NOT IN over a column that may be NULL is true of no row once there is a NULL."""

    def not_in(database: Database) -> int:
        if any(b[1] is None for b in database["b"]):
            return 0
        return sum(a[0] not in [b[1] for b in database["b"]] for a in database["a"])

    matched = query(atom(A, "k", "v"), atom(B, "j", "k"), distinct="k v")
    terms: Terms = [(1, EVERY_A, (V,)), (-1, matched, (V,))]
    without_null = [d for d in instances(ALL_TABLES) if all(b[1] is not None for b in d["b"])]
    assert len(without_null) > 20
    assert all(not_in(d) == value(terms, d) for d in without_null)
    assert any(not_in(d) != value(terms, d) for d in instances(ALL_TABLES))


def test_the_sum_of_the_bounds() -> None:
    parts = [(2, Bound(Fraction(3, 2), 4)), (-3, Bound(Fraction(1), 7)), (1, Bound())]
    assert signed_sensitivity(parts) == Bound(Fraction(6), 7)
    assert signed_sensitivity([]) == Bound()


def test_a_signed_sum_is_fixed_where_all_its_parts_are() -> None:
    assert all_constant([Residuals(EVERY_A), Residuals(B_ALONE)])
    assert all_constant([])
    assert not all_constant([Residuals(EVERY_A), Residuals(INNER)])
