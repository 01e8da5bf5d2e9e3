"""Installing, upgrading, listing and removing; and what the script refuses."""

from __future__ import annotations

import re
import subprocess
import sys
from decimal import Decimal

import psycopg
import pytest

from sqlrs.compiled import Compiled
from sqlrs.errors import EngineFailed, QueryRefused, UsageError
from sqlrs.noise import PolyLaplace
from sqlrs.procedures import Grants, install_script
from sqlrs.procedures.definition import RESERVED_NAMES
from sqlrs.procedures.install import (
    balances,
    install,
    installed,
    uninstall,
    uninstall_everything,
)
from sqlrs.procedures.schema_parts import MIGRATIONS, OBJECTS
from sqlrs.sensitivity.refined import choose_method
from sqlrs.sensitivity.steps import compile_recursion
from sqlrs.settings import Settings
from sqlrs.templates import template
from tests.procedures.desk import PASSWORD, TRIANGLES, Desk

PATHS = "SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src"


def test_a_definition_can_be_upgraded_and_the_ledger_stays(desk: Desk) -> None:
    desk.install(dataset_budget="7")
    first = desk.ask("0.5")
    desk.install(PATHS, budget=None, dataset_budget=None)
    assert desk.spent() == {"ada": Decimal("0.5"), "data": Decimal("0.5")}
    desk.ask("0.5")  # another query: charged
    assert desk.spent()["ada"] == 1
    desk.install(budget=None, dataset_budget=None)
    assert desk.ask("0.5") == first  # the first query again: its answer is on record
    assert desk.spent()["ada"] == 1
    assert {b.name: b.cap for b in balances(desk.url)} == {"ada": 100, "data": 7}


def test_a_removed_function_is_gone_and_its_costs_are_not(desk: Desk) -> None:
    desk.install()
    desk.install(PATHS, name="paths")
    desk.ask("2")
    assert [one.name for one in installed(desk.url)] == ["asked", "paths"]
    assert [one.roles for one in installed(desk.url)] == [["ada"], ["ada"]]
    uninstall(desk.url, "asked")
    with pytest.raises(psycopg.errors.UndefinedFunction):
        desk.ask("1")
    assert [one.name for one in installed(desk.url)] == ["paths"]
    assert desk.spent()["ada"] == 2
    with pytest.raises(UsageError, match="no function asked"):
        uninstall(desk.url, "asked")
    uninstall_everything(desk.url)
    assert installed(desk.url) == ()
    assert balances(desk.url) == ()


@pytest.mark.parametrize(
    "name", ["x; DROP TABLE edge", 'a"b', "Count", "", "1a", "a" * 64, "spend"]
)
def test_a_name_is_a_plain_word_and_free(desk: Desk, name: str) -> None:
    with pytest.raises(UsageError):
        desk.define(name=name)
    with pytest.raises(UsageError):
        uninstall(desk.url, name)


def test_the_reserved_names_are_those_of_the_schema(desk: Desk) -> None:
    desk.install()
    found = desk.run("SELECT proname FROM pg_proc WHERE pronamespace = 'sqlrs'::regnamespace")
    assert {name for (name,) in found} == {"asked", *RESERVED_NAMES}


@pytest.mark.parametrize("quote", ["$sqlrs$", "$measure$"])
def test_a_query_cannot_leave_its_quotes(desk: Desk, quote: str) -> None:
    desk.run("CREATE TABLE word (text text)")
    evil = f"{quote}; DROP TABLE edge; --"
    with pytest.raises(QueryRefused, match="holds the text"):
        install_script(desk.define(f"SELECT count(*) FROM word WHERE text = '{evil}'"), Grants())


