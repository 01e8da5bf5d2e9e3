"""Reads a privacy parameter exactly: the number that was written is the number that is spent."""

from __future__ import annotations

import re
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from sqlrs.errors import UsageError

MIN_EPSILON = Decimal("0.000001")
MAX_EPSILON = Decimal(1000)
MAX_DIGITS = 20
MAX_ERROR = Decimal(10) ** 18

_MAX_TEXT = 64
_MAX_POWER = 10 ** (2 * MAX_DIGITS)
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d{1,4}))?", re.ASCII)
_SHARED = Context(prec=12, rounding=ROUND_FLOOR)
_EXACT = Context(prec=2 * MAX_DIGITS)
_HINT = f"give a decimal number from {MIN_EPSILON:f} to {MAX_EPSILON:f}, such as 1 or 0.5"


def parse_epsilon(value: str | int | float | Decimal | Fraction) -> Decimal:
    """The exact value of a privacy parameter, in its shortest decimal form.

    A float stands for the decimal text that Python prints for it: 0.1 is one tenth. Whatever is
    not a positive decimal of reasonable size and length is a `UsageError`.
    """
    match = _NUMBER.fullmatch(_text_of(value))
    if match is None:
        raise _refusal("is not a positive decimal number")
    mantissa, exponent = match.group(1), int(match.group(2) or 0)
    whole, _, decimals = mantissa.partition(".")
    digits = (whole + decimals).lstrip("0")
    power = exponent - len(decimals) + len(digits) - len(digits.rstrip("0"))
    digits = digits.rstrip("0")
    if not digits:
        raise _refusal("must be greater than zero")
    if len(digits) > MAX_DIGITS:
        raise _refusal(f"has more than {MAX_DIGITS} significant digits")
    parsed = Decimal(f"{digits}e{power}")
    if not MIN_EPSILON <= parsed <= MAX_EPSILON:
        raise _refusal(f"must lie between {MIN_EPSILON:f} and {MAX_EPSILON:f}")
    return Decimal(f"{parsed:f}")


def parse_error(value: str | int | float | Decimal) -> Decimal:
    """A wished error exactly as it is written: a decimal above 0."""
    match = None if isinstance(value, bool) else _NUMBER.fullmatch(str(value).strip()[:_MAX_TEXT])
    digits = "" if match is None else match.group(1).replace(".", "").strip("0")
    parsed = Decimal(0) if match is None else Decimal(match.group(0))
    if not digits or len(digits) > MAX_DIGITS or not MIN_EPSILON <= parsed <= MAX_ERROR:
        raise UsageError(
            "the wished error must be a number above 0",
            hint="give half the width of the interval, such as 100",
        )
    return Decimal(f"{parsed.normalize():f}")


def _text_of(value: object) -> str:
    if isinstance(value, bool):
        raise _refusal("must be a number, not a truth value")
    if isinstance(value, (str, Decimal)):
        text = str(value).strip()
        if len(text) > _MAX_TEXT:
            raise _refusal("is too long")
        return text
    if isinstance(value, float):
        # Subclasses of float may print themselves in another way.
        return float.__repr__(value)
    if isinstance(value, (int, Fraction)):
        return _text_of_fraction(Fraction(value))
    raise _refusal("must be a number or its text")


def _text_of_fraction(value: Fraction) -> str:
    # Bounded before it is printed: printing a huge integer is slow, or an error of its own.
    if abs(value.numerator) > _MAX_POWER or _MAX_POWER % value.denominator:
        raise _refusal("is not a decimal number of reasonable length")
    return f"{value.numerator * (_MAX_POWER // value.denominator)}e-{2 * MAX_DIGITS}"


def _refusal(reason: str) -> UsageError:
    return UsageError(f"epsilon {reason}", hint=_HINT)


def shared_evenly(total: Decimal, number: int) -> Decimal:
    """The same part for each of so many, together never more than the total."""
    if number == 1:
        return total
    part = _SHARED.divide(total, Decimal(number))
    if part < MIN_EPSILON:
        raise UsageError(
            f"epsilon is shared by {number} aggregates, and {MIN_EPSILON:f} is the least for each",
            hint="give a larger epsilon, or ask for fewer aggregates",
        )
    return parse_epsilon(part)


def split_epsilon(total: Decimal, share: Decimal) -> tuple[Decimal, Decimal]:
    """A part of the total, not above that share of it, and the rest; together they are the total.

    The rest must be a privacy parameter by itself.
    """
    part = _SHARED.multiply(total, share)
    rest = _EXACT.subtract(total, part)
    if rest < MIN_EPSILON:
        least = parse_epsilon(_SHARED.divide(MIN_EPSILON, 1 - share) + MIN_EPSILON / 1000)
        raise UsageError("epsilon is too small to be split in two", hint=f"give at least {least:f}")
    return part, parse_epsilon(rest)
