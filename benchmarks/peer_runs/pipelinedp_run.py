"""PipelineDP on its local backend."""

from functools import partial

import pipeline_dp
from pandas_questions import buyers_in_segment, of_1995, prices, read, statuses
from peer_frame import STATUSES, ask, bounds, epsilon, laplace, refuse

ALL = "all"
COUNT, SUM = pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.SUM


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
    rows = [(row, ALL, 0) for row in of_1995(read("orders", ["o_orderdate"])).index]
    return aggregated(rows, [ALL], COUNT, max_contributions_per_partition=1)


def t2():
    rows = [(row, one, 0) for row, one in enumerate(statuses())]
    return aggregated(rows, STATUSES, COUNT, max_contributions_per_partition=1)


def t3(orders):
    rows = [(one, ALL, 0) for one in buyers_in_segment()]
    return aggregated(rows, [ALL], COUNT, max_contributions_per_partition=orders)


def t5(orders, price):
    frame = prices()
    pairs = zip(frame["o_custkey"], frame["o_totalprice"], strict=True)
    rows = [(one, ALL, value) for one, value in pairs]
    limits = {"min_value": 0.0, "max_value": float(price)}
    return aggregated(rows, [ALL], SUM, max_contributions_per_partition=orders, **limits)


ask("T1", t1, "the filter in pandas", laplace(1 / epsilon))
ask("T2", t2, "the statuses", laplace(1 / epsilon))
for name, (orders, price) in bounds.items():
    limit = f"at most {orders} orders of a customer"
    law = laplace(orders / epsilon)
    ask("T3", partial(t3, orders), f"the join in pandas; {limit}", law, name)
    law = laplace(orders * price / epsilon)
    ask("T5", partial(t5, orders, price), f"{limit}, prices up to {price:,}", law, name)
refuse("T4", "no joins")
refuse("T4 triangles", "no joins")
