"""sqlrs on every task: keys as the schema has them, the bounds and domains that it needs."""

from decimal import Decimal
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


tables = {"tables": TABLES, "keys": KEYS}
edges = {"tables": {"edge": Path(graph)}, "keys": {"edge": ["src", "dst"]}}
exact = discrete_laplace(1 / epsilon)
ask("T1", answered("T1", **tables), "nothing", exact)
ask("T2", answered("T2", **tables, domains=DOMAINS), "the statuses", exact)
# Their noise depends on private data: its spread is seen in many answers, or worked out exactly.
MANY = 8 * given["runs"]
ask("T3", answered("T3", **tables, **UNIT), "whose an order is", runs=MANY)
ask("T4", answered("T4", **tables), "nothing", runs=MANY)
ask("T4 triangles", answered("T4 triangles", **edges), "nothing", runs=MANY)
for name, (_, price) in bounds.items():
    price_bounds = {"orders.o_totalprice": [0, price]}
    supplied = f"whose an order is; prices up to {price:,}"
    ask(
        "T5", answered("T5", **tables, **UNIT, bounds=price_bounds), supplied, bound=name, runs=MANY
    )
