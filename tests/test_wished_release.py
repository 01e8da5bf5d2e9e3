"""An error is wished instead of a price: what is charged, when, and what a crash leaves."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

import sqlrs
from sqlrs.cli.commands import application
from sqlrs.errors import (
    BudgetExhausted,
    EngineFailed,
    NotShown,
    QueryRefused,
    SqlrsError,
    UsageError,
)
from sqlrs.ledger import Charge, MemoryLedger
from sqlrs.noise import laplace
from sqlrs.sensitivity.exponential import exp_negative_upper

JOIN = "SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src"
ROWS = "SELECT count(*) FROM edge"
LOOK = Decimal("0.08")


class Mortal(MemoryLedger):
    """Remembers the order of its steps, and dies before the one that is named."""

    def __init__(self, dies: str = "", total: Decimal | None = None) -> None:
        super().__init__(total)
        self.dies = dies
        self.steps: list[str] = []

    def _step(self, name: str) -> None:
        self.steps.append(f"{name} {sum(one.startswith(name) for one in self.steps) + 1}")
        if self.steps[-1] == self.dies:
            raise MemoryError

    def reserve(self, charge: Charge) -> int:
        self._step("reserve")
        return super().reserve(charge)

    def settle(self, ticket: int, answer: str) -> None:
        self._step("settle")
        super().settle(ticket, answer)


def opened(ledger: MemoryLedger) -> sqlrs.Database:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE edge (src INT NOT NULL, dst INT NOT NULL, UNIQUE (src, dst));"
        "INSERT INTO edge SELECT i, (i * i + 1) % 40 FROM range(40) t(i);"
        "CREATE TABLE kind (id INT PRIMARY KEY); INSERT INTO kind VALUES (1), (2)"
    )
    return sqlrs.connect(
        connection, public=["kind"], ledger=ledger, domains={"edge.src": {"from": 0, "to": 3}}
    )


@pytest.fixture
def ledger() -> Mortal:
    return Mortal()


@pytest.fixture
def db(ledger: Mortal) -> Iterator[sqlrs.Database]:
    with opened(ledger) as database:
        yield database


def test_each_step_is_charged_before_it_is_told(db: sqlrs.Database, ledger: Mortal) -> None:
    answer = db.count(JOIN, error=10**9, max_epsilon=1)
    assert ledger.steps == ["reserve 1", "settle 1", "reserve 2", "settle 2"]
    # The cheapest noise will do: a shape of 2.
    assert answer.epsilon == LOOK + 2 * Decimal("0.0368") == ledger.spent()
    assert answer.error_bars is not None and answer.wished is not None
    assert answer.error_bars.high - answer.value <= 10**9
    assert "of at most 1" in answer.notes[0]
    assert sqlrs.Answer.from_json(answer.to_json()) == answer


def test_the_same_question_is_free_and_another_wish_pays_the_scale_no_more(
    db: sqlrs.Database, ledger: Mortal
) -> None:
    first = db.count(JOIN, error=10**9, max_epsilon=1)
    spent = ledger.spent()
    again = db.count(JOIN, error=10**9, max_epsilon=1)
    assert again.repeated and again.value == first.value and ledger.spent() == spent
    quoted = db.price(JOIN, max_epsilon=1)
    tightest = quoted.widths[-1]
    assert quoted.look == 0 and quoted.scale is not None and ledger.spent() == spent
    best = db.count(JOIN, error=int(tightest.half_width), max_epsilon=1)
    assert best.epsilon == ledger.spent() - spent == tightest.epsilon
    assert ledger.spent() - spent + LOOK <= 1
    assert best.error_bars is not None
    assert best.error_bars.high - best.value <= tightest.half_width


def test_a_wish_that_cannot_be_met_costs_the_scale_once(db: sqlrs.Database, ledger: Mortal) -> None:
    ends: list[tuple[str, type[SqlrsError], int]] = [
        ("epsilon 0.08 was charged", NotShown, 5),
        ("nothing was charged", QueryRefused, 3),
    ]
    for charged, kind, exit_code in ends:
        with pytest.raises(kind, match=charged) as told:
            db.count(JOIN, error="0.5", max_epsilon=1)
        assert told.value.code == "wish_not_met"
        # A refusal says that nothing was charged: only the second one is one.
        assert told.value.exit_code == exit_code
        assert ledger.spent() == LOOK


@pytest.mark.parametrize(
    ("dies", "spent"),
    [("settle 1", LOOK), ("reserve 2", LOOK), ("settle 2", LOOK + 2 * Decimal("0.0368"))],
)
def test_a_crash_never_leaves_less_charged_than_was_told(dies: str, spent: Decimal) -> None:
    ledger = Mortal(dies)
    with opened(ledger) as db:
        with pytest.raises(MemoryError):
            db.count(JOIN, error=10**9, max_epsilon=1)
        assert ledger.spent() == spent
        told = [line.charge.epsilon for line in ledger.history() if line.answer is not None]
        assert sum(told) <= spent
        ledger.dies = ""
        answer = db.count(JOIN, error=10**9, max_epsilon=1)
    known = dies != "settle 1"
    assert answer.epsilon == 2 * Decimal("0.0368") + (0 if known else LOOK)


def test_the_maximum_must_be_there_before_anything_is_charged() -> None:
    ledger = Mortal(total=Decimal("0.9"))
    with opened(ledger) as db:
        with pytest.raises(BudgetExhausted):
            db.count(JOIN, error=10**9, max_epsilon=1)
        assert ledger.spent() == 0 and not ledger.steps
        assert db.count(JOIN, error=10**9, max_epsilon="0.9").epsilon < Decimal("0.9")


def test_a_budget_that_ends_between_the_steps_says_what_was_charged() -> None:
    class Shared(Mortal):
        """Somebody else spends all that is left before the second step."""

        def reserve(self, charge: Charge) -> int:
            if self.steps:
                other = Charge("bob", charge.dataset, "other", "noise", Decimal("1.9"))
                super().reserve(other)
            return super().reserve(charge)

    ledger = Shared(total=Decimal(2))
    with opened(ledger) as db, pytest.raises(BudgetExhausted, match=r"epsilon 0.08 was charged"):
        db.count(JOIN, error=10**9, max_epsilon=1)
    assert ledger.spent() == LOOK + Decimal("1.9")


def test_a_public_sensitivity_needs_no_estimate(db: sqlrs.Database, ledger: Mortal) -> None:
    quoted = db.price(ROWS, error=30)
    assert quoted.sensitivity == 1 and ledger.spent() == 0
    answer = db.count(ROWS, error=30, max_epsilon=1)
    assert ledger.steps == ["reserve 1", "settle 1"]
    assert answer.epsilon == ledger.spent() == quoted.epsilon == Decimal("0.0982")
    assert answer.error_bars is not None and answer.error_bars.high - answer.value == 30
    # One step of the grid less would stray farther.
    assert db.count(ROWS, "0.0981", error_bars=1).error_bars is not None
    less = db.count(ROWS, "0.0981", error_bars=1)
    assert less.error_bars is not None and less.error_bars.high - less.value > 30
    with pytest.raises(QueryRefused, match="nothing was charged"):
        db.count(ROWS, error=1, max_epsilon="0.5")


def test_a_wish_of_any_size_is_priced_by_little_work(
    db: sqlrs.Database, ledger: Mortal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is priced before anything is charged: with e**-(1000 * 10**12) for a tail, for ever."""
    worked: list[Fraction] = []
    exact = exp_negative_upper

    def heard(exponent: Fraction) -> Fraction:
        worked.append(exponent)
        assert exponent < 10_000
        return exact(exponent)

    monkeypatch.setattr(laplace, "exp_negative_upper", heard)
    assert db.count(ROWS, error=10**12, max_epsilon=1000).epsilon == Decimal("0.0001")
    assert db.price(ROWS, error=10**18, max_epsilon=1000).epsilon == Decimal("0.0001")
    assert worked


