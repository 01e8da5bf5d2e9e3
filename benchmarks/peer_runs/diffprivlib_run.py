"""diffprivlib over numpy; run by benchmarks/peers.py in an environment of its own."""

import json
import sys
import time

import numpy
import pandas
from diffprivlib import tools

folder, runs, epsilon = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
orders = pandas.read_parquet(f"{folder}/orders.parquet")
year = pandas.to_datetime(orders["o_orderdate"]).dt.year.to_numpy()
status = orders["o_orderstatus"].map({"F": 0, "O": 1, "P": 2}).to_numpy()


def t1():
    return [tools.count_nonzero(year == 1995, epsilon=epsilon)]


def t2():
    return list(tools.histogram(status, epsilon=epsilon, bins=3, range=(0, 3))[0])


SUPPLIED = {"T1": "nothing", "T2": "the statuses as numbers"}
for task, ask in {"T1": t1, "T2": t2}.items():
    try:
        for _ in range(runs):
            start = time.perf_counter()
            answer = [float(one) for one in numpy.asarray(ask())]
            seconds = time.perf_counter() - start
            print(
                json.dumps(
                    {"task": task, "answer": answer, "seconds": seconds, "supplied": SUPPLIED[task]}
                )
            )
    except Exception as error:
        print(json.dumps({"task": task, "refused": f"{type(error).__name__}: {error}"[:200]}))
for task in ("T3", "T4", "T5"):
    print(json.dumps({"task": task, "refused": "no units with several rows, no joins"}))
