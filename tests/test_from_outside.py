"""From outside: help, types for a type checker, and a newcomer's first answer."""

from __future__ import annotations

import pydoc
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import sqlrs

ROOT = Path(__file__).parents[1]
TYPED = """
import sqlrs

db: sqlrs.Database = sqlrs.connect(tables={"visit": "visits.csv"})
answer: sqlrs.Answer = db.count("SELECT count(*) FROM visit", epsilon=1)
number: int = int(answer)
reveal_type(db.query("SELECT count(*) FROM visit", epsilon=1))
wrong: str = answer.value
"""
FIRST = """
import sqlrs
db = sqlrs.connect("visits.csv")
answer = db.count("SELECT count(*) FROM visits a JOIN visits b USING (patient)", epsilon=1)
print(f"about {answer:,}")
"""


def test_help_reads_well() -> None:
    text = pydoc.plain(pydoc.render_doc(sqlrs))
    assert "Open the data, say what is public, ask" in text
    assert "count        one private number" in text
    for name in sqlrs.__all__:
        assert name in text
        assert (getattr(sqlrs, name).__doc__ or "").strip()
    connect = pydoc.plain(pydoc.render_doc(sqlrs.connect))
    assert "data frames (pandas, polars, Arrow)" in connect


@pytest.mark.slow
def test_types_are_seen_from_outside(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "program.py"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    lines = [line for line in found.stdout.splitlines() if line.startswith("program.py")]
    assert len(lines) == 2, found.stdout
    assert "TableAnswer" in lines[0]
    assert lines[1].startswith("program.py:8: error: Incompatible types")


@pytest.mark.slow
def test_a_newcomer_gets_an_answer_from_a_wheel(tmp_path: Path) -> None:
    """A wheel in an empty environment, a file of one's own, the first private answer."""
    wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(tmp_path)]
    subprocess.run([*wheel, str(ROOT)], check=True)
    (package,) = tmp_path.glob("*.whl")
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*pip, str(package)], check=True)
    (tmp_path / "visits.csv").write_text("patient,day\n1,2024-01-01\n1,2024-01-02\n2,2024-01-02\n")
    sql = "SELECT count(*) FROM visits"
    for arguments in (
        ["-c", FIRST],
        ["-m", "sqlrs", "count", sql, "--db", "visits.csv", "--epsilon", "1"],
    ):
        done = subprocess.run(
            [python, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()
