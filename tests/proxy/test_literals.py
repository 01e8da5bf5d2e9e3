from __future__ import annotations

import struct
from datetime import date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.adapt import PyFormat, Transformer
from psycopg.types.numeric import Int8
from sqlglot import exp, parse_one

from sqlrs.errors import SqlrsError
from sqlrs.proxy.policy.parameters import inline


def one(oid: int, value: bytes | None, binary: bool = False) -> exp.Expression:
    sql = inline("SELECT count(*) FROM t WHERE a = $1", [oid], [value], [int(binary)])
    equals = parse_one(sql, read="postgres").find(exp.EQ)
    assert equals is not None
    right = equals.expression
    assert isinstance(right, exp.Expression)
    return right


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
        (1082, b"2020-02-30", False),
        (1082, b"2020-01-01 now", False),
        (1082, b"20200101", False),
        (1114, b"2020-01-01 00:00:00.1234567", False),
        (1114, b"2020-01-01 25:00:00", False),
        (1184, b"2020-01-01 00:00:00+16", False),
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


@pytest.mark.parametrize(
    ("oid", "text"),
    [
        # As JDBC's setDate and setTimestamp send them, whose type the server finds out.
        (1082, "2020-02-03 +01"),
        (1082, "2020-02-03 -05:30"),
        (1082, "2020-02-03 23:59:59.5+00"),
        (1114, "2020-02-03 04:05:06+01"),
        (1114, "2020-02-03 04:05:06.25+00"),
        (1114, "2020-02-03 +01"),
        (1114, "2020-02-03"),
        (1184, "2020-02-03 04:05:06.123456-05:30"),
        (1184, "2020-02-03 +01"),
        (1184, "2020-02-03T04:05:06Z"),
    ],
)
def test_moments_are_read_as_postgresql_reads_them(oid: int, text: str, postgres: str) -> None:
    kind = {1082: "date", 1114: "timestamp", 1184: "timestamptz"}[oid]
    read = sql_of(oid, text.encode())
    with psycopg.connect(postgres) as connection:
        same = connection.execute(f"SELECT {read} = %s::{kind}", (text,)).fetchone()
    assert same == (True,)


LISTS: list[tuple[int, list[object]]] = [
    (1016, [1, 2, -3]),
    (1016, [4]),
    (1016, []),
    (1009, ["a", "b,c", 'd"e', "f\\g", "", "NULL", "{h}", " i "]),
    (1182, [date(2020, 1, 2)]),
    (1000, [True, False]),
    (1016, [1, None]),
]


@pytest.mark.parametrize(("oid", "value"), LISTS)
@pytest.mark.parametrize("form", [PyFormat.TEXT, PyFormat.BINARY])
@pytest.mark.parametrize(
    "condition",
    ["x = ANY($1)", "x <> ALL($1)", "NOT x = ANY($1)", "x = SOME($1)", "x = ANY(($1)::KIND)"],
)
def test_membership_of_a_list_as_postgresql_reads_it(
    postgres: str, oid: int, value: list[object], form: PyFormat, condition: str
) -> None:
    """The oracle is PostgreSQL itself: the same rows for the array and for what it becomes."""
    element = {1016: "bigint", 1009: "text", 1182: "date", 1000: "boolean"}[oid]
    condition = condition.replace("KIND", f"{element}[]")
    samples = [item for _, entry in LISTS for item in entry if _ == oid] + [None]
    with psycopg.connect(postgres) as connection:
        transformer = Transformer(connection)
        sent = value or [samples[0]]
        data = transformer.get_dumper(sent, form).dump(sent) if value else None
        if not value:
            data = struct.pack("!iiI", 0, 0, 20) if form is PyFormat.BINARY else b"{}"
        elif form is PyFormat.BINARY and oid == 1016:
            # The driver takes the smallest type that fits; the statement says which it is.
            data = _binary_array(20, [None if v is None else struct.pack("!q", v) for v in value])
        query = f"SELECT count(*) FROM t WHERE {condition}"
        ours = inline(query, [oid], [bytes(data or b"")], [int(form is PyFormat.BINARY)])
        table = f"(SELECT unnest(%s::{element}[]) AS x) t"
        theirs = query.replace("$1", f"%s::{element}[]").replace("FROM t", f"FROM {table}")
        own = connection.execute(
            ours.replace("%", "%%").replace("FROM t", f"FROM {table}"), (samples,)
        )
        assert own.fetchone() == connection.execute(theirs, (samples, value)).fetchone()


def _binary_array(oid: int, values: list[bytes | None]) -> bytes:
    header = struct.pack("!iiIii", 1, 0, oid, len(values), 1)
    return header + b"".join(
        struct.pack("!i", -1) if v is None else struct.pack("!i", len(v)) + v for v in values
    )


@pytest.mark.parametrize(
    ("value", "binary"),
    [
        (b"", False),
        (b"1,2", False),
        (b"{1,2", False),
        (b"{1,}", False),
        (b"{,1}", False),
        (b"{{1},{2}}", False),
        (b"[1:2]={1,2}", False),
        (b'{"1}', False),
        (b'{1"2"}', False),
        (b"{1\\}", False),
        (b"{1;2}", False),
        (b"\0", True),
        (_binary_array(25, [b"x"]), True),
        (_binary_array(20, [b"x"]), True),
        (_binary_array(20, [struct.pack("!q", 1)]) + b"x", True),
        (struct.pack("!iiI", 2, 0, 20) + struct.pack("!iiii", 1, 1, 1, 1), True),
        (struct.pack("!iiIii", 1, 0, 20, 2**31 - 1, 1), True),
    ],
)
def test_lists_that_are_broken_are_refused(value: bytes, binary: bool) -> None:
    with pytest.raises(SqlrsError) as caught:
        inline("SELECT count(*) FROM t WHERE x = ANY($1)", [1016], [value], [int(binary)])
    assert caught.value.sqlstate == "22P02"


def test_a_list_stands_behind_any_only_and_is_not_endless() -> None:
    for condition in ("x = $1", "x < ANY($1)", "x = ALL($1)", "$1 = ANY(x)", "x <> ANY($1)"):
        with pytest.raises(SqlrsError) as caught:
            inline(f"SELECT count(*) FROM t WHERE {condition}", [1016], [b"{1}"], [])
        assert caught.value.code == "parameter_type"
    endless = ("{" + ",".join("1" * 1001) + "}").encode()
    with pytest.raises(SqlrsError) as caught:
        inline("SELECT count(*) FROM t WHERE x = ANY($1)", [1016], [endless], [])
    assert caught.value.sqlstate == "54000"


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
