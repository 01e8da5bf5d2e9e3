"""A ledger is its owner's alone: tables, files and locks of strangers are not taken for ours."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import sqlalchemy

from sqlrs.errors import BudgetExhausted, EngineFailed, UsageError
from sqlrs.ledger.store import StoreLedger
from sqlrs.procedures.server_statistics import hide
from tests.ledger.build import charge
from tests.ledger.older import FIXTURES

OLD_TABLES = """
CREATE TABLE sqlrs_budgets (
  kind text, name text, cap numeric NOT NULL, spent numeric NOT NULL, PRIMARY KEY (kind, name)
);
CREATE TABLE sqlrs_releases (
  ticket bigserial PRIMARY KEY, at timestamptz NOT NULL, analyst text NOT NULL,
  dataset text NOT NULL, query text NOT NULL, mechanism text NOT NULL, epsilon numeric NOT NULL,
  outcome text NOT NULL, answer text, fingerprint text NOT NULL
);
INSERT INTO sqlrs_budgets VALUES ('analyst', 'ada', 5, 4.5), ('dataset', 'graph', 5, 4.5);
"""
ALONE = "not its owner's alone"


class Server:
    """A database with a role for the service and one for a stranger, both of this test only."""

    def __init__(self, url: str) -> None:
        self.url = url
        name = urlsplit(url).path.strip("/")
        self.service, self.stranger = f"service_{name}", f"stranger_{name}"
        for role in (self.service, self.stranger):
            self.run(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'")
            self.run(f"GRANT CREATE ON SCHEMA public TO {role}")
        self.run(f"GRANT CREATE ON DATABASE {name} TO {self.service}, {self.stranger}")

    def url_of(self, role: str) -> str:
        parts = urlsplit(self.url)
        return f"postgresql://{role}:secret@127.0.0.1:{parts.port}{parts.path}"

    def run(self, statement: str, role: str | None = None) -> list[tuple[object, ...]]:
        url = self.url if role is None else self.url_of(role)
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def drop(self) -> None:
        for role in (self.service, self.stranger):
            self.run(f"DROP OWNED BY {role} CASCADE")
            self.run(f"DROP ROLE {role}")


@pytest.fixture
def server(postgres_db: str) -> Iterator[Server]:
    server = Server(postgres_db)
    yield server
    server.drop()


@pytest.mark.postgres
@pytest.mark.parametrize("by_superuser", [False, True])
def test_tables_that_a_stranger_made_first(server: Server, by_superuser: bool) -> None:
    """A refilled ledger lies in wait: in the schema for everybody, then in the ledger's own."""
    url = server.url if by_superuser else server.url_of(server.service)
    server.run(OLD_TABLES, server.stranger)
    server.run("GRANT ALL ON sqlrs_budgets, sqlrs_releases TO PUBLIC", server.stranger)
    with pytest.raises(UsageError, match=f"{ALONE}|must be owner of table sqlrs_budgets"):
        StoreLedger(url)
    server.run("DROP TABLE sqlrs_budgets, sqlrs_releases", server.stranger)
    server.run("CREATE SCHEMA sqlrs_ledger", server.stranger)
    server.run(f"SET search_path = sqlrs_ledger; {OLD_TABLES}", server.stranger)
    server.run("GRANT ALL ON SCHEMA sqlrs_ledger TO PUBLIC", server.stranger)
    server.run("GRANT ALL ON ALL TABLES IN SCHEMA sqlrs_ledger TO PUBLIC", server.stranger)
    with pytest.raises(UsageError, match=f"{ALONE}: it belongs to {server.stranger}"):
        StoreLedger(url)


