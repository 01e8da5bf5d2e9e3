"""The SQL of every construct on Spark: the kept text, and the values of the definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from sqlrs.catalog import Catalog
from sqlrs.compiled import Compiled
from sqlrs.engines.base import Engine
from sqlrs.engines.open import open_engine
from sqlrs.measuring.solver import solve
from sqlrs.owner.statements import statements
from sqlrs.planning.external_plans import Solved
from tests.golden.constructs import CONSTRUCTS, PUBLIC, ROWS, TABLES, Construct
from tests.support import brute
from tests.support.kept import assert_kept
from tests.support.spark import load
from tests.support.sql_cases import domain, evaluator

FOLDER = Path(__file__).parents[1] / "golden" / "spark"


@pytest.fixture(scope="module")
def loaded(spark: Any) -> tuple[Engine, Catalog]:
    load(spark, TABLES, ROWS)
    engine = open_engine(spark)
    keys = {t.label.lower(): [sorted(key) for key in t.keys] for t in TABLES if t.keys}
    catalog = engine.catalog()
    engine.check_keys(catalog, keys)
    return engine, catalog.declare(public=PUBLIC, keys=keys)


def _written(construct: Construct) -> str:
    """The query in Spark's words: names stand in backticks, and days have a function."""
    named = construct.sql.replace('""', "\0").replace('"', "`").replace("\0", '"')
    return named.replace("(a.day - b.day)", "(datediff(a.day, b.day))")


# One of each kind in the gate: a statement has many exchanges, each of which takes its time.
_QUICK = frozenset({"join_on", "filters", "inequality", "comparison_internal", "sweep_date"})


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in _QUICK else [pytest.mark.slow]) for n in CONSTRUCTS],
)
def test_the_text_is_kept_and_gives_the_values_of_the_definition(
    loaded: tuple[Engine, Catalog], name: str
) -> None:
    engine, catalog = loaded
    construct, sql = CONSTRUCTS[name], _written(CONSTRUCTS[name])
    compiled = Compiled.of(sql, catalog, construct.settings)
    assert isinstance(compiled, Compiled)
    residuals = compiled.residuals
    found = statements(residuals, "spark", construct.settings.plan)
    assert_kept(
        FOLDER / f"{name}.sql", "\n\n".join([f"-- the query\n{sql};", *map(str, found)]) + "\n"
    )
    # Spark keeps names of tables in small letters.
    rows = {name.lower(): ROWS[name] for name in ROWS}
    tried, evaluate = domain(residuals.query, rows), evaluator(residuals.query)
    by_name = {
        str(part): part for members in residuals.required for part in residuals.parts(members)
    }
    count = brute.count(residuals.query, rows, evaluate=evaluate)
    with engine.snapshot() as snapshot:
        for title, text in [("the query", sql), *((s.title, s.sql) for s in found)]:
            statement = sqlglot.parse_one(text, dialect="spark")
            assert isinstance(statement, exp.Expression)
            if title in ("the query", "the count"):
                assert snapshot.scalar(statement) == count
                continue
            for residual in title.split(", boundary")[0].split(", whose")[0].split(" and "):
                part = by_name[residual]
                expected = brute.residual_value(part, rows, domain=tried, evaluate=evaluate)
                if ", whose rows the solver reads" in title:
                    assert solve(Solved(part), snapshot.rows(statement)) == expected
                else:
                    assert snapshot.scalar(statement) == expected, residual
