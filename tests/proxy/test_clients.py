"""Real clients over TLS. Every one gets the noisy number, a notice, and refusals it understands."""

from __future__ import annotations

import asyncio
import datetime
import os
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.double import EDGES, NOISE
from tests.proxy.harness import PASSWORD, RunningProxy
from tests.proxy.jdbc import run_jdbc

COUNT = "SELECT count(*) FROM edge"
ANSWER = len(EDGES) + NOISE
BY_SOURCE = [sum(a == source for a, _ in EDGES) + NOISE for source in range(12)]
CLIENTS = Path(__file__).parent / "clients"


def _context(proxy: RunningProxy) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(proxy.certificate))


def _psql(proxy: RunningProxy, *commands: str, **dsn: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("psql")
    if program is None:
        pytest.skip("psql is not installed")
    arguments = [part for command in commands for part in ("-c", command)]
    return subprocess.run(
        [program, "-X", "-A", "-t", "-d", proxy.dsn(**dsn), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


class TestPsql:
    def test_a_count_with_its_notice(self, proxy: RunningProxy) -> None:
        done = _psql(proxy, COUNT)
        assert done.stdout.split() == [str(ANSWER)]
        assert "NOTICE:  sqlrs: " in done.stderr

    def test_the_meta_commands(self, proxy: RunningProxy) -> None:
        done = _psql(
            proxy, r"\d", r"\dt", r"\dt+", r"\d edge", r"\d+ person", r"\l", r"\dn", r"\du"
        )
        assert done.stderr == ""
        assert "public|edge|table" in done.stdout
        assert "src|bigint||not null" in done.stdout
        assert "id|integer||not null" in done.stdout

    def test_timing_gdesc_and_watch(self, proxy: RunningProxy) -> None:
        script = f"\\timing on\n{COUNT} \\gdesc\n{COUNT} \\g\n"
        done = (
            subprocess.run(
                ["psql", "-X", "-d", proxy.dsn(), "-f", "-"],
                input=script,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            if shutil.which("psql")
            else pytest.skip("psql is not installed")
        )
        assert " count  | bigint" in done.stdout
        assert "Time:" in done.stdout
        assert str(ANSWER) in done.stdout

    def test_watch_repeats_from_the_record(self, proxy: RunningProxy, backend: Any) -> None:
        if shutil.which("psql") is None:
            pytest.skip("psql is not installed")
        _psql(proxy, COUNT)
        spent = backend.spent["alice"]
        watching = subprocess.Popen(
            ["psql", "-X", "-A", "-t", "-d", proxy.dsn()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert watching.stdin is not None and watching.stdout is not None
        watching.stdin.write(f"{COUNT} \\watch 0.1\n")
        watching.stdin.flush()
        seen = 0
        while seen < 3:
            seen += watching.stdout.readline().strip() == str(ANSWER)
        watching.terminate()
        watching.communicate(timeout=10)
        assert backend.spent["alice"] == spent

    def test_errors_have_place_and_hint(self, proxy: RunningProxy) -> None:
        done = _psql(
            proxy,
            "SELECT nothing FROM edge",
            f"{COUNT} WHERE abs(src) = f(1)",
            "COPY edge TO STDOUT",
        )
        assert 'ERROR:  column "nothing" does not exist\nLINE 1: SELECT nothing' in done.stderr
        assert "ERROR:  COPY is not supported\nLINE 1: COPY edge" in done.stderr
        assert "HINT:  counts are answered by SELECT count(*)" in done.stderr

    def test_settings_and_views(self, proxy: RunningProxy) -> None:
        done = _psql(
            proxy,
            "SET sqlrs.epsilon = 0.25",
            "SHOW sqlrs.epsilon",
            "SET sqlrs.error_bars = 0.1",
            f"{COUNT} WHERE src = 1 AND dst = 2",
            "SHOW sqlrs.budget",
            "SELECT remaining = current_setting('sqlrs.budget')::numeric FROM sqlrs.budget",
            "SELECT sql, epsilon, status, answer FROM sqlrs.history LIMIT 1",
            user="bob",
        )
        lines = done.stdout.split("\n")
        assert lines[1] == "0.25"
        assert lines[4] == "99999.65"
        assert lines[5] == "t"
        assert lines[6].startswith(f"{COUNT} WHERE src = 1 AND dst = 2|0.35|released|10")
        assert "epsilon 0.35 charged, 99999.65 remains, error bars" in done.stderr

    def test_channel_binding_and_verification(self, proxy: RunningProxy) -> None:
        done = _psql(
            proxy,
            COUNT,
            host="localhost",
            sslmode="verify-full",
            sslrootcert=str(proxy.certificate),
            channel_binding="require",
        )
        assert done.stdout.split() == [str(ANSWER)]

    def test_a_wrong_password(self, proxy: RunningProxy) -> None:
        done = _psql(proxy, COUNT, password="wrong password")
        assert done.stdout == ""
        assert "authentication failed" in done.stderr


class TestPsycopg:
    def test_counts_parameters_and_pipelines(self, proxy: RunningProxy) -> None:
        psycopg = pytest.importorskip("psycopg")
        with psycopg.connect(proxy.dsn(channel_binding="require")) as connection:
            notices: list[str] = []
            connection.add_notice_handler(lambda report: notices.append(report.message_primary))
            assert connection.execute(COUNT).fetchone() == (ANSWER,)
            assert notices[0].startswith("sqlrs: ")
            by_source = f"{COUNT} WHERE src = %s"
            for source in range(12):
                assert connection.execute(by_source, (source,)).fetchone() == (BY_SOURCE[source],)
            binary = connection.cursor(binary=True)
            assert binary.execute(f"{COUNT} WHERE src = %b", (3,)).fetchone() == (BY_SOURCE[3],)
            person = "SELECT count(*) FROM person WHERE name = %s AND born = %s AND height > %s"
            values = ("Ada", datetime.date(1815, 12, 10), 1.5)
            assert connection.execute(person, values).fetchone() == (1 + NOISE,)
            assert connection.execute(person, ("A'da", *values[1:])).fetchone() == (NOISE,)
            listed = "SELECT count(*) FROM person WHERE id = ANY(%s) AND name <> ALL(%s)"
            for cursor in (connection.cursor(), binary):
                assert cursor.execute(listed, ([1, 5], ["Eve"])).fetchone() == (1 + NOISE,)
                assert cursor.execute(listed, ([2], ["Eve"])).fetchone() == (NOISE,)
                assert cursor.execute(listed, ([1], ["Ada", "Eve"])).fetchone() == (NOISE,)
            with connection.pipeline():
                cursors = [connection.execute(by_source, (source,)) for source in range(5)]
                assert [c.fetchone() for c in cursors] == [(n,) for n in BY_SOURCE[:5]]

    def test_an_error_in_a_pipeline_fails_the_rest_of_it(self, proxy: RunningProxy) -> None:
        psycopg = pytest.importorskip("psycopg")
        with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
            with pytest.raises(psycopg.errors.FeatureNotSupported), connection.pipeline():
                connection.execute(f"{COUNT} WHERE src = %s", (1,))
                connection.execute("SELECT src FROM edge")
                connection.execute(COUNT)
            assert connection.execute(COUNT).fetchone() == (ANSWER,)

    def test_transactions_fail_as_a_whole(self, proxy: RunningProxy) -> None:
        psycopg = pytest.importorskip("psycopg")
        with psycopg.connect(proxy.dsn()) as connection:
            connection.execute("SET LOCAL sqlrs.epsilon = 0.125")
            assert connection.execute("SHOW sqlrs.epsilon").fetchone() == ("0.125",)
            with pytest.raises(psycopg.errors.FeatureNotSupported):
                connection.execute("SELECT * FROM edge")
            with pytest.raises(psycopg.errors.InFailedSqlTransaction):
                connection.execute(COUNT)
            connection.rollback()
            assert connection.execute("SHOW sqlrs.epsilon").fetchone() == ("0.5",)

    def test_server_side_cursors_are_refused(self, proxy: RunningProxy) -> None:
        psycopg = pytest.importorskip("psycopg")
        with (
            psycopg.connect(proxy.dsn()) as connection,
            connection.cursor("named") as cursor,
            pytest.raises(psycopg.errors.FeatureNotSupported),
        ):
            cursor.execute(COUNT)

    def test_copy_is_refused(self, proxy: RunningProxy) -> None:
        psycopg = pytest.importorskip("psycopg")
        with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
            with (
                pytest.raises(psycopg.errors.FeatureNotSupported),
                connection.cursor().copy("COPY edge TO STDOUT") as copy,
            ):
                copy.read()
            assert connection.execute(COUNT).fetchone() == (ANSWER,)


def test_psycopg2(proxy: RunningProxy) -> None:
    psycopg2 = pytest.importorskip("psycopg2")
    connection = psycopg2.connect(proxy.dsn())
    with connection, connection.cursor() as cursor:
        cursor.execute(COUNT)
        assert cursor.fetchone() == (ANSWER,)
        cursor.execute("SELECT count(*) FROM person WHERE name = %s", ("Ada",))
        assert cursor.fetchone() == (1 + NOISE,)
        assert "sqlrs: " in connection.notices[0]
    connection.close()


def test_asyncpg(proxy: RunningProxy) -> None:
    asyncpg = pytest.importorskip("asyncpg")

    async def run() -> None:
        arguments = {
            "host": "localhost",
            "port": proxy.port,
            "user": "alice",
            "password": PASSWORD,
            "database": "sqlrs",
            "ssl": _context(proxy),
        }
        connection = await asyncpg.connect(**arguments)
        assert await connection.fetchval(COUNT) == ANSWER
        row = await connection.fetchrow(f"{COUNT} WHERE src = $1", 3)
        assert row["count"] == BY_SOURCE[3]
        person = "SELECT count(*) FROM person WHERE born < $1 AND name = $2 AND height > $3"
        value = await connection.fetchval(person, datetime.date(1900, 1, 1), "Ada", 1.0)
        assert value == 1 + NOISE
        listed = "SELECT count(*) FROM person WHERE born = ANY($1) AND name = ANY($2)"
        days = [datetime.date(1815, 12, 10), datetime.date(1900, 1, 1)]
        assert await connection.fetchval(listed, days, ["Ada"]) == 1 + NOISE
        assert await connection.fetchval(listed, days, []) == NOISE
        async with connection.transaction():
            assert [r["count"] async for r in connection.cursor(COUNT)] == [ANSWER]
        with pytest.raises(asyncpg.FeatureNotSupportedError):
            await connection.fetch("SELECT src FROM edge")
        history = await connection.fetch("SELECT epsilon, answer FROM sqlrs.history")
        assert {r["answer"] for r in history} >= {ANSWER}
        await connection.close()
        async with asyncpg.create_pool(**arguments, min_size=1, max_size=2) as pool:
            for _ in range(3):
                async with pool.acquire() as pooled:
                    await pooled.execute("SET sqlrs.epsilon = 0.25")
                    assert await pooled.fetchval(COUNT) == ANSWER

    asyncio.run(run())


def test_pg8000(proxy: RunningProxy) -> None:
    native = pytest.importorskip("pg8000.native")
    connection = native.Connection(
        "alice",
        host="localhost",
        port=proxy.port,
        password=PASSWORD,
        database="sqlrs",
        ssl_context=_context(proxy),
    )
    assert connection.run(COUNT) == [[ANSWER]]
    assert connection.run(f"{COUNT} WHERE src = :source", source=3) == [[BY_SOURCE[3]]]
    listed = "SELECT count(*) FROM person WHERE id = ANY(:ids) AND born < :day"
    assert connection.run(listed, ids=[1, 2], day=datetime.date(1900, 1, 1)) == [[1 + NOISE]]
    with pytest.raises(native.DatabaseError, match="0A000"):
        connection.run("SELECT src FROM edge")
    connection.close()


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "pg8000"])
def test_sqlalchemy_with_inspection(proxy: RunningProxy, driver: str) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    pytest.importorskip(driver)
    arguments = {"ssl_context": _context(proxy)} if driver == "pg8000" else {"sslmode": "require"}
    url = sqlalchemy.URL.create(
        f"postgresql+{driver}", "alice", PASSWORD, "localhost", proxy.port, "sqlrs"
    )
    engine = sqlalchemy.create_engine(url, connect_args=arguments)
    inspector = sqlalchemy.inspect(engine)
    assert inspector.get_table_names() == ["edge", "person"]
    assert inspector.get_view_names("sqlrs") == ["budget", "history"]
    assert inspector.get_pk_constraint("edge")["constrained_columns"] == ["src", "dst"]
    assert [str(c["type"]) for c in inspector.get_columns("person")] == [
        "INTEGER",
        "TEXT",
        "DATE",
        "DOUBLE PRECISION",
    ]
    for method in ("get_indexes", "get_foreign_keys", "get_unique_constraints"):
        assert getattr(inspector, method)("edge") == []
    metadata = sqlalchemy.MetaData()
    metadata.reflect(engine)
    edge = metadata.tables["edge"]
    query = sqlalchemy.select(sqlalchemy.func.count()).select_from(edge).where(edge.c.src == 3)
    with engine.connect() as connection:
        assert connection.execute(query).scalar() == BY_SOURCE[3]
    engine.dispose()


def test_pandas(proxy: RunningProxy) -> None:
    pandas = pytest.importorskip("pandas")
    sqlalchemy = pytest.importorskip("sqlalchemy")
    url = sqlalchemy.URL.create(
        "postgresql+psycopg", "alice", PASSWORD, "localhost", proxy.port, "sqlrs"
    )
    engine = sqlalchemy.create_engine(url, connect_args={"sslmode": "require"})
    frame = pandas.read_sql("SELECT count(*) AS n FROM edge", engine)
    assert frame.to_dict("list") == {"n": [ANSWER]}
    assert "answer" in pandas.read_sql("SELECT * FROM sqlrs.history", engine).columns
    engine.dispose()


METADATA = Path(__file__).parent / "fixtures" / "metadata.sql"


def test_metadata_queries_of_reporting_tools(proxy: RunningProxy) -> None:
    psycopg = pytest.importorskip("psycopg")
    statements = [text for text in METADATA.read_text().split(";\n") if text.strip()]
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        found = [connection.execute(statement).fetchall() for statement in statements]
    assert len(found) >= 8
    assert all(found)


@pytest.mark.slow
def test_node_pg(proxy: RunningProxy, tmp_path: Path) -> None:
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("npm is not installed")
    installed = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "--prefix", tmp_path, "pg"],
        capture_output=True,
        timeout=120,
        check=False,
    )
    if installed.returncode:
        pytest.skip("npm cannot install pg here")
    done = subprocess.run(
        [node, CLIENTS / "node_client.js", str(proxy.port), PASSWORD, proxy.certificate],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "NODE_PATH": str(tmp_path / "node_modules")},
        check=False,
    )
    assert done.stdout.strip() == (
        f'{{"simple":"{ANSWER}","parameters":"{BY_SOURCE[3]}",'
        f'"named":["{BY_SOURCE[3]}","{BY_SOURCE[4]}"],"refused":"0A000","after":1,"notices":4}}'
    ), done.stderr


@pytest.mark.slow
def test_pgjdbc(proxy: RunningProxy) -> None:
    done = run_jdbc("JdbcClient", str(proxy.port), PASSWORD, str(proxy.certificate))
    assert done.stdout.splitlines() == [
        f"simple {ANSWER}",
        "warning true",
        f"prepared {BY_SOURCE[:8]}",
        f"dates and lists {[1 + NOISE, NOISE] * 8}",
        f"names {1 + NOISE}",
        "tables [edge_pkey, person_pkey, edge, person]",
        "columns [src, dst]",
        "key [src, dst]",
        f"fetched {ANSWER}",
        "refused 0A000",
        "after 1",
    ], done.stderr
