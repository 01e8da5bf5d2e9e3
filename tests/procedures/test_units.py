"""Functions that protect units: what one contributes is cut, chosen and charged in PL/pgSQL.

The oracle reads what each unit contributes by plain SQL, and cuts it by the definition.
"""

from __future__ import annotations

import json
import subprocess
import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import count
from math import floor, isqrt
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from sqlrs.catalog import Catalog
from sqlrs.connecting import connect
from sqlrs.errors import QueryRefused, UsageError
from sqlrs.measures import Contributions
from sqlrs.procedures import UnitDefinition, installable
from sqlrs.procedures.install import installed
from sqlrs.sensitivity.clipping import clipped_number, clipped_parts
from sqlrs.settings import Settings
from tests.noise.oracle import deviation_allowed
from tests.procedures.desk import Connection, Desk
from tests.procedures.test_noise import ERROR_RATE
from tests.procedures.test_threshold import ends
from tests.procedures.test_versions import reinstall, version_2
from tests.support.examples import examples
from tests.support.postgres_server import PostgresServer

TABLES = """
CREATE TABLE patient (id int PRIMARY KEY, ward text);
INSERT INTO patient SELECT i, CASE i % 3 WHEN 0 THEN 'A' WHEN 1 THEN 'B' END
FROM generate_series(1, 40) AS i;
CREATE TABLE visit (
  id int PRIMARY KEY, patient int REFERENCES patient, cost numeric(8, 2), urgent boolean NOT NULL
);
INSERT INTO visit SELECT i, nullif(i * i % 40, 0), nullif(i % 9, 8) - 2.25, i % 4 = 0
FROM generate_series(1, 300) AS i;
CREATE TABLE dose (visit int REFERENCES visit, mg int NOT NULL);
INSERT INTO dose SELECT nullif(1 + i % 70, 1), i % 5 FROM generate_series(1, 200) AS i;
CREATE TABLE edge (src int NOT NULL, dst int NOT NULL);
"""
NO_NOISE = ("CREATE OR REPLACE FUNCTION sqlrs.laplace(epsilon numeric, bound numeric) "
            "RETURNS numeric LANGUAGE sql AS 'SELECT 0::numeric'")  # fmt: skip
CHOSEN = (
    "CREATE OR REPLACE FUNCTION sqlrs.choose_threshold(thresholds numeric[], above numeric[], "
    "numerator numeric, denominator numeric) RETURNS integer LANGUAGE sql AS 'SELECT {}'"
)
OWNERS = {"edge": ["src", "dst"]}
PARTS = 2**16
# The statement, what each unit contributes to each group as (unit, group, whole number), what one
# is worth, whether it may be negative, and all groups.
STATEMENTS = [
    ("SELECT count(*) FROM visit", "SELECT patient, 0, count(*) FROM visit GROUP BY 1", "1",
     False, [0]),
    ("SELECT count(*) FROM dose d JOIN visit v ON d.visit = v.id WHERE NOT v.urgent",
     "SELECT patient, 0, count(*) FROM dose JOIN visit ON id = visit WHERE NOT urgent GROUP BY 1",
     "1", False, [0]),
    ("SELECT sum(mg) AS mg FROM dose WHERE mg > 1",
     "SELECT patient, 0, sum(mg) FROM dose JOIN visit ON id = visit WHERE mg > 1 GROUP BY 1", "1",
     True, [0]),
    ("SELECT sum(cost) AS cost FROM visit",
     "SELECT patient, 0, sum(cost) * 100 FROM visit WHERE cost IS NOT NULL GROUP BY 1", "0.01",
     True, [0]),
    ("SELECT urgent, count(*) AS n FROM visit GROUP BY urgent",
     "SELECT patient, urgent, count(*) FROM visit GROUP BY 1, 2", "1", False, [False, True]),
    ("SELECT urgent, sum(cost) AS n FROM visit GROUP BY urgent",
     "SELECT patient, urgent, sum(cost) * 100 FROM visit WHERE cost IS NOT NULL GROUP BY 1, 2",
     "0.01", True, [False, True]),
    ("SELECT p.ward, count(*) AS n FROM patient p JOIN visit v ON v.patient = p.id "
     "WHERE p.ward IN ('A', 'B', 'none') GROUP BY p.ward",
     "SELECT patient, ward, count(*) FROM patient p JOIN visit v ON patient = p.id "
     "WHERE ward IS NOT NULL GROUP BY 1, 2", "1", False, ["A", "B", "none"]),
    ("SELECT ward, count(*) AS n FROM patient WHERE ward IN ('A') GROUP BY ward",
     "SELECT id, ward, 1 FROM patient WHERE ward = 'A'", "1", False, ["A"]),
    ("SELECT count(*) FROM (SELECT patient FROM visit GROUP BY patient HAVING count(*) > 8) AS t",
     "SELECT patient, 0, 1 FROM visit GROUP BY 1 HAVING count(*) > 8", "1", False, [0]),
    ("SELECT urgent, count(*) AS n FROM (SELECT patient, urgent FROM visit "
     "GROUP BY patient, urgent HAVING count(*) > 2) AS t GROUP BY urgent",
     "SELECT patient, urgent, 1 FROM visit GROUP BY 1, 2 HAVING count(*) > 2", "1", False,
     [False, True]),
    ("SELECT sum(m) AS m FROM (SELECT patient, max(cost) AS m FROM visit GROUP BY patient) AS t",
     "SELECT patient, 0, max(cost) * 100 FROM visit GROUP BY 1", "0.01", True, [0]),
]  # fmt: skip