def test_strange_names_are_quoted(desk: Desk) -> None:
    evil = 'it\'s "odd"; DROP TABLE edge; -- %s {x} \\'
    desk.run('CREATE SCHEMA "Odd schema"')
    desk.run('CREATE TABLE "Odd schema"."ta""ble" ("co\'l" int, epsilon int, answer text)')
    desk.run('INSERT INTO "Odd schema"."ta""ble" VALUES (1, 1, E\'it\\\'s\')')
    desk.analyst('O\'Neil "x"')
    definition = desk.define(
        'SELECT count(*) FROM "Odd schema"."ta""ble" t WHERE t."co\'l" = t.epsilon '
        "AND t.answer = 'it''s'",
        dataset=evil,
    )
    budget = Decimal(10**4)
    grants = Grants(
        owner='the "owner"\'s', roles=('O\'Neil "x"',), budget=budget, dataset_budget=budget
    )
    install(desk.url, definition, grants)
    assert {b.name for b in balances(desk.url)} == {evil, 'O\'Neil "x"'}
    with psycopg.connect(desk.url, autocommit=True) as connection:
        connection.execute('ALTER ROLE "O\'Neil ""x""" SUPERUSER')
        connection.execute("SET SESSION AUTHORIZATION 'O''Neil \"x\"'")
        row = connection.execute("SELECT answer FROM sqlrs.asked(1000)").fetchone()
        connection.execute("RESET SESSION AUTHORIZATION")
        connection.execute('ALTER ROLE "O\'Neil ""x""" NOSUPERUSER')
    assert row == (1,)


