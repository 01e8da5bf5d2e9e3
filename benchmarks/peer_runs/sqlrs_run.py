"""sqlrs on every task: keys as the schema has them, the bounds and domains that it needs."""

from decimal import Decimal
from functools import partial
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
SETTINGS = Settings(neighbours="add-remove")


def answered(task, **facts):
    """The numbers of one answer; a fresh ledger, as a repeat would be the recorded answer."""

    def answer():
        with sqlrs.connect(settings=SETTINGS, **facts) as database:
            rows = database.query(SQL[task], Decimal(epsilon)).rows
        return [row[-1] for row in rows if row[0] is not None]

    return answer


def again(task, tables, **facts):
    """The same of tables in memory; each time for another analyst, who has no record."""
    import pyarrow.parquet

    frames = {name: pyarrow.parquet.read_table(path) for name, path in tables.items()}
    database = sqlrs.connect(tables=frames, settings=SETTINGS, **facts)
    analysts = count()

    def answer():
        return database.query(SQL[task], Decimal(epsilon), analyst=f"analyst {next(analysts)}").rows

    return answer


def asked(task, supplied, noise=None, bound=None, runs=None, **facts):
    ask(
        task,
        answered(task, **facts),
        supplied,
        noise,
        bound,
        runs=runs,
        opened=partial(again, task, **facts),
    )


tables = {"tables": TABLES, "keys": KEYS}
edges = {"tables": {"edge": Path(graph)}, "keys": {"edge": ["src", "dst"]}}
exact = discrete_laplace(1 / epsilon)
asked("T1", "nothing", exact, **tables)
asked("T2", "the statuses", exact, **tables, domains=DOMAINS)
# Their noise depends on private data: its spread is seen in many answers, or worked out exactly.
MANY = 8 * given["runs"]
asked("T3", "whose an order is", runs=MANY, **tables, **UNIT)
asked("T4", "nothing", runs=MANY, **tables)
asked("T4 triangles", "nothing", runs=MANY, **edges)
for name, (_, price) in bounds.items():
    supplied = f"whose an order is; prices up to {price:,}"
    facts = {**tables, **UNIT, "bounds": {"orders.o_totalprice": [0, price]}}
    asked("T5", supplied, bound=name, runs=MANY, **facts)