@pytest.fixture(scope="module")
def ward(own_server: PostgresServer) -> Iterator[Desk]:
    """A clinic that many tests install a function in, each in the place of the last one."""
    with own_server.database() as url:
        desk = Desk(own_server, url)
        desk.run(TABLES)
        yield desk


@pytest.fixture
def clinic(own_server: PostgresServer) -> Iterator[Desk]:
    with own_server.database() as url:
        desk = Desk(own_server, url)
        desk.run(TABLES)
        yield desk


def catalog(desk: Desk, **options: Any) -> Catalog:
    chosen = {"unit": "patient.id", "owners": OWNERS, **options}
    with connect(desk.url, **chosen) as database:
        return database.catalog


def define(desk: Desk, statement: str, **options: Any) -> UnitDefinition:
    about = {key: options.pop(key) for key in ("public", "max_rows", "owners") if key in options}
    found = installable(statement, catalog(desk, **about), **{"name": "asked", **options})
    assert isinstance(found, UnitDefinition)
    return found


def install(
    desk: Desk, statement: str, roles: Sequence[str] = ("ada",), **options: Any
) -> UnitDefinition:
    definition = define(desk, statement, **options)
    desk.install_defined(definition, roles, "1000000", "1000000")
    return definition


def asked(desk: Desk, epsilon: str = "1000", role: str = "ada", more: str = "") -> Any:
    return desk.run(f"SELECT * FROM sqlrs.asked({epsilon}{more})", role)


def history(desk: Desk, role: str = "ada") -> Any:
    return desk.run("SELECT answer, unit, clippings FROM sqlrs.history()", role)


def grid_up_to(limit: int) -> list[int]:
    grid: set[int] = set()
    for i in count():
        if (step := isqrt(isqrt(2**i))) >= limit:
            return sorted({*grid, limit})
        grid.add(step)
    raise AssertionError


def cut(
    rows: Iterable[tuple[int | None, Any, Decimal]], groups: Sequence[Any], threshold: int
) -> list[int]:
    """The clipped numbers by their definition: of one group, each unit's number between bounds; of
    several, all numbers of a unit scaled down by the first thresholds above its size.
    """
    units: dict[int, dict[Any, int]] = defaultdict(dict)
    for unit, group, number in rows:
        if unit is not None:
            units[unit][group] = int(number)
    if len(groups) == 1:
        return [sum(max(-threshold, min(threshold, sum(own.values()))) for own in units.values())]
    grid = grid_up_to(2**60)
    found = []
    for group in groups:
        total = 0
        for own in units.values():
            size = sum(map(abs, own.values()))
            place = grid[bisect_left(grid, size)]
            factor = PARTS if size <= threshold else PARTS * threshold // place
            total += factor * own.get(group, 0)
        found.append(floor(Fraction(total, PARTS) + Fraction(1, 2)))
    return found