def test_the_same_script_is_printed_and_run(desk: Desk) -> None:
    desk.analyst("ada")
    command = [
        *(sys.executable, "-m", "sqlrs", "install", TRIANGLES, "--name", "asked", "--db", desk.url),
        *("--grant", "ada", "--budget", "3", "--dataset-budget", "4", "--dry-run"),
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert desk.run("SELECT to_regnamespace('sqlrs')") == [(None,)]
    grants = Grants(roles=("ada",), budget=Decimal(3), dataset_budget=Decimal(4))
    assert run.stdout == install_script(desk.define(), grants)
    with psycopg.connect(desk.url, autocommit=True) as connection:
        connection.execute(run.stdout.encode())
    desk.ask("1")
    subprocess.run([part for part in command if part != "--dry-run"], check=True)
    listed = [sys.executable, "-m", "sqlrs", "installed", "--db", desk.url]
    shown = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    assert "asked  dataset data" in shown
    assert "for ada  protects one row\n" in shown
    assert "analyst ada: cap 3, spent 1, of that 1 on recorded answers" in shown
    remove = [sys.executable, "-m", "sqlrs", "uninstall", "--db", desk.url, "--name", "asked"]
    subprocess.run(remove, check=True)
    assert installed(desk.url) == ()


def test_nothing_installed_is_said(desk: Desk) -> None:
    listed = [sys.executable, "-m", "sqlrs", "installed", "--db", desk.url]
    shown = subprocess.run(listed, capture_output=True, text=True, check=True)
    assert shown.stdout == ""
    assert "no function is installed" in shown.stderr


def test_public_tables_alone_need_no_function(desk: Desk) -> None:
    with pytest.raises(UsageError, match="public tables alone"):
        desk.define(PATHS, public=["edge"])


def test_every_object_starts_with_its_comment() -> None:
    steps = (f"migrations/{name}" for name in MIGRATIONS)
    for name in ("count", "owner", "upgrade", *OBJECTS, *steps):
        assert template(f"procedures/{name}.sql").startswith("-- ")


def test_a_role_that_reads_the_table_is_refused(desk: Desk) -> None:
    desk.analyst("reader")
    desk.run("GRANT SELECT (src) ON edge TO reader")
    with pytest.raises(UsageError, match=r"role reader has the right SELECT on public\.edge"):
        desk.install(roles=["reader"])
    with pytest.raises(UsageError, match="role postgres is a superuser"):
        install(desk.url, desk.define(), Grants(roles=("postgres",)))
    with pytest.raises(UsageError, match="role nobody_here does not exist"):
        install(desk.url, desk.define(), Grants(roles=("nobody_here",)))
    desk.install(roles=["ada"])
    desk.analyst("deputy")
    desk.run("GRANT sqlrs_owner TO deputy")
    with pytest.raises(UsageError, match="deputy can act as sqlrs_owner, which owns the functions"):
        desk.install(roles=["deputy"])
    desk.run("REVOKE sqlrs_owner FROM deputy")


def test_a_schema_of_somebody_else_is_refused(desk: Desk) -> None:
    desk.analyst("mallory")
    desk.run("CREATE SCHEMA sqlrs AUTHORIZATION mallory")
    with pytest.raises(EngineFailed, match="belongs to another role"):
        desk.install()


def test_an_owner_with_powers_is_refused(desk: Desk) -> None:
    with pytest.raises(EngineFailed, match="without login and without powers"):
        install(desk.url, desk.define(), Grants(owner="postgres"))


def test_an_owner_that_a_stranger_can_act_as_is_refused(desk: Desk) -> None:
    desk.analyst("mallory")
    desk.run("DROP ROLE IF EXISTS made_before, middle")
    desk.run("CREATE ROLE made_before; CREATE ROLE middle")
    desk.run("GRANT made_before TO middle WITH ADMIN OPTION; GRANT middle TO mallory")
    grants = Grants("made_before", (desk.analyst("ada"),))
    with pytest.raises(UsageError, match="mallory can act as made_before"):
        install(desk.url, desk.define(), grants)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        desk.run("SELECT count(*) FROM edge", "mallory")
    desk.run("REVOKE made_before FROM middle")
    install(desk.url, desk.define(), grants)


def test_an_installer_needs_no_superuser(desk: Desk) -> None:
    desk.run("DROP ROLE IF EXISTS keeper")
    desk.run(f"CREATE ROLE keeper LOGIN CREATEROLE PASSWORD '{PASSWORD}'")
    desk.run("ALTER TABLE edge OWNER TO keeper")
    database = desk.url.rpartition("/")[2]
    desk.run(f"GRANT CREATE ON DATABASE {database} TO keeper")
    desk.run("GRANT USAGE ON SCHEMA public TO keeper WITH GRANT OPTION")
    desk.analyst("ada")
    grants = Grants("another_owner", ("ada",), Decimal(5), Decimal(5))
    install(desk.url_of("keeper"), desk.define(), grants)
    install(desk.url_of("keeper"), desk.define(), grants)
    # Who owns the tables may act as the owner: a superuser installs after it.
    install(desk.url, desk.define(), grants)
    desk.ask("1")
    assert desk.spent() == {"ada": 1, "data": 1}
    uninstall_everything(desk.url_of("keeper"))


def test_a_type_from_elsewhere_is_refused(desk: Desk) -> None:
    desk.run("CREATE TYPE mood AS ENUM ('good', 'bad')")
    desk.run("CREATE TABLE person (id int PRIMARY KEY, mood mood)")
    with pytest.raises(QueryRefused, match="not of a type of PostgreSQL's own"):
        desk.define("SELECT count(*) FROM person a JOIN person b ON a.mood = b.mood")
    desk.define("SELECT count(*) FROM person a JOIN person b ON a.id = b.id")


def test_a_query_that_is_never_true_is_refused(desk: Desk) -> None:
    with pytest.raises(UsageError, match="always 0"):
        desk.define("SELECT count(*) FROM edge WHERE src = 1 AND src = 2")


def test_the_least_epsilon_is_that_of_the_lattice(desk: Desk) -> None:
    for name in "rstu":
        desk.run(f"CREATE TABLE {name} (a int, b int)")
    star = "SELECT count(*) FROM r JOIN s ON r.a = s.a JOIN t ON r.a = t.a JOIN u ON r.a = u.a"
    definition = desk.define(star)
    from sqlrs.connecting import connect

    with connect(desk.url) as database:
        compiled = Compiled.of(star, database.catalog, Settings())
    assert isinstance(compiled, Compiled)
    recursion = compile_recursion(compiled.residuals)

    def is_lattice(epsilon: Decimal) -> bool:
        method = choose_method(recursion, PolyLaplace(epsilon, 5).weights)
        return method is not None and method.lattice

    least = definition.least_epsilon
    assert is_lattice(least)
    desk.install(star)
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=re.escape(f"at least {least}")):
        desk.ask(least * Decimal("0.99"))
    assert desk.spent()["ada"] == 0
    desk.ask(least)


def test_what_the_owner_refuses_is_not_installed(desk: Desk) -> None:
    """By its name, or because declared sizes allow too large a join; tables of groups too."""
    named = Settings(refused_queries=(TRIANGLES.replace(" a ", " x ").replace("a.", "x."),))
    bounded = Settings(declared_rows={"edge": 1000}, max_intermediate_rows=10)
    grouped = "SELECT count(*), count(*) + 1 FROM edge a JOIN edge b ON a.dst = b.src"
    for settings, statement, code in (
        (named, TRIANGLES, "refused_by_owner"),
        (bounded, TRIANGLES, "too_large_join"),
        (bounded, grouped, "too_large_join"),
    ):
        with pytest.raises(QueryRefused) as refused:
            desk.define_any(statement, settings=settings)
        assert refused.value.code == code
