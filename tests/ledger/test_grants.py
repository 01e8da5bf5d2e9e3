"""The life of a budget: windows, expiry, notes, requests, revocation, all by one clock."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection

from sqlrs.errors import BudgetExhausted, EngineFailed, UsageError
from sqlrs.ledger import store as store_module
from sqlrs.ledger.base import Kind
from sqlrs.ledger.export import table_text
from sqlrs.ledger.migrations import newest
from sqlrs.ledger.overview import Wanted
from sqlrs.ledger.store import StoreLedger
from sqlrs.ledger.windows import RENEWALS, window_end, window_of, window_start
from tests.ledger.build import charge
from tests.ledger.older import content, run, version_3

ONE = Decimal(1)
MOMENTS = st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))


class Clock:
    """The ledger's clock in the hands of a test."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 30, 12, tzinfo=UTC)

    def __call__(self, connection: Connection) -> datetime:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    made = Clock()
    monkeypatch.setattr(store_module, "clock", made)
    yield made


def granted(store: StoreLedger, **terms: str) -> None:
    store.grant(dataset="graph", epsilon=100)
    store.grant(analyst="ada", epsilon=1, **terms)


@given(MOMENTS, st.sampled_from(RENEWALS))
def test_every_moment_is_in_exactly_one_window(moment: datetime, renew: str) -> None:
    window = window_of(renew, moment)
    start, end = window_start(window), window_end(renew, window)
    assert start <= moment < end
    assert window_of(renew, start) == window
    assert window_of(renew, end - timedelta(microseconds=1)) == window < window_of(renew, end)
    assert window_start(window_of(renew, end)) == end


def test_a_cap_of_each_window(store: StoreLedger, clock: Clock) -> None:
    granted(store, renew="monthly")
    store.fail(store.reserve(charge("0.75")), "failed")  # what failed stays spent
    with pytest.raises(BudgetExhausted, match=r"has 0\.25 left") as error:
        store.reserve(charge("0.5"))
    assert "wait until 2026-12-01" in (error.value.hint or "")
    clock.now = datetime(2026, 11, 30, 23, 59, 59, 999999, UTC)
    store.reserve(charge("0.25"))  # the last moment of November
    clock.now += timedelta(microseconds=1)  # the first of December
    store.reserve(charge("1"))
    budget = store.budget(analyst="ada")
    assert (budget.window, budget.window_spent, budget.spent) == ("2026-12-01", ONE, 2 * ONE)
    assert budget.remaining == 0 == store.remaining("ada", "graph")
    assert store.budget(dataset="graph").spent == 2  # which is not renewed
    lines = store.history("ada")
    by_window = {window_of("monthly", line.at): Decimal(0) for line in lines}
    for line in lines:
        by_window[window_of("monthly", line.at)] += line.charge.epsilon
    assert by_window == {"2026-11-01": 1, "2026-12-01": 1}


def test_a_clock_that_goes_back_refills_nothing(store: StoreLedger, clock: Clock) -> None:
    granted(store, renew="daily")
    store.reserve(charge("1"))
    clock.now -= timedelta(days=1)
    for _ in range(2):
        with pytest.raises(BudgetExhausted):
            store.reserve(charge("0.1"))
        assert store.remaining("ada", "graph") == 0
    clock.now += timedelta(days=2)
    store.reserve(charge("1"))
    assert store.budget(analyst="ada").spent == 2


def test_another_kind_of_window_starts_with_what_it_holds(store: StoreLedger, clock: Clock) -> None:
    granted(store, renew="daily")
    for _ in range(3):
        store.reserve(charge("1"))
        clock.now += timedelta(days=1)
    assert store.grant(analyst="ada", epsilon=3, renew="monthly").window_spent == 2  # in December
    again = store.grant(analyst="ada", epsilon=3)
    assert (again.renew, again.window_spent) == ("monthly", 2 * ONE)
    lifetime = store.grant(analyst="ada", epsilon=3, renew="never")
    assert (lifetime.renew, lifetime.spent, lifetime.remaining) == ("", 3 * ONE, 0 * ONE)


def test_a_grant_expires(store: StoreLedger, clock: Clock) -> None:
    granted(store, expires="2026-11-30", note="the spring  study")
    assert store.budget(analyst="ada").note == "the spring study"
    store.settle(store.reserve(charge("0.25")), "7")
    clock.now = datetime(2026, 12, 1, tzinfo=UTC)
    assert store.remaining("ada", "graph") == 0
    with pytest.raises(BudgetExhausted, match="expired on 2026-12-01 at 00:00 UTC") as error:
        store.reserve(charge("0.1"))
    assert error.value.code == "budget_expired"
    assert store.repeat(charge("0.25")) == "7"
    assert store.grant(analyst="ada", epsilon=9).remaining == 0  # a new cap alone changes nothing
    assert store.grant(analyst="ada", epsilon=9, expires="never").remaining == Decimal("8.75")


