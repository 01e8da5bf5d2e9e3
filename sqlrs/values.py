"""What the values of a column type are: special values, steps and bounds, forms of one value.

Whoever reasons about values instead of asking the engine reads this one description: the sweep, the
domain and the solver, simplification, filters that move to other columns, literals. Equality, order
and grouping stay the engine's own. tests/engines/test_values.py probes every statement made here
against the comparisons of both engines; docs/proofs/external.md uses them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache

from sqlrs.catalog import ColumnType, Family
from sqlrs.records import dataclass

INFINITE_DAY = 2**31 - 1
"""The day number, counted from 1970-01-01, that stands for the date ``infinity``.

It is the engine's own in DuckDB, where a difference with an infinite date is a number, and lies
beyond the last date of PostgreSQL, where such a difference is an error. ``-infinity`` is its
negative.
"""

NUMBERS = frozenset({Family.INTEGER, Family.DECIMAL, Family.FLOAT})
"""Families whose values the engines compare with each other."""
MOMENTS = frozenset({Family.DATE, Family.TIMESTAMP, Family.TIMESTAMP_TZ})
"""Families of dates and times, which the engines compare with each other."""

_WIDTHS = {"tinyint": 8, "smallint": 16, "integer": 32, "bigint": 64, "hugeint": 128}
_INTEGERS = {
    **{name: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for name, bits in _WIDTHS.items()},
    **{f"u{name}": (0, 2**bits - 1) for name, bits in _WIDTHS.items()},
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_PADDED = ("char(", "character(", "bpchar")
_WITH_INFINITY = frozenset({Family.FLOAT, Family.DATE, Family.TIMESTAMP, Family.TIMESTAMP_TZ})
_SINGLE_FORM = frozenset(Family) - {
    *(Family.FLOAT, Family.DECIMAL, Family.OTHER, Family.OPAQUE),
}


@dataclass(frozen=True)
class Values:
    """The values of one column type, NULL aside.

    ``discrete``: each finite value has a next one, and nothing lies between the two.
    ``infinite``: -infinity and infinity are values, below and above all others but NaN.
    ``nan``: NaN is a value, equal to itself and greater than all others.
    ``first``, ``last``: no finite value lies beyond; dates are day numbers. None: not known.
    ``padded``: trailing blanks do not count.
    ``collated``: order and equality of texts are a collation's, not those of their characters.
    ``zoned``: which moment a literal without a zone means depends on the session.
    ``one_form``: equal values look the same to every expression. Otherwise -0.0 = 0.0, 1.0 = 1.00,
    'a' = 'a ' or 'a' = 'A' can be told apart, by their text for instance.
    """

    discrete: bool
    infinite: bool
    nan: bool
    first: int | Decimal | None
    last: int | Decimal | None
    padded: bool
    collated: bool
    zoned: bool
    one_form: bool

    @property
    def numbers(self) -> bool:
        """Whether every value is an exact number, or a day with a number of its own."""
        return not self.nan and self.first is not None

    def holds(self, number: int | Decimal) -> bool:
        """Whether a number lies within the type's bounds, as far as these are known."""
        low, high = self.first, self.last
        return (low is None or low <= number) and (high is None or number <= high)


@lru_cache(maxsize=512)
def values_of(kind: ColumnType) -> Values:
    """The description of a column type's values."""
    name, family = kind.name.lower(), kind.family
    first, last = _bounds(name, family)
    padded = name.startswith(_PADDED) or name == "character"
    collated = kind.collation is not None
    # DuckDB's decimals have one scale and no special values; PostgreSQL's numeric has both.
    exact = family is Family.DECIMAL and first is not None
    return Values(
        discrete=family in (Family.INTEGER, Family.DATE),
        infinite=family in _WITH_INFINITY or (family is Family.DECIMAL and not exact),
        nan=family is Family.FLOAT or (family is Family.DECIMAL and not exact),
        first=first,
        last=last,
        padded=padded,
        collated=collated,
        zoned=family is Family.TIMESTAMP_TZ,
        one_form=(family in _SINGLE_FORM or exact) and not padded and not collated,
    )


def widest(types: Iterable[ColumnType]) -> ColumnType | None:
    """The integer type that holds every value of these, if it is one of them."""
    found = sorted(set(types), key=lambda t: t.name)
    described = [values_of(t) for t in found]
    for kind, own in zip(found, described, strict=True):
        if kind.family is Family.INTEGER and all(
            v.first is not None and v.last is not None and own.holds(v.first) and own.holds(v.last)
            for v in described
        ):
            return kind
    return None


def behave_alike(types: Iterable[ColumnType]) -> bool:
    """Whether equal values of these types can stand for each other in any expression.

    Of several types only texts do: arithmetic overflows at a type's own width, and a literal is
    rounded to a timestamp's own precision.
    """
    distinct = set(types)
    return all(values_of(t).one_form for t in distinct) and (
        len(distinct) == 1 or all(t.family is Family.TEXT for t in distinct)
    )


def sort_alike(types: Iterable[ColumnType]) -> bool:
    """Whether columns of these types, put below each other, are sorted as they are compared.

    Integers of all widths are: the engine widens them, and nothing is computed with them.
    """
    distinct = set(types)
    return behave_alike(distinct) or all(t.family is Family.INTEGER for t in distinct)


def is_wide(kind: ColumnType) -> bool:
    """Whether a comparison with another number can overflow: both become one decimal type."""
    last = values_of(kind).last
    return last is not None and last >= 10**20


def _bounds(name: str, family: Family) -> tuple[int | Decimal | None, int | Decimal | None]:
    if family is Family.INTEGER:
        return _INTEGERS.get(name, (None, None))
    if family is Family.DATE:
        return 1 - INFINITE_DAY, INFINITE_DAY - 1
    found = _DECIMAL.fullmatch(name) if family is Family.DECIMAL else None
    if found is None:
        return None, None
    width, scale = map(int, found.groups())
    last = Decimal((0, (9,) * width, -scale))
    return last.copy_negate(), last
