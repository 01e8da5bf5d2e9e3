"""What analysts might try: every attack here must fail."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import psycopg
import pytest
from psycopg import errors

from tests.procedures.desk import TRIANGLES, Desk, ask

FAILED = "the release could not be completed; its budget stays spent"
# Divides by zero where an edge leads to node 5, wherever it stands.
FRAGILE = "SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src WHERE 10 / (a.dst - 5) < 100"


def test_a_transaction_that_is_rolled_back_has_paid(desk: Desk) -> None:
    desk.install(repeats=False)
    with desk.session("ada", autocommit=False) as analyst:
        ask(analyst, "0.5")
        analyst.rollback()
    assert desk.spent() == {"ada": Decimal("0.5"), "data": Decimal("0.5")}
    with desk.session("ada") as analyst:
        analyst.execute("BEGIN")
        analyst.execute("SAVEPOINT look")
        ask(analyst, "0.5")
        analyst.execute("ROLLBACK TO look")
        ask(analyst, "0.5")
        analyst.execute("ROLLBACK")
    assert desk.spent()["ada"] == Decimal("1.5")
    # One statement that shows the answer in its error, and so undoes itself.
    with pytest.raises(errors.InvalidTextRepresentation):
        desk.run("SELECT answer::text::boolean FROM sqlrs.asked(0.5)", "ada")
    with pytest.raises(errors.InvalidTextRepresentation):
        desk.run("DO $$ BEGIN PERFORM answer::text::boolean FROM sqlrs.asked(0.5); END $$", "ada")
    assert desk.spent()["ada"] == Decimal("2.5")
    assert desk.run("SELECT count(*) FROM sqlrs.releases") == [(0,)]


def test_a_rolled_back_answer_is_not_seen_again_for_free(desk: Desk) -> None:
    desk.install()
    with desk.session("ada", autocommit=False) as analyst:
        ask(analyst, "0.5")
        analyst.rollback()
        ask(analyst, "0.5")
        analyst.commit()
        ask(analyst, "0.5")
    assert desk.spent()["ada"] == 1


def test_no_lock_is_kept_while_a_caller_dawdles(desk: Desk) -> None:
    desk.install(roles=["ada", "bob"], repeats=False)
    with desk.session("ada", autocommit=False) as dawdler:
        ask(dawdler, "0.5")
        with desk.session("bob") as other:
            other.execute("SET lock_timeout = '2s'")
            ask(other, "0.5")
        desk.ask("0.5")
    assert desk.spent() == {"ada": 1, "bob": Decimal("0.5"), "data": Decimal("1.5")}


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_an_old_snapshot_is_not_asked(desk: Desk, level: str) -> None:
    """It may show rows that today's catalog reads differently, and pg_locks what it has read."""
    desk.install()
    with desk.session("ada") as analyst:
        analyst.execute(f"BEGIN ISOLATION LEVEL {level}")
        with pytest.raises(errors.InvalidTransactionState, match="READ COMMITTED"):
            ask(analyst, "0.5")
    assert desk.spent()["ada"] == 0


def test_sessions_that_race_for_the_last_epsilon(desk: Desk) -> None:
    desk.install(repeats=False, budget="1", roles=["ada"])
    barrier = threading.Barrier(8)

    def race(_: int) -> int:
        won = 0
        with desk.session("ada") as analyst:
            barrier.wait()
            for _ in range(3):
                try:
                    ask(analyst, "0.3")
                    won += 1
                except errors.ConfigurationLimitExceeded:
                    pass
        return won

    with ThreadPoolExecutor(8) as pool:
        won = sum(pool.map(race, range(8)))
    assert won == 3
    assert desk.spent()["ada"] == Decimal("0.9")


def test_a_read_only_transaction_reads_nothing(desk: Desk) -> None:
    desk.install()
    with pytest.raises(errors.ReadOnlySqlTransaction), desk.session("ada") as analyst:
        analyst.execute("SET default_transaction_read_only = on")
        ask(analyst, "0.5")
    assert desk.spent()["ada"] == 0


