"""PipelineDP on its local backend."""

from functools import partial

import pandas
import pipeline_dp
from peer_frame import SEGMENT, STATUSES, ask, bounds, epsilon, folder, laplace, refuse

ALL = "all"
COUNT, SUM = pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.SUM


def read(name, columns):
    return pandas.read_parquet(f"{folder}/{name}.parquet", columns=columns)


def aggregated(rows, partitions, metric, **limits):
    """The metric of each partition; a row is (person, partition, value)."""
    budget = pipeline_dp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=1e-9)
    engine = pipeline_dp.DPEngine(budget, pipeline_dp.LocalBackend())
    params = pipeline_dp.AggregateParams(
        metrics=[metric],
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        max_partitions_contributed=1,
        **limits,
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    result = engine.aggregate(rows, params, extractors, public_partitions=list(partitions))
    budget.compute_budgets()
    found = {name: numbers[0] for name, numbers in result}
    return [found[one] for one in partitions]


def t1():
    date = pandas.to_datetime(read("orders", ["o_orderdate"])["o_orderdate"])
    rows = [(row, ALL, 0) for row in date[date.dt.year == 1995].index]
    return aggregated(rows, [ALL], COUNT, max_contributions_per_partition=1)


def t2():
    status = read("orders", ["o_orderstatus"])["o_orderstatus"]
    rows = [(row, one, 0) for row, one in enumerate(status)]
    return aggregated(rows, STATUSES, COUNT, max_contributions_per_partition=1)


def t3(orders):
    customer = read("customer", ["c_custkey", "c_mktsegment"])
    segment = customer[customer["c_mktsegment"] == SEGMENT]["c_custkey"]
    owner = read("orders", ["o_custkey"])["o_custkey"]
    rows = [(one, ALL, 0) for one in owner[owner.isin(segment)]]
    return aggregated(rows, [ALL], COUNT, max_contributions_per_partition=orders)


def t5(orders, price):
    frame = read("orders", ["o_custkey", "o_totalprice"])
    values = frame["o_totalprice"].astype(float)
    rows = [(one, ALL, value) for one, value in zip(frame["o_custkey"], values, strict=True)]
    limits = {"min_value": 0.0, "max_value": float(price)}
    return aggregated(rows, [ALL], SUM, max_contributions_per_partition=orders, **limits)


ask("T1", t1, "the filter applied before", laplace(1 / epsilon))
ask("T2", t2, "the statuses", laplace(1 / epsilon))
for name, (orders, price) in bounds.items():
    limit = f"at most {orders} orders of a customer"
    law = laplace(orders / epsilon)
    ask("T3", partial(t3, orders), f"the join done before; {limit}", law, name)
    law = laplace(orders * price / epsilon)
    ask("T5", partial(t5, orders, price), f"{limit}, prices up to {price:,}", law, name)
refuse("T4", "no joins")
refuse("T4 triangles", "no joins")
