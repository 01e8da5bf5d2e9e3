"""Units of few rows: the exact privacy loss on all tiny neighbours, and whole releases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import combinations, product

import duckdb
import pytest

from sqlrs import connect
from sqlrs.errors import QueryRefused
from sqlrs.measures import Measure, Signed
from sqlrs.mechanisms.unit_choice import unit_mechanism
from sqlrs.mechanisms.unit_rows import bounded_rows, has_bounded_rows
from sqlrs.mechanisms.vector import vector_mechanism
from sqlrs.mechanisms.vector_base import VectorMechanism
from sqlrs.mechanisms.vector_general import GeneralVector
from sqlrs.mechanisms.vector_smooth import SingleNumber
from sqlrs.query import Variable
from sqlrs.units import Owner
from tests.privacy.vector_worlds import World, worst_loss
from tests.sensitivity.few_row_worlds import Content, Row, Units, bags, few
from tests.support.brute import Database
from tests.support.builders import INTEGER, atom, query, table

EPSILON = Decimal(1)
SLACK = Decimal("1e-12")
X = Variable("x", INTEGER)
VISIT = replace(table("visit", "u", "x"), owners=(Owner("u"),), max_rows=2)
EDGE = replace(table("edge", "src", "dst"), owners=(Owner("src"), Owner("dst")), max_rows=2)


@dataclass(frozen=True)
class UnitWorld(World):
    """Databases of units, whose neighbours differ in all rows of one."""

    units: Units | None = None

    def databases(self) -> Iterator[Database]:
        assert self.units is not None
        yield from map(self.units.instance, self.units.common())

    def neighbours(
        self, database: Database, *, strict: bool
    ) -> Iterator[tuple[Database, Database]]:
        assert self.units is not None
        larger = [
            {"visit": (*database["visit"], *own["visit"])}
            for unit in range(2)
            for own in self.units.used(unit)
        ]
        yield from ((database, other) for other in larger)
        if strict:
            yield from combinations(larger, 2)


def contents(unit: int) -> list[Content]:
    return [{"visit": rows} for rows in bags([(unit, x) for x in range(2)], 3)]


MEET = query(atom(VISIT, "u", "x"), atom(VISIT, "v", "x"), less=[("u", "v")])
UNITS = Units((VISIT,), contents)


def world(*terms: Signed, groups: Sequence[Row] = ((),)) -> UnitWorld:
    return UnitWorld("units", terms, tuple(groups), {}, units=UNITS)


SINGLE = world(Signed(1, MEET))
LESS = world(Signed(1, MEET), Signed(-2, query(atom(VISIT, "u", 1))))
GROUPED = world(Signed(1, MEET, (X,)), groups=((0,), (1,)))


def mechanism(of: World, *, strict: bool, bars: str | None = None) -> VectorMechanism:
    return bounded_rows(
        of.summands,
        len(of.ordinals),
        epsilon=EPSILON,
        strict=strict,
        error_bars=None if bars is None else Decimal(bars),
    )


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("of", [SINGLE, LESS, GROUPED], ids=["single", "signed", "grouped"])
def test_the_exact_loss_is_at_most_epsilon(of: UnitWorld, strict: bool) -> None:
    released = mechanism(of, strict=strict)
    assert isinstance(released, GeneralVector if of is GROUPED else SingleNumber)
    assert worst_loss(of, released, strict=strict) <= EPSILON + SLACK


VISITS = query(atom(VISIT, "u", "x"))


@pytest.mark.parametrize("strict", [False, True])
def test_the_bound_of_single_rows_loses_more(strict: bool) -> None:
    of = world(Signed(1, VISITS))
    rows = vector_mechanism(
        of.summands, 1, grouped=False, epsilon=EPSILON, strict=strict, error_bars=None
    )
    assert worst_loss(of, rows, strict=strict) > EPSILON
    assert worst_loss(of, mechanism(of, strict=strict), strict=strict) <= EPSILON + SLACK


def test_groups_of_a_replaced_unit_need_twice_the_noise() -> None:
    """It may take all its rows from one group to another."""
    of = world(Signed(1, VISITS, (X,)), groups=((0,), (1,)))
    assert worst_loss(of, mechanism(of, strict=False), strict=True) > EPSILON
    assert worst_loss(of, mechanism(of, strict=True), strict=True) <= EPSILON + SLACK


def test_error_bars_cost_their_price() -> None:
    released = mechanism(SINGLE, strict=True, bars="0.1")
    assert released.prices == (EPSILON, Decimal("0.1"))
    assert worst_loss(SINGLE, released, strict=True) <= EPSILON + Decimal("0.1") + SLACK


def test_only_tables_with_one_owner_and_a_bound_are_served() -> None:
    assert has_bounded_rows(SINGLE.summands)
    for other in (EDGE, replace(VISIT, max_rows=None), replace(VISIT, owners=())):
        asked = query(atom(other, "u", "x"))
        assert not has_bounded_rows(World("", (Signed(1, asked),), ((),), {}).summands)


def test_which_mechanism_follows_from_the_query_and_what_is_asked_for() -> None:
    def chosen(term: Signed, wanted: str) -> VectorMechanism:
        return unit_mechanism(
            Measure((term,)),
            World("", (term,), ((),), {}).summands,
            1,
            grouped=False,
            epsilon=EPSILON,
            strict=True,
            error_bars=False,
            wanted=wanted,
            max_contribution=2**40,
            max_owned_results=1000,
        )

    u, v = Variable("u", INTEGER), Variable("v", INTEGER)
    several = Signed(1, MEET, (), (u, v))
    one = Signed(1, query(atom(VISIT, "u", "x")), (), (u,))
    assert isinstance(chosen(several, "fitting"), SingleNumber)
    assert isinstance(chosen(one, "polylaplace"), SingleNumber)
    assert not isinstance(chosen(one, "fitting"), SingleNumber)
    free = Signed(1, query(atom(replace(VISIT, max_rows=None), "u", "x")), (), (u,))
    with pytest.raises(QueryRefused) as refused:
        chosen(free, "polylaplace")
    assert refused.value.code == "needs_bounded_rows"


@pytest.fixture
def clinic() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE patient (id BIGINT PRIMARY KEY)")
    connection.execute("CREATE TABLE visit (patient BIGINT, ward BIGINT)")
    connection.execute("INSERT INTO patient SELECT * FROM range(50)")
    # Visits of patient 0 are many, and some of nobody.
    connection.execute("INSERT INTO visit SELECT 0, i % 3 FROM range(500) t(i)")
    connection.execute("INSERT INTO visit SELECT i % 60, i % 3 FROM range(180) t(i)")
    connection.execute("INSERT INTO visit SELECT NULL, 0 FROM range(1000)")
    return connection


PAIRS = "SELECT count(*) FROM visit a JOIN visit b ON a.ward = b.ward WHERE a.patient < b.patient"


def test_a_release_reads_few_rows_of_each_unit(clinic: duckdb.DuckDBPyConnection) -> None:
    """With little noise, beside which the rows that are left out would stand out."""
    data = connect(
        clinic, unit="patient.id", owners={"visit": "patient"}, max_rows={"visit": 3, "patient": 1}
    )
    found = clinic.execute("SELECT patient, ward FROM visit WHERE patient IS NOT NULL").fetchall()
    kept = [
        row
        for unit in range(60)
        for row in few(replace(VISIT, max_rows=3), [row for row in found if row[0] == unit])
    ]
    pairs = [a[1] for a, b in product(kept, kept) if a[0] < b[0] and a[1] == b[1]]
    answer = data.count(PAIRS, epsilon=1000)
    assert "3 rows" in answer.mechanism
    assert answer.protects == "patient.id"
    assert abs(answer.value - len(pairs)) < 100
    visits = data.count("SELECT count(*) FROM visit", epsilon=1000, mechanism="polylaplace")
    assert abs(visits.value - len(kept)) < 5
    grouped = data.query(
        "SELECT a.ward, count(*) AS n FROM visit a JOIN visit b ON a.ward = b.ward "
        "WHERE a.patient < b.patient AND a.ward IN (0, 1, 2) GROUP BY a.ward ORDER BY 1",
        epsilon=1000,
    )
    assert all(abs(int(str(n)) - pairs.count(ward)) < 100 for ward, n in grouped.rows)


def test_without_bounds_the_name_is_refused(clinic: duckdb.DuckDBPyConnection) -> None:
    data = connect(clinic, unit="patient.id", owners={"visit": "patient"})
    with pytest.raises(QueryRefused) as refused:
        data.count("SELECT count(*) FROM visit", epsilon=1, mechanism="polylaplace")
    assert refused.value.code == "needs_bounded_rows"
