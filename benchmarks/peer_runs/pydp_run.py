"""PyDP, Google's C++ library in Python, over pandas."""

from functools import partial

from pandas_questions import buyers_in_segment, of_1995, prices, read, statuses
from peer_frame import STATUSES, ask, bounds, epsilon, laplace, refuse
from pydp.algorithms.laplacian import BoundedSum, Count


def counted(entries, limit=1):
    return Count(epsilon, linf_sensitivity=limit).quick_result(list(entries))


def t1():
    return [counted(of_1995(read("orders", ["o_orderdate"])).index)]


def t2():
    status = statuses()
    return [counted(status[status == one].index) for one in STATUSES]


def t3(limit):
    buyers = buyers_in_segment()
    return [counted(buyers.groupby(buyers).head(limit), limit)]


def t5(orders, price):
    frame = prices().groupby("o_custkey").head(orders)
    summed = BoundedSum(
        epsilon, lower_bound=0.0, upper_bound=float(price), linf_sensitivity=orders, dtype="float"
    )
    return [summed.quick_result(frame["o_totalprice"].tolist())]


ask("T1", t1, "the filter in pandas", laplace(1 / epsilon))
ask("T2", t2, "the statuses, one count for each", laplace(1 / epsilon))
for name, (orders, price) in bounds.items():
    limit = f"at most {orders} orders of a customer, cut by hand"
    law = laplace(orders / epsilon)
    ask("T3", partial(t3, orders), f"the join in pandas; {limit}", law, name)
    law = laplace(orders * price / epsilon)
    ask("T5", partial(t5, orders, price), f"{limit}; prices up to {price:,}", law, name)
refuse("T4", "no joins")
refuse("T4 triangles", "no joins")
