"""What the proxy does before its first query reads no row."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import sqlrs
from sqlrs.engines.duckdb import DuckDBEngine
from sqlrs.proxy.warm import LATER, warm


def test_nothing_is_read_and_all_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "edge.txt"
    table.write_text("1\t2\n", encoding="utf-8")
    with sqlrs.connect(tables={"edge": table}) as database:

        def refused(engine: DuckDBEngine) -> None:
            raise AssertionError("a row could be read")

        monkeypatch.setattr(DuckDBEngine, "snapshot", refused)
        warm(database.catalog, database.settings)
        assert set(LATER) <= set(sys.modules)