def test_groups_of_a_public_width(db: sqlrs.Database, ledger: Mortal) -> None:
    by_source = "SELECT src, count(*) AS n FROM edge GROUP BY src"
    table = db.query(by_source, error=30, max_epsilon=1, error_bars=1)
    assert table.epsilon == ledger.spent() == db.price(by_source, error=30).epsilon
    assert {int(str(high)) - int(str(low)) for _, _, low, high in table.rows} == {60}
    assert "was wished" in table.notes[-1]
    for several, why in {
        "SELECT src, count(*), count(DISTINCT dst) FROM edge GROUP BY src": "several aggregates",
        "SELECT avg(src) FROM edge WHERE src BETWEEN 0 AND 9": "an average is two",
    }.items():
        with pytest.raises(QueryRefused) as refused:
            db.query(several, error=30, max_epsilon=1)
        assert refused.value.code == "wish_unsupported" and why in str(refused.value)
        assert "noise" in str(db.price(several))
    assert len(ledger.steps) == 2


# What is told first, the price of that, and of the cheapest answer that there is.
BY_PLACE = "SELECT {} FROM visit{}"
IN_TWO_STEPS = {
    "count of a unit": (BY_PLACE.format("count(*) AS n", ""), "0.3", "0.0001"),
    "sum of a unit": (BY_PLACE.format("sum(cost) AS n", ""), "0.3", "0.0001"),
    "groups of a unit": (BY_PLACE.format("ward, count(*) AS n", " GROUP BY ward"), "0.3", "0.0001"),
    "two owners": (
        "SELECT count(*) AS n FROM visit v JOIN visit w ON v.ward = w.ward AND v.id < w.id",
        "0.55",
        "0.0001",
    ),
    "rows by clipping": (BY_PLACE.format("sum(cost) AS n", ""), "0.3", "0.0001"),
    "groups of a join": (
        "SELECT v.ward, count(*) AS n FROM visit v JOIN visit w ON v.id = w.cost GROUP BY v.ward",
        "0.08",
        "0.0736",
    ),
    "sum over a join": (
        "SELECT sum(v.cost) AS n FROM visit v JOIN visit w ON v.id = w.cost",
        "0.08",
        "0.0736",
    ),
    "outer join": (
        "SELECT count(*) AS n FROM visit v LEFT JOIN visit w ON v.id = w.cost",
        "0.08",
        "0.0736",
    ),
}
OF_ROWS = ("rows by clipping", "groups of a join", "sum over a join", "outer join")


