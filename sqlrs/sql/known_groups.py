"""Values of groups -> one statement, where the rows of the public domains are known: as constants.

No value of a key is equal to two of these constants, so that every result is in one group at most:
docs/proofs/plans.md, section 9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from typing import cast

from sqlglot import exp

from sqlrs.catalog import ColumnType, Family
from sqlrs.measures import KeyDomain
from sqlrs.query import Term, Variable
from sqlrs.sql.factorised import StatementBuilder
from sqlrs.sql.locating import ORDINAL, domain_columns
from sqlrs.trees.build import (
    inner,
    joined_with,
    named,
    number,
    select_from,
    table_named,
    with_columns,
)
from sqlrs.trees.identifiers import column, identifier
from sqlrs.trees.naming import free_name
from sqlrs.values import values_of

Row = tuple[object, ...]
Known = tuple[tuple[Row, ...], ...]
"""The rows of each domain, in the order of their ordinals."""

# More constants take an engine longer to read than to number the rows itself.
_MOST_ROWS = 500
_TEXTS = ("varchar", "text", "character varying", "string")
_MOMENTS = ("timestamp", "timestamp without time zone")
_LARGEST = 2**63 - 1
_IN_EVERY_NUMBER = 2**24
_APART = timedelta(days=2)


def as_constants(
    keys: Sequence[Term | None], domains: Sequence[KeyDomain], rows: Sequence[Iterable[Row]]
) -> Known | None:
    """The rows where a constant can stand for every value in them, else None."""
    known = tuple(map(tuple, rows))
    if not domains or sum(map(len, known)) > _MOST_ROWS:
        return None
    for domain, own in zip(domains, known, strict=True):
        if not own or len(set(own)) < len(own):
            return None
        for place, key in enumerate(domain.keys):
            term = keys[key]
            if not isinstance(term, Variable):
                return None
            found = [row[place] for row in own]
            if values_of(term.type).one_form:
                plain = all(_is_plain(value, term.type) for value in found)
            else:
                plain = term.type.family is Family.OTHER and _are_plain_to_all(found, domain)
            if not plain:
                return None
    return known


def _is_plain(value: object, kind: ColumnType) -> bool:
    """Whether the value's constant is this very value to every engine, and no other one is."""
    name = kind.name.lower()
    match kind.family:
        case Family.INTEGER:
            return type(value) is int and abs(value) <= _LARGEST
        case Family.BOOLEAN:
            return type(value) is bool
        case Family.TEXT:
            plain = isinstance(value, str) and value.isprintable() and "\\" not in value
            return plain and name.startswith(_TEXTS)
        case Family.DATE:
            # Drivers give the ends of Python's dates for infinity.
            return type(value) is date and date.min < value < date.max
        case Family.TIMESTAMP:
            finite = type(value) is datetime and datetime.min < value < datetime.max
            return finite and name in _MOMENTS
    return False


def _are_plain_to_all(values: Sequence[object], domain: KeyDomain) -> bool:
    """The same where nothing is known of the type that an engine gives a computed key.

    Whatever it is compared as, a number of 24 bits or a moment of some time zone, no two of these
    are equal.
    """
    if all(type(value) is int and abs(value) <= _IN_EVERY_NUMBER for value in values):
        return True
    days = [value for value in values if type(value) is date and date.min < value < date.max]
    if len(days) == len(values):
        return _are_apart([datetime.combine(day, time()) for day in days])
    moments = [value for value in values if type(value) is datetime and _is_midnight(value)]
    return len(moments) == len(values) and _are_apart(moments) and _are_microseconds(domain)


def _is_midnight(value: datetime) -> bool:
    finite = datetime.min < value.replace(tzinfo=None) < datetime.max
    return value.tzinfo is None and finite and value.time() == time()


def _are_apart(moments: Sequence[datetime]) -> bool:
    """Whether they differ in every time zone, also in one that leaves out a day."""
    ordered = sorted(moments)
    return all(b - a >= _APART for a, b in pairwise(ordered))


def _are_microseconds(domain: KeyDomain) -> bool:
    """Whether a driver's moments can be the whole of what an engine has: some have finer ones."""
    tree = cast(exp.Query, domain.select)
    stored = any(isinstance(one.this, exp.Identifier) for one in tree.find_all(exp.Table))
    finer = any(one.this is exp.DType.TIMESTAMP_NS for one in tree.find_all(exp.DataType))
    return not stored and not finer


def located_in_constants(
    building: StatementBuilder,
    rows: str,
    names: Mapping[Variable, str],
    results: Sequence[str],
    keys: Sequence[Term | None],
    domains: Sequence[KeyDomain],
    known: Known,
) -> exp.Select:
    """Rows (ordinals…, results…): a group has several where values of its keys are grouped apart.

    ``rows`` has one for each value of the keys.
    """
    select = select_from(table_named(rows))
    taken = {rows, *building.reserved, *building.ctes}
    ordinals: list[exp.Expression] = []
    for place, (domain, values) in enumerate(zip(domains, known, strict=True)):
        alias = free_name(f"domain_{place}", taken)
        equal: list[exp.Expression] = []
        for key, own in zip(domain.keys, domain_columns(domain), strict=True):
            term = keys[key]
            assert isinstance(term, Variable)
            equal.append(exp.EQ(this=column(names[term], rows), expression=column(own, alias)))
        select = joined_with(select, inner(_constants(domain, values), alias), equal)
        ordinals.append(named(column(ORDINAL, alias), f"o{place}"))
    select = with_columns(select, *ordinals, *(column(name, rows) for name in results))
    return building.finished(select)


def _constants(domain: KeyDomain, rows: Sequence[Row]) -> exp.Select:
    """The rows with their ordinals."""
    names = domain_columns(domain)
    tuples = [
        exp.Tuple(expressions=[*map(_constant, row), number(place)])
        for place, row in enumerate(rows)
    ]
    listed = exp.TableAlias(
        this=identifier("listed"), columns=[identifier(name) for name in (*names, ORDINAL)]
    )
    columns: list[exp.Expression] = []
    for place, name in enumerate(names):
        kind, value = _cast_of(rows[0][place]), column(name, "listed")
        columns.append(value if kind is None else named(exp.cast(value, kind), name))
    values = exp.Values(expressions=tuples, alias=listed)
    return select_from(values, *columns, column(ORDINAL, "listed"))


def _cast_of(value: object) -> str | None:
    """The type of constants that are written as texts."""
    match value:
        case str():
            return "TEXT"
        case datetime():
            return "TIMESTAMP"
        case date():
            return "DATE"
    return None


def _constant(value: object) -> exp.Expression:
    match value:
        case bool():
            return exp.Boolean(this=value)
        case int():
            return number(value)
        case datetime():
            return exp.Literal.string(value.isoformat(sep=" "))
        case date():
            return exp.Literal.string(value.isoformat())
        case str():
            return exp.Literal.string(value)
    raise TypeError("this value has no constant here")
