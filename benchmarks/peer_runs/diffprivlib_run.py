"""diffprivlib over numpy."""

from functools import partial

import numpy
import pandas
from diffprivlib import tools
from peer_frame import (
    SEGMENT,
    STATUSES,
    ask,
    bounds,
    discrete_laplace,
    epsilon,
    folder,
    laplace,
    memory,
    refuse,
)


@memory
def read(name, columns):
    return pandas.read_parquet(f"{folder}/{name}.parquet", columns=columns)


def t1():
    date = read("orders", ["o_orderdate"])["o_orderdate"]
    of_1995 = pandas.to_datetime(date).dt.year.to_numpy() == 1995
    return [tools.count_nonzero(of_1995, epsilon=epsilon)]


def t2():
    codes = {name: code for code, name in enumerate(STATUSES)}
    status = read("orders", ["o_orderstatus"])["o_orderstatus"].map(codes).to_numpy()
    return list(tools.histogram(status, epsilon=epsilon, bins=3, range=(0, 3))[0])


def t3(limit):
    customer = read("customer", ["c_custkey", "c_mktsegment"])
    segment = customer[customer["c_mktsegment"] == SEGMENT]["c_custkey"]
    orders = read("orders", ["o_custkey"])
    counts = orders[orders["o_custkey"].isin(segment)].groupby("o_custkey").size()
    values = numpy.minimum(counts.to_numpy(), limit)
    return [tools.sum(values, bounds=(0, limit), epsilon=epsilon)]


def t5(orders, price):
    frame = read("orders", ["o_custkey", "o_totalprice"])
    frame["o_totalprice"] = frame["o_totalprice"].astype(float)
    values = frame.groupby("o_custkey")["o_totalprice"].sum().to_numpy()
    return [tools.sum(values, bounds=(0, orders * price), epsilon=epsilon)]


ask("T1", t1, "the filter applied before", discrete_laplace(1 / epsilon))
ask("T2", t2, "the statuses as numbers", discrete_laplace(1 / epsilon))
for name, (orders, price) in bounds.items():
    limit = f"at most {orders} orders"
    by_hand = "join and count per customer done before"
    ask("T3", partial(t3, orders), f"{by_hand}; {limit}", discrete_laplace(orders / epsilon), name)
    total = f"sum per customer done before; {limit} of up to {price:,}"
    ask("T5", partial(t5, orders, price), total, laplace(orders * price / epsilon), name)
refuse("T4", "no joins, and no count that one row can change by more than a given number")
refuse("T4 triangles", "no joins, and no count that one row can change by more than a given number")
