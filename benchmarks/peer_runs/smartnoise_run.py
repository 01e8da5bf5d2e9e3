"""SmartNoise SQL over pandas; run by benchmarks/peers.py in an environment of its own."""

import json
import sys
import time

import pandas
from snsql import Privacy, from_connection

folder, runs, epsilon = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
orders = pandas.read_parquet(f"{folder}/orders.parquet")
customer = pandas.read_parquet(f"{folder}/customer.parquet")
orders["o_totalprice"] = orders["o_totalprice"].astype(float)
orders["o_year"] = pandas.to_datetime(orders["o_orderdate"]).dt.year
building = orders.merge(
    customer[customer["c_mktsegment"] == "BUILDING"], left_on="o_custkey", right_on="c_custkey"
)


def reader(frame, columns, **table):
    meta = {"": {"s": {"t": {**table, "rows": 150000, **columns}}}}
    return from_connection(
        frame,
        privacy=Privacy(epsilon=epsilon, delta=1e-9),
        metadata={"s": meta[""]} if False else meta,
    )


KEY = {"o_orderkey": {"type": "int", "private_id": True}}
PERSON = {"o_custkey": {"type": "int", "private_id": True}}
BY_ROW = {"row_privacy": False, "max_ids": 1, "censor_dims": False}
BY_PERSON = {"row_privacy": False, "max_ids": 20, "censor_dims": False}


def t1():
    got = reader(orders[["o_orderkey", "o_year"]], {**KEY, "o_year": {"type": "int"}}, **BY_ROW)
    return [got.execute("SELECT COUNT(*) AS n FROM s.t WHERE o_year = 1995")[1][0]]


def t2():
    columns = {**KEY, "o_orderstatus": {"type": "string"}}
    got = reader(orders[["o_orderkey", "o_orderstatus"]], columns, **BY_ROW)
    rows = got.execute("SELECT o_orderstatus, COUNT(*) AS n FROM s.t GROUP BY o_orderstatus")
    found = dict(rows[1:])
    return [found[one] for one in ("F", "O", "P")]


def t3():
    got = reader(building[["o_custkey"]], PERSON, **BY_PERSON)
    return [got.execute("SELECT COUNT(*) AS n FROM s.t")[1][0]]


def t5():
    price = {"o_totalprice": {"type": "float", "lower": 0.0, "upper": 600000.0}}
    got = reader(orders[["o_custkey", "o_totalprice"]], {**PERSON, **price}, **BY_PERSON)
    return [got.execute("SELECT SUM(o_totalprice) AS n FROM s.t")[1][0]]


SUPPLIED = {
    "T1": "an id of each row, its type",
    "T2": "an id of each row; groups come from the data (delta)",
    "T3": "the join done before; at most 20 orders of a customer",
    "T5": "at most 20 orders of a customer, prices up to 600,000",
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
print(json.dumps({"task": "T4", "refused": "JOIN is refused"}))