def hospital(ledger: MemoryLedger, case: str) -> sqlrs.Database:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE person (id INT PRIMARY KEY); INSERT INTO person FROM range(30);"
        "CREATE TABLE visit (id INT PRIMARY KEY, person INT NOT NULL, ward INT NOT NULL, "
        "cost INT NOT NULL);"
        "INSERT INTO visit SELECT i, i % 30, i % 2, i % 7 FROM range(90) t(i)"
    )
    domains, bounds = {"visit.ward": [0, 1]}, {"visit.cost": [0, 7]}
    if case in OF_ROWS:
        return sqlrs.connect(connection, domains=domains, bounds=bounds, ledger=ledger)
    return sqlrs.connect(
        connection,
        unit="person.id",
        owners={"visit": ["person"]},
        domains=domains,
        bounds=bounds,
        ledger=ledger,
    )


def asked(db: sqlrs.Database, case: str, error: object, **given: Any) -> sqlrs.TableAnswer:
    mechanism = "clipped" if case == "rows by clipping" else "fitting"
    sql = IN_TWO_STEPS[case][0]
    return db.query(sql, error=error, max_epsilon=1, mechanism=mechanism, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", IN_TWO_STEPS)
def test_statements_of_a_private_width(case: str) -> None:
    _, look, least = IN_TWO_STEPS[case]
    ledger = Mortal()
    with hospital(ledger, case) as db:
        first = asked(db, case, 10**9)
        assert ledger.steps == ["reserve 1", "settle 1", "reserve 2", "settle 2"]
        assert first.epsilon == ledger.spent() == Decimal(look) + Decimal(least)
        assert f"of at most 1, {look} of it" in first.notes[-1]
        again = asked(db, case, 10**9)
        assert again.repeated and again.rows == first.rows and len(ledger.steps) == 4
        # Another wish pays no threshold or scale, and the narrowest one stays in the maximum.
        spent = ledger.spent()
        with pytest.raises(QueryRefused, match="nothing was charged") as refused:
            asked(db, case, "0.5")
        tightest = float(str(refused.value).split("it would be ")[1].split(" then")[0])
        assert ledger.spent() == spent
        best = asked(db, case, tightest, error_bars=1)
        assert best.epsilon == ledger.spent() - spent <= 1 - Decimal(look)
        for *_, low, high in best.rows:
            assert int(str(high)) - int(str(low)) <= 2 * tightest


@pytest.mark.parametrize("case", ["groups of a unit", "two owners", "groups of a join"])
@pytest.mark.parametrize("dies", ["settle 1", "reserve 2", "settle 2"])
def test_a_crash_of_a_statement_never_leaves_less_charged_than_was_told(
    case: str, dies: str
) -> None:
    _, look, least = IN_TWO_STEPS[case]
    ledger = Mortal(dies)
    with hospital(ledger, case) as db:
        with pytest.raises(MemoryError):
            asked(db, case, 10**9)
        paid = Decimal(look) + (Decimal(least) if dies == "settle 2" else 0)
        assert ledger.spent() == paid
        told = [line.charge.epsilon for line in ledger.history() if line.answer is not None]
        assert sum(told) <= paid
        ledger.dies = ""
        known = dies != "settle 1"
        assert asked(db, case, 10**9).epsilon == Decimal(least) + (0 if known else Decimal(look))


def test_a_wish_of_units_that_cannot_be_met_costs_the_threshold_once() -> None:
    ledger = Mortal()
    with hospital(ledger, "count of a unit") as db:
        for charged, kind in (("epsilon 0.3 was charged", NotShown), ("nothing was", QueryRefused)):
            with pytest.raises(kind, match=charged):
                db.count("SELECT count(*) FROM visit", error="0.5", max_epsilon=1)
            assert ledger.spent() == Decimal("0.3")
        answer = db.count("SELECT count(*) FROM visit", error=10**6, max_epsilon=1)
        assert answer.clipping is not None and answer.wished is not None
        assert answer.error_bars is not None
        assert answer.error_bars.high - answer.value <= 10**6
        quoted = db.price("SELECT count(*) FROM visit", error=10**6)
        assert quoted.look == 0 and quoted.epsilon == answer.epsilon


def test_a_count_and_the_same_statement_have_records_of_their_own(db: sqlrs.Database) -> None:
    counts, tables = [], []
    for _ in range(2):
        counts.append(db.count(JOIN, error=20_000, max_epsilon=1))
        tables.append(db.query(JOIN, error=20_000, max_epsilon=1))
    assert [one.repeated for one in counts] == [one.repeated for one in tables] == [False, True]
    assert counts[0].value == counts[1].value and tables[0].rows == tables[1].rows


def test_what_each_unit_has_once_has_a_public_width() -> None:
    ledger = Mortal()
    with hospital(ledger, "count of a unit") as db:
        answer = db.count("SELECT count(*) FROM person", error=30, max_epsilon=1)
        assert ledger.steps == ["reserve 1", "settle 1"]
        assert answer.epsilon == ledger.spent() == Decimal("0.0982")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM visit v JOIN code c ON c.k = v.w",
        "SELECT count(*) FROM visit v JOIN code c ON c.k = v.w JOIN code d ON d.k < c.lab",
        "SELECT c.lab, count(*) FROM visit v JOIN code c ON c.k = v.w GROUP BY c.lab",
        "SELECT sum(c.lab) FROM visit v JOIN code c ON c.k = v.w",
    ],
)
def test_no_private_row_is_read_before_a_charge(text: str, tmp_path: Path) -> None:
    """Not even to choose a plan: a file with a row that does not fit would say so, for nothing."""
    for name, rows in (("visit", "1,1\nsecret,2\n"), ("code", "1,1\n1,2\n2,3\n")):
        head = "id,w" if name == "visit" else "k,lab"
        (tmp_path / f"{name}.csv").write_text(f"{head}\n{rows}", encoding="utf-8")
    ledger = MemoryLedger()
    with sqlrs.connect(
        tables={name: tmp_path / f"{name}.csv" for name in ("visit", "code")},
        types={"visit": "id BIGINT, w BIGINT", "code": "k BIGINT, lab BIGINT"},
        public=["code"],
        bounds={"code.lab": [0, 9]},
        ledger=ledger,
    ) as db:
        assert db.price(text, error=10, max_epsilon=1).sensitivity
        with pytest.raises(QueryRefused, match="nothing was charged"):
            db.query(text, error="0.001", max_epsilon="0.1")
        assert ledger.spent() == 0
        with pytest.raises(EngineFailed, match="its budget stays spent"):
            db.query(text, error=100, max_epsilon=10)
        assert ledger.spent() > 0


