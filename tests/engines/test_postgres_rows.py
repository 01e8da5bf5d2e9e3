"""What PostgreSQL's snapshots learn is believed where the very same rows are seen, nowhere else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, closing
from fractions import Fraction

import psycopg
import pytest
from sqlglot import exp, parse_one

from sqlrs.catalog import Catalog
from sqlrs.compiler.compile import compile_query
from sqlrs.engines.base import Engine, Remembering
from sqlrs.engines.open import open_engine
from sqlrs.errors import EngineFailed, StatementFailed
from sqlrs.measuring import sampling as reading
from sqlrs.measuring.measure import measure
from sqlrs.measuring.measurements import Measurements
from sqlrs.measuring.work import Values
from sqlrs.query import Query
from sqlrs.residuals.residual import Residuals
from sqlrs.trees.kept import Kept


def statement(text: str) -> exp.Expression:
    return parse_one(text, dialect="postgres")  # type: ignore[return-value]


COUNT = statement("SELECT count(*) FROM public.t")


@pytest.fixture
def owner(any_db: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(any_db, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (a INT)")
        connection.execute("INSERT INTO t VALUES (1)")
        yield connection


@pytest.fixture
def engine(any_db: str, owner: psycopg.Connection) -> Iterator[Engine]:
    with closing(open_engine(any_db)) as found:
        yield found


def learned(engine: Engine, count: int) -> dict[str, object] | None:
    """What the next snapshot knows of the rows of t, of which there are so many."""
    with engine.snapshot() as snapshot:
        assert isinstance(snapshot, Remembering)
        assert snapshot.scalar(COUNT) == count
        return snapshot.learned


def test_the_first_keeps_nothing_and_later_ones_share(engine: Engine) -> None:
    assert learned(engine, 1) is None
    known = learned(engine, 1)
    assert known == {}
    known["what"] = 1
    with engine.snapshot() as unread:
        assert isinstance(unread, Remembering) and unread.learned is known
    assert learned(engine, 1) is known


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO t VALUES (2); DELETE FROM t WHERE a = 2",
        "UPDATE t SET a = 2",
        "ALTER TABLE t ALTER a TYPE BIGINT",
        "TRUNCATE t; INSERT INTO t VALUES (1)",
        "MERGE INTO t USING (SELECT 1 AS a) AS s ON t.a = s.a WHEN MATCHED THEN UPDATE SET a = 3",
        "ALTER TABLE t ADD b INT DEFAULT 1",
        "ALTER TABLE t ALTER a SET DEFAULT 1",
        "DROP TABLE t; CREATE TABLE t AS SELECT 1 AS a",
        "ALTER TABLE t RENAME TO gone; CREATE TABLE t AS SELECT 1 AS a",
        "CREATE TABLE child (a INT); ALTER TABLE child INHERIT t",
        "ALTER TABLE t SET UNLOGGED",
        "VACUUM FULL t",
        # Nobody says which tables a transaction wrote to.
        "CREATE TABLE other (a INT)",
    ],
)
def test_any_change_forgets(engine: Engine, owner: psycopg.Connection, change: str) -> None:
    for _ in range(3):
        before = learned(engine, 1)
    owner.execute(change)
    assert learned(engine, 1) is None
    assert learned(engine, 1) is not before


def test_a_transaction_that_ends_later_counts(
    any_db: str, engine: Engine, owner: psycopg.Connection
) -> None:
    with psycopg.connect(any_db) as writer:
        writer.execute("INSERT INTO t VALUES (2)")
        learned(engine, 1)
        assert learned(engine, 1) is not None
        # One with a later number, which ends before.
        owner.execute("INSERT INTO t VALUES (3)")
        assert learned(engine, 2) is None
        assert learned(engine, 2) is not None
        writer.commit()
        assert learned(engine, 3) is None
        writer.execute("INSERT INTO t VALUES (4)")
        writer.rollback()
    learned(engine, 3)
    assert learned(engine, 3) is not None


def test_snapshots_beside_each_other_learn_apart(engine: Engine) -> None:
    for _ in range(2):
        learned(engine, 1)
    with engine.snapshot() as one:
        assert isinstance(one, Remembering) and one.learned is not None
        assert learned(engine, 1) is not one.learned


@pytest.mark.parametrize("change", ["TRUNCATE t", "VACUUM FULL t", "CLUSTER t USING by_a"])
def test_a_table_written_anew_meanwhile_is_an_error(
    engine: Engine, owner: psycopg.Connection, change: str
) -> None:
    """Its rows are seen as they are now, what was learned is of those before."""
    owner.execute("CREATE INDEX by_a ON t (a)")
    for _ in range(3):
        learned(engine, 1)
    with pytest.raises(EngineFailed, match="changed during"), engine.snapshot() as snapshot:
        owner.execute(change)
        snapshot.scalar(COUNT)
    owner.execute("TRUNCATE t")
    assert learned(engine, 0) is None


def test_a_table_in_the_place_of_another_meanwhile_is_an_error(
    engine: Engine, owner: psycopg.Connection
) -> None:
    """A name means the table that has it now, whatever the snapshot sees of the schema."""
    owner.execute("CREATE TABLE other AS SELECT 1 AS a")
    for _ in range(3):
        learned(engine, 1)
    with pytest.raises(EngineFailed, match="changed during"), engine.snapshot() as snapshot:
        owner.execute("ALTER TABLE t RENAME TO gone; ALTER TABLE other RENAME TO t")
        snapshot.scalar(COUNT)


def test_what_a_snapshot_learned_that_failed_is_not_believed(engine: Engine) -> None:
    """Nobody has seen where the tables were stored that it read."""
    for _ in range(3):
        learned(engine, 1)
    with pytest.raises(ZeroDivisionError), engine.snapshot() as snapshot:
        assert isinstance(snapshot, Remembering) and snapshot.learned is not None
        snapshot.learned["what"] = snapshot.scalar(COUNT) // 0
    assert learned(engine, 1) is None
    assert learned(engine, 1) == {}


def test_another_table_written_anew_is_none(engine: Engine, owner: psycopg.Connection) -> None:
    owner.execute("CREATE TABLE other AS SELECT 1 AS a")
    for _ in range(3):
        learned(engine, 1)
    with engine.snapshot() as snapshot:
        owner.execute("TRUNCATE other")
        assert snapshot.scalar(COUNT) == 1


def test_nothing_is_kept_of_a_child_that_was_emptied(
    engine: Engine, owner: psycopg.Connection
) -> None:
    owner.execute("CREATE TABLE child () INHERITS (t)")
    owner.execute("INSERT INTO child VALUES (5)")
    for _ in range(3):
        learned(engine, 2)
    with pytest.raises(EngineFailed, match="changed during"), engine.snapshot() as snapshot:
        owner.execute("TRUNCATE child")
        snapshot.scalar(COUNT)


def test_a_reset_session_is_another_one(engine: Engine) -> None:
    for _ in range(3):
        learned(engine, 1)
    with engine.snapshot() as snapshot:
        connection = snapshot._connection  # type: ignore[attr-defined]
    connection.execute("DISCARD ALL")
    for _ in range(3):
        assert learned(engine, 1) is None


@pytest.mark.parametrize(
    "kept",
    [
        "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w; "
        "CREATE FOREIGN TABLE away (a INT) SERVER s",
        "CREATE ACCESS METHOD own TYPE TABLE HANDLER heap_tableam_handler; "
        "CREATE TABLE away (a INT) USING own",
        "CREATE ACCESS METHOD own TYPE TABLE HANDLER heap_tableam_handler; "
        "CREATE MATERIALIZED VIEW away USING own AS SELECT 1 AS a",
        # The extension itself is no part of the tests: that it is named is all that is asked.
        "INSERT INTO pg_extension "
        "(oid, extname, extowner, extnamespace, extrelocatable, extversion) "
        "SELECT 1, 'citus', extowner, extnamespace, false, '1' FROM pg_extension LIMIT 1",
    ],
    ids=["foreign", "table", "view", "citus"],
)
def test_rows_kept_elsewhere_change_unseen(
    engine: Engine, owner: psycopg.Connection, kept: str
) -> None:
    owner.execute(kept)
    for _ in range(3):
        assert learned(engine, 1) is None


def test_a_given_connection_is_left_as_it_was(owner: psycopg.Connection) -> None:
    with closing(open_engine(owner)) as engine:
        for _ in range(3):
            assert learned(engine, 1) is None
        row = owner.execute("SELECT current_setting('sqlrs.session', true)").fetchone()
        assert row is not None and not row[0]


def test_a_statement_that_fails_is_no_end(engine: Engine) -> None:
    """Whoever goes on after it reads nothing more, and nothing is kept."""
    with engine.snapshot() as snapshot, ExitStack() as stack:
        stack.enter_context(pytest.raises(StatementFailed))
        snapshot.scalar(statement("SELECT 1 / 0 FROM public.t"))
    assert learned(engine, 1) is None
    before = learned(engine, 1)
    assert before is not None
    with engine.snapshot() as snapshot, ExitStack() as stack:
        stack.enter_context(pytest.raises(StatementFailed))
        snapshot.scalar(statement("SELECT 1 / 0 FROM public.t"))
    assert learned(engine, 1) is None


SQL = (
    "SELECT count(*) FROM visit, person, town WHERE visit.person = person.id "
    "AND person.town = town.id AND visit.at < 5",
    "SELECT count(*) FROM visit AS a, visit AS b, person WHERE a.person = b.person "
    "AND a.person = person.id AND a.at <> b.at",
)


def linear(values: Values) -> Fraction:
    """A fold that every value moves, so that all of them are needed."""
    ordered = sorted(values.items(), key=lambda one: sorted(one[0]))
    return Fraction(sum(n * i for i, (_, n) in enumerate(ordered, 1)))


def compiled(sql: str, catalog: Catalog) -> Residuals:
    found = compile_query(sql, catalog)
    assert isinstance(found, Query)
    return Residuals(found)


def test_answers_between_changes_measure_the_rows_of_now(
    any_db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random changes between answers, often none: what is kept never enters a later state."""
    monkeypatch.setattr(reading, "_SMALL", 0)
    rng = random.Random(20260)
    known = 0
    with psycopg.connect(any_db, autocommit=True) as owner:
        owner.execute("CREATE TABLE town (id INT PRIMARY KEY)")
        owner.execute("CREATE TABLE person (id INT PRIMARY KEY, town INT)")
        owner.execute("CREATE TABLE visit (person INT, at INT NOT NULL)")
        owner.execute("INSERT INTO town SELECT generate_series(0, 4)")
        owner.execute("INSERT INTO person SELECT i, i % 5 FROM generate_series(0, 19) AS s(i)")
        with closing(open_engine(any_db)) as engine, closing(open_engine(any_db)) as plain:
            catalog = engine.catalog()
            texts = [(compiled(sql, catalog), Kept()) for sql in SQL]
            for _ in range(60):
                if rng.random() < 0.3:
                    owner.execute(changed(rng))
                residuals, kept = rng.choice(texts)
                with engine.snapshot() as snapshot:
                    assert isinstance(snapshot, Remembering)
                    known += snapshot.learned is not None
                expected = measure(plain, residuals, residuals.required, plan="plain")
                for fold in (None, linear):
                    measurements = Measurements(engine, kept=kept)
                    found = measurements.enough(residuals, residuals.required, fold)
                    assert found.count == expected.count
                    assert linear(found.values) == linear(expected.values)
    assert known > 20


def changed(rng: random.Random) -> str:
    person, at = rng.randrange(25), rng.randrange(9)
    return rng.choice(
        [
            f"INSERT INTO visit SELECT {person}, i FROM generate_series(0, {at}) AS s(i)",
            f"DELETE FROM visit WHERE person = {person}",
            f"DELETE FROM town WHERE id = {person % 5}",
            f"INSERT INTO town VALUES ({person % 5}) ON CONFLICT DO NOTHING",
            f"UPDATE person SET town = NULLIF({at}, 5) WHERE id = {person}",
            "TRUNCATE visit",
        ]
    )
