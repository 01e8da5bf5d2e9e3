"""OpenDP through its polars interface; run by benchmarks/peers.py in an environment of its own."""

import json
import sys
import time

import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")
folder, runs, epsilon = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
orders = pl.scan_parquet(f"{folder}/orders.parquet")
customer = pl.scan_parquet(f"{folder}/customer.parquet")
of_1995 = orders.filter(
    (pl.col("o_orderdate") >= pl.date(1995, 1, 1)) & (pl.col("o_orderdate") < pl.date(1996, 1, 1))
)
building = orders.join(
    customer.filter(pl.col("c_mktsegment") == "BUILDING"), left_on="o_custkey", right_on="c_custkey"
).select(pl.col("o_custkey").cast(pl.Int64), pl.col("o_totalprice").cast(pl.Float64))
totals = orders.select(pl.col("o_custkey").cast(pl.Int64), pl.col("o_totalprice").cast(pl.Float64))


def context(data, unit, margins=()):
    return dp.Context.compositor(
        data=data.collect().lazy(),
        privacy_unit=unit,
        privacy_loss=dp.loss_of(epsilon=epsilon),
        split_evenly_over=1,
        margins=list(margins),
    )


def t1():
    query = context(of_1995.select("o_orderkey"), dp.unit_of(contributions=1)).query()
    return [query.select(dp.len()).release().collect().item()]


def t2():
    status = pl.DataFrame({"o_orderstatus": ["F", "O", "P"]}).lazy()
    query = context(orders.select("o_orderstatus"), dp.unit_of(contributions=1)).query()
    grouped = query.group_by("o_orderstatus").agg(dp.len()).with_keys(status)
    found = dict(grouped.release().collect().rows())
    return [found[one] for one in ("F", "O", "P")]


def t3():
    unit = dp.unit_of(contributions=1, identifier=pl.col("o_custkey"))
    query = context(building, unit).query().truncate_per_group(20)
    return [query.select(dp.len()).release().collect().item()]


def t5():
    unit = dp.unit_of(contributions=1, identifier=pl.col("o_custkey"))
    query = context(totals, unit, [dp.polars.Margin(max_length=200_000)]).query()
    summed = query.truncate_per_group(20).select(
        pl.col("o_totalprice").fill_null(0.0).fill_nan(0.0).dp.sum((0.0, 600_000.0))
    )
    return [summed.release().collect().item()]


SUPPLIED = {
    "T1": "nothing",
    "T2": "the statuses",
    "T3": "the join done before; at most 20 orders of a customer",
    "T5": "at most 20 orders of a customer, prices up to 600,000, at most 200,000 rows",
}
for task, ask in {"T1": t1, "T2": t2, "T3": t3, "T5": t5}.items():
    try:
        for _ in range(runs):
            start = time.perf_counter()
            answer = [float(one) for one in ask()]
            seconds = time.perf_counter() - start
            print(
                json.dumps(
                    {"task": task, "answer": answer, "seconds": seconds, "supplied": SUPPLIED[task]}
                )
            )
    except Exception as error:
        print(json.dumps({"task": task, "refused": f"{type(error).__name__}: {error}"[:200]}))
print(json.dumps({"task": "T4", "refused": "joins of private tables are not offered"}))
