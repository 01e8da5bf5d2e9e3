"""Statements of units that must not fail, neither while they are read nor by what a row holds."""

from __future__ import annotations

import time
from uuid import UUID

import duckdb
import pytest

from sqlrs.compiler.statement import compile_statement
from sqlrs.connecting import connect
from sqlrs.database import Database
from sqlrs.engines.base import Opened
from sqlrs.errors import QueryRefused
from sqlrs.measures import Contributions
from sqlrs.measuring.measurements import Measurements
from sqlrs.measuring.owned_results import owner_variables
from sqlrs.residuals.residual import Residuals
from tests.compiler.unit_texts import EDGE, catalog

GRID = (1, 10**20)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM edge WHERE src = 1",
        "SELECT count(*) FROM visit a, visit b WHERE a.patient = 1 AND b.patient = 2",
    ],
)
def test_a_unit_that_the_text_names_beside_others_is_refused(sql: str) -> None:
    with pytest.raises(QueryRefused) as caught:
        compile_statement(sql, catalog("duckdb", EDGE))
    assert caught.value.code == "several_owners"


def test_results_of_several_units_whose_ids_are_uuids() -> None:
    one, other = (UUID(int=number) for number in (1, 2))
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE edge (src UUID, dst UUID)")
        connection.execute("INSERT INTO edge VALUES (?, ?), (?, ?)", [one, other, other, other])
        database = connect(connection, unit="node", owners={"edge": "src, dst"})
        [aggregation] = compile_statement(
            "SELECT count(*) FROM edge", database.catalog
        ).aggregations
        [term] = aggregation.measures[0].terms
        assert len(owner_variables(term)) == 2
        measurements = Measurements(database.engine)
        found = measurements.owned_results(term, Residuals(term.query), 9)
        alone, both = sorted(map(set, zip(*found.owners, strict=True)), key=len)
        assert (len(alone), len(both), alone < both) == (1, 2, True)
        assert list(found.weights) == [1, 1]


def _contributions(database: Database, sql: str) -> Contributions:
    [aggregation] = compile_statement(sql, database.catalog).aggregations
    [measure] = aggregation.measures
    parts = measure.per_unit or [(term, Residuals(term.query)) for term in measure.terms]
    with database.engine.snapshot() as snapshot:
        measurements = Measurements(Opened(snapshot, "duckdb"))
        return measurements.contributions(parts, (), GRID)


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        *((text, False) for text in ("big", "h", "fine", "i * i", "m * m")),
        # Inside a unit the arithmetic is the engine's, and may overflow.
        *((text, True) for text in ("big", "h", "fine")),
    ],
)
def test_no_stored_value_fails_a_sum(text: str, inside: bool) -> None:
    """That a release fails would tell that such a row is there."""
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE acc (u INTEGER, big DECIMAL(38,0), h HUGEINT, "
            "fine DECIMAL(38,6), i BIGINT, m DECIMAL(18,2))"
        )
        nines = "9" * 38
        large = (3, nines, 2**127 - 1, f"{nines[:32]}.5", 2**63 - 1, "9" * 16)
        small = (1, "2", 2, "2.5", 2, "2.50")
        for row in (small, large, large):
            connection.execute("INSERT INTO acc VALUES (?, ?, ?, ?, ?, ?)", list(row))
        database = connect(connection, unit="person", owners={"acc": "u"})
        rows = "(SELECT DISTINCT * FROM acc) AS acc" if inside else "acc"
        found = _contributions(database, f"SELECT sum({text}) FROM {rows}")
        assert sum(found.units) == 2


def test_what_a_column_is_made_of_does_not_double() -> None:
    inner = (
        "SELECT patient, town AS x, rank() OVER (PARTITION BY patient ORDER BY town) AS r "
        "FROM visit"
    )
    for _ in range(25):
        inner = f"SELECT patient, x + x AS x, r FROM ({inner}) AS t"
    begun = time.process_time()
    compile_statement(f"SELECT count(*) FROM ({inner}) AS t WHERE x > 1 AND r = 1", catalog())
    assert time.process_time() - begun < 30
