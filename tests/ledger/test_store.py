"""The store: two caps, nothing without a grant, an exact journal, names of any kind."""

from __future__ import annotations

import csv
import io
import json
import re
import stat
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
import sqlalchemy

from sqlrs.errors import BudgetExhausted, EngineFailed, UsageError
from sqlrs.ledger import Kind, PrivacyBudget
from sqlrs.ledger.store import StoreLedger
from tests.ledger.build import charge

ODD_NAMES = [
    "O'Neill",
    '"; DROP TABLE sqlrs_budgets; --',
    "' OR '1'='1",
    "%s :name {x} $1 ?",
    "Žofie 李 مريم 🦆",
    "ADA",
    "ada%",
    "a" * 200,
]


def grant_both(store: StoreLedger, analyst: str = "1", dataset: str = "1") -> None:
    store.grant(analyst="ada", epsilon=analyst)
    store.grant(dataset="graph", epsilon=dataset)


def test_without_a_grant_there_is_nothing(store: StoreLedger) -> None:
    assert store.remaining("ada", "graph") == 0
    assert store.show() == ()
    with pytest.raises(BudgetExhausted, match="analyst 'ada' has 0 left"):
        store.reserve(charge())
    store.grant(analyst="ada", epsilon=1)
    with pytest.raises(BudgetExhausted, match="dataset 'graph' has 0 left"):
        store.reserve(charge())
    assert store.budget(analyst="ada").spent == 0
    assert store.history() == ()


def test_the_analysts_cap_holds_over_all_datasets(store: StoreLedger) -> None:
    store.grant(analyst="ada", epsilon=1)
    for dataset in ("graph", "trips"):
        store.grant(dataset=dataset, epsilon=10)
    store.reserve(charge("0.6", dataset="graph"))
    with pytest.raises(BudgetExhausted, match=r"analyst 'ada' has 0\.4 left"):
        store.reserve(charge("0.6", dataset="trips"))
    assert store.budget(dataset="trips").spent == 0


def test_the_datasets_cap_holds_over_all_analysts(store: StoreLedger) -> None:
    store.grant(dataset="graph", epsilon=1)
    for analyst in ("ada", "bob"):
        store.grant(analyst=analyst, epsilon=10)
    store.reserve(charge("0.6", analyst="ada"))
    with pytest.raises(BudgetExhausted, match=r"dataset 'graph' has 0\.4 left"):
        store.reserve(charge("0.6", analyst="bob"))
    assert store.budget(analyst="bob").spent == 0
    assert store.remaining("bob", "graph") == Decimal("0.4")


def test_an_analyst_and_a_dataset_may_share_a_name(store: StoreLedger) -> None:
    store.grant(analyst="same", epsilon=3)
    store.grant(dataset="same", epsilon=5)
    store.reserve(charge("1", analyst="same", dataset="same"))
    assert store.show() == (
        PrivacyBudget(Kind.ANALYST, "same", Decimal(3), Decimal(1)),
        PrivacyBudget(Kind.DATASET, "same", Decimal(5), Decimal(1), "row"),
    )


def test_a_grant_sets_the_cap_and_keeps_what_is_spent(store: StoreLedger) -> None:
    grant_both(store)
    store.reserve(charge("0.75"))
    assert store.grant(analyst="ada", epsilon="2").remaining == Decimal("1.25")
    assert store.grant(analyst="ada", epsilon="2").remaining == Decimal("1.25")
    lowered = store.grant(analyst="ada", epsilon="0.5")
    assert (lowered.spent, lowered.remaining) == (Decimal("0.75"), Decimal(0))
    with pytest.raises(BudgetExhausted, match="has 0 left"):
        store.reserve(charge("0.000001"))
    assert store.grant(analyst="ada", epsilon=0).cap == 0


