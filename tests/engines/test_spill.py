"""The folder DuckDB spills to is private, goes with its process, and a killed one's goes later."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from sqlglot import exp, parse_one

from sqlrs.engines.open import open_engine
from sqlrs.engines.spill import Spill, remove_abandoned
from sqlrs.errors import EngineFailed, UsageError
from sqlrs.ledger.store import StoreLedger

ENDLESS = """
SELECT count(*) FROM edge a, edge b, edge c
WHERE a.src < b.dst AND b.src < c.dst AND a.src + b.src * c.dst > 7
"""


def spilled(home: Path) -> list[Path]:
    return sorted(home.glob("sqlrs-spill-*"))


def test_the_folder_is_private_in_a_folder_that_is_not(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with closing(open_engine("duckdb://", temp_directory=tmp_path)):
        [folder] = spilled(tmp_path)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert spilled(tmp_path) == []


def test_an_abandoned_folder_is_removed_at_the_next_start(tmp_path: Path) -> None:
    program = (
        "import os, sys; from sqlrs.engines.open import open_engine\n"
        "engine = open_engine('duckdb://', temp_directory=sys.argv[1]); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    [left] = spilled(tmp_path)
    (left / "duckdb_temp_storage_DEFAULT-0.tmp").write_text("rows")
    with closing(open_engine("duckdb://", temp_directory=tmp_path)):
        assert left not in spilled(tmp_path)
        assert len(spilled(tmp_path)) == 1


def test_what_is_used_or_not_ours_stays(tmp_path: Path) -> None:
    used = Spill(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("kept")
    link, file = tmp_path / "sqlrs-spill-link", tmp_path / "sqlrs-spill-file"
    link.symlink_to(elsewhere)
    file.write_text("kept")
    foreign = tmp_path / "sqlrs-spill-foreign"
    foreign.mkdir()
    if os.geteuid() == 0:
        os.chown(foreign, 65534, 65534)
    remove_abandoned(tmp_path)
    assert Path(used.path).is_dir()
    assert (elsewhere / "file").read_text() == "kept"
    assert link.is_symlink()
    assert file.exists()
    assert foreign.exists() == (os.geteuid() == 0)
    used.remove()
    assert not Path(used.path).exists()


def test_many_starts_at_once_lose_no_folder(tmp_path: Path) -> None:
    found: list[Spill] = []
    lost: list[str] = []

    def start() -> None:
        for _ in range(20):
            spill = Spill(tmp_path)
            found.append(spill)
            if not Path(spill.path).is_dir():
                lost.append(spill.path)

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(found), lost) == (120, [])
    assert all(Path(spill.path).is_dir() for spill in found)
    for spill in found:
        spill.remove()


def test_a_folder_that_cannot_be_made_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written to"):
        Spill(tmp_path / "missing")


def granted(books: Path) -> StoreLedger:
    ledger = StoreLedger(f"sqlite:///{books}")
    ledger.grant(epsilon="5", analyst="analyst")
    ledger.grant(epsilon="5", dataset="data")
    return ledger


def end_by(number: int, arguments: list[str], running: Path) -> tuple[int, str]:
    """The exit code and the error output of a count that gets a signal once it is charged."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sqlrs", "count", ENDLESS, "--epsilon", "1", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        # Under nohup the suite ignores SIGHUP, and so would what it starts.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )
    ledger = StoreLedger(f"sqlite:///{running}")
    deadline = time.monotonic() + 60
    while not ledger.history() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
    ledger.close()
    time.sleep(0.3)
    process.send_signal(number)
    _, shown = process.communicate(timeout=60)
    return process.returncode, shown


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_command_like_ctrl_c(tmp_path: Path, number: int) -> None:
    edges = tmp_path / "edge.csv"
    edges.write_text("src,dst\n" + "".join(f"{i % 997},{i % 991}\n" for i in range(50_000)))
    books = tmp_path / "budget.db"
    ledger = granted(books)
    arguments = ["--table", f"edge={edges}", "--plan", "plain", "--temp-directory", str(tmp_path)]
    arguments += ["--ledger", f"sqlite:///{books}"]
    code, shown = end_by(number, arguments, books)
    assert code == 128 + number, shown
    assert "interrupted" in shown
    assert "Traceback" not in shown
    assert spilled(tmp_path) == []
    [line] = ledger.history()
    assert line.outcome == "interrupted"
    assert ledger.budget(analyst="analyst").spent == 1
    ledger.close()


def test_a_signal_ends_the_statement_on_the_server(tmp_path: Path, postgres_db: str) -> None:
    with psycopg.connect(postgres_db, autocommit=True) as owner:
        owner.execute("CREATE TABLE edge (src integer, dst integer)")
        owner.execute("INSERT INTO edge SELECT i % 997, i % 991 FROM generate_series(1, 50000) i")
        books = tmp_path / "budget.db"
        granted(books).close()
        arguments = ["--db", postgres_db, "--plan", "plain", "--ledger", f"sqlite:///{books}"]
        code, shown = end_by(signal.SIGTERM, arguments, books)
        assert code == 128 + signal.SIGTERM, shown
        assert backends(owner) == 0


def test_a_killed_program_leaves_no_statement_on_the_server(
    tmp_path: Path, postgres_db: str
) -> None:
    with psycopg.connect(postgres_db, autocommit=True) as owner:
        owner.execute("CREATE TABLE edge (src integer, dst integer)")
        owner.execute("INSERT INTO edge SELECT i % 997, i % 991 FROM generate_series(1, 50000) i")
        books = tmp_path / "budget.db"
        granted(books).close()
        arguments = ["--db", postgres_db, "--plan", "plain", "--ledger", f"sqlite:///{books}"]
        end_by(signal.SIGKILL, arguments, books)
        deadline = time.monotonic() + 30
        while backends(owner) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert backends(owner) == 0


def backends(owner: psycopg.Connection[tuple[int]]) -> int:
    """The sessions in this database beside this one."""
    [(number,)] = owner.execute(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    ).fetchall()
    return int(number)


def test_half_of_the_free_disk_is_the_limit_and_a_failed_statement_leaves_nothing(
    tmp_path: Path,
) -> None:
    spill = Spill(tmp_path)
    free = shutil.disk_usage(tmp_path).free
    assert int(spill.share().removesuffix("KiB")) * 1024 == pytest.approx(free / 2, rel=0.2)
    spill.remove()
    rows = "(SELECT md5(range::VARCHAR) AS m FROM range(1000000))"
    engine = open_engine(
        "duckdb://", temp_directory=tmp_path, memory_limit="40MB", max_temp_directory_size="5MB"
    )
    with closing(engine):
        [folder] = spilled(tmp_path)
        with pytest.raises(EngineFailed) as failed, engine.snapshot() as snapshot:
            text = f"SELECT count(*) FROM {rows} a JOIN {rows} b USING (m)"
            tree = parse_one(text, read="duckdb")
            assert isinstance(tree, exp.Select)
            snapshot.rows(tree)
        assert failed.value.code == "out_of_memory"
        assert sum(file.stat().st_size for file in folder.iterdir()) == 0
    assert spilled(tmp_path) == []
