"""Parallel groups: a row belongs to one group, and no other group's count or bound sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings

from sqlrs.measures import Signed
from sqlrs.query import Constant, Query, Variable
from sqlrs.residuals.residual import Residual, Residuals
from sqlrs.sensitivity.parallel import are_parallel, divides, is_parallel
from sqlrs.sensitivity.weighted import sum_reached
from tests.sensitivity.exhaustive import Row, Rows, Shape, insertions, instances
from tests.sensitivity.random_queries import Case as RandomCase
from tests.sensitivity.random_queries import weighted_cases
from tests.sensitivity.sums import Keys, SumWorld, weigh
from tests.support import brute, weighted_brute
from tests.support.builders import INTEGER, atom, query, table
from tests.support.examples import examples

FAST = (Fraction(1, 2),)
VISIT = table("visit", "id", "ward", "w")
NURSE = table("nurse", "ward", "id")
PERSON = table("person", "id")
HOME = table("home", "id", "g", keys=["id"])
WARD = table("ward", "id", "g", keys=["id"], private=False)
AREA = table("area", "id", "g", keys=["id"], private=False)
LISTED = table("listed", "id", "g", private=False)
FLOW = table("flow", "src", "dst")

PAIRS: list[Row] = list(product((0, 1), repeat=2))
VISITS: list[Row] = list(product((0,), (0, 1), (0, 2)))
NOWHERE = "nowhere"
# By table: the group of a row, from its own columns and public tables.
RowGroup = Callable[[str, Row, Mapping[str, Rows]], object]


def keys(*names: str) -> Keys:
    return tuple(Variable(name, INTEGER) for name in names)


@dataclass(frozen=True)
class Case:
    """A query, where its keys stand, and which group a row is in; None: it has none by itself."""

    shape: Shape
    keys: Keys
    group: RowGroup | None = None


def by_column(place: int) -> RowGroup:
    return lambda label, row, database: row[place]


def looked_up(label: str, place: int) -> RowGroup:
    """The group by a table whose first column is a key."""
    return lambda _, row, database: lookup(database[label], row[place])


def lookup(rows: Rows, value: object) -> object:
    """What a table says of a value; rows of which it says nothing are in no group."""
    return next((row[1] for row in rows if row[0] == value), NOWHERE)


def in_two_steps(label: str, row: Row, database: Mapping[str, Rows]) -> object:
    return lookup(database["area"], lookup(database["ward"], row[1]))


PARALLEL = [
    Case(
        Shape("own column", query(atom(VISIT, "i", "g")), universe={"visit": VISITS}),
        keys("g"),
        by_column(1),
    ),
    Case(
        Shape(
            "sum of own column",
            weigh(query(atom(VISIT, "i", "g"), atom(VISIT, "j", "g")), visit1=("w", 2)),
            universe={"visit": VISITS},
        ),
        keys("g"),
        by_column(1),
    ),
    Case(
        Shape(
            "two private tables",
            query(atom(FLOW, "a", "g"), atom(NURSE, "n", "g")),
            universe={"flow": PAIRS, "nurse": PAIRS},
            most=2,
            decays=FAST,
        ),
        keys("g"),
        by_column(1),
    ),
    Case(
        Shape(
            "public lookup",
            query(atom(VISIT, "i", "p"), atom(WARD, "p", "g"), atom(VISIT, "j", "p")),
            universe={"visit": VISITS, "ward": PAIRS},
            most=2,
        ),
        keys("g"),
        looked_up("ward", 1),
    ),
    Case(
        Shape(
            "two lookups",
            query(atom(VISIT, "i", "p"), atom(WARD, "p", "q"), atom(AREA, "q", "g")),
            universe={"visit": VISITS, "ward": PAIRS, "area": PAIRS},
            most=2,
            decays=FAST,
        ),
        (*keys("g"), None, Constant(3, INTEGER)),
        in_two_steps,
    ),
    Case(
        Shape(
            "distinct",
            query(atom(VISIT, "i", "g"), atom(VISIT, "j", "g"), distinct="i g"),
            universe={"visit": [(0, 0, 0), (1, 0, 0), (0, 1, 0)]},
        ),
        keys("g"),
        by_column(1),
    ),
]

NOT_PARALLEL = [
    Case(
        Shape(
            "key of a private table",
            query(atom(PERSON, "x"), atom(HOME, "x", "g")),
            universe={"person": [(0,), (1,)], "home": PAIRS},
            most=2,
        ),
        keys("g"),
        # The group of a person cannot be told from the row: every group has them all.
        lambda label, row, database: row[1] if label == "home" else None,
    ),
    Case(
        Shape(
            "public bag",
            query(atom(PERSON, "x"), atom(LISTED, "x", "g")),
            universe={"person": [(0,), (1,)], "listed": PAIRS},
            most=2,
        ),
        keys("g"),
        lambda label, row, database: None,
    ),
    Case(
        Shape(
            "different columns",
            query(atom(FLOW, "a", "g"), atom(FLOW, "g", "c")),
            universe={"flow": PAIRS},
        ),
        keys("g"),
        by_column(0),
    ),
    Case(
        Shape(
            "one role of two",
            query(atom(FLOW, "x", "g"), atom(FLOW, "x", "h")),
            universe={"flow": PAIRS},
        ),
        keys("g"),
        by_column(1),
    ),
    Case(
        Shape(
            "one table of two",
            query(atom(FLOW, "x", "g"), atom(PERSON, "x")),
            universe={"flow": PAIRS, "person": [(0,), (1,)]},
            most=2,
        ),
        keys("g"),
        lambda label, row, database: row[1] if label == "flow" else None,
    ),
    Case(
        Shape(
            "one key of two",
            query(atom(FLOW, "x", "g"), atom(NURSE, "h", "g")),
            universe={"flow": PAIRS, "nurse": PAIRS},
            most=2,
            decays=FAST,
        ),
        keys("g", "h"),
        lambda label, row, database: None,
    ),
]


class Groups:
    """Each group as a database of its own, with its value and its bounds."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.world = SumWorld(case.shape)
        self.private = {t.label for t in case.shape.tables if t.private}

    def at(self, database: Mapping[str, Rows]) -> dict[object, tuple[object, ...]]:
        """The value and the bounds of every group."""
        vector = weighted_brute.vector(self.case.shape.query, self.case.keys, database)
        values = {group[0]: value for group, value in vector.items()}
        found: dict[object, tuple[object, ...]] = {}
        for group in (0, 1):
            own = self.world.at(self.part(database, group))
            found[group] = (values.get(group, 0), own.total, own.bounds)
        return found

    def part(self, database: Mapping[str, Rows], group: object) -> dict[str, Rows]:
        """I_k: the private rows of one group, and those that have none by themselves."""
        case = self.case
        assert case.group is not None
        return {
            label: tuple(
                row
                for row in rows
                if label not in self.private or case.group(label, row, database) in (None, group)
            )
            for label, rows in database.items()
        }

    def failures(self) -> Iterator[str]:
        """What a pair of neighbours contradicts."""
        for database in instances(self.case.shape):
            here = self.at(database)
            if any(value != total for value, total, _ in here.values()):
                yield "value"
            for _, label, rows in insertions(self.case.shape, database):
                there = self.at({**database, label: rows})
                if sum(here[group] != there[group] for group in here) > 1:
                    yield "two groups"


