"""What users of other tools bring along: SmartNoise's metadata, BigQuery's clause."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

import sqlrs
from sqlrs.cli.commands import application
from sqlrs.config import Config
from sqlrs.errors import UsageError
from sqlrs.inputs.bigquery import without_clause
from sqlrs.inputs.smartnoise import understood

METADATA = """
hospital:
  main:
    visit:
      rows: 1000
      max_ids: 5
      censor_dims: true
      sparkle: 1
      patient: {type: int, private_id: true}
      cost: {type: int, lower: 0, upper: 500, nullable: true}
      weight: {type: float, lower: 0.0, upper: 300.0}
      note: {type: string, cardinality: 9}
"""


def test_metadata_becomes_a_configuration(tmp_path: Path) -> None:
    (tmp_path / "meta.yaml").write_text(METADATA, encoding="utf-8")
    result = CliRunner().invoke(application(), ["from-smartnoise", str(tmp_path / "meta.yaml")])
    assert result.exit_code == 0
    (tmp_path / "sqlrs.toml").write_text(result.stdout, encoding="utf-8")
    config = Config.read(tmp_path / "sqlrs.toml")
    assert config.private == ("visit",) and set(config.bounds) == {"visit.cost", "visit.weight"}
    assert config.unit.id == "patient" and set(config.unit.owners) == {"visit"}
    for line in (
        "read: visit.patient says whose a row is",
        "left out: visit.censor_dims",
        "left out: visit.max_ids = 5",
        "not understood: visit.sparkle",
        "missing: visit.weight: floats need a step",
    ):
        assert line in result.stderr


def test_rows_stay_rows() -> None:
    table = {"row_privacy": True, "id": {"type": "int", "private_id": True}}
    found = understood({"": {"s": {"t": table}}})
    assert not found.owners and "[unit]" not in found.to_toml()


@pytest.mark.parametrize(
    "content", [None, [], {"a": 1}, {"a": {"b": 1}}, {"a": {"b": {"c": 1}}}, {}]
)
def test_what_is_no_metadata_is_said(content: object) -> None:
    with pytest.raises(UsageError):
        understood(content)


@pytest.fixture
def db() -> sqlrs.Database:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visit (patient INT NOT NULL, cost INT)")
    return sqlrs.connect(connection, unit="patient", owners={"visit": "patient"})


def test_bigquerys_clause_says_price_and_unit(db: sqlrs.Database) -> None:
    sql = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.5, delta = 1e-5, "
        "privacy_unit_column = patient) count(*) FROM visit"
    )
    answer = db.count(sql)
    assert f"{answer.epsilon}" == "0.5" and answer.protects == "patient"
    assert db.query(sql).repeated
    # Places in errors are those of the text that was sent.
    assert len(without_clause(sql).sql) == len(sql)
    for wrong in ("other", "visit.other"):
        with pytest.raises(UsageError, match="the owner protects"):
            db.count(sql.replace("= patient", f"= {wrong}"))
    with pytest.raises(UsageError, match="different epsilons"):
        db.count(sql, 2)


@pytest.mark.parametrize(
    "options", ["max_groups_contributed = 2", "epsilon = 1, epsilon = 2", "epsilon", "noise = 3"]
)
def test_what_would_mean_something_else_is_refused(db: sqlrs.Database, options: str) -> None:
    with pytest.raises(UsageError):
        db.count(f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) count(*) FROM visit", 1)


def test_a_text_without_the_clause_stays() -> None:
    for sql in ("SELECT count(*) FROM t", "SELECT 'WITH DIFFERENTIAL_PRIVACY' FROM t", ""):
        assert without_clause(sql).sql == sql
