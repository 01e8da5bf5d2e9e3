"""Parameters of a prepared statement: wire values to literals inside the statement's tree."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from uuid import UUID

from sqlglot import exp

from sqlrs.compiler.complexity import parse_text
from sqlrs.errors import UsageError
from sqlrs.proxy.policy.arrays import ELEMENTS, elements, write_membership
from sqlrs.proxy.policy.client_moments import read_date, read_time, read_zoned_time
from sqlrs.refusals import refusal

_EPOCH_DATE = date(2000, 1, 1)
_EPOCH = datetime(2000, 1, 1)
_DIGITS = struct.Struct("!HhHH")
_MAX_NUMBER = 1000
_NEGATIVE = 0x4000


def inline(
    sql: str, types: Sequence[int], values: Sequence[bytes | None], formats: Sequence[int]
) -> str:
    """The statement with its parameters written as literals."""
    if len(formats) not in (0, 1, len(values)) or len(values) != len(types):
        raise UsageError(
            f"{len(values)} parameters were given where the statement has {len(types)}",
            sqlstate="08P01",
        )
    binary = (
        list(formats) * len(values) if len(formats) == 1 else list(formats) or [0] * len(values)
    )
    literals = [
        _parameter(number, oid, value, bool(code))
        for number, (oid, value, code) in enumerate(zip(types, values, binary, strict=True), 1)
    ]
    (tree,) = parse_text(sql, "postgres")
    for parameter in list(tree.find_all(exp.Parameter)):
        index = _index(parameter, len(literals))
        literal = literals[index]
        if types[index] in ELEMENTS:
            write_membership(parameter, literal if isinstance(literal, list) else None)
        elif isinstance(literal, exp.Expression):
            parameter.replace(literal.copy())
    return tree.sql(dialect="postgres")


def _parameter(
    number: int, oid: int, value: bytes | None, binary: bool
) -> exp.Expression | list[exp.Expression]:
    """A literal, or those of an array's elements."""
    if value is None or oid not in ELEMENTS:
        return _literal(number, oid, value, binary)
    element_type = ELEMENTS[oid]
    try:
        found = elements(value, element_type, binary)
    except ValueError:
        raise _not_of_its_type(number) from None
    return [_literal(number, element_type, element, binary) for element in found]


def _index(parameter: exp.Parameter, count: int) -> int:
    digits = parameter.name
    if not digits.isascii() or not digits.isdigit() or not 1 <= int(digits) <= count:
        raise refusal("unknown_parameter")
    return int(digits) - 1


def _literal(number: int, oid: int, value: bytes | None, binary: bool) -> exp.Expression:
    if value is None:
        return exp.null()
    reader = _READERS.get(oid)
    if reader is None:
        raise refusal("parameter_type", f"parameter ${number} has a type that is not supported")
    try:
        return reader(value, binary)
    except (ValueError, OverflowError, InvalidOperation, struct.error):
        raise _not_of_its_type(number) from None


def _not_of_its_type(number: int) -> UsageError:
    return UsageError(f"parameter ${number} is not a value of its type", sqlstate="22P02")


def _integer(size: int) -> Callable[[bytes, bool], exp.Expression]:
    def read(value: bytes, binary: bool) -> exp.Expression:
        if binary:
            if len(value) != size:
                raise ValueError
            number = int.from_bytes(value, "big", signed=True)
        else:
            number = int(_number_text(value))
        if not -(2 ** (8 * size - 1)) <= number < 2 ** (8 * size - 1):
            raise ValueError
        return _signed(str(abs(number)), number < 0)

    return read


def _signed(digits: str, negative: bool) -> exp.Expression:
    literal = exp.Literal.number(digits)
    return exp.paren(exp.Neg(this=literal)) if negative else literal


def _numeric(value: bytes, binary: bool) -> exp.Expression:
    number = _binary_numeric(value) if binary else Decimal(_number_text(value))
    if not number.is_finite() or abs(number.adjusted()) > _MAX_NUMBER:
        raise ValueError
    return _signed(f"{number.copy_abs():f}", number < 0)


def _binary_numeric(value: bytes) -> Decimal:
    count, weight, sign, scale = _DIGITS.unpack_from(value)
    if sign not in (0, _NEGATIVE) or len(value) != 8 + 2 * count or max(count, scale) > _MAX_NUMBER:
        raise ValueError
    digits = struct.unpack_from(f"!{count}H", value, 8)
    if any(digit > 9999 for digit in digits):
        raise ValueError
    text = "".join(f"{digit:04d}" for digit in digits) or "0"
    exponent = 4 * (weight + 1 - count) if count else 0
    return Decimal(f"{'-' if sign else ''}{text}e{exponent}")


def _float(code: str) -> Callable[[bytes, bool], exp.Expression]:
    def read(value: bytes, binary: bool) -> exp.Expression:
        number: float = struct.unpack(code, value)[0] if binary else float(_number_text(value))
        if not math.isfinite(number):
            raise ValueError
        literal = _signed(repr(abs(number)), math.copysign(1, number) < 0)
        return exp.cast(literal, exp.DataType.Type.DOUBLE)

    return read


def _number_text(value: bytes) -> str:
    text = value.decode("ascii").strip()
    if len(text) > _MAX_NUMBER or "_" in text:
        raise ValueError
    return text


def _boolean(value: bytes, binary: bool) -> exp.Expression:
    true = (b"\1",) if binary else (b"t", b"true", b"on", b"1", b"yes", b"y")
    false = (b"\0",) if binary else (b"f", b"false", b"off", b"0", b"no", b"n")
    lowered = value if binary else value.lower().strip()
    if lowered not in true + false:
        raise ValueError
    return exp.Boolean(this=lowered in true)


def _text(value: bytes, binary: bool) -> exp.Expression:
    text = value.decode("utf-8")
    if "\0" in text:
        raise ValueError
    return exp.Literal.string(text)


def _uuid(value: bytes, binary: bool) -> exp.Expression:
    parsed = UUID(bytes=value) if binary else UUID(value.decode("ascii"))
    return exp.cast(exp.Literal.string(str(parsed)), exp.DataType.Type.UUID)


def _date(value: bytes, binary: bool) -> exp.Expression:
    if binary:
        parsed = _EPOCH_DATE + timedelta(days=struct.unpack("!i", value)[0])
    else:
        parsed = read_date(value.decode("ascii"))
    return exp.cast(exp.Literal.string(parsed.isoformat()), exp.DataType.Type.DATE)


def _timestamp(zoned: bool) -> Callable[[bytes, bool], exp.Expression]:
    kind = exp.DataType.Type.TIMESTAMPTZ if zoned else exp.DataType.Type.TIMESTAMP

    def read(value: bytes, binary: bool) -> exp.Expression:
        if binary:
            parsed = _EPOCH + timedelta(microseconds=struct.unpack("!q", value)[0])
        else:
            parsed = (read_zoned_time if zoned else read_time)(value.decode("ascii"))
        text = parsed.isoformat(sep=" ") + ("+00" if zoned else "")
        return exp.cast(exp.Literal.string(text), kind)

    return read


_READERS: dict[int, Callable[[bytes, bool], exp.Expression]] = {
    16: _boolean,
    20: _integer(8),
    21: _integer(2),
    23: _integer(4),
    25: _text,
    700: _float("!f"),
    701: _float("!d"),
    705: _text,
    1042: _text,
    1043: _text,
    1082: _date,
    1114: _timestamp(zoned=False),
    1184: _timestamp(zoned=True),
    1700: _numeric,
    2950: _uuid,
}
