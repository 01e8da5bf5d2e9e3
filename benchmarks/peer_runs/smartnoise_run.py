"""SmartNoise SQL over pandas."""

from functools import partial

from pandas_questions import buyers_in_segment, prices, read, years
from peer_frame import STATUSES, ask, bounds, discrete_laplace, epsilon, refuse
from snsql import Privacy, from_connection

ORDER = {"o_orderkey": {"type": "int", "private_id": True}}
CUSTOMER = {"o_custkey": {"type": "int", "private_id": True}}


def answered(frame, columns, max_ids, sql):
    table = {"row_privacy": False, "max_ids": max_ids, "censor_dims": False, "rows": 1_000_000}
    meta = {"": {"s": {"t": {**table, **columns}}}}
    privacy = Privacy(epsilon=epsilon, delta=1e-9)
    return from_connection(frame, privacy=privacy, metadata=meta).execute(sql)[1:]


def t1():
    orders = read("orders", ["o_orderkey", "o_orderdate"])
    frame = orders[["o_orderkey"]].assign(o_year=years(orders))
    columns = {**ORDER, "o_year": {"type": "int"}}
    sql = "SELECT COUNT(*) AS n FROM s.t WHERE o_year = 1995"
    return answered(frame, columns, 1, sql)[0]


def t2():
    columns = {**ORDER, "o_orderstatus": {"type": "string"}}
    sql = "SELECT o_orderstatus, COUNT(*) AS n FROM s.t GROUP BY o_orderstatus"
    orders = read("orders", ["o_orderkey", "o_orderstatus"])
    found = dict(answered(orders, columns, 1, sql))
    return [found[one] for one in STATUSES]


def t3(orders):
    frame = buyers_in_segment().to_frame()
    return answered(frame, CUSTOMER, orders, "SELECT COUNT(*) AS n FROM s.t")[0]


def t5(orders, price):
    columns = {**CUSTOMER, "o_totalprice": {"type": "float", "lower": 0.0, "upper": float(price)}}
    return answered(prices(), columns, orders, "SELECT SUM(o_totalprice) AS n FROM s.t")[0]


ask("T1", t1, "an id of each row, its type; the year as a column", discrete_laplace(1 / epsilon))
ask(
    "T2",
    t2,
    "an id of each row; groups come from the data (delta)",
    discrete_laplace(1 / epsilon),
)
for name, (orders, price) in bounds.items():
    limit = f"at most {orders} orders of a customer"
    law = discrete_laplace(orders / epsilon)
    ask("T3", partial(t3, orders), f"the join in pandas; {limit}", law, name)
    ask("T5", partial(t5, orders, price), f"{limit}, prices up to {price:,}", None, name)
refuse("T4", "JOIN is refused")
refuse("T4 triangles", "JOIN is refused")