@pytest.mark.parametrize(
    ("statement", "plain", "worth", "signed", "groups"), STATEMENTS, ids=[s[0] for s in STATEMENTS]
)
def test_without_noise_it_is_what_each_unit_contributes_cut_at_the_told_threshold(
    ward: Desk, statement: str, plain: str, worth: str, signed: bool, groups: list[Any]
) -> None:
    definition = install(ward, statement, repeats=False)
    assert [one.signed for one in definition.measures] == [signed]
    ward.run(NO_NOISE)
    rows = ward.run(plain)
    size = len(definition.measures[0].grid)
    for epsilon, place in (("1000", None), ("0.5", 1), ("0.01", 4)):
        if place is not None:
            ward.run(CHOSEN.format(min(place, size)))
        answers = asked(ward, epsilon)
        ((answer, unit, [[threshold, error]]),) = history(ward)[-1:]
        whole = round(Fraction(threshold) / Fraction(worth))
        assert whole in definition.measures[0].grid and unit == "patient.id"
        if place is None:
            assert cut(rows, groups, whole) == cut(rows, groups, 2**60)
        exact = [Decimal(n) * Decimal(worth) for n in cut(rows, groups, whole)]
        moves = 2 if signed or len(groups) > 1 else 1
        share = 1 if size == 1 else Fraction(7, 10)
        wide = 2**0.5 * moves * float(threshold) / float(share * Fraction(epsilon))
        assert error == pytest.approx(wide, abs=1e-5)
        if definition.keys is None:
            ((number, cost, mechanism, told, told_error),) = answers
            assert [number] == exact == [answer]
            assert (cost, mechanism) == (Decimal(epsilon), definition.mechanism)
            assert (float(told), float(told_error)) == (threshold, error)
        else:
            assert [tuple(row) for row in answers] == list(zip(groups, exact, strict=True))
            assert answer == len(groups)


@pytest.mark.parametrize(
    ("statement", "moved", "neighbours"),
    [
        ("SELECT count(*) AS n, sum(cost) AS c FROM visit", (1, 2), "strict"),
        ("SELECT count(*) AS n, sum(cost) AS c FROM visit", (1, 1), "add-remove"),
        ("SELECT urgent, count(*) AS n, sum(cost) AS c FROM visit GROUP BY 1", (2, 2), "strict"),
        ("SELECT count(*) AS n, count(ward) AS w FROM patient", (1, 1), "strict"),
    ],
)
def test_the_noise_has_the_scale_of_the_threshold(
    ward: Desk, statement: str, moved: tuple[int, int], neighbours: str
) -> None:
    """In the place of noise stands its scale; two aggregates share epsilon."""
    definition = install(ward, statement, repeats=False, settings=Settings(neighbours=neighbours))
    ward.run(CHOSEN.format(40))
    ward.run(NO_NOISE)
    still = asked(ward, "0.01")
    ward.run(NO_NOISE.replace("0::numeric", "div(bound, epsilon)"))
    for before, after in zip(still, asked(ward, "0.01"), strict=True):
        for place, measure in enumerate(definition.measures):
            chosen = len(measure.grid) > 1
            threshold = measure.grid[39 if chosen else 0] * Fraction(measure.worth)
            scale = 2 * moved[place] * threshold / (Fraction(7 if chosen else 10, 10) / 100)
            more = Fraction(after[place - 2]) - Fraction(before[place - 2])
            assert abs(more - scale) <= Fraction(measure.worth)


@st.composite
def contributions(draw: st.DrawFn) -> Contributions:
    grid = sorted(draw(st.sets(st.integers(1, 300), min_size=1, max_size=6)))
    numbers = st.integers(0, 50)
    places = len(grid) + 1
    units = draw(st.lists(numbers, min_size=places, max_size=places))
    below = [draw(st.integers(0, one)) for one in units]
    sums = st.lists(st.integers(-(10**20), 10**20), min_size=places, max_size=places)
    totals = draw(st.lists(sums, min_size=1, max_size=3))
    return Contributions(
        tuple(grid),
        tuple(units),
        tuple(below),
        {(place,): tuple(one) for place, one in enumerate(totals)},
    )