@pytest.mark.parametrize("expires", ["2026-11-29", "soon", "", "2026-12-01T00:00:00", "9999-12-31"])
def test_an_expiry_that_is_none(store: StoreLedger, clock: Clock, expires: str) -> None:
    with pytest.raises(UsageError):
        store.grant(analyst="ada", epsilon=1, expires=expires)
    with pytest.raises(UsageError, match="not renewed"):
        store.grant(analyst="ada", epsilon=1, renew="fortnightly")
    assert store.show() == () == store.acts()


def test_a_request_is_decided_once(store: StoreLedger, clock: Clock) -> None:
    granted(store)
    first = store.ask(analyst="ada", dataset="graph", epsilon="0.5", why="one more\nquestion")
    second = store.ask(analyst="ada", dataset="graph", epsilon=2, why="curious")
    assert store.approve(first, by="olga", why="fine").cap == Decimal("1.5")
    assert store.decline(second, by="olga", why="too much").cap == Decimal("1.5")
    for number in (first, second, 99):
        with pytest.raises(UsageError, match=f"request {number} is not open"):
            store.approve(number)
    declined, approved = store.requests("ada")
    assert (approved.state, approved.why) == ("granted", "one more question")
    assert declined.decision is not None
    assert (declined.decision.who, declined.decision.why) == ("olga", "too much")
    assert [act.act for act in store.acts()] == ["decline", "approve", "grant", "grant"]
    assert store.requests("bob") == () == store.requests(state="open")
    assert store.budget(analyst="ada").cap == Decimal("1.5")


def test_requests_have_limits(store: StoreLedger, clock: Clock) -> None:
    for why, epsilon in (("", "1"), ("x" * 501, "1"), ("a\x00b", "1"), ("why", "-1")):
        with pytest.raises(UsageError):
            store.ask(analyst="ada", dataset="graph", epsilon=epsilon, why=why)
    for _ in range(5):
        number = store.ask(analyst="ada", dataset="graph", epsilon=1, why="again")
    with pytest.raises(UsageError, match="5 requests"):
        store.ask(analyst="ada", dataset="graph", epsilon=1, why="again")
    store.decline(number, why="no")
    store.ask(analyst="ada", dataset="graph", epsilon=1, why="again")


def test_more_of_an_expired_budget_needs_a_new_end(store: StoreLedger, clock: Clock) -> None:
    granted(store, expires="2026-12-01")
    clock.now += timedelta(days=9)
    number = store.ask(analyst="ada", dataset="graph", epsilon=1, why="again")
    with pytest.raises(UsageError, match="has expired"):
        store.approve(number)
    assert store.budget(analyst="ada").cap == 1
    assert store.approve(number, expires="2027-01-31").remaining == 2


def test_a_revoked_budget_is_closed(store: StoreLedger, clock: Clock) -> None:
    granted(store, renew="daily", expires="2026-12-31")
    store.settle(store.reserve(charge("0.5")), "7")
    with pytest.raises(UsageError, match="a reason"):
        store.revoke(analyst="ada", why=" ")
    revoked = store.revoke(analyst="ada", why="left the team", by="olga")
    assert (revoked.cap, revoked.spent) == (0 * ONE, ONE / 2)
    assert (revoked.renew, revoked.expires) == ("", None)
    clock.now += timedelta(days=2)
    with pytest.raises(BudgetExhausted):
        store.reserve(charge("0.1"))
    assert store.repeat(charge("0.5")) == "7"
    newest_act = store.acts(1)[0]
    assert (newest_act.act, newest_act.who, newest_act.why) == ("revoke", "olga", "left the team")


@pytest.mark.parametrize(
    "change",
    [
        "renew = 'hourly'",
        "renew = 'monthly'",  # without its window
        "window_spent = '-1', renew = 'daily', window_start = '2026-11-30'",
        "window_spent = 'NaN', renew = 'daily', window_start = '2026-11-30'",
    ],
)
def test_what_is_no_budget_charges_nothing(store_url: str, change: str) -> None:
    ledger = StoreLedger(store_url)
    granted(ledger)
    run(store_url, f"UPDATE sqlrs_budgets SET {change} WHERE name = 'ada'")
    for use in (lambda: ledger.reserve(charge("0.1")), ledger.show):
        with pytest.raises(EngineFailed):
            use()
    assert ledger.history() == ()
    ledger.close()


@pytest.mark.parametrize("text", ["soon", "2026-13-01", ""])
def test_an_expiry_that_cannot_be_read(sqlite_url: str, text: str) -> None:
    ledger = StoreLedger(sqlite_url)
    granted(ledger)
    run(sqlite_url, f"UPDATE sqlrs_budgets SET expires = '{text}'")
    with pytest.raises(EngineFailed):
        ledger.reserve(charge("0.1"))
    assert ledger.history() == ()


@pytest.mark.postgres
@pytest.mark.parametrize("moment", ["infinity", "-infinity"])
def test_an_expiry_that_is_no_moment(postgres_db: str, moment: str) -> None:
    ledger = StoreLedger(postgres_db)
    granted(ledger)
    run(postgres_db, f"UPDATE sqlrs_budgets SET expires = '{moment}'")
    with pytest.raises(EngineFailed):
        ledger.reserve(charge("0.1"))
    assert ledger.history() == ()
    ledger.close()


