"""diffprivlib over numpy."""

from functools import partial

import numpy
from diffprivlib import tools
from pandas_questions import buyers_in_segment, prices, read, statuses, years
from peer_frame import STATUSES, ask, bounds, discrete_laplace, epsilon, laplace, refuse


def t1():
    of_1995 = years(read("orders", ["o_orderdate"])).to_numpy() == 1995
    return [tools.count_nonzero(of_1995, epsilon=epsilon)]


def t2():
    codes = {name: code for code, name in enumerate(STATUSES)}
    status = statuses().map(codes).to_numpy()
    return list(tools.histogram(status, epsilon=epsilon, bins=3, range=(0, 3))[0])


def t3(limit):
    buyers = buyers_in_segment()
    values = numpy.minimum(buyers.groupby(buyers).size().to_numpy(), limit)
    return [tools.sum(values, bounds=(0, limit), epsilon=epsilon)]


def t5(orders, price):
    values = prices().groupby("o_custkey")["o_totalprice"].sum().to_numpy()
    return [tools.sum(values, bounds=(0, orders * price), epsilon=epsilon)]


ask("T1", t1, "the filter in pandas", discrete_laplace(1 / epsilon))
ask("T2", t2, "the statuses as numbers", discrete_laplace(1 / epsilon))
for name, (orders, price) in bounds.items():
    limit = f"at most {orders} orders"
    by_hand = "join and count per customer in pandas"
    ask("T3", partial(t3, orders), f"{by_hand}; {limit}", discrete_laplace(orders / epsilon), name)
    total = f"sum per customer in pandas; {limit} of up to {price:,}"
    ask("T5", partial(t5, orders, price), total, laplace(orders * price / epsilon), name)
refuse("T4", "no joins, and no count that one row can change by more than a given number")
refuse("T4 triangles", "no joins, and no count that one row can change by more than a given number")
