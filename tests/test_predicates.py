"""Comparisons, general predicates and contradictions through every surface."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest

import sqlrs
from sqlrs.catalog import Catalog
from sqlrs.cli import main
from sqlrs.compiler.simplify import Contradiction
from sqlrs.config import Config
from sqlrs.errors import EngineFailed, UsageError
from sqlrs.ledger import MemoryLedger
from sqlrs.owner.explain import Explanation
from sqlrs.procedures import Definition
from sqlrs.settings import Settings
from tests.support.builders import table

WITHIN = (
    "SELECT count(*) FROM visit a JOIN visit b ON a.patient = b.patient "
    "WHERE a.hospital <> b.hospital AND b.day - a.day BETWEEN 0 AND 7"
)
CHAIN = "SELECT count(*) FROM visit a, visit b, visit c WHERE a.day < b.day AND b.day < c.day"
# Each with the ends of its chain in the others: three variables range over the domain together.
LONG = (
    "SELECT count(*) FROM visit a, visit b, visit c, visit d, visit e "
    "WHERE a.day < b.day AND b.day < c.day AND c.day < d.day AND d.day < e.day"
)
NEVER = [
    "SELECT count(*) FROM visit WHERE patient < 3 AND patient > 5",
    "SELECT count(*) FROM visit WHERE patient > 3 AND patient < 4",
    "SELECT count(*) FROM visit WHERE day < DATE '2024-01-02' AND day > DATE '2024-01-01'",
    "SELECT count(*) FROM visit a, visit b WHERE a.day < b.day AND b.day < a.day",
    "SELECT count(*) FROM visit a, visit b, visit c "
    "WHERE a.day < b.day AND b.day <= c.day AND c.day <= a.day",
    "SELECT count(DISTINCT a.day) FROM visit a JOIN visit b USING (patient) "
    "WHERE a.patient <> b.patient",
    "SELECT count(*) FROM visit WHERE FALSE",
]
DAYS = ["2024-01-01", "2024-01-03", "2024-01-20", "2024-01-23", "2024-02-20", "2024-05-01"]
ROWS = ["patient,day,hospital", *(f"1,{day},{'AB'[i % 2]}" for i, day in enumerate(DAYS))]


@pytest.fixture
def visits(tmp_path: Path) -> str:
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(ROWS) + "\n")
    return str(path)


def connected(visits: str, **settings: object) -> sqlrs.Database:
    return sqlrs.connect(tables={"visit": visits}, settings=Settings(**settings))  # type: ignore[arg-type]


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, visits: str
) -> Callable[..., tuple[int, str, str]]:
    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["sqlrs", *arguments, "--table", f"visit={visits}"])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return call


@pytest.mark.parametrize("sql", NEVER)
def test_an_always_false_query_is_0_everywhere_and_reads_nothing(
    visits: str, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = MemoryLedger(Decimal(0))
    with sqlrs.connect(tables={"visit": visits}, ledger=ledger) as db:
        # The data must not be read: no snapshot can be had.
        monkeypatch.setattr(db.engine, "snapshot", None)
        answer = db.count(sql, "0.5", error_bars="0.1")
        assert (answer.value, answer.epsilon) == (0, Decimal(0))
        assert answer.error_bars is not None
        assert (answer.error_bars.low, answer.error_bars.high) == (0, 0)
        explained = db.explain(sql)
        assert isinstance(explained, Contradiction)
        assert "the count is 0 on every database; nothing is read or charged" in str(explained)
        assert "Contradiction" not in str(explained)
        assert db.sql(sql) == ()
        for method in ("refined", "residual", "elastic", "smooth", "global", "local"):
            assert db.sensitivity(sql, method).value == 0
    assert ledger.history() == ()


def test_an_always_false_query_on_the_command_line(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    assert run("count", NEVER[0], "--epsilon", "1") == (0, "0\n", "")
    assert json.loads(run("count", NEVER[0], "--epsilon", "1", "--json")[1])["epsilon"] == "0"
    assert "the count is 0 on every database" in run("explain", NEVER[0])[1]
    assert run("sql", NEVER[0])[1] == "-- no statement: the count is always 0\n"
    assert json.loads(run("sensitivity", NEVER[0], "--json")[1])["value"] == "0"


def test_redundant_predicates_are_left_out(visits: str) -> None:
    with connected(visits) as db:
        plain = db.sql("SELECT count(*) FROM visit a, visit b WHERE a.day < b.day")
        twice = db.sql(
            "SELECT count(*) FROM visit a, visit b "
            "WHERE a.day < b.day AND a.day <= b.day AND a.day <> b.day"
        )
    assert plain == twice


def test_explain_says_how_each_predicate_is_read(visits: str) -> None:
    with connected(visits) as db:
        exact, relaxed = (str(db.explain(sql)) for sql in (CHAIN, LONG))
        dropped = str(db.explain(WITHIN))
        unknown = str(db.explain(f"{WITHIN} AND year(a.day) = year(b.day)"))
    assert "a.day < b.day: exact" in exact
    assert "over all values of b.day: sweep" in exact
    assert "a.day < b.day: dropped, as more values are left open together" in relaxed
    assert "b.day - a.day <= 7: dropped, which can raise the sensitivity; the solver" in dropped
    assert "General(" not in dropped
    assert unknown.count("raise the sensitivity\n") == 1
    with connected(visits, solver=True) as db:
        solved = str(db.explain(WITHIN))
    assert "b.day - a.day <= 7: solved" in solved
    assert "over all values of b.day: solver" in solved
    with connected(visits, max_external=3) as db:
        assert "a.day < b.day: exact" in str(db.explain(LONG))


def test_the_solver_lowers_the_sensitivity_and_not_the_count(visits: str) -> None:
    with connected(visits) as without, connected(visits, solver=True) as with_solver:
        loose, tight = without.sensitivity(WITHIN), with_solver.sensitivity(WITHIN)
        whole = without.sensitivity("SELECT count(*) FROM visit a JOIN visit b USING (patient)")
    assert loose.count == tight.count == 2
    # Six rows of one patient; at most two of them lie within 8 days.
    assert [r.value for r in loose.residuals] == [6, 6]
    assert [r.value for r in tight.residuals] == [2, 2]
    assert {r.plan for r in tight.residuals} == {"solver"}
    assert tight.value < loose.value <= whole.value


def test_the_command_line_and_the_configuration_switch_the_solver_on(
    run: Callable[..., tuple[int, str, str]], visits: str, tmp_path: Path
) -> None:
    assert "solver reads" in run("sql", WITHIN, "--solver")[1]
    assert "solver reads" not in run("sql", WITHIN)[1]
    assert "solver" in run("explain", WITHIN, "--solver")[1]
    code, out, _ = run("count", WITHIN, "--epsilon", "1", "--solver")
    assert code == 0 and out.strip().lstrip("-").isdigit()
    value = json.loads(run("sensitivity", WITHIN, "--solver", "--json")[1])["residuals"][0]
    assert (value["plan"], value["value"]) == ("solver", 2)
    file = tmp_path / "sqlrs.toml"
    file.write_text(
        '[data]\nsolver = true\nsolver_seconds = 5\n[data.tables]\nvisit = "visits.csv"'
    )
    config = Config.read(file)
    assert (config.solver, config.solver_seconds) == (True, 5.0)
    with config.open() as db:
        assert db.settings == Settings(solver=True, solver_seconds=5.0)


@pytest.mark.parametrize(
    "text", ["solver = 1", 'solver_seconds = "5"', "solver_seconds = 0", "max_external = -1"]
)
def test_bad_settings_are_refused(tmp_path: Path, visits: str, text: str) -> None:
    file = tmp_path / "sqlrs.toml"
    file.write_text(f'[data]\n{text}\n[data.tables]\nvisit = "visits.csv"')
    with pytest.raises(UsageError):
        Config.read(file).open()


@pytest.fixture
def no_solver(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "z3", None)
    yield


@pytest.mark.usefixtures("no_solver")
def test_a_missing_solver_is_a_usage_error_before_any_charge(visits: str) -> None:
    ledger = MemoryLedger()
    settings = Settings(solver=True)
    with sqlrs.connect(tables={"visit": visits}, ledger=ledger, settings=settings) as db:
        with pytest.raises(UsageError, match="not installed"):
            db.count(WITHIN, 1)
        assert ledger.history() == ()
        # Nothing to solve, nothing to miss.
        assert isinstance(db.explain(CHAIN), Explanation)


def test_the_solvers_limit_ends_the_release_as_every_failure(visits: str) -> None:
    ledger = MemoryLedger()
    hard = (
        "SELECT count(*) FROM visit a, visit b, visit c WHERE a.patient * b.patient * c.patient "
        "= a.patient * a.patient * b.patient + c.patient * c.patient * c.patient * b.patient - 3"
    )
    rows = [f"{n},2024-01-01,A" for n in range(1, 60)]
    Path(visits).write_text("\n".join([ROWS[0], *rows]) + "\n")
    settings = Settings(solver=True, solver_seconds=0.01)
    with sqlrs.connect(tables={"visit": visits}, ledger=ledger, settings=settings) as db:
        with pytest.raises(EngineFailed) as caught:
            db.count(hard, "0.5")
        assert caught.value.message == "the release could not be completed; its budget stays spent"
        assert ledger.spent() == Decimal("0.5")


def test_an_installed_function_has_no_solver() -> None:
    catalog = Catalog("postgres", (table("r", "x", "y"),), search_path=("public",))
    sql = "SELECT count(*) FROM r a, r b WHERE a.x + b.y < 3"
    Definition.of(sql, catalog, name="sums", settings=Settings())
    with pytest.raises(UsageError, match="no solver"):
        Definition.of(sql, catalog, name="sums", settings=Settings(solver=True))