@pytest.mark.postgres
def test_what_a_stranger_may_write_to(server: Server) -> None:
    url = server.url_of(server.service)
    StoreLedger(url).close()
    for statement, back in (
        ("GRANT UPDATE ON sqlrs_ledger.sqlrs_budgets TO PUBLIC", "REVOKE UPDATE ON "
         "sqlrs_ledger.sqlrs_budgets FROM PUBLIC"),
        (f"GRANT CREATE ON SCHEMA sqlrs_ledger TO {server.stranger}", "REVOKE CREATE ON SCHEMA "
         f"sqlrs_ledger FROM {server.stranger}"),
        ("CREATE TRIGGER t BEFORE UPDATE ON sqlrs_ledger.sqlrs_budgets FOR EACH ROW EXECUTE "
         "FUNCTION suppress_redundant_updates_trigger()",
         "DROP TRIGGER t ON sqlrs_ledger.sqlrs_budgets"),
        ("CREATE RULE r AS ON UPDATE TO sqlrs_ledger.sqlrs_budgets DO INSTEAD NOTHING",
         "DROP RULE r ON sqlrs_ledger.sqlrs_budgets"),
        ("ALTER TABLE sqlrs_ledger.sqlrs_budgets ENABLE ROW LEVEL SECURITY",
         "ALTER TABLE sqlrs_ledger.sqlrs_budgets DISABLE ROW LEVEL SECURITY"),
        ("ALTER TABLE sqlrs_ledger.sqlrs_budgets SET UNLOGGED",
         "ALTER TABLE sqlrs_ledger.sqlrs_budgets SET LOGGED"),
        (f"ALTER TABLE sqlrs_ledger.sqlrs_budgets OWNER TO {server.stranger}",
         f"ALTER TABLE sqlrs_ledger.sqlrs_budgets OWNER TO {server.service}"),
        (f"ALTER TABLE sqlrs_ledger.sqlrs_version OWNER TO {server.stranger}",
         f"ALTER TABLE sqlrs_ledger.sqlrs_version OWNER TO {server.service}"),
        ("CREATE RULE r AS ON UPDATE TO sqlrs_ledger.sqlrs_version DO INSTEAD NOTHING",
         "DROP RULE r ON sqlrs_ledger.sqlrs_version"),
        ("GRANT UPDATE ON sqlrs_ledger.sqlrs_version TO PUBLIC", "REVOKE UPDATE ON "
         "sqlrs_ledger.sqlrs_version FROM PUBLIC"),
    ):  # fmt: skip
        server.run(statement)
        with pytest.raises(UsageError, match=ALONE):
            StoreLedger(url)
        server.run(back)
        StoreLedger(url).close()
    server.run(f"GRANT SELECT ON sqlrs_ledger.sqlrs_budgets TO {server.stranger}")
    StoreLedger(url).close()  # reading refills nothing


@pytest.mark.postgres
def test_an_older_ledger_moves_in_with_what_is_spent(server: Server) -> None:
    url = server.url_of(server.service)
    server.run(OLD_TABLES, server.service)
    ledger = StoreLedger(url)
    assert ledger.budget(analyst="ada").spent == Decimal("4.5")
    ledger.reserve(charge("0.5"))
    with pytest.raises(BudgetExhausted):
        ledger.reserve(charge("0.5"))
    ledger.close()
    assert server.run("SELECT to_regclass('public.sqlrs_budgets')") == [(None,)]


@pytest.mark.postgres
def test_whoever_upgrades_a_ledger_its_owner_keeps_it(server: Server) -> None:
    """The table of a new version belongs to whom the budgets belong, not to whom it was made by."""
    server.run((FIXTURES / "version_1_postgresql.sql").read_text("utf-8"), server.service)
    server.run(f"GRANT {server.service} TO {server.stranger}")
    StoreLedger(server.url_of(server.stranger)).close()
    server.run(f"REVOKE {server.service} FROM {server.stranger}")
    ledger = StoreLedger(server.url_of(server.service))
    ledger.reserve(charge("0.01"))
    ledger.close()
    owners = server.run("SELECT tableowner FROM pg_tables WHERE schemaname = 'sqlrs_ledger'")
    assert set(owners) == {(server.service,)}