def test_the_version_before_had_no_windows(store_url: str) -> None:
    version_3(store_url)
    before = content(store_url)
    ledger = StoreLedger(store_url)
    assert content(store_url) == before
    assert run(store_url, "SELECT version FROM sqlrs_version") == [(newest(),)]
    budget = ledger.budget(analyst="ada")
    assert (budget.note, budget.expires, budget.renew, budget.window) == ("", None, "", "")
    assert budget.remaining == Decimal("0.04999999999999999999")
    assert ledger.budget(dataset="graph").unit == "row"
    assert ledger.requests() == () == ledger.acts()
    ledger.reserve(charge("0.01"))
    ledger.grant(analyst="ada", epsilon=1, renew="monthly")
    ledger.close()


def test_the_journal_by_what_is_wanted(store: StoreLedger) -> None:
    granted(store)
    store.settle(store.reserve(charge("0.1", query="SELECT 50%_x")), '{"answer": 5}')
    store.fail(store.reserve(charge("0.1")), "interrupted")
    open_ticket = store.reserve(charge("0.2"))
    for wanted, tickets in (
        (Wanted(), [3, 2, 1]),
        (Wanted(outcome="failed"), [2]),
        (Wanted(outcome="reserved"), [3]),
        (Wanted(text="%_X"), [1]),
        (Wanted(before=3, most=1), [2]),
        (Wanted(analyst="bob"), []),
        (Wanted(dataset="graph", analyst="ada", outcome="released"), [1]),
    ):
        assert [line.ticket for line in store.lines(wanted)] == tickets, wanted
    used = store.activity(Kind.DATASET, 30)["graph"]
    assert (used.reserved, used.lately) == (Decimal("0.2"), Decimal("0.4"))
    assert used.last == store.lines(Wanted(most=1))[0].at
    assert open_ticket == 3


def test_what_was_spent_lately_is_exact(store: StoreLedger) -> None:
    granted(store)
    for price in ("0.1", "0.000001000000000000003", "0.1", "0.1", "0.000001000000000000003"):
        store.fail(store.reserve(charge(price)), "interrupted")
    used = store.activity(Kind.ANALYST, 30)["ada"]
    assert (used.reserved, used.lately) == (Decimal(0), Decimal("0.300002000000000000006"))


def test_csv_holds_no_json(store: StoreLedger) -> None:
    store.grant(dataset="graph", epsilon=9)
    store.grant(analyst="ada", epsilon=9)
    count = '{"answer": -3, "error_bars": {"low": -9, "high": 4, "coverage": "19/20"}}'
    table = (
        '[{"name": "r", "columns": [["ward", "VARCHAR"], ["n", "HUGEINT"]], '
        '"rows": [["=A1", 7], [null, {"decimal": "1.50"}]], "clippings": []}]'
    )
    store.settle(store.reserve(charge("0.1")), count)
    store.settle(store.reserve(charge("0.2")), table)
    store.reserve(charge("0.3"))
    store.settle(store.reserve(charge("0.4")), '[{"scale": 12}]')  # of a wished error
    text = store.export("csv")
    assert "{" not in text and "[" not in text
    first, second, third, _ = csv.DictReader(io.StringIO(text))
    bars = (first["answer"], first["low"], first["high"], first["coverage"])
    assert bars == ("-3", "-9", "4", "19/20")
    assert (second["answer"], third["answer"], third["outcome"]) == ("", "", "reserved")
    cells = list(csv.reader(io.StringIO(store.export("answers"))))
    assert cells == [
        ["ticket", "relation", "row", "column", "value"],
        ["1", "", "1", "answer", "-3"],
        ["1", "", "1", "low", "-9"],
        ["1", "", "1", "high", "4"],
        ["2", "r", "1", "ward", "'=A1"],
        ["2", "r", "1", "n", "7"],
        ["2", "r", "2", "ward", ""],
        ["2", "r", "2", "n", "1.50"],
        ["4", "", "1", "scale", "12"],
    ]


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
def test_no_text_is_a_formula_to_a_spreadsheet(first: str) -> None:
    """Spreadsheets of East Asia read the wide signs too."""
    text = f"{first}1+1"
    assert list(csv.reader(io.StringIO(table_text([text], [[text, 1]]), newline=""))) == [
        [f"'{text}"], [f"'{text}", "1"],
    ]  # fmt: skip
    inside = f"a{first}=1+1"
    assert [*csv.reader(io.StringIO(table_text([inside], [])))] == [[inside]]


def test_the_clock_is_one(store: StoreLedger) -> None:
    """Of PostgreSQL the server's: the journal's moments never go back, whoever writes them."""
    granted(store)
    for _ in range(4):
        store.reserve(charge("0.1"))
    moments = [line.at for line in store.history()]
    assert all(one < other for one, other in pairwise(moments))
    assert abs(moments[0] - datetime.now(UTC)) < timedelta(minutes=5)
