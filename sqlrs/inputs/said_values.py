"""What an owner says of a column's values, as it is written: a domain, and bounds for sums.

Whether it fits the column's type is looked at where the column is known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from sqlrs.errors import UsageError
from sqlrs.inputs import arguments
from sqlrs.records import dataclass

_NUMBER = re.compile(
    r"-?(\d{1,30}\.?\d{0,30}|\.\d{1,30})(e[+-]?\d{1,2})?", re.ASCII | re.IGNORECASE
)
_DOMAIN_HINT = 'write ["A", "B"], {from = 0, to = 120}, or "ward.name" for a column'
_BOUNDS_HINT = "write [0, 5000], or [0, 300, 0.1] with the step of a floating point column"
_ENDS = {"from", "to"}


@dataclass(frozen=True)
class SaidDomain:
    """A list of values, the two ends of a range, or the name of a column.

    ``written``: on a command line, where all values are texts.
    """

    values: tuple[object, ...] = ()
    ends: tuple[object, object] | None = None
    column: str | None = None
    written: bool = False


@dataclass(frozen=True)
class SaidBounds:
    """Two numbers, and perhaps the step to which values are rounded."""

    low: Decimal
    high: Decimal
    grid: Decimal | None = None


def said_domain(name: str, value: object) -> SaidDomain:
    """The domain that a value of Python or TOML says."""
    if isinstance(value, SaidDomain):
        return value
    if isinstance(value, str):
        return SaidDomain(column=arguments.text(name, value))
    if isinstance(value, Mapping):
        if set(value) != _ENDS:
            raise UsageError(f"{name} is not a range: it has from and to", hint=_DOMAIN_HINT)
        return SaidDomain(ends=(value["from"], value["to"]))
    if not isinstance(value, list | tuple):
        raise UsageError(f"{name} is not a domain", hint=_DOMAIN_HINT)
    if not value:
        raise UsageError(f"{name} lists no value", hint=_DOMAIN_HINT)
    return SaidDomain(values=tuple(value))


def written_domain(name: str, text: str) -> SaidDomain:
    """The domain that an option says: ``A,B``, ``0..120`` or ``@ward.name``.

    A comma behind a single value makes it a list. ``0:120`` and ``ward.name`` mean the same.
    """
    if text.startswith("@"):
        return SaidDomain(column=text.removeprefix("@"))
    if "," in text:
        return SaidDomain(values=tuple(text.removesuffix(",").split(",")), written=True)
    low, mark, high = text.partition(".." if ".." in text else ":")
    if mark:
        return SaidDomain(ends=(low, high), written=True)
    if "." not in text:
        raise UsageError(
            f"{name} {text!r} is not a domain",
            hint=f"write A,B for values ({text}, for this one), 0..120 for a range, or "
            "@TABLE.COLUMN",
        )
    return SaidDomain(column=text)


def said_bounds(name: str, value: object) -> SaidBounds:
    """The bounds that a list of two or three numbers says."""
    if isinstance(value, SaidBounds):
        return value
    if not isinstance(value, list | tuple) or len(value) not in (2, 3):
        raise UsageError(f"{name} are not bounds", hint=_BOUNDS_HINT)
    low, high, *grid = (exact_number(f"each of {name}", one) for one in value)
    if low > high:
        raise UsageError(f"{name}: the lower bound is above the upper one", hint=_BOUNDS_HINT)
    if grid and grid[0] <= 0:
        raise UsageError(f"{name}: the step is a number above 0", hint=_BOUNDS_HINT)
    return SaidBounds(low, high, grid[0] if grid else None)


def written_bounds(name: str, text: str) -> SaidBounds:
    """The bounds that an option says: ``0,5000`` or ``0:5000``, and a third number for the step."""
    parts = text.split("," if "," in text else ":")
    if not all(_NUMBER.fullmatch(part) for part in parts):
        raise UsageError(f"{name} {text!r} is not LOW,HIGH", hint="write 0,5000, or 0,300,0.1")
    return said_bounds(name, [Decimal(part) for part in parts])


def by_column(name: str, value: object) -> dict[str, object]:
    """What is said of each ``table.column``; a dotted key of TOML means the quoted one."""
    found: dict[str, object] = {}
    for one, inner in arguments.mapping(name, value, '{"visit.ward": …}').items():
        column = arguments.text(f"a column of {name}", one)
        if isinstance(inner, Mapping) and not (inner and set(inner) <= _ENDS):
            for rest, said in by_column(f"{name}.{column}", inner).items():
                found[f"{column}.{rest}"] = said
        else:
            found[column] = inner
    return found


def said_domains(value: object) -> dict[str, SaidDomain]:
    """The domains of columns, by ``table.column``."""
    found = by_column("domains", value)
    return {one: said_domain(f"the domain of {one}", said) for one, said in found.items()}


def said_bounds_of(value: object) -> dict[str, SaidBounds]:
    """The bounds of columns, by ``table.column``."""
    found = by_column("bounds", value)
    return {one: said_bounds(f"the bounds of {one}", said) for one, said in found.items()}


def exact_number(name: str, value: object) -> Decimal:
    """A finite number with every digit; a float stands for the decimal text that Python prints."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise UsageError(f"{name} must be a number", hint="0, 5000 or 0.1 for example")
    if isinstance(value, int):
        if abs(value) >= 10**30:
            raise UsageError(f"{name} has too many digits")
        return Decimal(value)
    # Subclasses of float may print themselves in another way.
    text = float.__repr__(value) if isinstance(value, float) else str(value)
    if not _NUMBER.fullmatch(text):
        raise UsageError(f"{name} must be a finite number of at most 30 digits")
    return Decimal(text)
