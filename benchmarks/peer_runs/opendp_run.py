"""OpenDP through its polars interface."""

from functools import partial

import opendp.prelude as dp
import polars as pl
from peer_frame import (
    SEGMENT,
    STATUSES,
    ask,
    bounds,
    discrete_laplace,
    epsilon,
    folder,
    laplace,
    refuse,
)

dp.enable_features("contrib")
ROW = dp.unit_of(contributions=1)
CUSTOMER = dp.unit_of(contributions=1, identifier=pl.col("o_custkey"))


def read(name):
    return pl.scan_parquet(f"{folder}/{name}.parquet")


def query(data, unit, margins=()):
    return dp.Context.compositor(
        data=data.collect().lazy(),
        privacy_unit=unit,
        privacy_loss=dp.loss_of(epsilon=epsilon),
        split_evenly_over=1,
        margins=list(margins),
    ).query()


def t1():
    date = pl.col("o_orderdate")
    of_1995 = read("orders").filter((date >= pl.date(1995, 1, 1)) & (date < pl.date(1996, 1, 1)))
    asked = query(of_1995.select("o_orderkey"), ROW).select(dp.len())
    return [asked.release().collect().item()]


def t2():
    statuses = pl.DataFrame({"o_orderstatus": list(STATUSES)}).lazy()
    grouped = query(read("orders").select("o_orderstatus"), ROW).group_by("o_orderstatus")
    found = dict(grouped.agg(dp.len()).with_keys(statuses).release().collect().rows())
    return [found[one] for one in STATUSES]


def t3(orders):
    segment = read("customer").filter(pl.col("c_mktsegment") == SEGMENT)
    joined = read("orders").join(segment, left_on="o_custkey", right_on="c_custkey")
    asked = query(joined.select(pl.col("o_custkey").cast(pl.Int64)), CUSTOMER)
    return [asked.truncate_per_group(orders).select(dp.len()).release().collect().item()]


def t5(orders, price):
    summed = pl.col("o_totalprice").cast(pl.Float64)
    data = read("orders").select(pl.col("o_custkey").cast(pl.Int64), summed)
    asked = query(data, CUSTOMER, [dp.polars.Margin(max_length=1_000_000)])
    value = pl.col("o_totalprice").fill_null(0.0).fill_nan(0.0)
    cut = asked.truncate_per_group(orders).select(value.dp.sum((0.0, float(price))))
    return [cut.release().collect().item()]


ask("T1", t1, "the filter in polars", discrete_laplace(1 / epsilon))
ask("T2", t2, "the statuses", discrete_laplace(1 / epsilon))
for name, (orders, price) in bounds.items():
    limit = f"at most {orders} orders of a customer"
    ask(
        "T3",
        partial(t3, orders),
        f"the join in polars; {limit}",
        discrete_laplace(orders / epsilon),
        name,
    )
    ask(
        "T5",
        partial(t5, orders, price),
        f"{limit}, prices up to {price:,}, at most 1,000,000 rows",
        laplace(orders * price / epsilon),
        name,
    )
refuse("T4", "joins of private tables are not offered")
refuse("T4 triangles", "joins of private tables are not offered")
