"""The console in a real browser: log in, check, confirm, pay, look back, ask for more, decide.

With SQLRS_SCREENSHOTS=FOLDER each page that is looked at leaves a picture there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.console.harness import ANALYST, OTHER, OWNER, PAIRS, PASSWORD, WARDS, Running

PICTURES = os.environ.get("SQLRS_SCREENSHOTS")
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1200, "height": 900}


@contextmanager
def opened(browser: Browser, console: Running, user: str, **how: Any) -> Iterator[Page]:
    """A browser window of somebody who has logged in; what a script or the policy says is kept."""
    how.setdefault("viewport", DESK)
    how.setdefault("timezone_id", "Asia/Tokyo")
    context = browser.new_context(base_url=console.address, locale="en-GB", **how)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda problem: said.append(str(problem)))
    page.goto("/login")
    page.get_by_label("Name").fill(user)
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "login" not in url)
    yield page
    context.close()
    # Refusals are answers with an error's status, which a browser writes down.
    assert [line for line in said if "the server responded with a status of 4" not in line] == []


def looked_at(page: Page, name: str, *, axe: bool = True) -> None:
    """No violation that axe finds, nothing wider than the window; a picture if wanted."""
    if axe:
        found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]})
        assert found.violations_count == 0, found.generate_report()
    width = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert width <= 0, f"{name} is {width} pixels too wide"
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)


def test_an_analyst_with_the_keyboard_alone(browser: Browser, console: Running) -> None:
    with opened(browser, console, ANALYST) as page:
        expect(page.get_by_role("heading", name="Ask", exact=True)).to_be_visible()
        page.get_by_label("SQL query").focus()
        page.keyboard.type(PAIRS)
        page.keyboard.press("Control+Enter")
        expect(page.locator("#checked")).to_contain_text("one row of edge")
        expect(page.locator("#checked img")).to_be_visible()
        looked_at(page, "checked")
        page.get_by_label("SQL query").focus()
        for _ in range(4):  # both prices, Check, Run
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.locator("#pay")).to_be_focused()
        expect(page.locator("#pay")).to_contain_text("Pay ε 0.5")
        looked_at(page, "confirm", axe=False)
        before = len(console.ledger.history(ANALYST))
        had = page.locator("#left").inner_text()
        page.keyboard.press("Enter")
        expect(page.locator("#answer")).to_contain_text("ε 0.5 was charged")
        # The form tells what is left now, in its place and nowhere else.
        expect(page.locator("#left")).not_to_have_text(had)
        expect(page.locator("#editor #left")).to_have_count(1)
        looked_at(page, "count", axe=False)
        assert len(console.ledger.history(ANALYST)) == before + 1
        page.goto("/history")
        expect(page.get_by_role("table")).to_contain_text("free")
        times = page.locator("td time").first
        assert not re.search("UTC", times.inner_text())
        assert "UTC" in (times.get_attribute("title") or "")
        looked_at(page, "history", axe=False)


def test_groups_with_bars(browser: Browser, console: Running) -> None:
    with opened(browser, console, ANALYST) as page:
        page.get_by_label("SQL query").fill(WARDS)
        page.get_by_label("ε of error bars").fill("0.5")
        page.get_by_role("button", name="Run").click()
        page.locator("#pay").click()
        expect(page.locator("#answer svg")).to_be_visible()
        assert page.locator("#answer svg .error").count() == 21
        looked_at(page, "groups")
        with page.expect_download() as download:
            page.get_by_role("link", name="CSV").click()
        assert Path(download.value.path()).read_text("utf-8").startswith("ward,n,n_low,n_high\n")


def test_a_refusal_and_a_budget_that_does_not_suffice(browser: Browser, console: Running) -> None:
    with opened(browser, console, OTHER) as page:
        page.get_by_label("SQL query").fill("SELECT max(cost) FROM visit")
        page.get_by_role("button", name="Check").click()
        expect(page.locator("#result mark")).to_be_visible()
        looked_at(page, "refused")
        page.get_by_label("SQL query").fill(PAIRS)
        page.get_by_label("ε of the answer").fill("19")
        page.get_by_role("button", name="Run").click()
        expect(page.locator("#confirm")).to_contain_text("does not suffice")
        page.get_by_role("link", name="Ask the owner").click()
        expect(page.get_by_role("heading", name="Budget", exact=True)).to_be_visible()
        looked_at(page, "budget")


def test_a_request_on_both_sides(browser: Browser, console: Running) -> None:
    with opened(browser, console, OTHER) as page:
        page.goto("/budget")
        page.get_by_label("How much more").fill("3")
        page.get_by_label("Why").fill("the spring study needs two more tables")
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_role("table")).to_contain_text("open")
        with opened(browser, console, OWNER) as owner:
            owner.get_by_role("link", name="for you").click()
            form = owner.locator("form", has_text="the spring study")
            looked_at(owner, "budgets", axe=False)
            form.get_by_label("Why").fill("agreed on Monday")
            form.get_by_role("button", name="Grant").click()
            row = owner.get_by_role("row", name="agreed on Monday")
            expect(row).to_contain_text(OWNER)
        page.reload()
        expect(page.get_by_role("table")).to_contain_text("agreed on Monday")


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.slow), "dark"])
def test_the_owners_pages(browser: Browser, console: Running, scheme: str) -> None:
    with opened(browser, console, OWNER, color_scheme=scheme) as page:
        for path in ("owner", "owner/releases", "owner/tables", "owner/budgets"):
            page.goto(f"/{path}")
            thorough = scheme == "light" or path in ("owner", "owner/budgets")
            looked_at(page, f"{path.replace(chr(47), chr(45))}-{scheme}", axe=thorough)


def test_dark_and_on_a_phone(browser: Browser, console: Running) -> None:
    how = {"color_scheme": "dark", "viewport": PHONE, "has_touch": True}
    with opened(browser, console, ANALYST, **how) as page:
        page.get_by_label("SQL query").fill(WARDS)
        page.get_by_label("ε of error bars").fill("0.5")
        page.get_by_role("button", name="Run").click()
        page.locator("#pay").click()
        expect(page.locator("#answer")).to_be_visible()
        looked_at(page, "phone-dark-groups")
        for path in ("history", "budget"):
            page.goto(f"/{path}")
            looked_at(page, f"phone-dark-{path}", axe=False)
    with opened(browser, console, OWNER, viewport=PHONE) as page:
        looked_at(page, "phone-light-owner", axe=False)


def test_without_scripts_forms_still_work(browser: Browser, console: Running) -> None:
    with opened(browser, console, ANALYST, java_script_enabled=False) as page:
        page.get_by_label("SQL query").fill("SELECT count(*) FROM patient WHERE born < 1999")
        page.get_by_role("button", name="Run").click()
        page.locator("#pay").click()
        expect(page.locator("#answer")).to_contain_text("was charged")


def test_another_site_cannot_send_a_form(browser: Browser, console: Running) -> None:
    with opened(browser, console, ANALYST) as page:
        before = console.ledger.history()
        evil = page.context.new_page()
        evil.goto("data:text/html,<form method=post action='" + console.address + "/run'>"
                  "<input name=sql value='SELECT count(*) FROM edge'><input name=price value=0.5>"
                  "<button>go</button></form>")  # fmt: skip
        evil.get_by_role("button").click()
        evil.wait_for_load_state()
        assert console.ledger.history() == before
        assert "was charged" not in evil.content()
        page.goto("/owner/budgets")
        expect(page.locator("main")).to_contain_text("for the owner of the data")


@pytest.mark.slow
def test_every_page_of_an_analyst_by_axe(browser: Browser, console: Running) -> None:
    for scheme in ("light", "dark"):
        with opened(browser, console, ANALYST, color_scheme=scheme) as page:
            page.get_by_label("SQL query").fill(PAIRS)
            page.get_by_role("button", name="Run").click()
            expect(page.locator("#pay")).to_be_visible()
            looked_at(page, f"confirm-{scheme}")
            page.locator("#pay").click()
            expect(page.locator("#answer")).to_be_visible()
            looked_at(page, f"count-{scheme}")
            for path in ("history", "budget"):
                page.goto(f"/{path}")
                looked_at(page, f"{path}-{scheme}")
