"""Residuals that lead to each other, on Spark itself: the values of the definition."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, assume, given, settings
from sqlglot import exp

from sqlrs.dialects.spark_text import spark_text
from sqlrs.engines.base import Engine, Row
from sqlrs.engines.open import open_engine
from sqlrs.engines.spark_snapshot import SparkSnapshot
from sqlrs.measuring.measurements import Measurements
from sqlrs.measuring.work import Work
from sqlrs.planning.chained import chained
from sqlrs.residuals.residual import Reading, Residuals
from tests.planning.strategies import evaluate
from tests.support import brute
from tests.support.builders import atom, query, table
from tests.support.engine_fixtures import BothEngines
from tests.support.examples import examples
from tests.support.key_joins import Joined, joined_by_keys
from tests.support.spark import load
from tests.support.special import Special

STAR_TABLES = (
    table("home", "c", "n", keys=["c"], nullable="n"),
    table("orders", "o", "c", keys=["o"], nullable="c"),
    table("sold", "o", "s", "number", keys=["o number"], nullable="s"),
    table("supplier", "s", "n", keys=["s"], nullable="n"),
)
# A nation is compared across two branches, and a customer decides it.
_STAR = query(
    *(
        atom(one, *variables.split())
        for one, variables in zip(STAR_TABLES, ("c n", "o c", "o s i", "s n"), strict=True)
    )
)


@contextmanager
def noted() -> Iterator[list[str]]:
    """The texts of all statements that run on Spark within the block."""
    texts: list[str] = []
    run = SparkSnapshot.run

    def kept(own: SparkSnapshot, tree: exp.Expr) -> list[Row]:
        texts.append(spark_text(tree))
        return run(own, tree)

    with patch.object(SparkSnapshot, "run", kept):
        yield texts


def star_rows() -> dict[str, list[Row]]:
    """Rows of the star's tables, NULL among them."""
    draw = random.Random(7)

    def some(most: int) -> int | None:
        found = draw.randrange(-1, most)
        return None if found < 0 else found

    return {
        "home": [(i, some(2)) for i in range(5)],
        "orders": [(i, some(5)) for i in range(8)],
        "sold": [(draw.randrange(8), some(4), i) for i in range(25)],
        "supplier": [(i, some(2)) for i in range(4)],
    }


def assert_star(engine: Engine, rows: dict[str, list[Row]]) -> None:
    """The values of the definition, by one statement that sends rows."""
    residuals = Residuals(_STAR, Reading(exact_comparisons=False))
    with noted() as texts:
        measured = Measurements(engine).enough(residuals, residuals.required, None)
    expected = {m: brute.residual_value(residuals.of(m), rows) for m in residuals.required}
    assert measured.count == brute.count(_STAR, rows) > 0
    assert dict(measured.values) == expected
    assert sum("DISTRIBUTE BY" in text for text in texts) == 1


def test_branches_that_meet_have_the_values_of_the_definition(spark: Any) -> None:
    load(spark, STAR_TABLES, rows := star_rows())
    assert_star(open_engine(spark), rows)


def _for_spark(joined: Joined) -> dict[str, list[Row]]:
    """The rows as Python says them: floating point is no text."""
    return {
        name: [tuple(float(v) if isinstance(v, Special) else v for v in row) for row in rows]
        for name, rows in joined.rows.items()
    }


@settings(
    max_examples=examples(8),
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(joined=joined_by_keys())
def test_random_queries_have_one_count_and_one_value_of_each_residual(
    spark: Any, both_engines: BothEngines, joined: Joined
) -> None:
    """Spark's all from one statement; DuckDB and PostgreSQL have plans of their own."""
    residuals = Residuals(joined.query, Reading(exact_comparisons=False))
    wanted = residuals.required
    assume(chained(Work(residuals, wanted, None).statements) is not None)
    both_engines.load(joined.tables, joined.rows)
    load(spark, joined.tables, _for_spark(joined))
    count = brute.count(joined.query, joined.rows, evaluate=evaluate)
    parts = {
        # What keys decide is 1, also where there is no row.
        part.members: brute.residual_value(part, joined.rows, evaluate=evaluate)
        for part in residuals.undecided(wanted)
    }
    expected = count, dict(residuals.assemble(wanted, parts))
    for name, engine in {**both_engines.engines, "spark": open_engine(spark)}.items():
        with noted() as texts:
            measured = Measurements(engine).enough(residuals, wanted, None)
        assert (measured.count, dict(measured.values)) == expected, name
        assert len(texts) == (name == "spark")
