"""The SQL of every construct on Spark: the kept text, and the values of the definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.golden.constructs import CONSTRUCTS, ROWS, TABLES
from tests.support.kept import assert_kept
from tests.support.spark import load
from tests.support.spark_golden import SparkConstructs

FOLDER = Path(__file__).parents[1] / "golden" / "spark"


@pytest.fixture(scope="module")
def loaded(spark: Any) -> SparkConstructs:
    load(spark, TABLES, ROWS)
    return SparkConstructs.on(spark)


# One of each kind in the gate: a statement has many exchanges, each of which takes its time.
_QUICK = frozenset({"join_on", "filters", "inequality", "comparison_internal", "sweep_date"})


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in _QUICK else [pytest.mark.slow]) for n in CONSTRUCTS],
)
def test_the_text_is_kept_and_gives_the_values_of_the_definition(
    loaded: SparkConstructs, name: str
) -> None:
    assert_kept(FOLDER / f"{name}.sql", loaded.text(name))
    loaded.assert_values(name)
