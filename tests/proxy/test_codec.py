from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlrs.proxy.protocol.codec import Frame, FrameBuffer, ProtocolViolation, Reader, pack
from sqlrs.proxy.protocol.messages import (
    Bind,
    Close,
    Describe,
    Execute,
    Flush,
    Message,
    Parse,
    SimpleQuery,
    Sync,
    Terminate,
    decode,
    session_limits,
)
from sqlrs.proxy.protocol.replies import (
    Report,
    encode_int8,
    report_fields,
    shift_position,
)
from sqlrs.proxy.shadow import requests as shadow_requests

_text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
_formats = st.lists(st.sampled_from([0, 1]), max_size=4).map(tuple)
_values = st.lists(st.none() | st.binary(max_size=20), max_size=4).map(tuple)
_messages = st.one_of(
    st.builds(Parse, _text, _text, st.lists(st.integers(0, 2**32 - 1), max_size=4).map(tuple)),
    st.builds(Bind, _text, _text, _formats, _values, _formats),
    st.builds(Describe, st.sampled_from([b"S", b"P"]), _text),
    st.builds(Execute, _text, st.integers(0, 2**31 - 1)),
    st.builds(Close, st.sampled_from([b"S", b"P"]), _text),
)
_ENCODERS = {
    Parse: shadow_requests.parse,
    Bind: shadow_requests.bind,
    Describe: shadow_requests.describe,
    Execute: shadow_requests.execute,
    Close: shadow_requests.close,
}


@given(st.lists(_messages, max_size=6), st.integers(1, 7))
def test_messages_survive_the_wire_in_any_slices(messages: list[Message], size: int) -> None:
    data = b"".join(_ENCODERS[type(message)](message) for message in messages)  # type: ignore[operator]
    buffer, seen = FrameBuffer(session_limits(10_000)), []
    for start in range(0, len(data), size):
        buffer.feed(data[start : start + size])
        while (frame := buffer.next()) is not None:
            seen.append(decode(frame))
    assert seen == messages
    assert len(buffer) == 0


def test_the_messages_without_a_body() -> None:
    assert decode(Frame(b"S", b"")) == Sync()
    assert decode(Frame(b"H", b"")) == Flush()
    assert decode(Frame(b"X", b"")) == Terminate()
    assert decode(Frame(b"Q", b"SELECT 1\0")) == SimpleQuery("SELECT 1")


@pytest.mark.parametrize(
    "frame",
    [
        Frame(b"S", b"x"),
        Frame(b"Q", b"no end"),
        Frame(b"Q", b"one\0two\0"),
        Frame(b"Q", b"\xff\0"),
        Frame(b"P", b"a\0b\0\0\x02\0\0\0\x01"),
        Frame(b"B", b"\0\0\0\x01\0\x02\0\0\0\0"),
        Frame(b"B", b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0"),
        Frame(b"D", b"X\0"),
        Frame(b"E", b"portal\0\0\0"),
        Frame(b"?", b""),
    ],
)
def test_a_body_that_is_not_its_message_is_a_violation(frame: Frame) -> None:
    with pytest.raises(ProtocolViolation):
        decode(frame)


@pytest.mark.parametrize(
    "data",
    [
        b"?",
        b"Q\0\0\0\x03",
        b"Q\x7f\xff\xff\xff",
        b"Q\xff\xff\xff\xff",
        b"S\0\0\x20\0",
        b"R\0\0\0\x08",
    ],
)
def test_a_bad_header_is_refused_before_its_body_is_buffered(data: bytes) -> None:
    buffer = FrameBuffer(session_limits(1000))
    buffer.feed(data)
    with pytest.raises(ProtocolViolation):
        buffer.next()


def test_a_message_at_the_limit_passes_and_one_over_it_does_not() -> None:
    buffer = FrameBuffer(session_limits(10))
    buffer.feed(pack(b"Q", b"123456789\0"))
    assert buffer.next() == Frame(b"Q", b"123456789\0")
    buffer.feed(pack(b"Q", b"1234567890\0")[:5])
    with pytest.raises(ProtocolViolation):
        buffer.next()


def test_reports_carry_all_their_fields_and_no_zero_byte() -> None:
    report = Report("ERROR", "0A000", "no\0thing", "detail", "hint", 7)
    fields = report_fields(report.encode()[5:])
    assert fields == {
        "S": "ERROR",
        "V": "ERROR",
        "C": "0A000",
        "M": "nothing",
        "D": "detail",
        "H": "hint",
        "P": "7",
    }
    assert report.encode()[:1] == b"E"
    assert Report("NOTICE", "00000", "x").encode()[:1] == b"N"
    assert report_fields(shift_position(report.encode()[5:], 10)[5:])["P"] == "17"


@pytest.mark.parametrize("value", [0, 1, -1, 2**63 - 1, -(2**63)])
def test_int8_in_both_formats(value: int) -> None:
    assert int(encode_int8(value, binary=False)) == value
    assert int.from_bytes(encode_int8(value, binary=True), "big", signed=True) == value


def test_answers_beyond_int8_are_clamped() -> None:
    assert encode_int8(10**30, binary=False) == str(2**63 - 1).encode()
    assert encode_int8(-(10**30), binary=True) == b"\x80" + bytes(7)


def test_a_reader_never_reads_past_its_body() -> None:
    reader = Reader(b"\0\x05abc")
    assert reader.count16() == 5
    with pytest.raises(ProtocolViolation):
        reader.take(4)