def test_who_has_no_grant_or_no_budget_gets_nothing(desk: Desk) -> None:
    desk.install()
    desk.analyst("eve")
    with pytest.raises(errors.InsufficientPrivilege):
        desk.ask("0.5", "eve")
    desk.run("GRANT USAGE ON SCHEMA sqlrs TO eve")
    with pytest.raises(errors.InsufficientPrivilege, match="permission denied for function"):
        desk.ask("0.5", "eve")
    desk.run("GRANT EXECUTE ON FUNCTION sqlrs.asked(numeric) TO eve")
    with pytest.raises(errors.ConfigurationLimitExceeded):
        desk.ask("0.5", "eve")


def test_another_role_is_not_another_budget(desk: Desk) -> None:
    desk.install(roles=["ada", "bob"])
    desk.run("GRANT bob TO ada")
    try:
        with desk.session("ada") as analyst:
            analyst.execute("SET ROLE bob")
            ask(analyst, "0.5")
            with pytest.raises(errors.InsufficientPrivilege):
                analyst.execute("SET SESSION AUTHORIZATION bob")
    finally:
        desk.run("REVOKE bob FROM ada")
    assert desk.spent() == {"ada": Decimal("0.5"), "bob": 0, "data": Decimal("0.5")}


def test_nothing_on_the_search_path_is_found(desk: Desk) -> None:
    desk.install(repeats=False)
    desk.run("CREATE SCHEMA trap AUTHORIZATION ada")
    with desk.session("ada") as analyst:
        for statement in (
            "CREATE FUNCTION trap.setval(regclass, bigint) RETURNS bigint LANGUAGE sql "
            "AS 'SELECT 1'",
            "CREATE FUNCTION trap.gen_random_uuid() RETURNS uuid LANGUAGE sql AS "
            "$$ SELECT '00000000-0000-4000-8000-000000000000'::uuid $$",
            "CREATE FUNCTION trap.greatest_of(int, int) RETURNS boolean LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'row % %', $1, $2; END $$",
            "CREATE OPERATOR trap.= (LEFTARG = int, RIGHTARG = int, FUNCTION = trap.greatest_of)",
            "CREATE OPERATOR trap.<> (LEFTARG = int, RIGHTARG = int, FUNCTION = trap.greatest_of)",
            "CREATE TEMP TABLE edge (src int, dst int)",
            "CREATE TEMP TABLE budgets (kind text, name text, cap numeric, spent regclass)",
            "CREATE TEMP TABLE releases (answer numeric)",
            "SET search_path = trap, pg_temp, pg_catalog, public",
        ):
            analyst.execute(statement)
        many = {ask(analyst, "0.5") for _ in range(5)}
        exact = ask(analyst, "97")
    assert len(many) > 1  # the noise is no constant
    (true_count,) = desk.run(TRIANGLES)[0]
    assert true_count > 20 and abs(exact - true_count) < 10  # not the empty graph was counted
    assert desk.spent()["ada"] == Decimal("99.5")


def test_settings_of_the_caller_change_nothing_and_tell_nothing(desk: Desk) -> None:
    desk.run("CREATE TABLE visit (who int, at timestamptz)")
    desk.run("INSERT INTO visit SELECT i, '2024-01-01 23:30+00' FROM generate_series(1, 50) AS i")
    desk.install(
        "SELECT count(*) FROM visit WHERE at::date = DATE '2024-01-01'", repeats=False, name="asked"
    )
    notices: list[str] = []
    with desk.session("ada") as analyst:
        analyst.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
        for setting in (
            "client_min_messages = debug5",
            "trace_sort = on",
            "debug_print_plan = on",
            "TimeZone = 'Asia/Tokyo'",
            "DateStyle = 'German'",
            "standard_conforming_strings = off",
            "transform_null_equals = on",
        ):
            analyst.execute(f"SET {setting}")
        notices.clear()
        found = ask(analyst, "50")
    assert abs(found - 50) < 10
    # What is left comes from before and after the function: the same on any data.
    assert not [text for text in notices if "sort" in text or "visit" in text]


