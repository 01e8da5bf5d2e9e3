"""One call: charged first, measured in one snapshot, noisy by the exact law, repeated for free."""

from __future__ import annotations

import threading
from decimal import Decimal
from fractions import Fraction

import psycopg
import pytest

from sqlrs.compiled import Compiled
from sqlrs.connecting import connect
from sqlrs.measuring.measure import measure
from sqlrs.mechanisms import mechanism_named
from sqlrs.noise import PolyLaplace
from sqlrs.sensitivity.refined import released_sensitivity
from sqlrs.sensitivity.steps import compile_recursion
from sqlrs.settings import Settings
from tests.noise.oracle import deviation_allowed
from tests.noise.test_polylaplace_sampler import largest_gap
from tests.procedures.desk import TRIANGLES, Desk, ask

SHOW_MEASURED = """
CREATE OR REPLACE FUNCTION
  sqlrs.noise(numerator numeric, places integer, ratio numeric, shape integer)
RETURNS numeric LANGUAGE plpgsql AS $$ BEGIN RETURN numerator / sqlrs.whole_power(2, places); END $$
"""
QUERIES = [
    TRIANGLES,
    "SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src JOIN edge c ON b.dst = c.src",
    "SELECT count(DISTINCT a.src) FROM edge a JOIN edge b ON a.dst = b.src WHERE a.dst <> 3",
    "SELECT count(*) FROM edge a JOIN place p ON a.src = p.id JOIN edge b ON b.src = p.id "
    "WHERE p.kind LIKE 'in%' AND a.dst <> b.dst",
    "SELECT count(*) FROM edge a, place p WHERE p.id < 3",
    "SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src WHERE a.src < b.dst",
    "SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src JOIN edge c ON b.dst = c.src "
    "WHERE a.src < b.dst AND b.src <= c.dst",
]


@pytest.mark.parametrize("statement", QUERIES)
def test_count_and_sensitivity_are_those_of_the_package(desk: Desk, statement: str) -> None:
    desk.run("CREATE TABLE place (id int PRIMARY KEY, kind text)")
    desk.run("INSERT INTO place SELECT i, CASE WHEN i % 3 = 0 THEN 'out' ELSE 'inn' END "
             "FROM generate_series(0, 6) AS i")  # fmt: skip
    definition = desk.install(statement)
    with connect(desk.url) as database:
        compiled = Compiled.of(statement, database.catalog, Settings())
        assert isinstance(compiled, Compiled)
        mechanism = PolyLaplace(Decimal(2), 5)
        wanted = mechanism_named("polylaplace", Decimal(2), 5).prepare(compiled.residuals).wanted
        measured = measure(database.engine, compiled.residuals, wanted)
    (numbers,) = desk.run(definition.measure.sql(dialect="postgres"))[0]
    assert numbers[0] == measured.count
    values = [Fraction(1)] * len(definition.values)
    for i, places in enumerate(definition.values):
        for place in places:
            values[i] *= Fraction(numbers[place - 1])
    recursion = compile_recursion(compiled.residuals)
    assert values == [measured.values[members] for members in recursion.coordinates]
    sensitivity = released_sensitivity(compiled.residuals, measured.values, mechanism.weights)
    desk.run(SHOW_MEASURED)
    shown = Fraction(desk.ask("2"))
    assert abs(shown - (measured.count + sensitivity.value)) < Fraction(1, 10**10)


def test_the_answer_has_the_exact_noise(desk: Desk) -> None:
    """Error rate 1e-6; against the noise of another epsilon it must be seen."""
    desk.install(repeats=False, budget="1000000", dataset_budget="1000000")
    desk.run("CREATE OR REPLACE FUNCTION sqlrs.await_durable(place pg_lsn) RETURNS void "
             "LANGUAGE sql AS ''")  # fmt: skip
    with connect(desk.url) as database:
        compiled = Compiled.of(TRIANGLES, database.catalog, Settings())
        assert isinstance(compiled, Compiled)
        mechanism = PolyLaplace(Decimal(1), 5)
        wanted = mechanism_named("polylaplace", Decimal(1), 5).prepare(compiled.residuals).wanted
        measured = measure(database.engine, compiled.residuals, wanted)
    bound = released_sensitivity(compiled.residuals, measured.values, mechanism.weights)
    scale = mechanism.scale(bound.value)
    call = "SELECT asked.answer FROM generate_series(1, 600) AS i, LATERAL sqlrs.asked(1 + 0 * i)"
    sizes = [abs(int(a) - measured.count) for (a,) in desk.run(call, "ada")]
    assert desk.spent()["ada"] == 600
    allowed = deviation_allowed(len(sizes), 1e-6)
    assert largest_gap(mechanism, scale, sizes) <= allowed
    assert largest_gap(mechanism, 2 * scale, sizes) > allowed