@pytest.mark.postgres
def test_an_older_ledger_of_another_role_is_not_upgraded(server: Server) -> None:
    script = (FIXTURES / "version_1_postgresql.sql").read_text("utf-8")
    server.run(script)  # the superuser's, with all rights for the service: allowed until now
    server.run(f"GRANT ALL ON SCHEMA sqlrs_ledger TO {server.service}")
    server.run(f"GRANT ALL ON ALL TABLES IN SCHEMA sqlrs_ledger TO {server.service}")
    with pytest.raises(UsageError, match="must be owner of schema") as error:
        StoreLedger(server.url_of(server.service))
    assert "must be given to it first" in (error.value.hint or "")


@pytest.mark.postgres
def test_a_role_that_may_not_make_the_schema_is_told_how(server: Server) -> None:
    name = urlsplit(server.url).path.strip("/")
    server.run(f"REVOKE CREATE ON DATABASE {name} FROM {server.service}")
    with pytest.raises(UsageError, match="permission denied") as error:
        StoreLedger(server.url_of(server.service))
    assert "CREATE SCHEMA sqlrs_ledger AUTHORIZATION" in (error.value.hint or "")
    server.run(f"CREATE SCHEMA sqlrs_ledger AUTHORIZATION {server.service}")
    StoreLedger(server.url_of(server.service)).close()


@pytest.mark.postgres
@pytest.mark.parametrize("made", ["new", "old"])
def test_a_ledger_needs_no_statistics(server: Server, made: str) -> None:
    if made == "old":
        server.run((FIXTURES / "version_1_postgresql.sql").read_text("utf-8"), server.service)
    hide(server.url)
    ledger = StoreLedger(server.url_of(server.service))
    ledger.grant(analyst="ada", epsilon=1)
    ledger.close()
    StoreLedger(server.url_of(server.service)).close()


@pytest.mark.postgres
def test_a_stranger_stalls_no_ledger(server: Server) -> None:
    """With the old key of the advisory lock; and it cannot take the lock of today."""
    opened: list[StoreLedger] = []

    def use() -> None:
        ledger = StoreLedger(server.url_of(server.service))
        ledger.grant(analyst="ada", epsilon=1)
        opened.append(ledger)

    with psycopg.connect(server.url_of(server.stranger), autocommit=True) as stranger:
        stranger.execute("SELECT pg_advisory_lock(495824171635)")
        thread = threading.Thread(target=use, daemon=True)
        thread.start()
        thread.join(25)
        assert opened
        for statement in (
            "COMMENT ON SCHEMA sqlrs_ledger IS ''",
            "LOCK sqlrs_ledger.sqlrs_budgets",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege), stranger.transaction():
                stranger.execute(statement.encode())
    opened[0].close()


@pytest.mark.postgres
def test_numbers_that_are_none_answer_nothing(server: Server) -> None:
    ledger = StoreLedger(server.url)
    ledger.grant(analyst="ada", epsilon=5)
    ledger.grant(dataset="graph", epsilon=5)
    table = "sqlrs_ledger.sqlrs_budgets"
    server.run(f"ALTER TABLE {table} ALTER cap DROP NOT NULL, ALTER spent DROP NOT NULL")
    for column in ("cap", "spent"):
        for value in ("NULL", "'NaN'", "'Infinity'", "'-Infinity'", "-3", "1e7"):
            ((before,),) = server.run(f"SELECT {column} FROM {table} WHERE kind = 'dataset'")
            server.run(f"UPDATE {table} SET {column} = {value} WHERE kind = 'dataset'")
            with pytest.raises(EngineFailed, match="not a budget"):
                ledger.reserve(charge("0.1"))
            server.run(f"UPDATE {table} SET {column} = {before} WHERE kind = 'dataset'")
    assert ledger.history() == ()
    assert ledger.budget(analyst="ada").spent == 0
    ledger.close()