def test_what_fails_on_released_numbers_is_no_refusal(db: sqlrs.Database, ledger: Mortal) -> None:
    text = "SELECT src, CAST(count(*) + {} AS TINYINT) AS n FROM edge GROUP BY src"
    with pytest.raises(NotShown, match="epsilon 1 stays charged") as failed:
        db.query(text.format(10**9), epsilon=1)
    assert failed.value.exit_code == 5 and ledger.spent() == 1
    # What was paid for is shown by a text that works.
    assert db.query(text.format(0), epsilon=1).repeated and ledger.spent() == 1
    with pytest.raises(NotShown, match="an earlier answer"):
        db.query(text.format(10**9), epsilon=1)
    with pytest.raises(QueryRefused):
        db.query(
            "SELECT CAST(count(*) + 1000 AS TINYINT) AS n, id FROM kind GROUP BY id", epsilon=1
        )


def test_what_is_public_is_exact_and_free(db: sqlrs.Database, ledger: Mortal) -> None:
    answer = db.count("SELECT count(*) FROM kind", error=1, max_epsilon=1)
    assert answer.value == 2 and answer.epsilon == 0 and answer.wished is None
    assert db.price("SELECT count(*) FROM kind").epsilon == 0
    assert not ledger.steps


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"epsilon": 1, "error": 5},
        {"error": 5},
        {"epsilon": 1, "max_epsilon": 1},
        {"error": 5, "max_epsilon": 1, "shape": 3},
        {"error": 5, "max_epsilon": 1, "error_bars": 1},
        {"error": 0, "max_epsilon": 1},
        {"error": "nan", "max_epsilon": 1},
        {"error": -1, "max_epsilon": 1},
        {"error": True, "max_epsilon": 1},
        {"error": 5, "max_epsilon": "0.0001"},
    ],
)
def test_what_cannot_be_meant_is_refused(
    db: sqlrs.Database, ledger: Mortal, given: dict[str, object]
) -> None:
    with pytest.raises(UsageError):
        db.count(JOIN, **given)  # type: ignore[arg-type]
    assert not ledger.steps


def test_from_the_command_line(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("wish")
    (folder / "edge.txt").write_text("".join(f"{i}\t{(i * 7) % 20}\n" for i in range(20)))
    data = ["--table", f"edge={folder / 'edge.txt'}"]
    run = CliRunner().invoke
    wished = run(application(), ["count", ROWS, "--error", "40", "--max-epsilon", "1", *data])
    assert wished.exit_code == 0 and "with probability 95%" in wished.output
    priced = run(application(), ["price", ROWS, "--error", "40", *data])
    assert "costs epsilon 0.074\n" in priced.output
    assert "multiple of the sensitivity" in run(application(), ["price", JOIN, *data]).output
    for given in ([], ["--error", "4"], ["--epsilon", "1", "--error", "4", "--max-epsilon", "1"]):
        assert isinstance(run(application(), ["count", ROWS, *given, *data]).exception, UsageError)
