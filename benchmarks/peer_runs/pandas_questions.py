"""The questions as a user of pandas writes them, before a tool adds its noise to what they give.

All of it is part of the task: what sqlrs is told in SQL, somebody has to write here.
"""

import pandas
from peer_frame import SEGMENT, folder, memory


@memory
def read(name, columns):
    return pandas.read_parquet(f"{folder}/{name}.parquet", columns=columns)


def years(orders):
    """The year of each order."""
    return pandas.to_datetime(orders["o_orderdate"]).dt.year


def of_1995(orders):
    """The orders of that year."""
    return orders[years(orders) == 1995]


def statuses():
    return read("orders", ["o_orderstatus"])["o_orderstatus"]


def buyers_in_segment():
    """The join: the customer of each order of a customer of the segment."""
    customer = read("customer", ["c_custkey", "c_mktsegment"])
    segment = customer[customer["c_mktsegment"] == SEGMENT]["c_custkey"]
    buyer = read("orders", ["o_custkey"])["o_custkey"]
    return buyer[buyer.isin(segment)]


def prices():
    """The customer and the price of each order."""
    orders = read("orders", ["o_custkey", "o_totalprice"])
    orders["o_totalprice"] = orders["o_totalprice"].astype(float)
    return orders
