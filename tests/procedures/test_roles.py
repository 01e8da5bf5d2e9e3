"""Who may be served, what the schema may hold, and locks that strangers cannot take."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import psycopg
import pytest
from psycopg import errors

from sqlrs.errors import EngineFailed, UsageError
from sqlrs.procedures import Grants, install_script
from sqlrs.procedures.install import install
from tests.procedures.desk import TRIANGLES, Desk

# What gives the role "way" a way to the rows of the private table edge, and how that is told.
WAYS = {
    "GRANT SELECT ON edge TO way": "has the right SELECT on public.edge",
    "GRANT SELECT (dst) ON edge TO way": "has the right SELECT on public.edge",
    "GRANT SELECT ON edge TO PUBLIC": "like everybody has the right SELECT on public.edge",
    "GRANT DELETE ON edge TO way": "has the right DELETE on public.edge",
    "GRANT TRIGGER ON edge TO way": "has the right TRIGGER on public.edge",
    "GRANT REFERENCES (src) ON edge TO way": "has the right REFERENCES on public.edge",
    "ALTER TABLE edge OWNER TO way": "owns public.edge",
    "ALTER SCHEMA public OWNER TO way": "owns the schema public",
    "GRANT group_role TO way; GRANT SELECT ON edge TO group_role": "can act as group_role, which",
    "ALTER ROLE way NOINHERIT; GRANT group_role TO way; GRANT SELECT ON edge TO group_role": (
        "can act as group_role, which has the right SELECT"
    ),
    "GRANT far_role TO group_role WITH ADMIN OPTION; GRANT group_role TO way; "
    "GRANT SELECT ON edge TO far_role": "can act as far_role, which has the right SELECT",
    "CREATE VIEW seen AS SELECT src FROM edge; GRANT SELECT ON seen TO way": (
        "has the right SELECT on public.seen"
    ),
    "CREATE VIEW below AS SELECT src FROM edge; CREATE VIEW seen AS SELECT count(*) FROM below; "
    "GRANT SELECT ON seen TO way": "has the right SELECT on public.seen",
    "CREATE MATERIALIZED VIEW seen AS SELECT src FROM edge; GRANT SELECT ON seen TO way": (
        "has the right SELECT on public.seen"
    ),
    "CREATE TABLE child () INHERITS (edge); GRANT SELECT ON child TO way": (
        "has the right SELECT on public.child"
    ),
    "CREATE TABLE child () INHERITS (edge); CREATE TABLE grandchild () INHERITS (child); "
    "GRANT SELECT ON grandchild TO way": "has the right SELECT on public.grandchild",
    "ALTER TABLE edge ADD number bigserial; GRANT SELECT ON SEQUENCE edge_number_seq TO way": (
        "has the right SELECT on public.edge_number_seq"
    ),
    "ALTER ROLE way SUPERUSER": "is a superuser",
    "ALTER ROLE way CREATEROLE": "may create roles",
    "ALTER ROLE way REPLICATION": "may read the server's log",
    "GRANT EXECUTE ON FUNCTION pg_read_file(text) TO way": "has the right to call pg_read_file",
    "GRANT EXECUTE ON FUNCTION lo_import(text) TO PUBLIC": (
        "like everybody has the right to call lo_import(text)"
    ),
    "GRANT SELECT ON pg_statistic TO way": "has the right SELECT on pg_statistic",
    "GRANT SELECT (stxdmcv) ON pg_statistic_ext_data TO way": (
        "has the right SELECT on pg_statistic_ext_data"
    ),
    "GRANT sqlrs_owner TO way": "can act as sqlrs_owner, which owns the functions",
}
SERVER_ROLES = """
    pg_read_all_data pg_write_all_data pg_read_server_files pg_write_server_files
    pg_execute_server_program pg_monitor pg_read_all_stats pg_stat_scan_tables pg_signal_backend
    """.split()  # noqa: SIM905 - so many words are best read as text


@pytest.fixture
def way(desk: Desk) -> Iterator[Desk]:
    """Roles of this test, gone after it: roles belong to the whole server."""
    for role in ("way", "group_role", "far_role"):
        desk.analyst(role)
    desk.run("DO $$ BEGIN CREATE ROLE sqlrs_owner; EXCEPTION WHEN duplicate_object THEN END $$")
    yield desk
    desk.run("DROP OWNED BY way, group_role, far_role")
    desk.run("DROP ROLE way, group_role, far_role")


def test_every_way_to_the_rows_is_refused_by_the_script_itself(way: Desk) -> None:
    """Each in a transaction of its own with the script, as --dry-run prints it."""
    script = install_script(way.define(), Grants(roles=("way",)))
    assert script.count("BEGIN;") == script.count("COMMIT;") == 1
    body = script.replace("BEGIN;\n", "").replace("COMMIT;\n", "")
    ways = WAYS | {f"GRANT {role} TO way": f"can act as {role}, which has" for role in SERVER_ROLES}
    with psycopg.connect(way.url) as connection:
        for statement, reason in ways.items():
            connection.execute(statement.encode())
            with pytest.raises(psycopg.Error) as error:
                connection.execute(body.encode())
            assert error.value.sqlstate == "RS001", statement
            assert f"role way {reason}" in str(error.value), statement
            assert "no other way" in (error.value.diag.message_hint or "")
            connection.rollback()
        connection.execute(body.encode())  # without any of them it is served
        connection.rollback()


def test_a_partition_with_a_grant_is_refused(way: Desk) -> None:
    way.run("CREATE TABLE visit (who int, day int) PARTITION BY RANGE (day)")
    way.run("CREATE TABLE visit_1 PARTITION OF visit FOR VALUES FROM (0) TO (10)")
    way.run("GRANT SELECT ON visit_1 TO way")
    with pytest.raises(UsageError, match=r"role way has the right SELECT on public\.visit_1"):
        way.install("SELECT count(*) FROM visit", roles=["way"])


def test_the_owner_of_the_database_is_refused(way: Desk) -> None:
    name = way.url.rpartition("/")[2]
    way.run(f"ALTER DATABASE {name} OWNER TO way")
    with pytest.raises(UsageError, match="role way owns the database"):
        way.install(roles=["way"])
    way.run(f"ALTER DATABASE {name} OWNER TO postgres")


def test_who_may_copy_the_database_is_refused(way: Desk) -> None:
    name = way.url.rpartition("/")[2]
    way.run("ALTER ROLE way CREATEDB")
    way.install(roles=["way"])
    way.run(f"ALTER DATABASE {name} IS_TEMPLATE true")
    try:
        with pytest.raises(UsageError, match="role way may copy this database"):
            way.install(roles=["way"])
    finally:
        way.run(f"ALTER DATABASE {name} IS_TEMPLATE false")


def test_rights_on_public_tables_do_not_matter(way: Desk) -> None:
    way.run("CREATE TABLE place (id int PRIMARY KEY); GRANT SELECT ON place TO way")
    query = "SELECT count(*) FROM edge JOIN place ON edge.src = place.id"
    with pytest.raises(UsageError, match="place"):
        way.install(query, roles=["way"])
    way.install(query, roles=["way"], public=["place"])


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("ALTER TABLE sqlrs.budgets OWNER TO way", "budgets belongs to way"),
        ("ALTER FUNCTION sqlrs.noise(numeric, integer, numeric, integer) OWNER TO way", "noise"),
        ("GRANT CREATE ON SCHEMA sqlrs TO way", "way may create"),
        ("GRANT UPDATE ON sqlrs.budgets TO way", "way may UPDATE budgets"),
        ("GRANT INSERT ON sqlrs.releases TO PUBLIC", "may INSERT releases"),
        ("ALTER TABLE sqlrs.version OWNER TO way", "version belongs to way"),
        ("GRANT UPDATE ON sqlrs.version TO way", "way may UPDATE version"),
        ("CREATE RULE r AS ON UPDATE TO sqlrs.version DO INSTEAD NOTHING", "version has a"),
        (
            "GRANT EXECUTE ON FUNCTION sqlrs.grant_budget(text, text, numeric) TO way",
            "grant_budget",
        ),
        ("ALTER TABLE sqlrs.budgets ENABLE ROW LEVEL SECURITY", "budgets has a trigger"),
        ("CREATE RULE r AS ON INSERT TO sqlrs.releases DO INSTEAD NOTHING", "releases has a"),
        ("CREATE TABLE child () INHERITS (sqlrs.budgets)", "budgets has a trigger"),
        (
            "CREATE TRIGGER t BEFORE UPDATE ON sqlrs.budgets FOR EACH ROW "
            "EXECUTE FUNCTION suppress_redundant_updates_trigger()",
            "budgets has a trigger",
        ),
    ],
)
def test_a_schema_that_is_not_the_owners_alone(
    installed_once: Desk, statement: str, told: str
) -> None:
    desk = installed_once
    body = install_script(desk.define(), Grants(roles=("ada",)))
    body = body.replace("BEGIN;\n", "").replace("COMMIT;\n", "")
    with psycopg.connect(desk.url) as connection:
        connection.execute(statement.encode())
        with pytest.raises(errors.InsufficientPrivilege, match="not its owner's alone") as error:
            connection.execute(body.encode())
        assert told in str(error.value)
        connection.rollback()


@pytest.fixture(scope="module")
def installed_once(workshop: Desk) -> Iterator[Desk]:
    workshop.analyst("way")
    yield workshop
    workshop.run("DROP OWNED BY way; DROP ROLE way")


def test_a_stranger_stalls_no_installation(desk: Desk) -> None:
    """With the old key of the advisory lock, and with an open transaction after a call."""
    desk.install(repeats=False)
    with desk.session("ada", autocommit=False) as stranger:
        stranger.execute("SELECT pg_advisory_lock(495756866163)")
        stranger.execute("SELECT * FROM sqlrs.asked(0.5)")
        stranger.execute("SELECT * FROM sqlrs.budget(), sqlrs.history()")
        with pytest.raises(errors.InsufficientPrivilege), stranger.transaction():
            stranger.execute("COMMENT ON SCHEMA sqlrs IS 'mine'")
        with pytest.raises(errors.InsufficientPrivilege), stranger.transaction():
            stranger.execute("LOCK TABLE sqlrs.budgets")
        done = threading.Thread(target=desk.install, kwargs={"budget": "7"}, daemon=True)
        done.start()
        done.join(25)
        assert not done.is_alive()
    assert {cap for (cap,) in desk.run("SELECT cap FROM sqlrs.budgets")} == {7, 1000}


def test_installations_at_the_same_time(desk: Desk) -> None:
    desk.analyst("ada")
    definitions = [desk.define(TRIANGLES, name=f"asked_{i}") for i in range(4)]
    grants = Grants(roles=("ada",), budget=Decimal(5), dataset_budget=Decimal(5))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda one: install(desk.url, one, grants), definitions))
    assert desk.run("SELECT count(*) FROM sqlrs.queries") == [(4,)]


def test_a_lock_is_not_waited_for_without_end(desk: Desk) -> None:
    script = install_script(desk.define(), Grants())
    desk.install()
    with psycopg.connect(desk.url) as holder, psycopg.connect(desk.url) as other:
        holder.execute("COMMENT ON SCHEMA sqlrs IS 'held'")
        quick = script.replace("lock_timeout = '30s'", "lock_timeout = '50ms'")
        assert quick != script
        with pytest.raises(errors.LockNotAvailable):
            other.execute(quick.encode())
    with pytest.raises(EngineFailed, match="PostgreSQL refused"):
        install(desk.url, desk.define(), Grants(owner="postgres"))
