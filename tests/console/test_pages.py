"""The pages over HTTP: what an analyst and an owner see and do, and what the ledger then holds."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import httpx
import pytest

from sqlrs.ledger.overview import Wanted
from sqlrs.ledger.store import StoreLedger
from tests.console.harness import ANALYST, OTHER, PAIRS, WARDS, Running

SMALL = "SELECT count(*) FROM patient WHERE born < {}"


def lines(console: Running, user: str) -> int:
    return len(console.ledger.history(user))


def test_a_check_is_free(console: Running) -> None:
    ada, before = console.logged_in(ANALYST), lines(console, ANALYST)
    page = ada.post("/check", sql=PAIRS, epsilon="0.25").text
    assert "Accepted" in page and "one row of edge" in page and "ε 0.25" in page
    assert "never shown" in page and "data:image/svg+xml;base64," in page
    fixed = ada.post("/check", sql="SELECT count(*) FROM patient", epsilon="1").text
    assert "the query alone fixes" in fixed and "of the truth" in fixed
    groups = ada.post("/check", sql=WARDS, epsilon="1").text
    assert re.search(r"<dt>Groups</dt><dd>\d+, all shown", groups)
    assert lines(console, ANALYST) == before


def test_an_earlier_interval_tells_the_error(console: Running) -> None:
    ada, bob = console.logged_in(ANALYST), console.logged_in(OTHER)
    sql = f"{PAIRS} WHERE a.src > 3"
    assert "about ±" not in ada.post("/check", sql=sql, epsilon="0.5").text
    ada.run(sql, "1", "0.4")
    bars = json.loads(console.ledger.history(ANALYST)[-1].answer or "")["error_bars"]
    half = (bars["high"] - bars["low"]) // 2
    assert f"about ± {half:,} (95 %)" in ada.post("/check", sql=sql, epsilon="1").text
    dearer = re.search(r"about ± ([\d,]+) ", ada.post("/check", sql=sql, epsilon="2").text)
    assert dearer is not None and int(dearer[1].replace(",", "")) < half
    assert "about ±" not in bob.post("/check", sql=sql, epsilon="1").text


def test_a_refusal_marks_its_place(console: Running) -> None:
    ada, before = console.logged_in(ANALYST), lines(console, ANALYST)
    page = ada.post("/check", sql="SELECT median(cost) FROM visit")
    assert page.status_code == 400
    assert "Refused, nothing was charged" in page.text
    assert re.search(r"<mark>[^<]*median[^<]*</mark>", page.text)
    ada.post("/check", sql="SELECT count(*) FROM <b>nowhere</b>")
    assert lines(console, ANALYST) == before
    refusals = console.logged_in("olga").get("/owner").text
    assert "syntax_error" in refusals or "unknown" in refusals


def test_a_run_is_charged_once_and_repeated_free(console: Running) -> None:
    ada, sql = console.logged_in(ANALYST), SMALL.format(1951)
    spent = console.ledger.budget(analyst=ANALYST).spent
    page = ada.run(sql, "0.5", "0.1")
    assert "was charged" in page and "<svg" in page
    line = console.ledger.history(ANALYST)[-1]
    value = json.loads(line.answer or "")["answer"]
    assert f">{value:,}</p>" in page
    charged = console.ledger.budget(analyst=ANALYST).spent - spent
    assert charged == line.charge.epsilon == Decimal("0.5")  # bars of this noise are free
    again = ada.run(sql, "0.5", "0.1")
    assert "nothing was charged" in again and f">{value:,}</p>" in again
    assert console.ledger.budget(analyst=ANALYST).spent == spent + charged


def test_what_was_confirmed_is_what_is_paid(console: Running) -> None:
    ada, before = console.logged_in(ANALYST), lines(console, ANALYST)
    for price in ("0", "0.25", "", "1e9"):
        page = ada.run(SMALL.format(1952), "0.5", price=price)
        assert "The price has changed" in page
    assert lines(console, ANALYST) == before


def test_what_was_charged_is_not_called_free(console: Running) -> None:
    page = console.logged_in(ANALYST).run(
        "SELECT CAST(count(*) + 999 AS TINYINT) FROM visit", "0.3"
    )
    assert "epsilon 0.3 stays charged" in page and "nothing was charged" not in page


def test_groups_are_a_table_and_bars(console: Running) -> None:
    ada = console.logged_in(ANALYST)
    page = ada.run(WARDS, "1", "0.5")
    assert page.count('class="bar"') == 7 and page.count('class="error"') == 21
    assert ">n_low</th>" in page and "intensive care" in page
    names = re.findall(r'href="(/answers/[^"]+)"', page)
    table = list(csv.reader(io.StringIO(ada.get(names[0]).text)))
    assert table[0] == ["ward", "n", "n_low", "n_high"] and len(table) == 8
    answer = json.loads(ada.get(names[1]).text)
    assert [row[0] for row in answer["rows"]] == [row[0] or None for row in table[1:]]
    other = console.logged_in(ANALYST)  # another browser, even of the same user
    assert other.get(names[0]).status_code == 400


def test_the_history_is_ones_own(console: Running) -> None:
    ada, bob = console.logged_in(ANALYST), console.logged_in(OTHER)
    ada.run(SMALL.format(1961), "0.25")
    bob.run(SMALL.format(1962), "0.25")
    assert "1961" in ada.get("/history?q=1961").text
    assert "No query of yours" in bob.get("/history?q=1961").text
    ticket = console.ledger.history(ANALYST)[-1].ticket
    assert "1961" in ada.get(f"/ask?ticket={ticket}").text
    for number in (ticket, -1, "x", 10**30):
        assert "1961" not in bob.get(f"/ask?ticket={number}").text


def test_one_look_at_a_history_at_a_time(console: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, most = [], []

    def slowly(ledger: StoreLedger, wanted: Wanted) -> tuple[()]:
        inside.append(wanted)
        most.append(len(inside))
        time.sleep(0.1)
        inside.pop()
        return ()

    monkeypatch.setattr(StoreLedger, "lines", slowly)
    cookies = console.logged_in(ANALYST).client.cookies

    def look(_: int) -> int:
        with httpx.Client(base_url=console.address, cookies=cookies, timeout=60) as client:
            return client.get("/history?q=x").status_code

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(look, range(4))) == [200] * 4
    assert most == [1] * 4


def test_a_budget_that_is_used_up(console: Running) -> None:
    bob, before = console.logged_in(OTHER), lines(console, OTHER)
    page = bob.post("/confirm", sql=SMALL.format(1970), epsilon="5").text
    assert "does not suffice" in page and "Pay" not in page
    refused = bob.run(SMALL.format(1970), "5", price="5")
    assert "budget of analyst" in refused and "Ask the owner" in refused
    assert lines(console, OTHER) == before


def test_a_request_is_seen_by_both_sides(console: Running) -> None:
    bob, olga = console.logged_in(OTHER), console.logged_in("olga")
    cap = console.ledger.budget(analyst=OTHER).cap
    assert bob.post("/requests", epsilon="2", why="the <b>second</b> study").status_code == 303
    number = console.ledger.requests(OTHER)[0].number
    assert "the &lt;b&gt;second&lt;/b&gt; study" in olga.get("/owner/budgets").text
    olga.post(f"/owner/requests/{number}", decision="grant", epsilon="1.5", why="go on")
    assert console.ledger.budget(analyst=OTHER).cap == cap + Decimal("1.5")
    assert "go on" in bob.get("/budget").text
    again = olga.post(f"/owner/requests/{number}", decision="grant")
    assert again.status_code == 400 and "is not open" in again.text
    bob.post("/requests", epsilon="9", why="more")
    number = console.ledger.requests(OTHER)[0].number
    assert "a reason" in olga.post(f"/owner/requests/{number}", decision="decline").text
    olga.post(f"/owner/requests/{number}", decision="decline", why="not this year")
    assert "not this year" in bob.get("/budget").text
    assert {(act.who, act.act) for act in console.ledger.acts(2)} == {
        ("olga", "approve"), ("olga", "decline"),
    }  # fmt: skip


def test_what_is_added_to_a_renewed_budget_is_said_to_stay(console: Running) -> None:
    olga, why = console.logged_in("olga"), "every day"
    console.ledger.grant(analyst="carl", epsilon=1, renew="daily")
    number = console.ledger.ask(analyst="carl", dataset="d", epsilon=2, why=why)
    assert "added to every window from now on" in olga.get("/owner/budgets").text
    console.ledger.decline(number, why="not each day")
    assert "added to every window" not in olga.get("/owner/budgets").text


def test_the_owner_grants_and_revokes(console: Running) -> None:
    olga = console.logged_in("olga")
    fields = {"budget": "analyst:carol", "epsilon": "3", "renew": "monthly", "note": "for spring"}
    assert olga.post("/owner/grant", **fields, expires="2199-12-31").status_code == 303
    budget = console.ledger.budget(analyst="carol")
    assert (budget.cap, budget.renew, budget.note) == (Decimal(3), "monthly", "for spring")
    page = olga.get("/owner/budgets").text
    assert "Renewed monthly" in page and "Lasts until" in page
    assert olga.post("/owner/revoke", budget="analyst:carol", why="left").status_code == 303
    assert console.ledger.budget(analyst="carol").remaining == 0
    for wrong in ("carol", "user:carol", "analyst:"):
        assert olga.post("/owner/grant", budget=wrong, epsilon="1").status_code == 400


def test_the_owner_sees_releases_and_no_diagnostics(console: Running) -> None:
    ada, olga = console.logged_in(ANALYST), console.logged_in("olga")
    ada.run(SMALL.format(1981), "0.25")
    page = olga.get("/owner/releases?analyst=ada&q=1981").text
    assert "1981" in page and "laplace" in page
    rows = list(csv.DictReader(io.StringIO(olga.get("/owner/releases.csv?q=1981").text)))
    assert [row["analyst"] for row in rows] == ["ada"] and rows[0]["answer"]
    values = olga.get("/owner/releases.csv?q=1981&values=yes").text
    assert values.startswith("ticket,relation,row,column,value\n")
    for path in ("/owner", "/owner/releases", "/owner/tables", "/owner/budgets"):
        text = olga.get(path).text
        assert not re.search(r"T_E|residual value[^s]|true count", text), path
    tables = olga.get("/owner/tables").text
    assert "values of ward.name" in tables and "summed within 0 to 2000" in tables


def test_wrong_fields_are_refused_kindly(console: Running) -> None:
    ada, before = console.logged_in(ANALYST), lines(console, ANALYST)
    for fields in (
        {"sql": ""},
        {"sql": PAIRS, "epsilon": "much"},
        {"sql": PAIRS, "epsilon": "99"},
        {"sql": PAIRS, "epsilon": "1", "bars": "-1"},
        {"sql": PAIRS, "dataset": "elsewhere"},
        {"sql": "x" * 70_000},
    ):
        page = ada.post("/check", **fields)
        assert page.status_code == 400, fields
        assert page.headers["content-type"].startswith("text/html")
    assert lines(console, ANALYST) == before
