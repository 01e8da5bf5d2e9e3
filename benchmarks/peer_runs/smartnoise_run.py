"""SmartNoise SQL over pandas."""

from functools import partial

import pandas
from peer_frame import SEGMENT, STATUSES, ask, bounds, discrete_laplace, epsilon, folder, refuse
from snsql import Privacy, from_connection

ORDER = {"o_orderkey": {"type": "int", "private_id": True}}
CUSTOMER = {"o_custkey": {"type": "int", "private_id": True}}


def read(name, columns):
    return pandas.read_parquet(f"{folder}/{name}.parquet", columns=columns)


def answered(frame, columns, max_ids, sql):
    table = {"row_privacy": False, "max_ids": max_ids, "censor_dims": False, "rows": 1_000_000}
    meta = {"": {"s": {"t": {**table, **columns}}}}
    privacy = Privacy(epsilon=epsilon, delta=1e-9)
    return from_connection(frame, privacy=privacy, metadata=meta).execute(sql)[1:]


def t1():
    orders = read("orders", ["o_orderkey", "o_orderdate"])
    orders["o_year"] = pandas.to_datetime(orders.pop("o_orderdate")).dt.year
    columns = {**ORDER, "o_year": {"type": "int"}}
    sql = "SELECT COUNT(*) AS n FROM s.t WHERE o_year = 1995"
    return answered(orders, columns, 1, sql)[0]


def t2():
    columns = {**ORDER, "o_orderstatus": {"type": "string"}}
    sql = "SELECT o_orderstatus, COUNT(*) AS n FROM s.t GROUP BY o_orderstatus"
    orders = read("orders", ["o_orderkey", "o_orderstatus"])
    found = dict(answered(orders, columns, 1, sql))
    return [found[one] for one in STATUSES]


def t3(orders):
    customer = read("customer", ["c_custkey", "c_mktsegment"])
    segment = customer[customer["c_mktsegment"] == SEGMENT]
    joined = read("orders", ["o_custkey"]).merge(segment, left_on="o_custkey", right_on="c_custkey")
    return answered(joined[["o_custkey"]], CUSTOMER, orders, "SELECT COUNT(*) AS n FROM s.t")[0]


def t5(orders, price):
    frame = read("orders", ["o_custkey", "o_totalprice"])
    frame["o_totalprice"] = frame["o_totalprice"].astype(float)
    columns = {**CUSTOMER, "o_totalprice": {"type": "float", "lower": 0.0, "upper": float(price)}}
    return answered(frame, columns, orders, "SELECT SUM(o_totalprice) AS n FROM s.t")[0]


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
    ask("T3", partial(t3, orders), f"the join done before; {limit}", law, name)
    ask("T5", partial(t5, orders, price), f"{limit}, prices up to {price:,}", None, name)
refuse("T4", "JOIN is refused")
refuse("T4 triangles", "JOIN is refused")