def test_a_repeat_is_free_and_another_epsilon_is_not(desk: Desk) -> None:
    desk.install(roles=["ada", "bob"])
    first = desk.run("SELECT * FROM sqlrs.asked(epsilon => 0.5)", "ada")
    again = desk.run("SELECT * FROM sqlrs.asked(epsilon => 0.50)", "ada")
    assert [row[1] for row in first + again] == [Decimal("0.5"), 0]
    assert first[0][0] == again[0][0]
    desk.ask("0.25")
    assert desk.spent() == {"ada": Decimal("0.75"), "bob": 0, "data": Decimal("0.75")}
    desk.ask("0.5", "bob")
    assert desk.spent()["bob"] == Decimal("0.5")
    assert desk.run("SELECT dataset, cap, spent, remaining FROM sqlrs.budget()", "ada") == [
        ("data", 100, Decimal("0.75"), Decimal("99.25"))
    ]
    assert len(desk.run("SELECT * FROM sqlrs.history()", "ada")) == 2


def test_without_repeats_every_call_is_charged(desk: Desk) -> None:
    desk.install(repeats=False)
    desk.ask("0.5")
    desk.ask("0.5")
    assert desk.spent()["ada"] == 1


@pytest.mark.parametrize(
    "epsilon", ["0", "-1", "1e-7", "1001", "1e300", "'NaN'", "NULL", "0.1234567890123"]
)
def test_an_epsilon_out_of_range_is_refused_and_costs_nothing(desk: Desk, epsilon: str) -> None:
    desk.install(budget="1000000", dataset_budget="1000000")
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        desk.run(f"SELECT * FROM sqlrs.asked(epsilon => {epsilon})", "ada")
    assert desk.spent()["ada"] == 0


def test_budgets_are_exact_and_both_count(desk: Desk) -> None:
    desk.install(roles=["ada", "bob"], budget="1", dataset_budget="1.5", repeats=False)
    for _ in range(10):
        desk.ask("0.1")
    with pytest.raises(psycopg.errors.ConfigurationLimitExceeded, match="less left"):
        desk.ask("0.0001")
    with pytest.raises(psycopg.errors.ConfigurationLimitExceeded):
        desk.ask("0.5001", "bob")
    desk.ask("0.5", "bob")
    assert desk.spent() == {"ada": 1, "bob": Decimal("0.5"), "data": Decimal("1.5")}
    desk.run("SELECT sqlrs.grant_budget('dataset', 'data', 2)")
    desk.ask("0.5", "bob")


def test_one_snapshot_for_count_and_residuals(desk: Desk) -> None:
    """A writer switches between two states in single transactions; no answer mixes them.

    A star has n paths of two and the greatest degree n: the answer n + 10^6 · T shows both.
    """
    desk.edges([])
    desk.install("SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src", repeats=False,
                 budget="1000000", dataset_budget="1000000")  # fmt: skip
    with desk.session() as owner:
        owner.execute(SHOW_MEASURED)
        owner.execute(
            "CREATE OR REPLACE FUNCTION sqlrs.fold(steps integer[], starts integer[], "
            "answers integer[], monomials integer[], ceilings integer[], degrees integer[], "
            "t numeric[], ratio numeric, OUT numerator numeric, OUT places integer) "
            "LANGUAGE plpgsql AS $$ BEGIN numerator := greatest(t[1], t[2]) * 1000000; "
            "places := 0; END $$"
        )
        owner.execute("CREATE OR REPLACE FUNCTION sqlrs.await_durable(place pg_lsn) RETURNS void "
                      "LANGUAGE sql AS ''")  # fmt: skip
        owner.execute(
            "CREATE FUNCTION two_looks() RETURNS boolean LANGUAGE plpgsql AS $$ "
            "DECLARE first int; second int; BEGIN SELECT count(*) INTO first FROM edge; "
            "SELECT count(*) INTO second FROM edge; RETURN first <> second; END $$"
        )
    stop = threading.Event()

    def write() -> None:
        fill = "INSERT INTO edge SELECT 0, i FROM generate_series(1, 300) AS i"
        with desk.session(autocommit=False) as writer:
            while not stop.is_set():
                writer.execute(f"{fill}; INSERT INTO edge VALUES (-1, 0)")
                writer.commit()
                writer.execute("DELETE FROM edge")
                writer.commit()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        with desk.session("ada") as analyst:
            seen = {int(ask(analyst, "1")) for _ in range(150)}
        looks = "SELECT two_looks()"
        mixed = any(desk.run(looks) == [(True,)] for _ in range(2000))
    finally:
        stop.set()
        thread.join()
    assert mixed, "the writer is too slow to be seen by two statements"
    # Empty: 0 paths, T = 0. Full: 300 paths, T = 300.
    assert seen == {0, 300 + 300 * 10**6}


def test_the_default_settings_of_the_log_are_waited_for(desk: Desk) -> None:
    """With a lazy log writer the answer comes when the charge is on disk, and it comes."""
    desk.install()
    desk.run("ALTER SYSTEM RESET wal_writer_delay")
    desk.run("SELECT pg_reload_conf()")
    try:
        desk.ask("1")
        assert desk.spent()["ada"] == 1
    finally:
        desk.run("ALTER SYSTEM SET wal_writer_delay = '5ms'")
        desk.run("SELECT pg_reload_conf()")
