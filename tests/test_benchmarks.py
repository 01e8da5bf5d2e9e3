"""The benchmarks say what data they need, and run without any that is not at hand."""

from __future__ import annotations

import importlib
import itertools
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sqlrs
from benchmarks import (
    footprint,
    graphs,
    groups,
    peer_table,
    persons,
    persons_laws,
    relational,
    relational_data,
    spark,
    table1,
    tpch,
)
from benchmarks.__main__ import BENCHMARKS
from benchmarks.common import collaboration_graph, write_graph
from benchmarks.spark_work import SparkWork


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_says_what_data_it_needs(name: str) -> None:
    assert "\nData: " in str(importlib.import_module(f"benchmarks.{name}").__doc__)


def test_without_the_papers_graphs_they_are_generated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SQLRS_GRAPHS", str(tmp_path))
    with pytest.raises(SystemExit, match=r"snap\.stanford\.edu"), graphs.graphs("GrQc"):
        pass
    with graphs.graphs(None) as given:
        assert given.suffix == "_generated"
        name, path = next(iter(given.files.items()))
        cell = table1.measure_cell("triangle", name, path, figure=False)
    assert graphs.SOURCE in capsys.readouterr().out
    assert cell.count > 0
    assert "differs" not in table1.table([cell])
    assert not path.exists()


def test_a_number_that_is_not_the_papers_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    paper = {"count": 7, "SS": 3.0, "RS": 5.0, "ES": 9.0}
    monkeypatch.setattr(table1, "printed", lambda *_: paper)
    cell = table1.Cell("triangle", "GrQc", 7, 0.1, "3", "5", "4", "11", 2.0, 1.0, {})
    (row,) = table1.table([cell]).splitlines()[2:]
    assert row.count("differs") == 1 and "11 **differs**" in row


def test_grouped_answers_are_timed_and_their_noise_is_that_of_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (Path(sys.executable).parent / tpch.GENERATOR).exists():
        pytest.skip(f"{tpch.GENERATOR} is not installed beside Python")
    monkeypatch.setattr(groups, "KEPT", tmp_path)
    cases = {case.name: case for case in groups.CASES}
    with groups.opened(groups.tables("0.001")) as database:
        assert groups.tables("0.001").stat().st_size > 0
        constant = groups.measure(cases["customers by nation"], database)
        parallel = groups.measure(cases["pairs of lines of one order, by ship mode"], database)
        general, *_ = groups.compared(cases["orders by nation"], database)
    assert (constant.groups, constant.law) == (25, "laplace")
    assert (parallel.groups, parallel.law) == (7, "polylaplace")
    assert general == 25
    # A replaced row moves two groups; each group alone has a 25th of the epsilon, and moves by one.
    assert constant.alone_error / constant.relative_error == pytest.approx(25 / 2, rel=0.05)
    assert constant.floor == pytest.approx(constant.relative_error)
    assert parallel.alone_error > parallel.relative_error > parallel.floor > 0
    assert constant.private.seconds > 0 and constant.plain.seconds > 0
    assert "| 25 | laplace |" in groups.table([constant, parallel])


def test_nodes_of_a_graph_are_protected_with_less_error_than_r2t(tmp_path: Path) -> None:
    pytest.importorskip("highspy")
    path = write_graph(tmp_path / "graph.txt", sorted(set(collaboration_graph(6_000, seed=2))))
    with sqlrs.connect(tables={"edge": path}, keys=persons.EDGES) as database:
        sql = persons.PATTERNS["edges"]
        cell = persons.measure_pattern("made", "edges", sql, database)
    assert cell.answer > 1000
    assert cell.strict_median is not None
    assert cell.gain > 3 and cell.strict_median >= cell.median / 2
    assert "| made | edges |" in persons.graph_table([cell])


def test_peers_are_compared_by_the_law_of_their_noise_where_it_is_known() -> None:
    said: dict[str, Any] = {"task": "T2", "supplied": "the statuses", "bound": None, "wrong": None}
    lines: list[dict[str, Any]] = [
        {**said, "answer": [12.0, 18.0], "noise": 1.5, "seconds": 2.0, "core_seconds": 1.0},
        {**said, "answer": [10.0, 16.0], "noise": 1.5, "seconds": 1.0, "core_seconds": 2.0},
        {"task": "T2", "bound": None, "whole_seconds": 4.0, "whole_core_seconds": 3.0},
        {"task": "T2", "bound": None, "whole_seconds": 3.0, "whole_core_seconds": 3.5},
        {"task": "T4", "refused": "no joins", "bound": None},
    ]
    law, refused = peer_table.summarised("a tool", "1.0", lines, {"T2": [10.0, 20.0]})
    assert (law.error, law.standard_error, law.seconds, law.core_seconds) == (2.0, 1.5, 1.0, 1.0)
    assert refused.said == "refused: no joins" and refused.error is None
    unknown = [{**line, "noise": None, "bound": "read off the data"} for line in lines[:2]]
    (seen,) = peer_table.summarised("other", "2.0", unknown, {"T2": [10.0, 20.0]})
    assert seen.standard_error == 2.0 and not seen.by_law
    shown = peer_table.table([refused, seen, law], {"third": "pip ended with 1"})
    rows = shown.splitlines()[2:5]
    assert rows[0].startswith("| T2 | a tool 1.0 | 2.00 | 1.50 | 3.00 | 3.00 | 1.00 | 1.00 |  |")
    assert rows[1].startswith("| T2 | other 2.0 † | 2.00 | ≈ 2.00 |")
    assert "Not here: third (pip ended with 1)" in shown