@pytest.mark.parametrize("case", PARALLEL, ids=lambda case: case.shape.name)
def test_a_row_changes_the_value_and_the_bound_of_one_group(case: Case) -> None:
    assert is_parallel(case.shape.query, case.keys)
    assert not set(Groups(case).failures())


@pytest.mark.parametrize("case", NOT_PARALLEL, ids=lambda case: case.shape.name)
def test_where_it_is_not_so_the_same_check_sees_it(case: Case) -> None:
    assert not is_parallel(case.shape.query, case.keys)
    assert next(Groups(case).failures(), None)


@pytest.mark.parametrize("case", [*PARALLEL, *NOT_PARALLEL], ids=lambda case: case.shape.name)
def test_parallel_says_that_a_row_has_one_group(case: Case) -> None:
    """Beside the same public rows, whatever the private ones: one group for each row, or not."""
    shape = case.shape
    public = [t.label for t in shape.tables if not t.private]
    groups: dict[object, set[object]] = {}
    for database in instances(shape):
        fixed = tuple(database[label] for label in public)
        here = weighted_brute.vector(shape.query, case.keys, database)
        for _, label, rows in insertions(shape, database):
            there = weighted_brute.vector(shape.query, case.keys, {**database, label: rows})
            moved = {g for g in here.keys() | there.keys() if here.get(g, 0) != there.get(g, 0)}
            groups.setdefault((fixed, label, rows[-1]), set()).update(moved)
    assert (max(map(len, groups.values())) <= 1) is is_parallel(shape.query, case.keys)


