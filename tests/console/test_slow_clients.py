"""Clients that send their requests byte by byte, and those that only wait between two."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from sqlrs.console import impatient_http
from tests.console.harness import Running

LIMIT = 0.5
HEAD = b"GET /login HTTP/1.1\r\nHost: 127.0.0.1\r\n"
# Complete, answered at once, and then followed by a body that nobody wants.
ANSWERED = HEAD + b"Content-Length: 100000\r\n\r\n"


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(impatient_http, "REQUEST_SECONDS", LIMIT)


def connected(console: Running) -> socket.socket:
    address = urlsplit(console.address)
    assert address.hostname is not None and address.port is not None
    return socket.create_connection((address.hostname, address.port), timeout=10)


def is_ended(client: socket.socket) -> bool:
    """Send a byte now and then until the server has had enough, 20 times as long as it may take."""
    try:
        for _ in range(round(20 * LIMIT / 0.05)):
            client.sendall(b"x")
            time.sleep(0.05)
    except OSError:
        return True
    return False


@pytest.mark.parametrize("begin", [b"", b"GET / HTTP/1.1\r\nx: ", HEAD, ANSWERED])
def test_who_dribbles_is_cut_off(console: Running, begin: bytes) -> None:
    with connected(console) as client:
        client.sendall(begin)
        assert is_ended(client)


def test_who_says_nothing_is_cut_off(console: Running) -> None:
    with connected(console) as client, suppress(ConnectionResetError):
        assert client.recv(1) == b""


def test_who_waits_between_two_requests_is_not(console: Running) -> None:
    client = HTTPConnection(urlsplit(console.address).netloc, timeout=10)
    client.connect()
    first = client.sock
    for _ in range(2):
        client.request("GET", "/login")
        answer = client.getresponse()
        assert answer.status == 200 and answer.read()
        time.sleep(2 * LIMIT)
    assert client.sock is first  # http.client would have opened another one
    # A further request has its own time, and no more.
    with first:
        first.sendall(HEAD)
        assert is_ended(first)