@pytest.mark.postgres
def test_a_charge_that_was_not_kept_is_no_charge(server: Server) -> None:
    """A trigger made after the start takes the charge back; the value that stays is looked at."""
    ledger = StoreLedger(server.url)
    ledger.grant(analyst="ada", epsilon=5)
    ledger.grant(dataset="graph", epsilon=5)
    server.run("CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS "
               "$$ BEGIN NEW.spent := OLD.spent; RETURN NEW; END $$")  # fmt: skip
    server.run("CREATE TRIGGER t BEFORE UPDATE ON sqlrs_ledger.sqlrs_budgets FOR EACH ROW "
               "EXECUTE FUNCTION keep()")  # fmt: skip
    with pytest.raises(EngineFailed, match="did not keep a charge"):
        ledger.reserve(charge("0.1"))
    server.run("DROP TRIGGER t ON sqlrs_ledger.sqlrs_budgets")
    server.run("ALTER TABLE sqlrs_ledger.sqlrs_budgets DROP CONSTRAINT sqlrs_budgets_pkey")
    server.run("INSERT INTO sqlrs_ledger.sqlrs_budgets VALUES ('analyst', 'ada', 5, 0)")
    with pytest.raises(EngineFailed, match="did not keep a charge"):
        ledger.reserve(charge("0.1"))
    assert ledger.history() == ()
    ledger.close()


def test_a_deleted_budget_starts_where_the_journal_ends(store: StoreLedger, store_url: str) -> None:
    store.grant(analyst="ada", epsilon=5)
    store.grant(dataset="graph", epsilon=5)
    store.settle(store.reserve(charge("4.25")), "1")
    store.reserve(charge("0.25"))
    engine = sqlalchemy.create_engine(store_url.replace("postgresql:", "postgresql+psycopg:"))
    schema = "" if engine.dialect.name == "sqlite" else "sqlrs_ledger."
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text(f"DELETE FROM {schema}sqlrs_budgets"))
    engine.dispose()
    with pytest.raises(BudgetExhausted, match="has 0 left"):
        store.reserve(charge("0.1"))
    for budget in (store.grant(analyst="ada", epsilon=5), store.grant(dataset="graph", epsilon=5)):
        assert budget.spent == Decimal("4.5")


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_to(tmp_path: Path, sqlite_url: str, mode: int) -> None:
    StoreLedger(sqlite_url).close()
    (tmp_path / "budget.db").chmod(mode)
    with pytest.raises(UsageError, match="others may write"):
        StoreLedger(sqlite_url)


def test_a_file_of_another_user(tmp_path: Path, sqlite_url: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    StoreLedger(sqlite_url).close()
    os.chown(tmp_path / "budget.db", 65534, -1)
    with pytest.raises(UsageError, match="belongs to another user"):
        StoreLedger(sqlite_url)


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_folder_that_everybody_may_write_to(tmp_path: Path, mode: int) -> None:
    """SQLite takes over the journal that lies beside a database, whoever put it there."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    with pytest.raises(UsageError, match="everybody may create files"):
        StoreLedger(f"sqlite:///{shared / 'budget.db'}")
    (shared / "link.db").symlink_to(tmp_path / "budget.db")
    with pytest.raises(UsageError, match="everybody may create files"):
        StoreLedger(f"sqlite:///{shared / 'link.db'}")


def test_a_file_with_a_trigger(tmp_path: Path, sqlite_url: str) -> None:
    StoreLedger(sqlite_url).close()
    engine = sqlalchemy.create_engine(sqlite_url)
    with engine.begin() as connection:
        connection.execute(
            sqlalchemy.text(
                "CREATE TRIGGER refill AFTER UPDATE ON sqlrs_budgets BEGIN "
                "UPDATE sqlrs_budgets SET spent = '0'; END"
            )
        )
    engine.dispose()
    with pytest.raises(UsageError, match="refill is a trigger"):
        StoreLedger(sqlite_url)
