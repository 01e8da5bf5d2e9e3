"""Thousands of broken streams, seeded: nothing crashes, and nothing uncounted is answered."""

from __future__ import annotations

import contextlib
import random
import socket

import psycopg

from sqlrs.proxy.policy.decisions import Route, split
from sqlrs.proxy.protocol.codec import FrameBuffer, ProtocolViolation, cstring, pack
from sqlrs.proxy.protocol.handshake import Authenticated, Handshake, Rejected
from sqlrs.proxy.protocol.messages import (
    Bind,
    Close,
    Describe,
    Execute,
    Parse,
    SimpleQuery,
    Sync,
    decode,
    session_limits,
)
from sqlrs.proxy.shadow import requests as shadow_requests
from tests.proxy.double import DoubleBackend
from tests.proxy.harness import RunningProxy
from tests.proxy.test_handshake import GSS, SSL, machine, sasl_first, startup
from tests.proxy.test_policy import POLICY
from tests.proxy.test_scram import FINAL
from tests.proxy.test_session import COUNT, World

SEED = 20_260_301
STREAMS = 4000

_OPENINGS = [
    startup(user="user", database="db"),
    startup(3 << 16 | 2, user="eve", options="-c x=y"),
    SSL,
    GSS,
    sasl_first(),
    pack(b"p", FINAL),
    b"\x16\x03\x01\x02\x00",
    b"GET / HTTP/1.1\r\n\r\n",
]
_SQL = [
    COUNT,
    "SELECT count(*) FROM edge WHERE src = $1",
    "SELECT * FROM edge",
    "SELECT 1",
    "SET sqlrs.epsilon = 0.5",
    "BEGIN",
    "ROLLBACK",
    "DEALLOCATE ALL",
    "SELECT * FROM sqlrs.history",
    "COPY edge TO STDOUT",
    f"{COUNT}; {COUNT}",
    "",
]


def _mutated(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((0, 1, 1, 2, 5))):
        if not changed:
            break
        at = chance.randrange(len(changed))
        match chance.randrange(5):
            case 0:
                changed[at] = chance.randrange(256)
            case 1:
                del changed[at : at + chance.randrange(1, 9)]
            case 2:
                changed[at:at] = chance.randbytes(chance.randrange(1, 9))
            case 3:
                changed[at] ^= 1 << chance.randrange(8)
            case _:
                changed = changed[:at]
    return bytes(changed)


def _message(chance: random.Random) -> bytes:
    name = chance.choice(("", "a", "b"))
    sql = chance.choice(_SQL)
    if chance.random() < 0.2:
        sql = _mutated(sql.encode(), chance).decode("utf-8", "replace").replace("\0", "")
    choices = (None, b"1", b"x", bytes(7) + b"\1")
    values = tuple(chance.choice(choices) for _ in range(chance.randrange(3)))
    match chance.randrange(9):
        case 0:
            return pack(b"Q", cstring(sql))
        case 1 | 2:
            return shadow_requests.parse(Parse(name, sql))
        case 3 | 4:
            formats = tuple(chance.choice((0, 1)) for _ in range(chance.randrange(2)))
            return shadow_requests.bind(Bind(name, name, formats, values, formats))
        case 5:
            return shadow_requests.execute(Execute(name, chance.choice((0, 1, 5))))
        case 6:
            return shadow_requests.describe(Describe(chance.choice((b"S", b"P")), name))
        case 7:
            return shadow_requests.close(Close(chance.choice((b"S", b"P")), name))
    return chance.choice((pack(b"S"), pack(b"H"), pack(b"d", b"data"), pack(b"F", b"\0\0\0\x01")))


def test_no_broken_opening_is_let_in() -> None:
    chance = random.Random(SEED)
    rejected = 0
    for number in range(STREAMS):
        hand: Handshake = machine(require_tls=number % 2 == 0)
        for _ in range(chance.randrange(1, 5)):
            data = _mutated(chance.choice(_OPENINGS), chance)
            for step in hand.receive(data):
                rejected += isinstance(step, Rejected)
                assert not isinstance(step, Authenticated) or step.user == "user", number
    assert rejected > STREAMS / 4


def test_sessions_survive_every_stream_and_answer_only_what_was_counted() -> None:
    chance = random.Random(SEED + 1)
    answered = violations = 0
    for number in range(STREAMS):
        world = World()
        world.parameters = number % 3 == 0
        buffer = FrameBuffer(session_limits(10_000))
        for _ in range(chance.randrange(1, 12)):
            data = _message(chance)
            buffer.feed(_mutated(data, chance) if chance.random() < 0.15 else data)
        syncs = queries = 0
        try:
            while (frame := buffer.next()) is not None:
                message = decode(frame)
                skipping = world.session._skipping
                syncs += isinstance(message, Sync)
                queries += isinstance(message, SimpleQuery) and not skipping
                world.say(message)
        except ProtocolViolation:
            violations += 1
        rows = [frame for frame in world.to_client if frame.kind == b"D"]
        assert len(rows) == len(world.counted), number
        ready = sum(frame.kind == b"Z" for frame in world.to_client)
        assert ready >= syncs + queries, number
        for count in world.counted:
            plans = [POLICY.plan(statement) for statement in split(count.sql)]
            assert [plan.route for plan in plans] == [Route.PROTECTED], number
        answered += len(rows)
    # The streams are no mere noise: some are counted, some break the protocol.
    assert answered > 50
    assert violations > 100


def test_the_server_survives_broken_connections(
    proxy: RunningProxy, backend: DoubleBackend
) -> None:
    chance = random.Random(SEED + 2)
    spent = dict(backend.spent)
    for _ in range(300):
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as raw:
            opening = _mutated(chance.choice(_OPENINGS), chance) or b"\0"
            messages = b"".join(_message(chance) for _ in range(3))
            received = b""
            # The server may have hung up before all is sent.
            with contextlib.suppress(OSError):
                raw.sendall(opening)
                raw.sendall(messages)
                raw.shutdown(socket.SHUT_WR)
                while chunk := raw.recv(4096):
                    received += chunk
            assert b"SELECT 1\0" not in received
    assert backend.spent == spent
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
