"""The command line as its users meet it: output, exit codes, messages, JSON."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sqlrs.cli import main
from sqlrs.graphs.demo import demo_edges
from sqlrs.graphs.patterns import pattern_sql

EDGES = "# a comment\n" + "".join(
    f"{a}\t{b}\n" for a in range(12) for b in range(12) if a != b and (a * b) % 3 != 1
)
PATH = "SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src"
Run = Callable[..., tuple[int, str, str]]

PUBLIC_FIELDS = {
    "answer",
    "epsilon",
    "mechanism",
    "error_bars",
    "repeated",
    "protects",
    "clipping",
}


@pytest.fixture
def graph(tmp_path: Path) -> str:
    path = tmp_path / "graph.txt"
    path.write_text(EDGES)
    return str(path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["sqlrs", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return call


def test_count_prints_a_number_and_nothing_else(run: Run, graph: str) -> None:
    code, out, err = run("count", PATH, "--epsilon", "1", "--table", f"edge={graph}")
    assert (code, err) == (0, "")
    assert out.strip().lstrip("-").isdigit()


def test_count_json_holds_public_fields_alone(run: Run, graph: str) -> None:
    code, out, _ = run(
        "count",
        PATH,
        "--epsilon",
        "0.50",
        "--error-bars",
        "0.1",
        "--json",
        "--table",
        f"edge={graph}",
    )
    answer = json.loads(out)
    assert code == 0
    assert set(answer) == PUBLIC_FIELDS
    assert answer["epsilon"] == "0.6"
    assert answer["error_bars"]["low"] <= answer["answer"] <= answer["error_bars"]["high"]


@pytest.mark.parametrize("mechanism", ["polylaplace", "cauchy"])
def test_graph_shorthand(run: Run, graph: str, mechanism: str) -> None:
    code, out, _ = run("graph", "triangle", graph, "--epsilon", "1", "--mechanism", mechanism)
    assert code == 0
    assert out.strip().lstrip("-").isdigit()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["count", PATH, "--epsilon", "0", "--table", "edge=GRAPH"], 2, "epsilon"),
        (["count", PATH, "--epsilon", "1"], 2, "no data was named"),
        (["count", PATH, "--epsilon", "1", "--table", "edge"], 2, "NAME=VALUE"),
        (["count", PATH, "--epsilon", "1", "--table", "edge=/nowhere.txt"], 2, "nowhere"),
        (["count", PATH, "--table", "edge=GRAPH"], 2, "epsilon"),
        (["count", PATH, "--epsilon", "1", "--db", "oracle://x"], 2, "not of a known kind"),
        (["graph", "hexagon", "GRAPH", "--epsilon", "1"], 2, "hexagon"),
        (
            ["count", "SELECT sum(src) FROM edge", "--epsilon", "1", "--table", "edge=GRAPH"],
            3,
            "line 1",
        ),
        (
            ["count", "SELECT count(*) FROM edg", "--epsilon", "1", "--table", "edge=GRAPH"],
            3,
            "edge",
        ),
        (["count", PATH, "--epsilon", "1", "--plan", "magic", "--table", "edge=GRAPH"], 2, "magic"),
        (["sensitivity", PATH, "--method", "best", "--table", "edge=GRAPH"], 2, "best"),
        (["sql", PATH, "--dialect", "oracle", "--table", "edge=GRAPH"], 2, "oracle"),
    ],
)
def test_bad_input_gets_its_exit_code_and_a_message(
    run: Run, graph: str, arguments: list[str], code: int, message: str
) -> None:
    got, out, err = run(*(a.replace("GRAPH", graph) for a in arguments))
    assert (got, out) == (code, "")
    assert message in err
    assert "Traceback" not in err


def test_a_budget_is_kept_across_runs(run: Run, graph: str, tmp_path: Path) -> None:
    ledger = f"sqlite:///{tmp_path / 'budget.db'}"
    data = ["--table", f"edge={graph}", "--ledger", ledger, "--analyst", "ann"]
    assert run("count", PATH, "--epsilon", "1", *data)[0] == 4
    assert run("budget", "grant", "1", "--analyst", "ann", "--ledger", ledger)[0] == 0
    assert run("budget", "grant", "5", "--dataset", "data", "--ledger", ledger)[0] == 0
    code, first, err = run("count", PATH, "--epsilon", "0.75", *data)
    assert (code, err) == (0, "")
    code, again, err = run("count", PATH, "--epsilon", "0.75", *data)
    assert (code, again) == (0, first)
    assert "recorded answer" in err
    code, out, err = run("count", PATH, "--epsilon", "0.5", *data)
    assert (code, out) == (4, "")
    assert "0.25 left" in err
    shown = run("budget", "show", "--ledger", ledger)[1]
    assert "ann" in shown
    assert "0.75" in shown
    assert "released" in run("budget", "history", "--ledger", ledger)[1]
    exported = run("budget", "export", "--ledger", ledger)[1]
    assert json.loads(exported.splitlines()[0])["analyst"] == "ann"


def test_sensitivity_json_has_the_documented_fields(run: Run, graph: str) -> None:
    code, out, _ = run("sensitivity", PATH, "--json", "--table", f"edge={graph}")
    found = json.loads(out)
    assert code == 0
    assert set(found) == {"method", "beta", "value", "k", "count", "residuals", "seconds"}
    assert set(found["residuals"][0]) == {"atoms", "boundary", "value", "plan", "seconds"}
    code, out, _ = run("sensitivity", PATH, "--method", "all", "--json", "--table", f"edge={graph}")
    methods = json.loads(out)["methods"]
    assert set(methods) == {"refined", "residual", "elastic", "smooth", "global", "local"}
    assert float(methods["refined"]["value"]) <= float(methods["residual"]["value"])
    assert methods["smooth"]["error"]["code"] == "smooth_unsupported"


def test_sensitivities_say_that_they_are_of_rows(run: Run, graph: str) -> None:
    given = ("sensitivity", PATH, "--table", f"edge={graph}")
    assert "of single rows" not in run(*given)[2]
    owners = ("--unit", "node", "--owner", "edge=src,dst")
    code, _, err = run(*given, *owners)
    assert (code, "these sensitivities are of single rows" in err) == (0, True)


def test_explain_touches_no_row_and_draws(run: Run, graph: str, tmp_path: Path) -> None:
    picture = tmp_path / "query.svg"
    code, out, _ = run(
        "explain", PATH, "--table", f"edge={graph}", "--svg", str(picture), "--residual", "a"
    )
    assert code == 0
    assert "boundary a.dst" in out
    assert "standard error" in out
    assert "boundary" in picture.read_text()


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark"])
def test_sql_prints_one_statement_for_each_residual(run: Run, graph: str, dialect: str) -> None:
    code, out, _ = run("sql", PATH, "--dialect", dialect, "--table", f"edge={graph}")
    assert code == 0
    assert out.count(";") == 3
    assert "-- the count" in out


def test_a_config_file_holds_the_options(run: Run, graph: str, tmp_path: Path) -> None:
    config = tmp_path / "sqlrs.toml"
    config.write_text(
        f'[data]\ndataset = "g"\nprivate = ["edge"]\n[data.tables]\nedge = "{graph}"\n'
        '[data.keys]\nedge = ["src", "dst"]\n'
    )
    assert run("count", PATH, "--epsilon", "1", "--config", str(config))[0] == 0
    config.write_text('[data]\ndatabase = "x"\n')
    code, _, err = run("count", PATH, "--epsilon", "1", "--config", str(config))
    assert code == 2
    assert "database" in err


def test_the_query_may_come_from_standard_input(graph: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sqlrs", "count", "-", "--epsilon", "1", "--table", f"edge={graph}"],
        input=PATH,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().lstrip("-").isdigit()


def test_progress_shows_on_a_terminal_and_ctrl_c_stops_the_sql(tmp_path: Path) -> None:
    big = tmp_path / "big.txt"
    big.write_text("".join(f"{a}\t{b}\n" for a in range(700) for b in range(700) if a != b))
    terminal, end = pty.openpty()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "sqlrs", "count", pattern_sql("cycle5"), "--epsilon", "1"),
            *("--plan", "plain", "--table", f"edge={big}"),
        ],
        stdout=subprocess.PIPE,
        stderr=end,
        text=True,
    )
    os.close(end)
    shown = _read_until(terminal, b"residual 1 of")
    os.kill(process.pid, signal.SIGINT)
    shown += _read_until(terminal, b"stopped")
    out, _ = process.communicate(timeout=60)
    os.close(terminal)
    assert process.returncode == 130, shown
    assert out == ""


def _read_until(terminal: int, wanted: bytes) -> bytes:
    """What a program wrote to its terminal, up to and with the wanted text."""
    shown = b""
    while wanted not in shown:
        assert select.select([terminal], [], [], 120)[0], shown
        shown += os.read(terminal, 4096)
    return shown


def test_the_demo_shows_what_is_behind_its_answer(run: Run) -> None:
    """The true count and the error stand beside the answer, and the page says why they may."""
    code, out, err = run("demo", "--epsilon", "0.99999999999999999999")
    assert (code, err) == (0, "")
    shown = dict(re.findall(r"the (private answer|true count|standard error) +(-?[\d,]+)", out))
    answer, count, error = (int(text.replace(",", "")) for text in shown.values())
    assert count == _triangles(demo_edges())
    assert error == 60
    # Beyond 100 standard errors: once in 10^9.
    assert abs(answer - count) < 100 * error
    before = out[: out.index("true count")]
    assert "shown because this graph is made up" in before
    assert "private answer" in before


def test_the_demo_as_json_is_the_answer_alone(run: Run) -> None:
    code, out, _ = run("demo", "--json")
    assert code == 0
    assert set(json.loads(out)) == PUBLIC_FIELDS


def _triangles(edges: list[tuple[int, int]]) -> int:
    friends: dict[int, set[int]] = {}
    for a, b in edges:
        friends.setdefault(a, set()).add(b)
    return sum(len(friends[a] & friends[b]) for a, b in edges)
