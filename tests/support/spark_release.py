"""A program that releases one count from Spark with known random bits, telling how far it is.

python -m tests.support.spark_release URL EDGES LEDGER SQL
"""

from __future__ import annotations

import random
import sys

import sqlrs
from sqlrs.ledger.store import StoreLedger
from sqlrs.noise.randomness import SystemBits

SEED = 16
EPSILON = "0.5"


def main(url: str, edges: str, ledger: str, sql: str) -> None:
    bits = random.Random(SEED)
    setattr(SystemBits, "bits", lambda _, count: bits.getrandbits(count))  # noqa: B010

    def tell(position: int, total: int, _: str) -> None:
        print(f"statement {position} of {total}", flush=True)

    given = None if ledger == "none" else StoreLedger(ledger)
    # So few edges would be fetched, and then no worker had anything to do.
    in_spark = sqlrs.Settings(fetch_limit=0)
    with sqlrs.connect(url, tables={"edge": edges}, ledger=given, settings=in_spark) as database:
        print("open", flush=True)
        answer = database.count(sql, epsilon=EPSILON, progress=tell)
        print(f"answer {answer.value}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