def clipped_there(
    session: Connection, found: Contributions, epsilon: str = "0.5", signed: bool = True
) -> tuple[list[int], int]:
    """All numbers, and the threshold."""
    groups = [[[str(group)], [0], [group]] for (group,) in found.totals]
    rows: list[Any] = [
        [place, [-1], units, below, 0]
        for place, (units, below) in enumerate(zip(found.units, found.below, strict=True))
        if units
    ]
    rows += [
        [place, [*group], 0, 0, number]
        for group, numbers in found.totals.items()
        for place, number in enumerate(numbers)
        if number
    ]
    row = session.execute(
        "SELECT * FROM sqlrs.clipped_numbers(%s, 0, %s, %s::numeric[], %s, 1, true, %s, 1)",
        [
            json.dumps(groups),
            json.dumps(rows),
            list(map(Decimal, found.grid)),
            Decimal(epsilon),
            signed,
        ],
    ).fetchone()
    assert row is not None
    return [int(number) for number in row[0]], int(row[1][0])


@pytest.fixture(scope="module")
def noiseless(own_server: PostgresServer) -> Iterator[Connection]:
    with own_server.database() as url:
        desk = Desk(own_server, url)
        desk.edges([(1, 2)])
        desk.install()
        desk.run(NO_NOISE)
        with desk.session() as session:
            yield session


@hypothesis_settings(max_examples=examples(60))
@given(contributions())
def test_the_numbers_are_those_of_the_package(noiseless: Connection, found: Contributions) -> None:
    numbers, threshold = clipped_there(noiseless, found)
    place = found.grid.index(threshold)
    if len(found.totals) == 1:
        assert numbers == [clipped_number(found, place)]
        return
    parts = PARTS if len(found.grid) > 1 else 1
    wanted = clipped_parts(found, place, list(found.totals))
    assert numbers == [floor(Fraction(one, parts) + Fraction(1, 2)) for one in wanted]


def test_the_threshold_is_chosen_by_the_units_above_it(workshop: Desk) -> None:
    """Error rate 1e-6; a choice with all of epsilon must be seen."""
    samples, units = 600, [5, 4, 2, 3, 1]
    above = [10, 6, 4, 1]
    rows = json.dumps([[place, [], here, 0, here] for place, here in enumerate(units)])
    found = workshop.run(
        f"""SELECT (sqlrs.clipped_numbers('[[[], [0], []]]', 0, '{rows}', ARRAY[1, 2, 3, 8], 1, 2,
        true, false, 1)).clipping -> 0 FROM generate_series(1, {samples})"""
    )
    drawn = [int(one) for (one,) in found]
    allowed = deviation_allowed(samples, ERROR_RATE)

    def gap(rate: Fraction) -> Fraction:
        return max(
            abs(Fraction(sum(one <= threshold for one in drawn), samples) - end)
            for threshold, end in zip([1, 2, 3, 8], ends([1, 2, 3, 8], above, rate), strict=True)
        )

    assert gap(Fraction(3, 20)) <= allowed
    assert gap(Fraction(1, 2)) > allowed


@pytest.mark.parametrize(
    "rows",
    [
        [[5, [], 1, 0, 1]],
        [[-1, [], 1, 0, 1]],
        [[None, [], 1, 0, 1]],
        [[0, None, 1, 0, 1]],
        [[0, [], None, 0, 1]],
        [[0, [], 1, 2, 1]],
        [[0, [], 1, 0, None]],
        [[0, [], 1, 0, "NaN"]],
        [[0, [], 1, 0, "Infinity"]],
        [[0, [], 1, 0, 0.5]],
        None,
    ],
)
def test_what_are_no_contributions_is_an_error(workshop: Desk, rows: object) -> None:
    with workshop.session() as session, pytest.raises(psycopg.Error):
        session.execute(
            "SELECT * FROM sqlrs.clipped_numbers('[[[], [0], []]]', 0, %s, ARRAY[1, 2, 4], 1, 1, "
            "true, false, 1)",
            [None if rows is None else json.dumps(rows)],
        )


def test_a_count_of_persons_needs_no_choice(ward: Desk) -> None:
    definition = install(ward, "SELECT count(*) FROM patient", repeats=False)
    assert [one.grid for one in definition.measures] == [(1,)]
    answer, cost, mechanism, threshold, error = asked(ward, "1000")[0]
    assert (answer, cost, threshold) == (40, 1000, 1)
    assert error == Decimal("0.001414")
    assert mechanism == definition.mechanism
    assert mechanism == "clipped, thresholds up to 1, laplace noise, one unit replaced"