@settings(max_examples=examples(150), deadline=None)
@given(weighted_cases())
def test_a_row_of_a_random_parallel_query_has_one_group(case: RandomCase) -> None:
    """With any of the other private rows taken away, the row is in the same group or in none."""
    shape, asked = case.shape, case.shape.query
    output = asked.variables(asked.everything) if asked.distinct is None else asked.distinct
    for key in (key for key in output if is_parallel(asked, (key,))):
        groups: dict[object, set[object]] = {}
        for database in around(case):
            here = weighted_brute.vector(asked, (key,), database)
            for _, label, rows in insertions(shape, database):
                there = weighted_brute.vector(asked, (key,), {**database, label: rows})
                moved = {g for g in here.keys() | there.keys() if here.get(g, 0) != there.get(g, 0)}
                groups.setdefault((label, rows[-1]), set()).update(moved)
        assert all(len(own) <= 1 for own in groups.values()), (asked, key)


def around(case: RandomCase) -> Iterator[dict[str, Rows]]:
    """The instance, and with one private row less or more."""
    yield dict(case.database)
    for label, rows in case.database.items():
        if any(t.label == label and t.private for t in case.shape.tables):
            yield from (
                {**case.database, label: rows[:i] + rows[i + 1 :]} for i in range(len(rows))
            )
    for _, label, rows in insertions(case.shape, case.database):
        yield {**case.database, label: rows}


def test_what_is_never_parallel() -> None:
    asked = query(atom(VISIT, "i", "g"))
    assert not is_parallel(asked, ())
    assert not is_parallel(asked, (None,))
    assert not is_parallel(asked, (Constant(1, INTEGER),))
    public = query(atom(WARD, "i", "g"))
    assert not is_parallel(public, keys("g"))


def test_the_rows_of_a_unit_may_be_in_several_groups() -> None:
    large = query(atom(replace(VISIT, rows_per_unit=2), "i", "g"))
    assert is_parallel(query(atom(VISIT, "i", "g")), keys("g"))
    assert not is_parallel(large, keys("g"))


# What is measured: a part's results by the value of the keys.

CAST = table("cast", "x", "p", "g", keys=["x p"])
ROLE = table("role", "y", "g")
PLAY = table("play", "p", "g", keys=["p"], private=False)
ELSEWHERE = Shape(
    "variable of another row",
    query(
        atom(CAST, "x", "p", "g"),
        atom(CAST, "y", "p", "h"),
        atom(PLAY, "p", "g"),
        atom(ROLE, "y", "g"),
    ),
    universe={
        "cast": [(0, 0, 0), (1, 0, 1), (2, 0, 1)],
        "play": [(0, 0)],
        "role": [(0, 0), (0, 1)],
    },
    most=2,
    decays=FAST,
)


def parts_with_private_rows(shape: Shape) -> list[Residual]:
    residuals = Residuals(shape.query)
    found = residuals.undecided(sum_reached(residuals))
    return [part for part in found if part.members & shape.query.private]


def largest_by_key(
    part: Residual, key: Variable, database: Mapping[str, Rows]
) -> dict[object, int]:
    """For each value of the key the most results of a part at one value of its boundary."""
    counts: dict[tuple[object, ...], int] = {}
    boundary = sorted(part.boundary)
    for found in brute.joined(part.query, part.members, database):
        at = (found[key], *(found[v] for v in boundary))
        counts[at] = counts.get(at, 0) + 1
    largest: dict[object, int] = {}
    for (group, *_), count in counts.items():
        largest[group] = max(count, largest.get(group, 0))
    return largest


