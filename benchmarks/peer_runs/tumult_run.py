"""Tumult Analytics on a local Spark session."""

from functools import partial

from peer_frame import (
    SEGMENT,
    STATUSES,
    ask,
    bounds,
    discrete_laplace,
    epsilon,
    folder,
    graph,
    laplace,
)
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from tmlt.analytics import (
    AddOneRow,
    AddRowsWithID,
    KeySet,
    MaxRowsPerID,
    PureDPBudget,
    QueryBuilder,
    Session,
    TruncationStrategy,
)

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "4")
    .config("spark.log.level", "ERROR")
    .getOrCreate()
)
BUDGET = PureDPBudget(epsilon)
# At most so many edges leave, or reach, a node: a guess.
DEGREE = 100


def read(name):
    return spark.read.parquet(f"{folder}/{name}.parquet")


def answered(query, unit, *keys, **frames):
    builder = Session.Builder().with_privacy_budget(BUDGET)
    for name, frame in frames.items():
        builder = builder.with_private_dataframe(name, frame, unit(name))
    if unit is customer:
        builder = builder.with_id_space("customer")
    found = builder.build().evaluate(query, BUDGET).collect()
    by_key = {tuple(row[:-1]): row[-1] for row in found}
    return [by_key[key] for key in keys or ((),)]


def row(_name):
    return AddOneRow()


def customer(name):
    return AddRowsWithID(id_column="o_custkey", id_space="customer")


def t1():
    query = QueryBuilder("orders").filter(
        "o_orderdate >= '1995-01-01' AND o_orderdate < '1996-01-01'"
    )
    frame = read("orders").select("o_orderkey", "o_orderdate")
    return answered(query.count(), row, orders=frame)


def t2():
    keys = KeySet.from_dict({"o_orderstatus": list(STATUSES)})
    query = QueryBuilder("orders").groupby(keys).count()
    frame = read("orders").select("o_orderstatus")
    return answered(query, row, *((one,) for one in STATUSES), orders=frame)


def t3(limit):
    segment = read("customer").filter(f.col("c_mktsegment") == SEGMENT)
    joined = read("orders").join(segment, f.col("o_custkey") == f.col("c_custkey"))
    query = QueryBuilder("orders").enforce(MaxRowsPerID(limit)).count()
    return answered(query, customer, orders=joined.select("o_custkey"))


def t4(limit):
    keep = TruncationStrategy.DropExcess(limit)
    other = QueryBuilder("orders").rename({"o_orderkey": "other"})
    joined = QueryBuilder("orders").join_private(other, keep, keep, ["o_custkey"])
    query = joined.filter("o_orderkey < other").count()
    return answered(query, row, orders=read("orders").select("o_orderkey", "o_custkey"))


def triangles():
    keep = TruncationStrategy.DropExcess(DEGREE)
    second = QueryBuilder("edge").rename({"dst": "third"}).rename({"src": "dst"})
    third = QueryBuilder("edge").rename({"src": "third"}).rename({"dst": "src"})
    paths = QueryBuilder("edge").join_private(second, keep, keep, ["dst"])
    once = TruncationStrategy.DropExcess(1)
    query = paths.join_private(third, keep, once, ["third", "src"]).count()
    return answered(query, row, edge=spark.read.parquet(graph))


def t5(limit, price):
    kept = QueryBuilder("orders").enforce(MaxRowsPerID(limit))
    frame = read("orders").select("o_custkey", f.col("o_totalprice").cast("double"))
    return answered(kept.sum("o_totalprice", 0.0, float(price)), customer, orders=frame)


ask("T1", t1, "nothing", discrete_laplace(1 / epsilon))
ask("T2", t2, "the statuses", discrete_laplace(1 / epsilon))
for name, (orders, price) in bounds.items():
    limit = f"at most {orders} orders of a customer"
    law = discrete_laplace(orders / epsilon)
    ask("T3", partial(t3, orders), f"the join in Spark; {limit}", law, name)
    ask("T4", partial(t4, orders), limit, None, name)
    law = laplace(orders * price / epsilon)
    ask("T5", partial(t5, orders, price), f"{limit}, prices up to {price:,}", law, name)
ask("T4 triangles", triangles, f"at most {DEGREE} edges of a node")
