"""An owner's dry run charges and releases nothing; a query named after it is refused beforehand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import sqlrs
from sqlrs.cli.commands import application
from sqlrs.errors import EngineFailed, QueryRefused
from sqlrs.ledger import MemoryLedger
from sqlrs.measuring.measurements import Measurements

COUNT = "SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src"
SAME = "SELECT COUNT(*) FROM edge AS x, edge AS y WHERE y.src = x.dst"
OTHER = "SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src WHERE a.src <> 1"
TABLE = "SELECT src, count(*) FROM edge GROUP BY src"
NAMED = (SAME, "SELECT count(*) FROM nowhere", "SELECT count(*) FROM edge x")


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    path = tmp_path / "edge.txt"
    path.write_text("1\t2\n2\t3\n3\t3\n", encoding="utf-8")
    return path


def opened(edges: Path, ledger: MemoryLedger, *refused: str) -> sqlrs.Database:
    return sqlrs.connect(
        tables={"edge": edges},
        domains={"edge.src": [1, 2, 3]},
        ledger=ledger,
        settings=sqlrs.Settings(refused_queries=refused),
    )


@pytest.mark.parametrize("sql", [COUNT, TABLE])
def test_nothing_is_charged_and_no_number_is_told(edges: Path, sql: str) -> None:
    ledger = MemoryLedger()
    with opened(edges, ledger) as database:
        found = database.dry_run(sql)
    assert found.problem is None and "finished" in str(found)
    assert ledger.spent() == 0 and not ledger.history()
    assert not hasattr(found, "value") and "refused_queries" not in str(found)


@pytest.mark.parametrize("sql", [COUNT, TABLE])
def test_a_named_query_is_refused_before_its_charge(edges: Path, sql: str) -> None:
    ledger = MemoryLedger()
    with opened(edges, ledger, *NAMED) as database:
        asks: list[Any] = [database.query, database.explain]
        asks += [database.count, database.price] if sql == COUNT else []
        for ask in asks:
            with pytest.raises(QueryRefused) as refused:
                ask(sql, **({} if ask == database.price else {"epsilon": 1}))
            assert refused.value.code == "refused_by_owner"
        assert ledger.spent() == 0 and not ledger.history()
        database.count(OTHER, epsilon=1)
        # The owner may look whether it is quicker now.
        assert database.dry_run(sql).problem is None


def test_what_does_not_finish_is_told_with_its_name(
    edges: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise EngineFailed("out of memory in the row (1, 2)")

    monkeypatch.setattr(Measurements, "enough", fail)
    data = ["--table", f"edge={edges}"]
    run = CliRunner().invoke(application(), ["dry-run", COUNT, *data])
    assert run.exit_code == 5
    assert "did not finish" in run.stdout and "refused_queries = [" in run.stdout
    assert "the row" not in run.output


def test_the_command_makes_no_ledger(edges: Path, tmp_path: Path) -> None:
    ledger, config = tmp_path / "budget.db", tmp_path / "sqlrs.toml"
    config.write_text(
        f'[data]\nledger = "sqlite:///{ledger}"\ntables = {{ edge = "{edges}" }}\n',
        encoding="utf-8",
    )
    run = CliRunner().invoke(application(), ["dry-run", COUNT, "--config", str(config)])
    assert run.exit_code == 0, run.output
    assert "nothing was released or charged" in run.stdout
    assert not ledger.exists()