def groups_that_one_row_changes(shape: Shape, key: Variable, parts: list[Residual]) -> int:
    """The most groups of which one inserted row changes some part's value."""
    most = 0
    for database in instances(shape):
        here = [largest_by_key(part, key, database) for part in parts]
        changed: dict[object, set[object]] = {}
        for _, label, rows in insertions(shape, database):
            for part, before in zip(parts, here, strict=True):
                after = largest_by_key(part, key, {**database, label: rows})
                changed.setdefault((label, rows[-1]), set()).update(
                    group for group, count in after.items() if count != before.get(group, 0)
                )
        most = max([most, *map(len, changed.values())])
    return most


def test_a_part_without_the_way_to_its_group_is_not_divided() -> None:
    """It holds the key's variable, but by a row of another group: one row changes two groups."""
    key = Variable("g", INTEGER)
    asked = ELSEWHERE.query
    assert is_parallel(asked, (key,))
    parts = parts_with_private_rows(ELSEWHERE)
    assert all(key in part.variables for part in parts)
    divided = [part for part in parts if divides(asked, (key,), part.members)]
    assert 0 < len(divided) < len(parts)
    assert groups_that_one_row_changes(ELSEWHERE, key, divided) == 1
    assert groups_that_one_row_changes(ELSEWHERE, key, parts) == 2


@pytest.mark.parametrize("case", PARALLEL, ids=lambda case: case.shape.name)
def test_a_part_that_is_divided_has_the_values_of_each_group(case: Case) -> None:
    key, groups = case.keys[0], Groups(case)
    assert isinstance(key, Variable)
    asked = case.shape.query
    for part in parts_with_private_rows(case.shape):
        if asked.distinct is None and divides(asked, case.keys, part.members):
            assert key in part.variables
            for database in list(instances(case.shape))[::7]:
                found = largest_by_key(part, key, database)
                for group in (0, 1):
                    own = largest_by_key(part, key, groups.part(database, group))
                    assert own == {k: v for k, v in found.items() if k == group}


def signed(asked: Query, *by: str | None) -> Signed:
    return Signed(1, asked, tuple(None if name is None else keys(name)[0] for name in by))


def test_a_signed_sum_is_parallel_where_a_row_has_one_group_in_all_terms() -> None:
    one = query(atom(FLOW, "a", "b"))
    looked = query(atom(FLOW, "a", "b"), atom(WARD, "b", "g"))
    elsewhere = query(atom(FLOW, "a", "b"), atom(AREA, "b", "g"))
    other = query(atom(NURSE, "x", "y"))
    renamed = query(atom(FLOW, "u", "v"), atom(WARD, "v", "h"), atom(AREA, "v", "k"))
    assert are_parallel([signed(one, "a"), signed(one, "a")])
    assert not are_parallel([signed(one, "a"), signed(one, "b")])
    assert are_parallel([signed(one, "a"), signed(other, "y")])
    assert are_parallel([signed(looked, "g"), signed(renamed, "h")])
    assert not are_parallel([signed(looked, "g"), signed(renamed, "k")])
    assert not are_parallel([signed(looked, "g"), signed(elsewhere, "g")])
    assert not are_parallel([signed(looked, "g"), signed(one, None)])
    assert are_parallel([signed(one, "a", None), signed(renamed, "u", None)])
    assert not are_parallel([signed(one, "a", None), signed(renamed, "u", "h")])
    assert not are_parallel([])


def test_the_same_value_by_two_columns() -> None:
    """Where two columns are equal in one term, either of them may be the key of another term."""
    equal = query(atom(FLOW, "a", "a"))
    one = query(atom(FLOW, "a", "b"))
    assert are_parallel([signed(equal, "a"), signed(one, "b")])
    assert are_parallel([signed(equal, "a"), signed(one, "a")])
    assert not are_parallel([signed(equal, "a"), signed(one, "a"), signed(one, "b")])
