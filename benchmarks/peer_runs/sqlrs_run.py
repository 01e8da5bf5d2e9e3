"""sqlrs on every task: keys as the schema has them, the bounds and domains that it needs."""

from decimal import Decimal
from itertools import count
from pathlib import Path

from peer_frame import STATUSES, ask, bounds, discrete_laplace, epsilon, folder, given, graph

import sqlrs
from sqlrs.settings import Settings

SQL = given["sql"]
TABLES = {name: Path(folder) / f"{name}.parquet" for name in ("customer", "orders")}
KEYS = {"customer": ["c_custkey"], "orders": ["o_orderkey"]}
UNIT = {"unit": "customer.c_custkey", "owners": {"orders": "o_custkey"}}
DOMAINS = {"orders.o_orderstatus": list(STATUSES)}


def answered(task, **facts):
    """The numbers of one answer; a fresh ledger, as a repeat would be the recorded answer."""

    def answer():
        settings = Settings(neighbours="add-remove")
        with sqlrs.connect(settings=settings, **facts) as database:
            rows = database.query(SQL[task], Decimal(epsilon)).rows
        return [row[-1] for row in rows if row[0] is not None]

    return answer


def again(task, **facts):
    """The same of a database that stays open; each time for another analyst, who has no record."""
    database = sqlrs.connect(settings=Settings(neighbours="add-remove"), **facts)
    analysts = count()

    def answer():
        return database.query(SQL[task], Decimal(epsilon), analyst=f"analyst {next(analysts)}").rows

    return answer


tables = {"tables": TABLES, "keys": KEYS}
edges = {"tables": {"edge": Path(graph)}, "keys": {"edge": ["src", "dst"]}}
exact = discrete_laplace(1 / epsilon)
ask("T1", answered("T1", **tables), "nothing", exact, opened=again("T1", **tables))
statuses = {**tables, "domains": DOMAINS}
opened = again("T2", **statuses)
ask("T2", answered("T2", **statuses), "the statuses", exact, opened=opened)
# Their noise depends on private data: its spread is seen in many answers, or worked out exactly.
MANY = 8 * given["runs"]
opened = again("T3", **tables, **UNIT)
ask("T3", answered("T3", **tables, **UNIT), "whose an order is", runs=MANY, opened=opened)
ask("T4", answered("T4", **tables), "nothing", runs=MANY)
ask("T4 triangles", answered("T4 triangles", **edges), "nothing", runs=MANY)
for name, (_, price) in bounds.items():
    price_bounds = {"orders.o_totalprice": [0, price]}
    supplied = f"whose an order is; prices up to {price:,}"
    ask(
        "T5", answered("T5", **tables, **UNIT, bounds=price_bounds), supplied, bound=name, runs=MANY
    )
