"""What two constants of a query say about each other, whatever the database makes of them."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import date, datetime

from sqlrs.catalog import Family
from sqlrs.query import Constant


def surely_different(one: Constant, other: Constant) -> bool:
    """Whether no value can equal both constants, under any collation, padding or rounding."""
    a, b = one.value, other.value
    if one.type.family is not other.type.family:
        return False
    if one.type.family is Family.TEXT:
        plain = one.type.collation is None and other.type.collation is None
        texts = isinstance(a, str) and isinstance(b, str)
        return plain and texts and str(a).rstrip().casefold() != str(b).rstrip().casefold()
    return _plain(one) and _plain(other) and a != b


def surely_below(low: Constant, high: Constant) -> bool:
    """Whether every value that equals the one is below every value that equals the other."""
    if low.type.family is not high.type.family or not (_plain(low) and _plain(high)):
        return False
    a, b = low.value, high.value
    if isinstance(a, int) and isinstance(b, int):
        return a < b
    return isinstance(a, date) and isinstance(b, date) and a < b


def meaning(constant: Constant) -> Hashable:
    """The same for two constants only where they mean the same value."""
    kind = constant.type
    name = None if kind.family is Family.INTEGER else kind.name
    return (type(constant.value), constant.value, kind.family, kind.collation, name)


def _plain(constant: Constant) -> bool:
    """Whether the value is held by its column's type as it is written."""
    value = constant.value
    match constant.type.family:
        case Family.INTEGER:
            return isinstance(value, int) and not isinstance(value, bool)
        case Family.BOOLEAN:
            return isinstance(value, bool)
        case Family.DATE:
            return isinstance(value, date) and not isinstance(value, datetime)
        case _:
            return False
