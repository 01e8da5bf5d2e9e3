"""All tests of Spark in one process, beside the others: an application takes long to start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.spark import why_not

_FOLDER = Path(__file__).parent / "spark"


@pytest.mark.parametrize(
    "chosen", ["not slow", pytest.param("slow", marks=pytest.mark.slow)], ids=["quick", "long"]
)
def test_spark(chosen: str) -> None:
    """The folder tests/spark; `pytest tests/spark` runs one test of it after another."""
    reason = why_not()
    if reason is not None:
        pytest.skip(f"Spark cannot run here: {reason}")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", chosen]
    ran = subprocess.run(
        [*command, str(_FOLDER)],
        env=kept,
        cwd=_FOLDER.parents[1],
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:]