@pytest.mark.parametrize("whose", [{}, {"analyst": "ada", "dataset": "graph"}, {"analyst": ""}])
def test_a_grant_has_one_receiver(store: StoreLedger, whose: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        store.grant(epsilon=1, **whose)
    assert store.show() == ()


@pytest.mark.parametrize("epsilon", ["-1", "NaN", "1e400", 0.5])
def test_an_absurd_grant_reaches_no_store(store: StoreLedger, epsilon: str) -> None:
    grant_both(store)
    with pytest.raises(UsageError):
        store.grant(analyst="ada", epsilon=epsilon)
    assert store.budget(analyst="ada").cap == 1


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_are_values(store: StoreLedger, name: str) -> None:
    grant_both(store)
    store.grant(analyst=name, epsilon=1)
    store.grant(dataset=name, epsilon=1)
    odd = charge("0.25", analyst=name, dataset=name, query=name, mechanism=name)
    ticket = store.reserve(odd)
    store.settle(ticket, json.dumps({"text": name}))
    assert store.repeat(odd) == json.dumps({"text": name})
    assert [line.charge for line in store.history(name)] == [odd]
    assert store.history("ada") == ()
    assert store.remaining(name, name) == Decimal("0.75")
    assert store.remaining("ada", "graph") == 1


def test_decimals_come_back_digit_by_digit(store: StoreLedger) -> None:
    grant_both(store, "3.14159265358979323846", "1000000")
    store.reserve(charge("0.12345678901234567891"))
    assert str(store.budget(analyst="ada").spent) == "0.12345678901234567891"
    assert str(store.budget(analyst="ada").remaining) == "3.01813586457744755955"
    assert str(store.budget(dataset="graph").remaining) == "999999.87654321098765432109"
    assert str(store.history()[0].charge.epsilon) == "0.12345678901234567891"


def test_tiny_remainders_are_plain_digits(store: StoreLedger) -> None:
    grant_both(store, "0.10000000000000000001")
    store.reserve(charge("0.1"))
    with pytest.raises(BudgetExhausted, match=r"has 0\.00000000000000000001 left"):
        store.reserve(charge("0.1"))
    assert store.remaining("ada", "graph") == Decimal("1e-20")


def test_the_journal_tells_each_end(store: StoreLedger) -> None:
    grant_both(store)
    store.grant(analyst="bob", epsilon=1)
    before = datetime.now(UTC) - timedelta(seconds=1)
    settled, failed = store.reserve(charge("0.1")), store.reserve(charge("0.2"))
    pending = store.reserve(charge("0.3", analyst="bob"))
    store.settle(settled, '{"answer": 7}')
    store.fail(failed, "interrupted")
    lines = store.history()
    assert [(line.ticket, line.outcome, line.answer) for line in lines] == [
        (settled, "released", '{"answer": 7}'),
        (failed, "interrupted", None),
        (pending, "reserved", None),
    ]
    assert all(before <= line.at <= datetime.now(UTC) + timedelta(seconds=1) for line in lines)
    assert all(line.at.tzinfo is UTC for line in lines)
    assert store.history("bob") == lines[2:]


@pytest.mark.parametrize("nobody", ["", None, "b%", "bob' OR '1'='1"])
def test_an_analyst_sees_own_lines_only(store: StoreLedger, nobody: str) -> None:
    grant_both(store)
    store.reserve(charge("0.1"))
    try:
        assert store.newest_of(nobody, lines=9, characters=99) == ()
    except (UsageError, TypeError):
        assert not nobody


def test_export_says_everything_exactly(store: StoreLedger) -> None:
    grant_both(store)
    tricky = charge("0.10", query='SELECT "a,b"\nFROM "é"')
    store.settle(store.reserve(tricky), '{"answer": 12345678901234567890}')
    store.reserve(charge("0.2"))
    objects = [json.loads(line) for line in store.export().splitlines()]
    rows = list(csv.DictReader(io.StringIO(store.export("csv"), newline="")))
    assert [o["epsilon"] for o in objects] == [r["epsilon"] for r in rows] == ["0.1", "0.2"]
    assert [o["query"] for o in objects] == [r["query"] for r in rows]
    assert objects[0]["query"] == tricky.query
    assert objects[0]["answer"] == {"answer": 12345678901234567890}
    assert rows[0]["answer"] == "12345678901234567890"
    assert (objects[1]["answer"], rows[1]["answer"]) == (None, "")
    assert datetime.fromisoformat(objects[0]["at"]) == store.history()[0].at


def test_a_new_run_finds_what_the_old_one_left(store_url: str) -> None:
    first = StoreLedger(store_url)
    grant_both(first)
    first.settle(first.reserve(charge("0.4")), "1")
    first.close()
    second = StoreLedger(store_url)
    assert second.repeat(charge("0.4")) == "1"
    assert second.remaining("ada", "graph") == Decimal("0.6")
    second.close()


def test_a_reservation_reaches_the_disk_before_it_counts(store: StoreLedger) -> None:
    ask = {"sqlite": "PRAGMA synchronous", "postgresql": "SHOW synchronous_commit"}
    durable = {"sqlite": 3, "postgresql": "on"}
    with store._writing() as connection:
        setting = connection.exec_driver_sql(ask[connection.dialect.name]).scalar()
        assert setting == durable[connection.dialect.name]


def test_clearing_the_journal_refills_no_budget(store: StoreLedger, store_url: str) -> None:
    grant_both(store)
    ticket = store.reserve(charge("0.4"))
    _run(store_url, "DELETE FROM sqlrs_releases")
    assert store.remaining("ada", "graph") == Decimal("0.6")
    assert store.reserve(charge("0.1")) > ticket


@pytest.mark.parametrize("value", ["-5", "0.5x", "NaN"])
def test_a_store_that_was_tampered_with_answers_nothing(sqlite_url: str, value: str) -> None:
    store = StoreLedger(sqlite_url)
    grant_both(store)
    engine = sqlalchemy.create_engine(sqlite_url)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("UPDATE sqlrs_budgets SET spent = :v"), {"v": value})
    engine.dispose()
    with pytest.raises(EngineFailed):
        store.reserve(charge("0.1"))
    assert store.history() == ()


