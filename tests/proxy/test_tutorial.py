"""The tutorial's commands, run as they stand in an empty directory."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial-proxy.md"


def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    for program in ("psql", "sh"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    blocks = re.findall(r"^```sh\n(.*?)^```$", TUTORIAL.read_text(encoding="utf-8"), re.S | re.M)
    script = "set -e\n" + "\n".join(f"echo '== {n}'\n{block}" for n, block in enumerate(blocks))
    folder = Path(sys.executable).parent
    running = subprocess.Popen(
        ["sh", "-c", script],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        start_new_session=True,
    )
    try:
        output, _ = running.communicate(timeout=120)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == 0, output
    sections = re.split(r"^== \d+\n", output, flags=re.M)[1:]
    assert len(sections) == len(blocks)
    check, table, edges, triangles, again, degrees, refused, priced, stopped = (
        sections[3],
        *sections[5:13],
    )
    assert "alice: epsilon 0.5, at most 1, 3 left" in check
    assert '"edge_pkey" PRIMARY KEY, btree (src, dst)' in table
    assert "epsilon 0.5 charged, 2.5 remains" in edges
    assert "epsilon 1 charged, 1.5 remains" in triangles
    assert "answered from the record, nothing charged, 1.5 remains" in again
    number = re.compile(r"triangles \n-+\n\s+(-?\d+)")
    first, second = number.search(triangles), number.search(again)
    assert first is not None and second is not None
    assert first[1] == second[1]
    assert "120 groups; rows whose keys are not among them are in no group" in degrees
    assert "epsilon 0.5 charged, 1 remains" in degrees
    assert "(10 rows)" in degrees
    assert refused.count("ERROR:") == 3
    assert "is at most 1 here" in priced
    assert "epsilon 0.5 charged, 0.5 remains" in priced
    assert priced.count("ERROR:") == 2
    assert re.search(r"analyst\s+alice\s+3\s+2.5\s+0.5", stopped)
    events = (tmp_path / "events.log").read_text()
    assert '"event": "stopped"' in events
    assert "SELECT" not in events
