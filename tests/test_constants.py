"""A constant is written once, as the value that it is, whatever its size."""

from __future__ import annotations

from decimal import Decimal

import pytest
import sqlglot
from sqlglot import exp

from sqlrs.catalog import Catalog, ColumnType, Family
from sqlrs.compiler.compile import compile_query
from sqlrs.query import Constant, Query
from sqlrs.residuals.residual import Residuals
from sqlrs.sql.plain import plain
from sqlrs.trees.constants import literal, typed_literal
from tests.compiler.schema import DOUBLE, table
from tests.support.engine_fixtures import BothEngines

DECIMAL = ColumnType(Family.DECIMAL, "DECIMAL(38, 10)")


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        ("1E+22", DOUBLE, "1E+22"),
        ("-1E+22", DOUBLE, "-1E+22"),
        ("1E-7", DOUBLE, "1E-7"),
        ("0.1", DOUBLE, "0.1"),
        # Without an exponent: DuckDB would take it for a double.
        ("0.0000001", DECIMAL, "0.0000001"),
        ("-1E+22", DECIMAL, "-10000000000000000000000"),
    ],
)
def test_numbers_are_written_in_full_or_as_the_double_they_are(
    value: str, kind: ColumnType, text: str
) -> None:
    constant = Constant(Decimal(value), kind)
    assert literal(constant).sql("duckdb") == text
    assert text in typed_literal(constant).sql("duckdb")


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
@pytest.mark.parametrize("number", ["51334410066088800000", "1e22", "-1E+22", "0.0000001", "1e300"])
def test_a_double_is_compared_with_what_the_text_says(
    both_engines: BothEngines, dialect: str, number: str
) -> None:
    """The compiled statement counts what the analyst's own text counts on that engine.

    DuckDB reads 51334410066088800000 as a whole number of 128 bits and rounds that to the next
    double but one.
    """
    own = table("measured", x=DOUBLE)
    near = [5.13344100660888e19, 5.1334410066088804e19, 1e22, -1e22, 1e-7, 1e300]
    both_engines.load([own], {"measured": [(x,) for x in near]})
    engine = both_engines.engines[dialect]
    for operator in ("=", "<=", "<"):
        sql = f"SELECT count(*) FROM measured WHERE x {operator} {number}"
        compiled = compile_query(sql, Catalog(dialect, (own,)))
        assert isinstance(compiled, Query)
        statement = plain(Residuals(compiled).of(compiled.everything))
        as_written = sqlglot.parse_one(sql, dialect=dialect)
        assert isinstance(as_written, exp.Select)
        with engine.snapshot() as snapshot:
            assert snapshot.scalar(statement) == snapshot.scalar(as_written)
