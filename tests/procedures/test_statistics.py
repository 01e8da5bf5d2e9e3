"""PostgreSQL's counters, sizes and estimates tell a caller nothing once they are hidden."""

from __future__ import annotations

import subprocess
import sys
from urllib.parse import urlsplit

import pytest
from psycopg import errors

from sqlrs.connecting import connect
from sqlrs.errors import EngineFailed
from sqlrs.procedures.server_statistics import hide, hide_script, warnings
from tests.procedures.desk import TRIANGLES, Desk, ask
from tests.support.postgres_server import find_binaries

FORCED = ("enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin")
READ_OFF = [
    "SELECT sum(idx_tup_fetch) FROM pg_stat_xact_all_tables WHERE relname = 'edge'",
    "SELECT sum(idx_tup_fetch) FROM pg_stat_all_tables WHERE relname = 'edge'",
    "SELECT pg_stat_get_xact_tuples_fetched('edge'::regclass)",
    "SELECT pg_stat_get_tuples_returned('edge'::regclass)",
    "SELECT pg_stat_get_live_tuples('edge'::regclass)",
    "SELECT n_live_tup FROM pg_stat_user_tables",
    "SELECT heap_blks_hit FROM pg_statio_user_tables",
    "SELECT tup_fetched FROM pg_stat_database",
    "SELECT pg_relation_size('edge')",
    "SELECT pg_table_size('edge')",
    "SELECT pg_indexes_size('edge')",
    "SELECT pg_total_relation_size('edge')",
    "SELECT pg_database_size(current_database())",
    "SELECT pg_tablespace_size('pg_default')",
    "SELECT reltuples FROM pg_class WHERE relname = 'edge'",
    "SELECT relpages FROM pg_class WHERE relname = 'edge'",
    "SELECT to_jsonb(c) FROM pg_class AS c WHERE relname = 'edge'",
    "SELECT * FROM pg_locks",
    "SELECT * FROM pg_lock_status()",
    "SELECT * FROM pg_stats",
    "SELECT * FROM pg_stat_activity",
]


def test_the_counters_of_a_call_cannot_be_read(desk: Desk) -> None:
    desk.install(repeats=False)
    desk.run("ANALYZE edge")
    assert any("hide-statistics" in line for line in warnings(desk.url))
    with desk.session("ada") as analyst:
        for statement in READ_OFF:
            analyst.execute(statement.encode())  # the control: all of it is open at first
    hide(desk.url)
    hide(desk.url)
    with desk.session("ada") as analyst:
        for setting in FORCED:
            analyst.execute(f"SET {setting} = off")
        with analyst.transaction():
            ask(analyst, "0.5")
            for statement in READ_OFF:
                with (
                    pytest.raises(errors.InsufficientPrivilege, match="permission denied"),
                    analyst.transaction(),
                ):
                    analyst.execute(statement.encode())
    assert not any("counters, sizes" in line for line in warnings(desk.url))


def test_no_function_that_tells_of_a_table_is_left(desk: Desk) -> None:
    """By name: whatever a newer PostgreSQL adds fails here first."""
    desk.analyst("ada")
    hide(desk.url)
    left = desk.run(
        "SELECT oid::regprocedure::text FROM pg_proc WHERE proname ~ '^pg_.*(stat_|size$)' "
        "AND has_function_privilege('ada', oid, 'EXECUTE')"
    )
    assert {name for (name,) in left} == {'pg_column_size("any")'}
    seen = desk.run(
        "SELECT relname FROM pg_class WHERE relname ~ '^pg_(stat_|statio|stats)' "
        "AND has_any_column_privilege('ada', oid, 'SELECT')"
    )
    assert seen == []


def test_a_caller_does_not_choose_the_plan(desk: Desk) -> None:
    """The control of the planner's settings: with the caller's, the index would be used."""
    desk.install(repeats=False)
    desk.run("ANALYZE edge")
    scans = "SELECT idx_scan FROM pg_stat_xact_all_tables WHERE relname = 'edge'"
    with desk.session("ada") as analyst, analyst.transaction():
        ask(analyst, "0.5")
        usual = analyst.execute(scans).fetchall()
    with desk.session("ada") as analyst, analyst.transaction():
        for setting in FORCED:
            analyst.execute(f"SET {setting} = off")
        ask(analyst, "0.5")
        assert analyst.execute(scans).fetchall() == usual


def test_clients_and_sqlrs_work_without_them(desk: Desk) -> None:
    desk.install(repeats=False)
    desk.analyst("reader")
    desk.run("GRANT SELECT ON edge TO reader")
    hide(desk.url)
    with connect(desk.url_of("reader")) as database:
        assert [table.name for table in database.catalog.tables] == ["edge"]
        database.count("SELECT count(*) FROM edge", epsilon="1")
    parts = urlsplit(desk.url_of("ada"))
    for command in (r"\dt", r"\d edge", r"\df sqlrs.*", r"\l", r"\du", r"\dn", r"\dv", r"\dp edge"):
        run = subprocess.run(
            [
                *(find_binaries() / "psql", "--no-psqlrc", "--host=127.0.0.1"),
                *(f"--port={parts.port}", "--username=ada", "-c", command, parts.path.strip("/")),
            ],
            env={"PGPASSWORD": "correct horse"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, f"{command}: {run.stderr}"
    desk.run("GRANT pg_monitor TO reader")
    try:
        for statement in READ_OFF:
            desk.run(statement, "reader")
    finally:
        desk.run("REVOKE pg_monitor FROM reader")


def test_the_commands_warn_and_hide(desk: Desk) -> None:
    def sqlrs(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "sqlrs", *arguments, "--db", desk.url]
        return subprocess.run(command, capture_output=True, text=True, check=True)

    desk.analyst("ada")
    run = sqlrs("install", TRIANGLES, "--name", "asked", "--grant", "ada")
    assert "warning: PostgreSQL shows everybody its counters" in run.stderr
    assert sqlrs("hide-statistics", "--dry-run").stdout == hide_script()
    assert "hidden" in sqlrs("hide-statistics").stdout
    listed = sqlrs("installed")
    assert "counters, sizes" not in listed.stderr
    # The other databases of the server have the same counters.
    assert "everybody may connect to postgres" in listed.stderr


def test_only_a_superuser_hides_them(desk: Desk) -> None:
    desk.analyst("ada")
    with pytest.raises(EngineFailed, match="not all statistics could be hidden"):
        hide(desk.url_of("ada"))