def test_every_setting_that_changes_meaning_or_plan_is_pinned(desk: Desk) -> None:
    desk.install()
    ((config,),) = desk.run("SELECT proconfig FROM pg_proc WHERE proname = 'asked'")
    pinned = {entry.partition("=")[0].lower() for entry in config}
    known = desk.run(
        "SELECT lower(name) FROM pg_settings WHERE context = 'user' AND ("
        "category ~ '^(Query Tuning|Version and Platform)' OR category ~ 'Locale and Formatting$')"
    )
    assert len(known) > 40
    assert {name for (name,) in known} - pinned == {"client_encoding"}
    assert {"search_path", "row_security", "bytea_output", "enable_seqscan"} <= pinned
    # All that PostgreSQL itself names beside a plan. The two others are no matter of counting:
    # buffers of temporary tables, and what only VACUUM and the like read ahead.
    planned = desk.run(
        "SELECT lower(name) FROM pg_settings WHERE context = 'user' "
        "AND 'EXPLAIN' = ANY (pg_settings_get_flags(name))"
    )
    assert {name for (name,) in planned} - pinned <= {"temp_buffers", "maintenance_io_concurrency"}


def test_the_private_parts_are_closed(desk: Desk) -> None:
    desk.install()
    desk.ask("1")
    statements = [
        "SELECT * FROM edge",
        "SELECT * FROM sqlrs.budgets",
        "SELECT * FROM sqlrs.releases",
        "SELECT * FROM sqlrs.queries",
        "SELECT * FROM sqlrs.balances",
        "UPDATE sqlrs.budgets SET cap = 1000",
        "DELETE FROM sqlrs.releases",
        "SELECT sqlrs.grant_budget('analyst', 'ada', 1000)",
        "SELECT sqlrs.spend('ada', 'data', 'q', 0.1)",
        "SELECT sqlrs.restore_spent('dataset', 'data', 900)",
        "SELECT sqlrs.noise(0, 0, 1, 5)",
        "SELECT sqlrs.random_word()",
        "ALTER FUNCTION sqlrs.asked(numeric) SET search_path = public",
        "ALTER FUNCTION sqlrs.asked(numeric) SECURITY INVOKER",
        "ALTER FUNCTION sqlrs.asked(numeric) OWNER TO ada",
        "DROP FUNCTION sqlrs.asked(numeric)",
        "CREATE FUNCTION sqlrs.extra() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE OR REPLACE FUNCTION sqlrs.asked(epsilon numeric) RETURNS TABLE "
        "(answer numeric, cost numeric, mechanism text) LANGUAGE sql AS 'SELECT 1, 1, $$x$$'",
        "GRANT EXECUTE ON FUNCTION sqlrs.asked(numeric) TO PUBLIC",
        "SET ROLE sqlrs_owner",
        "ALTER SCHEMA sqlrs RENAME TO other",
    ]
    sequences = desk.run("SELECT spent::text FROM sqlrs.budgets")
    for (sequence,) in sequences:
        statements += [f"SELECT setval('{sequence}', 0)", f"SELECT last_value FROM {sequence}"]
    for statement in statements:
        with desk.session("ada") as analyst:
            if statement.startswith("GRANT"):
                analyst.execute(statement.encode())  # a warning: no right to grant
                continue
            with pytest.raises(errors.InsufficientPrivilege):
                analyst.execute(statement.encode())
    acl = "SELECT has_function_privilege('public', 'sqlrs.asked(numeric)', 'EXECUTE')"
    assert desk.run(acl) == [(False,)]
    assert desk.spent()["ada"] == 1


def failure(desk: Desk, prepare: str = "") -> tuple[str | None, ...]:
    """All that an analyst sees of a failed call."""
    with desk.session("ada") as analyst:
        if prepare:
            analyst.execute(prepare.encode())
        with pytest.raises(psycopg.Error) as caught:
            ask(analyst, "0.5")
    d = caught.value.diag
    return (d.sqlstate, d.message_primary, d.message_detail, d.message_hint, d.context,
            d.source_line, d.internal_query, d.schema_name, d.table_name)  # fmt: skip


