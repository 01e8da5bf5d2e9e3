"""Qrlew, which rewrites SQL, on a PostgreSQL that holds the tables."""

from peer_frame import ask, bounds, epsilon, given, servers
from pyqrlew import Dataset, Dialect
from sqlalchemy import create_engine, text

SQL = given["sql"]
DELTA = 1e-9
engine = create_engine(given["postgres"].replace("postgresql:", "postgresql+psycopg2:"))
with engine.connect() as first:  # the pool keeps it, and it works for all answers
    servers.add(first.execute(text("SELECT pg_backend_pid()")).scalar())
ROWS = {
    "privacy_unit": [
        ("customer", [], "_PRIVACY_UNIT_ROW_"),
        ("orders", [], "_PRIVACY_UNIT_ROW_"),
        ("edge", [], "_PRIVACY_UNIT_ROW_"),
    ]
}
CUSTOMERS = {
    "privacy_unit": [
        ("customer", [], "c_custkey"),
        ("orders", [("o_custkey", "customer", "c_custkey")], "c_custkey"),
    ]
}


def dataset(price):
    described = Dataset.from_database("peers", engine, "public")
    described = described.with_range("public", "orders", "o_totalprice", 0.0, float(price))
    return described.with_possible_values("public", "orders", "o_orderstatus", ["F", "O", "P"])


def answered(task, unit, orders=1, price=bounds["guessed"][1]):
    def answer():
        described = dataset(price)
        # ORDER BY and typed literals are not understood (DATE '…' panics).
        sql = SQL[task].replace(" ORDER BY 1", "").replace("DATE '", "'")
        relation = described.relation(sql)
        private = relation.rewrite_with_differential_privacy(
            dataset=described,
            privacy_unit=unit["privacy_unit"],
            epsilon_delta={"epsilon": float(epsilon), "delta": DELTA},
            max_multiplicity=float(orders),
            max_multiplicity_share=1.0,
        )
        with engine.connect() as connection:
            rows = connection.execute(text(private.relation().to_query(Dialect.PostgreSql)))
            return [row[-1] for row in sorted(tuple(row) for row in rows)]

    return answer


ask("T1", answered("T1", ROWS), "delta; the tables in PostgreSQL")
ask("T2", answered("T2", ROWS), "the statuses; delta")
wrong = "rows are joined only with themselves"
ask("T4", answered("T4", ROWS), "delta", wrong=wrong)
ask("T4 triangles", answered("T4 triangles", ROWS), "delta", wrong=wrong)
for name, (orders, price) in bounds.items():
    limit = f"how orders belong to customers; at most {orders} orders of a customer; delta"
    ask("T3", answered("T3", CUSTOMERS, orders), limit, bound=name)
    supplied = f"{limit}; prices up to {price:,}"
    ask("T5", answered("T5", CUSTOMERS, orders, price), supplied, bound=name)