def test_a_charge_a_repeat_and_who_is_protected(clinic: Desk) -> None:
    install(clinic, "SELECT count(*) FROM visit", roles=["ada", "bob"])
    first = asked(clinic, "0.01")[0]
    again = asked(clinic, "0.010")[0]
    assert (first[1], again[1]) == (Decimal("0.01"), 0)
    assert (first[0], *first[2:]) == (again[0], *again[2:])
    assert clinic.spent() == {"ada": Decimal("0.01"), "bob": 0, "data": Decimal("0.01")}
    assert history(clinic) == [(first[0], "patient.id", [[int(first[3]), float(first[4])]])]
    assert [one.unit for one in installed(clinic.url)] == ["patient.id"]
    asked(clinic, "0.01", "bob")
    assert clinic.spent()["bob"] == Decimal("0.01")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        asked(clinic, role=clinic.analyst("eve"))
    for inner in ("clipped_numbers", "choose_threshold", "negative_exponential"):
        assert clinic.run(f"SELECT has_function_privilege('ada', oid, 'EXECUTE') FROM pg_proc "
                          f"WHERE proname = '{inner}'") == [(False,)]  # fmt: skip
    for table in ("released_units", "dataset_units", "releases"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            clinic.run(f"SELECT * FROM sqlrs.{table}", "ada")


def test_a_table_tells_its_thresholds_beside(clinic: Desk) -> None:
    install(clinic, "SELECT urgent, count(*) AS n, sum(cost) AS c FROM visit GROUP BY urgent")
    told: list[str] = []
    with clinic.session("ada") as session:
        session.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        first = session.execute("SELECT * FROM sqlrs.asked(1000)").fetchall()
        assert len(told) == 2
        assert session.execute("SELECT * FROM sqlrs.asked(1000)").fetchall() == first
    assert told[:2] == told[2:]
    thresholds = history(clinic)[0][2]
    assert [f"units of patient.id above {t:g} were cut to {t:g}; standard error {e:.2f}"
            for t, e in thresholds] == told[:2]  # fmt: skip
    assert clinic.spent()["ada"] == 1000


def test_rows_of_nobody_take_part_in_nothing(clinic: Desk) -> None:
    """A NULL id, and a dose whose visit is missing or has no patient."""
    clinic.run("DELETE FROM dose")
    clinic.run("DELETE FROM visit WHERE id > 3")
    clinic.run("UPDATE visit SET patient = NULL WHERE id = 3")
    clinic.run("INSERT INTO dose VALUES (1, 1), (2, 1), (2, 1), (3, 1), (NULL, 1)")
    install(clinic, "SELECT count(*) FROM dose", settings=Settings(max_contribution=5))
    clinic.run(NO_NOISE)
    assert asked(clinic)[0][0] == 3
    install(clinic, "SELECT count(*) FROM visit", name="visits")
    assert clinic.run("SELECT answer FROM sqlrs.visits(1000)", "ada") == [(2,)]


def test_no_rows_at_all(clinic: Desk) -> None:
    clinic.run("TRUNCATE patient, visit, dose")
    install(clinic, "SELECT count(*) FROM visit")
    assert asked(clinic)[0][:2] == (0, 1000)
    install(clinic, "SELECT urgent, sum(cost) AS c FROM visit GROUP BY urgent", name="other")
    rows = clinic.run("SELECT * FROM sqlrs.other(1000)", "ada")
    assert [urgent for urgent, _ in rows] == [False, True]
    assert all(abs(cost) < 1 for _, cost in rows)


def test_a_parameter(clinic: Desk) -> None:
    install(clinic, "SELECT count(*) FROM visit WHERE cost > $1", parameters=["numeric"])
    clinic.run(NO_NOISE)
    for low in ("0", "3.5"):
        ((exact,),) = clinic.run(f"SELECT count(patient) FROM visit WHERE cost > {low}")
        assert asked(clinic, more=f", {low}")[0][0] == exact
    assert clinic.spent()["ada"] == 2000


def test_several_owners_are_refused(ward: Desk) -> None:
    for statement in (
        "SELECT count(*) FROM edge",
        "SELECT count(*) FROM visit a JOIN visit b ON a.cost = b.cost",
    ):
        with pytest.raises(QueryRefused) as caught:
            define(ward, statement)
        assert "several units" in str(caught.value)
        assert "proxy" in (caught.value.hint or "") and "Python" in (caught.value.hint or "")


def test_what_else_is_refused(ward: Desk) -> None:
    with pytest.raises(QueryRefused, match="max_rows"):
        define(ward, "SELECT count(*) FROM visit", max_rows={"visit": 5})
    with pytest.raises(UsageError, match="public tables alone"):
        define(ward, "SELECT count(*) FROM edge", public=["edge"], owners=None)
    with pytest.raises(QueryRefused, match="as they are"):
        define(ward, "SELECT urgent, count(*) FROM visit GROUP BY 1 HAVING count(*) > 3")
    with pytest.raises(QueryRefused):
        define(ward, "SELECT count(DISTINCT cost) FROM visit")
    inside = "SELECT patient FROM visit WHERE cost > $1 GROUP BY patient HAVING count(*) > 2"
    with pytest.raises(QueryRefused, match="parameter"):
        define(ward, f"SELECT count(*) FROM ({inside}) AS t", parameters=["numeric"])


def test_a_dataset_protects_one_unit(clinic: Desk) -> None:
    install(clinic, "SELECT count(*) FROM visit")
    with pytest.raises(UsageError, match="protects another unit"):
        clinic.install("SELECT count(*) FROM visit", name="rows_too")
    clinic.install("SELECT count(*) FROM visit", name="rows_too", dataset="rows")
    with pytest.raises(UsageError, match="protects another unit") as caught:
        install(clinic, "SELECT count(*) FROM visit", name="more", dataset="rows")
    assert "--dataset" in (caught.value.hint or "")
    clinic.ask("1", name="rows_too")
    assert sorted(unit for _, unit, _ in history(clinic)) == ["row"]


def test_after_the_charge_there_is_one_error(clinic: Desk) -> None:
    install(clinic, "SELECT count(*) FROM visit WHERE 1 / (cost + 2.25) > 0.1")
    with pytest.raises(psycopg.errors.SystemError, match="could not be completed") as caught:
        asked(clinic, "1")
    assert "zero" not in str(caught.value).partition("HINT")[0]
    assert clinic.spent()["ada"] == 1
    assert history(clinic) == []


def test_a_schema_that_has_changed_costs_nothing(clinic: Desk) -> None:
    """The chain of a dose goes through a key of visit."""
    install(clinic, "SELECT count(*) FROM dose")
    asked(clinic, "1")
    clinic.run("ALTER TABLE visit DROP CONSTRAINT visit_pkey CASCADE")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="visit"):
        asked(clinic, "2")
    assert clinic.spent()["ada"] == 1


