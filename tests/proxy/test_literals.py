from __future__ import annotations

import struct
from datetime import date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.adapt import PyFormat, Transformer
from psycopg.types.numeric import Int8
from sqlglot import exp, parse_one

from sqlrs.errors import SqlrsError
from sqlrs.proxy.literals import inline


def one(oid: int, value: bytes | None, binary: bool = False) -> exp.Expression:
    sql = inline("SELECT count(*) FROM t WHERE a = $1", [oid], [value], [int(binary)])
    equals = parse_one(sql, read="postgres").find(exp.EQ)
    assert equals is not None
    return equals.expression


def sql_of(oid: int, value: bytes | None, binary: bool = False) -> str:
    return one(oid, value, binary).sql(dialect="postgres")


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_in_both_formats(value: int) -> None:
    expected = f"({value})" if value < 0 else str(value)
    assert sql_of(20, str(value).encode()) == expected
    assert sql_of(20, struct.pack("!q", value), binary=True) == expected


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, places=6, min_value=-(10**20), max_value=10**20
    )
)
def test_numerics_as_a_real_driver_sends_them(value: Decimal) -> None:
    dumper = Transformer().get_dumper(value, PyFormat.BINARY)
    data = dumper.dump(value)
    assert data is not None
    for text in (sql_of(1700, bytes(data), binary=True), sql_of(1700, str(value).encode())):
        assert Decimal(text.strip("()").replace("- ", "-")) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_keep_every_bit(value: float) -> None:
    for text in (
        sql_of(701, struct.pack("!d", value), binary=True),
        sql_of(701, repr(value).encode()),
    ):
        inner = text.removeprefix("CAST(").removesuffix(" AS DOUBLE PRECISION)").strip("()")
        assert float(inner.replace("- ", "-")) == value


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_text_stays_one_literal_whatever_it_holds(value: str) -> None:
    for binary in (False, True):
        literal = one(25, value.encode(), binary)
        assert isinstance(literal, exp.Literal)
        assert literal.is_string
        assert literal.this == value


@given(st.dates())
def test_dates(value: date) -> None:
    expected = f"CAST('{value.isoformat()}' AS DATE)"
    assert sql_of(1082, value.isoformat().encode()) == expected
    days = (value - date(2000, 1, 1)).days
    assert sql_of(1082, struct.pack("!i", days), binary=True) == expected


@given(st.datetimes())
def test_timestamps(value: datetime) -> None:
    expected = f"CAST('{value.isoformat(sep=' ')}' AS TIMESTAMP)"
    assert sql_of(1114, str(value).encode()) == expected
    ticks = (value - datetime(2000, 1, 1)) // timedelta(microseconds=1)
    assert sql_of(1114, struct.pack("!q", ticks), binary=True) == expected


def test_times_with_a_zone_become_utc() -> None:
    expected = "CAST('2020-01-01 10:00:00+00' AS TIMESTAMPTZ)"
    assert sql_of(1184, b"2020-01-01 12:00:00+02:00") == expected


def test_the_other_types() -> None:
    assert sql_of(16, b"t") == sql_of(16, b"\1", binary=True) == "TRUE"
    assert sql_of(16, b"off") == sql_of(16, b"\0", binary=True) == "FALSE"
    assert sql_of(23, None) == "NULL"
    value = UUID("12345678-1234-5678-1234-567812345678")
    expected = f"CAST('{value}' AS UUID)"
    assert sql_of(2950, str(value).encode()) == sql_of(2950, value.bytes, True) == expected
    assert (
        sql_of(21, bytes(Transformer().get_dumper(Int8(7), PyFormat.TEXT).dump(Int8(7)) or b""))
        == "7"
    )


@pytest.mark.parametrize(
    ("oid", "value", "binary"),
    [
        (23, b"1; DROP TABLE t", False),
        (23, b"2147483648", False),
        (23, b"\0\0\0", True),
        (20, b"1_000", False),
        (20, b"0x10", False),
        (20, "١".encode(), False),
        (1700, b"NaN", False),
        (1700, b"1e999999999", False),
        (1700, struct.pack("!HhHH", 0, 0, 0xC000, 0), True),
        (1700, struct.pack("!HhHHH", 1, 0, 0, 0, 10_000), True),
        (1700, struct.pack("!HhHH", 5, 0, 0, 0), True),
        (701, b"inf", False),
        (701, b"1", True),
        (16, b"maybe", False),
        (16, b"\2", True),
        (25, b"\xff", False),
        (25, b"a\0b", True),
        (1082, b"infinity", False),
        (1082, struct.pack("!i", 2**31 - 1), True),
        (1114, b"2020-01-01 00:00:00+00", False),
        (1184, b"2020-01-01 00:00:00", False),
        (2950, b"short", True),
        (17, b"bytes", False),
        (114, b"{}", False),
        (1009, b"{a}", False),
    ],
)
def test_values_that_are_not_of_their_type_are_refused(
    oid: int, value: bytes, binary: bool
) -> None:
    with pytest.raises(SqlrsError) as caught:
        one(oid, value, binary)
    assert caught.value.sqlstate in ("22P02", "0A000")


def test_the_number_of_parameters_and_formats_must_fit() -> None:
    sql = "SELECT count(*) FROM t WHERE a = $1 AND b = $2 AND c = $1"
    for values, formats in [([b"1"], [0]), ([b"1", b"2", b"3"], []), ([b"1", b"2"], [0, 0, 0])]:
        with pytest.raises(SqlrsError):
            inline(sql, [23, 23], values, formats)
    assert inline(sql, [23, 25], [b"1", b"x"], []) == (
        "SELECT COUNT(*) FROM t WHERE a = 1 AND b = 'x' AND c = 1"
    )


def test_a_parameter_inside_a_string_is_text() -> None:
    sql = inline("SELECT count(*) FROM t WHERE a = '$1' AND b = $1", [25], [b"$1"], [])
    assert sql == "SELECT COUNT(*) FROM t WHERE a = '$1' AND b = '$1'"
