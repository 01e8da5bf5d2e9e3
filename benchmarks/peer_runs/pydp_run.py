"""PyDP, Google's C++ library in Python, over pandas."""

from functools import partial

import pandas
from peer_frame import SEGMENT, STATUSES, ask, bounds, epsilon, folder, laplace, memory, refuse
from pydp.algorithms.laplacian import BoundedSum, Count


@memory
def read(name, columns):
    return pandas.read_parquet(f"{folder}/{name}.parquet", columns=columns)


def counted(entries, limit=1):
    return Count(epsilon, linf_sensitivity=limit).quick_result(list(entries))


def t1():
    date = pandas.to_datetime(read("orders", ["o_orderdate"])["o_orderdate"])
    return [counted(date[date.dt.year == 1995].index)]


def t2():
    status = read("orders", ["o_orderstatus"])["o_orderstatus"]
    return [counted(status[status == one].index) for one in STATUSES]


def t3(limit):
    customer = read("customer", ["c_custkey", "c_mktsegment"])
    segment = customer[customer["c_mktsegment"] == SEGMENT]["c_custkey"]
    orders = read("orders", ["o_custkey"])
    kept = orders[orders["o_custkey"].isin(segment)].groupby("o_custkey").head(limit)
    return [counted(kept["o_custkey"], limit)]


def t5(orders, price):
    frame = read("orders", ["o_custkey", "o_totalprice"]).groupby("o_custkey").head(orders)
    summed = BoundedSum(
        epsilon, lower_bound=0.0, upper_bound=float(price), linf_sensitivity=orders, dtype="float"
    )
    return [summed.quick_result(frame["o_totalprice"].astype(float).tolist())]


ask("T1", t1, "the filter applied before", laplace(1 / epsilon))
ask("T2", t2, "the statuses, one count for each", laplace(1 / epsilon))
for name, (orders, price) in bounds.items():
    limit = f"at most {orders} orders of a customer, cut by hand"
    law = laplace(orders / epsilon)
    ask("T3", partial(t3, orders), f"the join done before; {limit}", law, name)
    law = laplace(orders * price / epsilon)
    ask("T5", partial(t5, orders, price), f"{limit}; prices up to {price:,}", law, name)
refuse("T4", "no joins")
refuse("T4 triangles", "no joins")
