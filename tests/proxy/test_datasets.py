"""Several datasets behind one proxy: the database name chooses, budgets and metrics stay apart."""

from __future__ import annotations

import re
import urllib.request
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from sqlrs.config import Config
from sqlrs.errors import UsageError
from sqlrs.ledger.store import StoreLedger
from sqlrs.proxy.config import ProxyConfig
from sqlrs.proxy.library import LibraryBackend
from sqlrs.proxy.run import datasets, opened
from tests.proxy.harness import running_proxy

OWN = "SELECT analyst, remaining, cap, spent, lifetime, renews, expires FROM sqlrs.budget"


def configured(folder: Path, more: str = "") -> tuple[Config, ProxyConfig]:
    folder.chmod(0o700)
    (folder / "edge.csv").write_text("src,dst\n1,2\n2,3\n", "utf-8")
    (folder / "visit.csv").write_text("id,day\n1,1\n", "utf-8")
    (folder / "clinic.toml").write_text(f'[data]\n{more}[data.tables]\nvisit = "visit.csv"\n')
    main = folder / "sqlrs.toml"
    main.write_text(
        f'[data]\nledger = "sqlite:///{folder}/budget.db"\n[data.tables]\nedge = "edge.csv"\n'
        '[proxy.datasets]\nclinic = "clinic.toml"\n',
        "utf-8",
    )
    return Config.read(main), ProxyConfig.read(main)


def test_the_database_name_chooses(tmp_path: Path) -> None:
    data, proxy = configured(tmp_path)
    ledger = StoreLedger(data.ledger or "")
    ledger.grant(analyst="alice", epsilon=10)
    ledger.grant(dataset="data", epsilon=5)
    ledger.grant(dataset="clinic", epsilon=3)
    with opened(data, proxy) as databases:
        backends = {name: LibraryBackend(one) for name, one in databases.items()}
        with running_proxy(backends, tmp_path) as running:  # type: ignore[arg-type]
            for name, table, other in (("sqlrs", "edge", "visit"), ("clinic", "visit", "edge")):
                with psycopg.connect(running.dsn(dbname=name), autocommit=True) as connection:
                    assert connection.execute(f"SELECT count(*) FROM {table}").fetchone()
                    with pytest.raises(psycopg.errors.UndefinedTable):
                        connection.execute(f"SELECT count(*) FROM {other}")
            with pytest.raises(psycopg.OperationalError, match='"elsewhere" does not exist'):
                psycopg.connect(running.dsn(dbname="elsewhere"))
            with psycopg.connect(running.dsn(), autocommit=True) as connection:
                terms = [connection.execute(OWN).fetchone()]
                ledger.grant(analyst="alice", epsilon=4, renew="yearly", expires="2199-12-31")
                terms.append(connection.execute(OWN).fetchone())
            budget = ledger.budget(analyst="alice")
            assert terms == [
                ("alice", Decimal("4.5"), 10, 1, 1, None, None),
                ("alice", 3, 4, 1, 1, budget.renews_at, budget.expires),
            ]
            status = f"http://127.0.0.1:{running.status_port}/metrics"
            text = urllib.request.urlopen(status).read().decode()
    half = Decimal("0.5")
    assert ledger.budget(dataset="data").spent == ledger.budget(dataset="clinic").spent == half
    assert ledger.budget(analyst="alice").spent == 1
    assert 'sqlrs_dataset_remaining{dataset="clinic"} 2.5\n' in text
    assert 'sqlrs_dataset_spent{dataset="sqlrs"} 0.5\n' in text
    assert 'sqlrs_budget_remaining{analyst="alice",dataset="clinic"} 2.5\n' in text
    assert re.search(r'sqlrs_refusals_total\{code="\w+",dataset="clinic"\} 1\n', text)


def test_one_ledger_between_all(tmp_path: Path) -> None:
    data, proxy = configured(tmp_path, 'ledger = "sqlite:///other.db"\n')
    with pytest.raises(UsageError, match="another ledger"):
        datasets(data, proxy)
    data, proxy = configured(tmp_path)
    assert datasets(data, proxy)["clinic"].dataset == "clinic"