def test_a_database_that_is_gone_is_one_error(sqlite_url: str, tmp_path: Path) -> None:
    store = StoreLedger(sqlite_url)
    grant_both(store)
    (tmp_path / "budget.db").write_bytes(b"not a database, not at all" * 100)
    for use in (
        lambda: store.history("ada"),
        lambda: store.budget(analyst="ada"),
        lambda: store.reserve(charge()),
        lambda: store.repeat(charge()),
    ):
        with pytest.raises(EngineFailed, match="the budget ledger failed") as error:
            use()
        assert "SELECT" not in error.value.describe()
        assert "'ada'" not in str(error.value.__cause__)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "budget.db",
            "mysql://host/db",
            "sqlite://",
            "sqlite:///:memory:",
            "duckdb:///x",
            "://",
        ),
        "sqlite:///file:budget.db?mode=memory&uri=true",
        "sqlite:///budget.db?uri=true",
    ],
)
def test_urls_that_are_no_ledger(url: str) -> None:
    with pytest.raises(UsageError, match="ledger"):
        StoreLedger(url)


def test_a_path_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        StoreLedger(f"sqlite:///{tmp_path}/missing/budget.db")
    with pytest.raises(UsageError, match="directory"):
        StoreLedger(f"sqlite:///{tmp_path}")


def test_the_file_is_its_owners(sqlite_url: str, tmp_path: Path) -> None:
    StoreLedger(sqlite_url)
    assert stat.S_IMODE((tmp_path / "budget.db").stat().st_mode) == 0o600


def test_a_password_is_in_no_error() -> None:
    with pytest.raises(EngineFailed) as error:
        StoreLedger("postgresql://ada:hunter2@127.0.0.1:1/budget")
    assert "hunter2" not in f"{error.value.describe()} {error.value!r} {error.value.__cause__}"


def test_the_manuals_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manual = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", manual, flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, StoreLedger] = {}
    exec(example, names)
    # The last cap, of each month, and what was approved on top of it.
    assert names["ledger"].remaining("ada", "graph") == Decimal("1.5")


def _run(url: str, statement: str) -> None:
    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sqlalchemy.text("SET LOCAL search_path = sqlrs_ledger"))
        connection.execute(sqlalchemy.text(statement))
    engine.dispose()


def test_whoever_reads_makes_no_ledger(store_url: str) -> None:
    for _ in range(2):
        with pytest.raises(UsageError, match="there is no ledger at"):
            StoreLedger(store_url, create=False)
    StoreLedger(store_url).grant(analyst="ada", epsilon=1)
    assert StoreLedger(store_url, create=False).budget(analyst="ada").cap == 1