def test_a_failure_of_the_noise_tells_nothing(clinic: Desk) -> None:
    install(clinic, "SELECT count(*) FROM visit")
    clinic.run(NO_NOISE.replace("SELECT 0::numeric", "SELECT NULL::numeric"))
    with pytest.raises(psycopg.errors.SystemError, match="could not be completed"):
        asked(clinic, "1")
    assert history(clinic) == []


def test_a_schema_from_before_is_about_rows_and_keeps_its_grants(desk: Desk) -> None:
    version_2(desk)
    desk.ask("0.5")
    desk.run(f"GRANT USAGE ON SCHEMA sqlrs TO {desk.analyst('bob')}")
    desk.run("GRANT EXECUTE ON FUNCTION sqlrs.history() TO bob")
    reinstall(desk)
    assert desk.run("SELECT dataset, unit FROM sqlrs.dataset_units") == [("data", "row")]
    assert [one[1:] for one in history(desk)] == [("row", None)]
    assert history(desk, "bob") == []
    desk.analyst("eve")
    desk.run("GRANT USAGE ON SCHEMA sqlrs TO eve")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        history(desk, "eve")


def test_the_command_says_who_is_protected(clinic: Desk) -> None:
    clinic.run("DROP TABLE edge")
    clinic.analyst("ada")
    done = subprocess.run(
        [sys.executable, "-m", "sqlrs", "install", "--db", clinic.url, "--unit", "patient.id",
         "--name", "asked", "--grant", "ada", "--budget", "2000", "--dataset-budget", "2000",
         "SELECT count(*) FROM dose"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "it protects units of patient.id: clipped, thresholds up to" in done.stdout
    assert asked(clinic)[0][1] == 1000
    assert history(clinic)[0][1] == "patient.id"
