from __future__ import annotations

import struct

import pytest

from sqlrs.proxy.protocol.codec import cstring, int32, pack, packet
from sqlrs.proxy.protocol.handshake import (
    Authenticated,
    Cancel,
    Handshake,
    Rejected,
    Send,
    StartTls,
    Step,
)
from sqlrs.proxy.protocol.scram import ScramServer, Verifier
from tests.proxy.test_scram import FINAL, FIRST, SERVER_NONCE, standard_verifier

SSL = packet(int32(80877103))
GSS = packet(int32(80877104))


def startup(version: int = 3 << 16, **parameters: str) -> bytes:
    pairs = b"".join(cstring(name) + cstring(value) for name, value in parameters.items())
    return packet(struct.pack("!I", version), pairs, b"\0")


def sasl_first(data: bytes = FIRST, mechanism: str = "SCRAM-SHA-256") -> bytes:
    return pack(b"p", cstring(mechanism), int32(len(data)), data)


def machine(require_tls: bool = False, offer_tls: bool = True) -> Handshake:
    def scram(user: str) -> ScramServer:
        known = user == "user"
        verifier = standard_verifier() if known else Verifier.decoy(b"", user)
        return ScramServer(verifier, known, None, nonce=SERVER_NONCE)

    return Handshake(scram, offer_tls=offer_tls, require_tls=require_tls)


def rejection(steps: list[Step]) -> str:
    assert isinstance(steps[-1], Rejected)
    return steps[-1].report.sqlstate


def test_a_client_with_the_right_password_is_let_in_byte_by_byte() -> None:
    hand, seen = machine(), list[Step]()
    stream = startup(user="user", database="db", application_name="test")
    stream += sasl_first() + pack(b"p", FINAL)
    for position in range(len(stream)):
        seen += hand.receive(stream[position : position + 1])
    assert seen[-1] == Authenticated("user", "db", {"application_name": "test"}, 0)
    replies = [step.data for step in seen if isinstance(step, Send)]
    assert replies[0] == pack(b"R", int32(10), b"SCRAM-SHA-256\0\0")
    assert replies[-1].endswith(pack(b"R", int32(0)))


def test_the_database_defaults_to_the_user() -> None:
    steps = machine().receive(startup(user="user") + sasl_first() + pack(b"p", FINAL))
    assert steps[-1] == Authenticated("user", "user", {}, 0)


def test_tls_is_started_once_and_gss_declined() -> None:
    hand = machine(require_tls=True)
    assert hand.receive(GSS) == [Send(b"N")]
    assert hand.receive(SSL) == [Send(b"S"), StartTls()]
    hand.tls_started()
    assert isinstance(hand.receive(startup(user="user"))[-1], Send)


def test_tls_is_declined_where_it_is_off() -> None:
    assert machine(offer_tls=False).receive(SSL) == [Send(b"N")]


def test_bytes_in_clear_behind_the_tls_request_are_refused() -> None:
    assert rejection(machine().receive(SSL + startup(user="user"))) == "08P01"


def test_a_client_in_clear_is_refused_where_tls_is_required() -> None:
    assert rejection(machine(require_tls=True).receive(startup(user="user"))) == "28000"


def test_encryption_is_asked_for_once() -> None:
    hand = machine(offer_tls=False)
    hand.receive(SSL)
    assert rejection(hand.receive(SSL)) == "08P01"


@pytest.mark.parametrize(
    ("version", "minor", "negotiated"),
    [(0, 0, False), (1, 1, False), (2, 2, False), (3, 2, True), (9999, 2, True)],
)
def test_protocol_versions(version: int, minor: int, negotiated: bool) -> None:
    steps = machine().receive(
        startup(3 << 16 | version, user="user") + sasl_first() + pack(b"p", FINAL)
    )
    client = steps[-1]
    assert isinstance(client, Authenticated)
    assert client.minor == minor
    assert (steps[0] == Send(pack(b"v", int32(3 << 16 | 2), int32(0)))) is negotiated


def test_unknown_protocol_options_are_named_back() -> None:
    steps = machine().receive(startup(3 << 16, user="user", **{"_pq_.future": "1"}))
    assert steps[0] == Send(pack(b"v", int32(3 << 16), int32(1), cstring("_pq_.future")))


def test_a_cancel_request_has_no_answer() -> None:
    request = packet(int32(80877102), int32(77), b"secret!!")
    assert machine().receive(request) == [Cancel(77, b"secret!!")]


@pytest.mark.parametrize(
    ("data", "sqlstate"),
    [
        (packet(int32(80877102), int32(77)), "08P01"),
        (startup(2 << 16, user="user"), "0A000"),
        (startup(), "28000"),
        (startup(user=""), "28000"),
        (startup(user="user", replication="true"), "0A000"),
        (startup(user="user", replication="database"), "0A000"),
        (packet(int32(3 << 16), b"user\0user\0"), "08P01"),
        (packet(int32(3 << 16), b"user\0user\0\0more"), "08P01"),
        (packet(int32(3 << 16), b"user\0a\0user\0b\0\0"), "08P01"),
        (packet(int32(3 << 16), b"user\0\xff\0\0"), "08P01"),
        (int32(7) + b"xyz", "08P01"),
        (int32(10_001), "08P01"),
        (int32(-1), "08P01"),
        (b"GET / HTTP/1.1\r\n", "08P01"),
    ],
)
def test_openings_that_are_refused(data: bytes, sqlstate: str) -> None:
    hand = machine()
    assert rejection(hand.receive(data)) == sqlstate
    assert hand.receive(startup(user="user")) == []


@pytest.mark.parametrize(
    "data",
    [
        pack(b"Q", b"SELECT 1\0"),
        sasl_first()[:-1] + b"",
        pack(b"p", b"SCRAM-SHA-256\0", int32(-1)),
        pack(b"p", b"SCRAM-SHA-256\0", int32(5), b"n,,n="),
        sasl_first(mechanism="PLAIN"),
        sasl_first() + sasl_first(),
        b"p" + int32(5000),
    ],
)
def test_nothing_but_the_right_exchange_gets_in(data: bytes) -> None:
    hand = machine()
    steps = hand.receive(startup(user="user") + data)
    steps += hand.receive(pack(b"Q", b"SELECT 1\0"))
    assert not any(isinstance(step, Authenticated) for step in steps)


def test_an_unknown_user_sees_the_same_exchange_and_fails() -> None:
    hand = machine()
    steps = hand.receive(startup(user="eve") + sasl_first())
    assert [type(step) for step in steps] == [Send, Send]
    steps = hand.receive(pack(b"p", FINAL))
    assert isinstance(steps[-1], Rejected)
    assert steps[-1].authentication
    assert steps[-1].report.sqlstate == "28P01"