def test_every_failure_after_the_charge_looks_the_same(desk: Desk) -> None:
    desk.install(FRAGILE, repeats=False)
    seen = {failure(desk)}
    assert desk.spent()["ada"] == Decimal("0.5")
    desk.run("DELETE FROM edge WHERE dst = 5 AND src > 1")
    seen.add(failure(desk))
    desk.run("DELETE FROM edge")
    desk.ask("0.5")  # no row, no failure
    desk.run("INSERT INTO edge SELECT i, i % 97 FROM generate_series(1000, 60000) AS i")
    desk.run("INSERT INTO edge SELECT i % 97, i FROM generate_series(1000, 60000) AS i")
    seen.add(failure(desk, "SET statement_timeout = '1s'"))
    # What the check before the charge did not see fails like everything else.
    desk.run("CREATE OR REPLACE FUNCTION sqlrs.changed(facts jsonb) RETURNS text LANGUAGE plpgsql "
             "AS $$ BEGIN RETURN ''; END $$")  # fmt: skip
    desk.run("REVOKE SELECT ON edge FROM sqlrs_owner")
    seen.add(failure(desk))
    desk.run("DROP TABLE edge")
    seen.add(failure(desk))
    assert len(seen) == 1
    ((state, message, detail, _, context, *_),) = seen
    assert (state, message, detail) == ("58000", FAILED, None)
    assert context is not None and "RAISE" in context
    assert desk.spent()["ada"] == 3


def test_a_cancelled_call_has_paid_and_looks_the_same(desk: Desk) -> None:
    desk.install(repeats=False)
    desk.run("INSERT INTO edge SELECT i, i % 97 + 100000 FROM generate_series(1000, 60000) AS i")
    desk.run("INSERT INTO edge SELECT i % 97 + 100000, i FROM generate_series(1000, 60000) AS i")
    with desk.session("ada") as analyst:
        timer = threading.Timer(1, analyst.cancel_safe)
        timer.start()
        with pytest.raises(errors.SystemError, match=FAILED):
            ask(analyst, "0.5")
        timer.join()
    assert desk.spent()["ada"] == Decimal("0.5")


def test_row_security_never_lowers_a_count_silently(desk: Desk) -> None:
    desk.install(repeats=False)
    desk.run("ALTER TABLE edge ENABLE ROW LEVEL SECURITY")
    changed = "table public.edge has changed since the function was installed"
    assert failure(desk)[:2] == ("55000", changed)
    assert desk.spent()["ada"] == 0


def test_a_waiting_caller_sees_the_balance_after_the_wait(desk: Desk) -> None:
    """The second call waits for the row's lock, then finds what the first has spent."""
    desk.install(repeats=False, budget="1")
    with desk.session(autocommit=False) as holder, ThreadPoolExecutor(1) as pool:
        holder.execute("SELECT 1 FROM sqlrs.budgets WHERE name = 'ada' FOR UPDATE")
        waiting = pool.submit(desk.ask, "0.6")
        _until_somebody_waits(desk)
        sequence = "SELECT setval(spent, 500000000000) FROM sqlrs.budgets WHERE name = 'ada'"
        holder.execute(sequence)
        holder.rollback()
        with pytest.raises(errors.ConfigurationLimitExceeded):
            waiting.result(30)
    assert desk.spent()["ada"] == Decimal("0.5")


def _until_somebody_waits(desk: Desk) -> None:
    deadline = time.monotonic() + 30
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    while desk.run(waiting) == [(0,)]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_function_text_holds_no_data(desk: Desk) -> None:
    desk.install()
    before = desk.run("SELECT prosrc FROM pg_proc WHERE proname = 'asked'", "ada")
    desk.run("DELETE FROM edge WHERE src > 1")
    desk.install()
    assert desk.run("SELECT prosrc FROM pg_proc WHERE proname = 'asked'", "ada") == before


def test_the_triangle_query_is_what_the_tests_think(desk: Desk) -> None:
    desk.install(TRIANGLES, budget="1000")
    assert abs(desk.ask("1000") - desk.run(TRIANGLES)[0][0]) < 5
