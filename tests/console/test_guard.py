"""Who may do what, route by route; cookies, tokens, headers, guesses; nothing private in errors."""

from __future__ import annotations

import logging
import re
import socket
import ssl
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from sqlrs.console import analyst_pages
from sqlrs.console.app import PAGES, Page
from sqlrs.console.config import ConsoleConfig
from sqlrs.console.guard import HEADERS
from sqlrs.console.sessions import Sessions
from sqlrs.console.web_demo import DATASET, demo_data
from sqlrs.errors import UsageError
from sqlrs.proxy.config import Limits, ProxyConfig
from sqlrs.proxy.protocol import tls
from sqlrs.proxy.users import Users, add_user, remove_user
from tests.console.harness import ANALYST, OTHER, OWNER, PASSWORD, Running, demo_console, served


def name_of(page: Page) -> str:
    return f"{page.method} {page.path}"


def path_of(page: Page) -> str:
    named = page.path.replace("{name}", "x").replace("{form}", "csv")
    return named.replace("{number:int}", "1")


def books(console: Running) -> tuple[object, ...]:
    """All that a request could have changed."""
    ledger = console.ledger
    return ledger.show(), ledger.history(), ledger.acts(), ledger.requests()


def send(client: httpx.Client, page: Page, **fields: str) -> httpx.Response:
    if page.method == "GET":
        return client.get(path_of(page))
    return client.post(path_of(page), data=fields)


LOCKED = [page for page in PAGES if page.role != "anybody"]


@pytest.mark.parametrize("page", LOCKED, ids=name_of)
def test_nobody_in_particular_gets_nowhere(console: Running, page: Page) -> None:
    before = books(console)
    for cookie in (None, "x" * 43):
        client = console.client()
        if cookie:
            client.cookies.set("sqlrs", cookie)
        answer = send(client, page, csrf="", sql="SELECT count(*) FROM edge", price="0.5")
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")
        assert not answer.text
    assert books(console) == before


@pytest.mark.parametrize("page", LOCKED, ids=name_of)
def test_the_other_role_gets_nowhere(console: Running, page: Page) -> None:
    other = console.logged_in(OTHER if page.role == "owner" else OWNER)
    before = books(console)
    answer = send(
        other.client, page, csrf=other.token, sql="SELECT count(*) FROM edge", price="0.5",
        decision="grant", budget=f"analyst:{OTHER}", epsilon="0.5", why="mine",
    )  # fmt: skip
    assert answer.status_code == 403
    assert books(console) == before


POSTED = [page for page in PAGES if page.method == "POST" and page.path != "/login"]


@pytest.mark.parametrize("page", POSTED, ids=name_of)
def test_a_form_of_somebody_else_does_nothing(console: Running, page: Page) -> None:
    user = console.logged_in(OWNER if page.role == "owner" else ANALYST)
    stranger, before = console.logged_in(OTHER).token, books(console)
    fields = {"sql": "SELECT count(*) FROM patient", "epsilon": "0.5", "price": "0.5", "why": "x",
              "budget": "analyst:ada", "decision": "decline"}  # fmt: skip
    for token in ("", stranger, user.token[:-1]):
        assert user.client.post(path_of(page), data={**fields, "csrf": token}).status_code == 403
    sent = {**fields, "csrf": user.token}
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        refused = user.client.post(path_of(page), data=sent, headers=headers)
        assert refused.status_code == 403, headers
    for body, kind in (
        (b'{"csrf": "x"}', "application/json"),
        (b"csrf=%ff&sql=x", "application/x-www-form-urlencoded"),
        (b"&".join(b"a%d=1" % n for n in range(50)), "application/x-www-form-urlencoded"),
        (b"sql=" + b"x" * 2_000_000, "application/x-www-form-urlencoded"),
    ):
        odd = user.client.post(path_of(page), content=body, headers={"Content-Type": kind})
        assert odd.status_code in (400, 403)
    assert user.get("/", follow_redirects=True).status_code == 200
    assert books(console) == before


def test_every_response_has_its_headers(console: Running) -> None:
    ada = console.logged_in(ANALYST)
    for path in (
        "/ask",
        "/login",
        "/nowhere",
        "/owner",
        "/static/console.css",
        "/static/../app.py",
    ):
        answer = ada.get(path)
        for name, value in HEADERS.items():
            assert answer.headers[name] == value, (path, name)
        assert "server" not in answer.headers
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    for path in ("/ask", "/history", "/budget"):
        text = ada.get(path).text
        assert not re.search(r"<script(?! src)|\son\w+=|style=|javascript:", text), path


def test_the_cookie_is_out_of_reach(console: Running) -> None:
    answer = console.client().post("/login", data={"name": ANALYST, "password": PASSWORD})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and "path=/" in cookie
    assert "domain" not in cookie


def test_logging_out_ends_the_session(console: Running) -> None:
    ada = console.logged_in(ANALYST)
    cookie = ada.client.cookies["sqlrs"]
    assert ada.post("/logout").headers["location"] == "/login"
    client = console.client()
    client.cookies.set("sqlrs", cookie)
    assert client.get("/ask").status_code == 303


