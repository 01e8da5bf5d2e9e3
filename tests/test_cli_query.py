"""``sqlrs query`` prints what the database answers; the answers themselves are tested elsewhere."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from sqlrs.cli import main
from sqlrs.database import Database
from sqlrs.table_answer import TableAnswer

SQL = "SELECT ward, count(*) AS n FROM visit GROUP BY ward"
ANSWER = TableAnswer(
    columns=(("ward", "VARCHAR"), ("n", "BIGINT"), ("cost", "DECIMAL(38,2)")),
    rows=(('A, "x"', 3, Decimal("1.50")), (None, -1, None)),
    epsilon=Decimal(1),
    mechanism="laplace",
    notes=("rows of other wards are in no group",),
)
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, object]]]:
    calls: list[tuple[str, dict[str, object]]] = []

    def query(self: Database, sql: str, epsilon: str, **given: object) -> TableAnswer:
        calls.append((sql, {"epsilon": epsilon, **given}))
        return replace(ANSWER, repeated=len(calls) > 1)

    monkeypatch.setattr(Database, "query", query, raising=False)
    return calls


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    visits = tmp_path / "visit.csv"
    visits.write_text("ward,cost\nA,1\n")

    def call(*arguments: str) -> tuple[int, str, str]:
        data = ("--table", f"visit={visits}", "--types", "visit=ward VARCHAR, cost INTEGER")
        monkeypatch.setattr(sys, "argv", ["sqlrs", "query", *arguments, *data])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return call


def test_a_table_with_its_price_is_printed(
    run: Run, asked: list[tuple[str, dict[str, object]]]
) -> None:
    code, out, err = run(SQL, "--epsilon", "1", "--error-bars", "0.1")
    assert (code, err) == (0, "")
    assert out == ANSWER.to_text() + "\n"
    given = {"epsilon": "1", "error": None, "max_epsilon": None, "error_bars": "0.1"}
    given |= {"mechanism": "fitting", "progress": None}
    assert asked == [(SQL, given)]


def test_csv_can_be_read_back(run: Run, asked: list[tuple[str, dict[str, object]]]) -> None:
    code, out, err = run(SQL, "--epsilon", "1", "--csv")
    assert (code, err) == (0, "sqlrs: rows of other wards are in no group\n")
    assert list(csv.reader(io.StringIO(out))) == [
        ["ward", "n", "cost"],
        ['A, "x"', "3", "1.50"],
        ["", "-1", ""],
    ]


def test_json_holds_names_rows_and_price(
    run: Run, asked: list[tuple[str, dict[str, object]]]
) -> None:
    code, out, _ = run(SQL, "--epsilon", "1", "--json")
    record = json.loads(out)
    assert code == 0
    assert record["columns"] == ["ward", "n", "cost"]
    assert record["rows"] == [['A, "x"', 3, "1.50"], [None, -1, None]]
    assert (record["epsilon"], record["repeated"]) == ("1", False)


@pytest.mark.parametrize("form", [[], ["--csv"], ["--json"]])
def test_a_repeated_answer_is_marked(
    form: list[str], run: Run, asked: list[tuple[str, dict[str, object]]]
) -> None:
    assert "asked before" not in run(SQL, "--epsilon", "1", *form)[2]
    code, out, err = run(SQL, "--epsilon", "1", *form)
    assert code == 0
    assert "sqlrs: asked before: the recorded numbers, free of charge" in err
    assert "asked before" not in out


def test_two_forms_are_a_mistake_of_usage(
    run: Run, asked: list[tuple[str, dict[str, object]]]
) -> None:
    code, out, _ = run(SQL, "--epsilon", "1", "--csv", "--json")
    assert (code, out, asked) == (2, "", [])


def test_what_was_cut_from_single_rows_is_printed(run: Run) -> None:
    sql = "SELECT sum(least(greatest(cost, 0), 99)) FROM visit"
    code, out, err = run(sql, "--epsilon", "1", "--mechanism", "clipped")
    assert (code, err) == (0, "")
    assert re.search(r"^rows above \d+ were cut to \d+; standard error ", out, re.MULTILINE)
    assert "is protected" not in out
    code, _, err = run(SQL, "--epsilon", "1", "--mechanism", "cauchy")
    assert (code, "for a single count only" in err) == (2, True)
