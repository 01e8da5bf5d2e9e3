"""One Spark for all tests of this folder, which run in one process: tests/test_spark.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.spark import started, why_not


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """An application with two threads; Java 17 must be there."""
    reason = why_not()
    if reason is not None:
        pytest.skip(f"Spark cannot run here: {reason}")
    folder: Path = tmp_path_factory.mktemp("spark")
    with started(folder) as session:
        yield session
