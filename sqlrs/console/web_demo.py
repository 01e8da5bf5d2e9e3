"""A console on generated data: patients, visits and a graph of friends, an owner, an analyst."""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

from sqlrs.connecting import connect
from sqlrs.console.config import ConsoleConfig
from sqlrs.console.http_server import ConsoleServer
from sqlrs.console.starting import run_alone
from sqlrs.database import Database
from sqlrs.graphs.demo import demo_edges
from sqlrs.ledger.store import StoreLedger
from sqlrs.proxy.config import Epsilons, ProxyConfig
from sqlrs.proxy.logs import configure
from sqlrs.proxy.users import add_user
from sqlrs.records import dataclass

OWNER, ANALYST = "olga", "ada"
DATASET = "demo"
_WARDS = ("cardiology", "children", "emergency", "intensive care", "maternity", "surgery")
_PATIENTS, _VISITS, _SEED = 4_000, 20_000, 7
_BUDGET = 10


@dataclass(frozen=True)
class Demo:
    """A running demonstration: where it is, and the passwords that were made for it."""

    server: ConsoleServer
    passwords: dict[str, str]


def serve_demo(port: int, ready: Callable[[Demo], None]) -> None:
    """Serve until the process is told to stop; nothing of it stays."""
    configure("warning")
    logging.getLogger("sqlglot").disabled = True
    with tempfile.TemporaryDirectory(prefix="sqlrs-demo-") as name:
        folder = Path(name)
        passwords = {user: secrets.token_urlsafe(9) for user in (OWNER, ANALYST)}
        proxy = demo_proxy(folder, passwords)
        config = ConsoleConfig(port=port, tls="off", owners=(OWNER,))
        with demo_data(folder) as database:
            alone = run_alone(
                {DATASET: database}, proxy, config, lambda server: ready(Demo(server, passwords))
            )
            asyncio.run(alone)


def demo_proxy(folder: Path, passwords: dict[str, str]) -> ProxyConfig:
    """Users with these passwords, and what a query may cost."""
    users = folder / "users.toml"
    for user, password in passwords.items():
        add_user(users, user, password)
    most = Epsilons(epsilon=Decimal("0.5"), max_epsilon=Decimal(2))
    return ProxyConfig(users=users, tls="off", readers=2, default=most)


def demo_data(folder: Path) -> Database:
    """Made-up tables, and a ledger with budgets for both the data and the analyst."""
    files = _written(folder)
    ledger = StoreLedger(f"sqlite:///{folder / 'budget.db'}")
    note = "for the demonstration"
    ledger.grant(dataset=DATASET, epsilon=10 * _BUDGET, by=OWNER, note=note)
    ledger.grant(analyst=ANALYST, epsilon=_BUDGET, renew="monthly", by=OWNER, note=note)
    return connect(
        tables=files,
        types={
            "patient": "id BIGINT, born INTEGER, town VARCHAR",
            "visit": "id BIGINT, patient BIGINT, ward VARCHAR, cost INTEGER",
            "ward": "name VARCHAR",
        },
        public=["ward"],
        keys={"patient": ["id"], "visit": ["id"], "ward": ["name"]},
        domains={"visit.ward": "ward.name"},
        bounds={"visit.cost": [0, 2000]},
        ledger=ledger,
        dataset=DATASET,
    )


def _written(folder: Path) -> dict[str, str | Path]:
    draw = random.Random(_SEED)
    patients = [
        (one, draw.randint(1930, 2020), draw.choice(("Aachen", "Bergen", "Cadiz")))
        for one in range(1, _PATIENTS + 1)
    ]
    visits = [
        (
            one,
            1 + int(_PATIENTS * draw.random() ** 2),
            draw.choices(_WARDS, range(1, len(_WARDS) + 1))[0],
            int(draw.expovariate(1 / 300)),
        )
        for one in range(1, _VISITS + 1)
    ]
    tables: dict[str, tuple[str, list[tuple[object, ...]]]] = {
        "patient": ("id,born,town", list(patients)),
        "visit": ("id,patient,ward,cost", list(visits)),
        "ward": ("name", [(name,) for name in _WARDS]),
    }
    files: dict[str, str | Path] = {}
    for name, (head, rows) in tables.items():
        lines = [head, *(",".join(map(str, row)) for row in rows)]
        files[name] = folder / f"{name}.csv"
        Path(files[name]).write_text("\n".join(lines) + "\n", encoding="utf-8")
    files["edge"] = folder / "edge.txt"
    edges = "".join(f"{a}\t{b}\n" for a, b in demo_edges())
    Path(files["edge"]).write_text(edges, encoding="ascii")
    return files