def test_an_exact_law_takes_the_place_of_answers() -> None:
    row = peer_table.PeerRow("T3", "sqlrs", "1", None, "nothing", 35.0, 137.0, False, 1.0, 1.0)
    known = peer_table.with_law(row, {("T3", None): (46.0, 119.0)})
    assert (known.error, known.standard_error, known.by_law) == (46.0, 119.0, True)
    assert peer_table.with_law(row, {("T5", None): (46.0, 119.0)}) == row


def test_the_law_of_a_cut_sum_is_that_of_all_its_outcomes() -> None:
    # By brute force: every threshold, every noise that is not vanishingly rare.
    weights = {2: 0.5, 4: 0.3, 9: 0.2}
    sums = {2: 17.0, 4: 21.0, 9: 24.0}
    law = persons_laws.ClippedSums(sums, {t: math.log(w) for t, w in weights.items()}, 1.5)
    likely: dict[int, float] = {}
    for threshold, share in weights.items():
        noises = {k: math.exp(-abs(k) / (1.5 * threshold)) for k in range(-900, 901)}
        for noise, weight in noises.items():
            error = abs(int(sums[threshold]) + noise - 24)
            likely[error] = likely.get(error, 0) + share * weight / sum(noises.values())
    square = sum(share * error**2 for error, share in likely.items())
    assert law.exact_rms(24) == pytest.approx(math.sqrt(square))
    reached = itertools.accumulate(likely[error] for error in sorted(likely))
    median = next(e for e, share in zip(sorted(likely), reached, strict=True) if share >= 0.5)
    assert law.exact_median(24) == median


def test_without_graphs_their_part_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SQLRS_GRAPHS", str(tmp_path))
    with persons.graphs() as found:
        assert not found
    assert "left out" in capsys.readouterr().err


def test_joins_of_tables_are_measured_beside_their_yardstick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relational_data, "KEPT", tmp_path)
    path = relational_data.data_file("snowflake", "0.001", None)
    schema = relational_data.SCHEMAS["snowflake"]
    case = next(one for one in schema.cases if one.name == "refunds of sales")
    assert "price" in case.sql and "price" not in case.unfiltered
    assert case.tables(schema.keys) == ["product", "customer", "sale", "refund"]
    task = relational.Task("snowflake", "0.001", case, f"duckdb:///{path}", 60.0, "1GB", None)
    cell = relational.measure(task)
    assert cell.to_yardstick is not None and cell.to_yardstick > 0
    assert cell.peak_megabytes > 0 and cell.spill_megabytes == 0
    larger = replace(cell, scale="0.01", private=footprint.Cost(1.0, 1.0))
    refused = replace(cell, name="another", private="limit")
    shown = relational.table([cell, larger, refused])
    assert "| snowflake | 0.001 | refunds of sales |" in shown
    assert "not answered: another" in shown and "exponent at most" in shown


def test_what_spark_takes_is_shown_against_its_targets() -> None:
    plain = SparkWork(12.0, 20.0, 3, 12, 5_000_000, 0, 2.0, 1.5)
    pairs = [
        spark.Pair("slow", plain, replace(plain, seconds=18.0, shuffle_bytes=9_000_000)),
        spark.Pair("quick", replace(plain, seconds=1.0), replace(plain, seconds=7.0)),
    ]
    shown = spark.table(pairs)
    assert "| slow | 12.00 | 18.00 | 1.50 |" in shown and "| 5.00 | 9.00 |" in shown
    assert "plain over 10 s: geometric mean 1.50" in shown
    assert "plain up to 10 s: geometric mean 7.00, largest 7.00" in shown
    endless = replace(plain, seconds=60.0, ended=False)
    shown = spark.table([*pairs, spark.Pair("cut off", endless, replace(plain, seconds=6.0))])
    assert "| cut off | > 60.00 | 6.00 | < 0.10 |" in shown
    assert "plain over 10 s: geometric mean 1.50" in shown
    shown = spark.table([spark.Pair("neither", endless, endless)])
    assert "| neither | > 60.00 | > 60.00 | – |" in shown and "geometric" not in shown