def test_guesses_are_slow_and_few(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    limits = Limits(failures_per_minute=2)
    with demo_console(tmp_path, limits=limits) as console:
        client = console.client()
        texts = set()
        for name, password in (("ada", "wrong"), ("nobody", "wrong"), ("ada", "wrong")):
            began = time.monotonic()
            answer = client.post("/login", data={"name": name, "password": password})
            assert answer.status_code == 401 and time.monotonic() - began >= 0.5
            texts.add(answer.text.replace(name, ""))
        assert len(texts) == 1  # a user who does not exist looks like one who does
        locked = client.post("/login", data={"name": "ada", "password": PASSWORD})
        assert locked.status_code == 429 and "too many failed" in locked.text
        assert client.post("/login", data={"name": "bob", "password": PASSWORD}).status_code == 303
        for odd in ({"name": "bob", "password": "x" * 5000}, {}, {"name": "b" * 90_000}):
            assert console.client().post("/login", data=odd).status_code in (400, 401)


def test_guesses_at_once_are_as_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    fits = Users.fits

    def slowly(users: Users, name: str, password: str) -> bool:
        time.sleep(0.3)  # long enough for all of them to come
        return fits(users, name, password)

    monkeypatch.setattr(Users, "fits", slowly)
    with demo_console(tmp_path, limits=Limits(failures_per_minute=2)) as console:

        def guess(place: int) -> int:
            password = PASSWORD if place == 9 else f"wrong {place}"
            with httpx.Client(base_url=console.address, timeout=60) as client:
                return client.post("/login", data={"name": "ada", "password": password}).status_code

        with ThreadPoolExecutor(10) as pool:
            codes = list(pool.map(guess, range(10)))
        assert codes.count(401) <= 2 and codes.count(429) >= 7


def test_a_rate_limit(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    limits = Limits(statements_per_second=0.001, statement_burst=3)
    with demo_console(tmp_path, limits=limits) as console:
        ada = console.logged_in(ANALYST)
        codes = [ada.get("/ask").status_code for _ in range(5)]
        assert codes == [200, 200, 200, 429, 429]
        assert console.logged_in(OTHER).get("/ask").status_code == 200


def test_a_name_of_somebody_elses_leads_nowhere(console: Running) -> None:
    for host in ("evil.example", "evil.example:8432", "", "127.0.0.1.evil.example"):
        answer = console.client().get("/login", headers={"Host": host})
        assert answer.status_code in (400, 421)
    assert console.client().get("/login", headers={"Host": "localhost:1"}).status_code == 200


def test_sessions_end_with_time_password_and_user(tmp_path: Path) -> None:
    file = tmp_path / "users.toml"
    add_user(file, "ada", PASSWORD)
    users, now = Users(file), [0.0]
    sessions = Sessions(users, 60.0, clock=lambda: now[0])
    token, session = sessions.begin("ada")
    assert sessions.find(token) is session and sessions.find(token + "x") is None
    now[0] = 61.0
    assert sessions.find(token) is None
    token, _ = sessions.begin("ada")
    for _ in range(12 * 60 + 1):
        now[0] += 59.0
        sessions.find(token)
    now[0] += 12 * 60.0
    assert sessions.find(token) is None  # however busy
    token, _ = sessions.begin("ada")
    add_user(file, "ada", "another password")
    users.reload()
    assert sessions.find(token) is None
    token, _ = sessions.begin("ada")
    remove_user(file, "ada")
    users.reload()
    assert sessions.find(token) is None
    with pytest.raises(ValueError, match="no such user"):
        sessions.begin("ada")
    add_user(file, "ada", PASSWORD)
    users.reload()
    tokens = [sessions.begin("ada")[0] for _ in range(25)]
    assert sum(sessions.find(one) is not None for one in tokens) == 20


def test_what_breaks_says_nothing(
    console: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret 4711")

    monkeypatch.setattr(type(console.ledger), "lines", broken)
    with caplog.at_level(logging.DEBUG):
        answer = console.logged_in(ANALYST).get("/history")
    assert answer.status_code == 503 and "4711" not in answer.text
    assert "4711" not in caplog.text


def test_plain_http_is_for_this_machine_alone() -> None:
    with pytest.raises(UsageError, match="this machine only"):
        replace(ConsoleConfig(), listen="0.0.0.0", tls="off").check()
    replace(ConsoleConfig(), listen="0.0.0.0").check()


def test_the_handlers_of_an_analyst_ask_for_nobody_else() -> None:
    """Whose rows they read is the session's user, never a field of the request."""
    source = Path(analyst_pages.__file__).read_text("utf-8")
    assert not re.search(r"analyst=(?!visit\.user|user\b)", source)


def test_tls_has_a_secure_cookie(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    made = tls.self_signed(tmp_path)
    config = ConsoleConfig(port=0, owners=(OWNER,))
    with (
        demo_data(tmp_path) as database,
        served({DATASET: database}, tmp_path, config=config, certificate=made) as console,
    ):
        assert console.address.startswith("https://")
        answer = console.client().post("/login", data={"name": ANALYST, "password": PASSWORD})
        assert answer.headers["set-cookie"].startswith("__Host-sqlrs=")
        assert "secure" in answer.headers["set-cookie"].lower()
        assert answer.headers["strict-transport-security"]
        assert console.logged_in(ANALYST).get("/ask").status_code == 200
        port = int(console.address.rpartition(":")[2])
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings(action="ignore"):
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        with socket.create_connection(("127.0.0.1", port)) as raw, pytest.raises(ssl.SSLError):
            old.wrap_socket(raw)


def test_the_configuration_is_read(tmp_path: Path) -> None:
    file = tmp_path / "sqlrs.toml"
    file.write_text("[console]\nowners = ['olga']\nport = 0\n[proxy]\nport = 0\n", "utf-8")
    assert ConsoleConfig.read(file).owners == ("olga",)
    assert ProxyConfig.read(file).port == 0
    wrong = {
        "[console]\nownrs = []": "did you mean owners",
        "[console]\nport = -1": "port",
        "[console]\nlisten = '0.0.0.0'\ntls = 'off'": "only",
    }
    for text, words in wrong.items():
        file.write_text(text, "utf-8")
        with pytest.raises(UsageError) as error:
            ConsoleConfig.read(file)
        assert words in f"{error.value.message} {error.value.hint}"
