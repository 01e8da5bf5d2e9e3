"""Residuals that lead to each other, on Spark itself: the values of the definition."""

from __future__ import annotations

import random
from typing import Any

from sqlglot import exp

from sqlrs.engines.base import Row
from sqlrs.engines.open import open_engine
from sqlrs.engines.spark_snapshot import SparkSnapshot
from sqlrs.measuring.measurements import Measurements
from sqlrs.residuals.residual import Reading, Residuals
from tests.support import brute
from tests.support.builders import atom, query, table
from tests.support.spark import load

_TABLES = (
    table("home", "c", "n", keys=["c"], nullable="n"),
    table("orders", "o", "c", keys=["o"], nullable="c"),
    table("sold", "o", "s", "number", keys=["o number"], nullable="s"),
    table("supplier", "s", "n", keys=["s"], nullable="n"),
)
# A nation is compared across two branches, and a customer decides it.
_STAR = query(
    *(
        atom(one, *variables.split())
        for one, variables in zip(_TABLES, ("c n", "o c", "o s i", "s n"), strict=True)
    )
)


def test_branches_that_meet_have_the_values_of_the_definition(spark: Any, monkeypatch: Any) -> None:
    draw = random.Random(7)

    def some(most: int) -> int | None:
        found = draw.randrange(-1, most)
        return None if found < 0 else found

    rows: dict[str, list[tuple[object, ...]]] = {
        "home": [(i, some(2)) for i in range(5)],
        "orders": [(i, some(5)) for i in range(8)],
        "sold": [(draw.randrange(8), some(4), i) for i in range(25)],
        "supplier": [(i, some(2)) for i in range(4)],
    }
    load(spark, _TABLES, rows)
    texts = []
    run = SparkSnapshot.run

    def noted(own: SparkSnapshot, tree: exp.Expr) -> list[Row]:
        texts.append(tree.sql("spark"))
        return run(own, tree)

    monkeypatch.setattr(SparkSnapshot, "run", noted)
    residuals = Residuals(_STAR, Reading(exact_comparisons=False))
    measured = Measurements(open_engine(spark)).enough(residuals, residuals.required, None)
    expected = {m: brute.residual_value(residuals.of(m), rows) for m in residuals.required}
    assert measured.count == brute.count(_STAR, rows) > 0
    assert dict(measured.values) == expected
    assert sum("DISTRIBUTE BY" in text for text in texts) == 1
