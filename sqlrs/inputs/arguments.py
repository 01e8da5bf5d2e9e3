"""Arguments of the Python surface: each of the kind it must have, or an error that says which."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

from sqlrs.errors import UsageError

T = TypeVar("T")

# More is a slip: DuckDB would start as many, and the system would not let it.
MOST_THREADS = 1024
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?) ?(?:B|[KMGT]i?B)", re.IGNORECASE | re.ASCII)


def text(name: str, value: object) -> str:
    """A text that every part of the program can store and print."""
    if not isinstance(value, str):
        raise _wrong(name, "a text", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{name} is not Unicode text") from None
    return value


def optional(read: Callable[[str, object], T], name: str, value: object) -> T | None:
    """What ``read`` makes of a value, or None."""
    return None if value is None else read(name, value)


def whole_number(
    name: str, value: object, least: int | None = None, most: int | None = None
) -> int:
    """An integer within bounds, both included; a truth value is none."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(name, "a whole number", value)
    if least is not None and value < least:
        raise UsageError(f"{name} must be a whole number, {least} or more")
    if most is not None and value > most:
        raise UsageError(f"{name} must be a whole number, {most} or less")
    return value


def threads(name: str, value: object) -> int:
    """How many threads a database inside this process may have."""
    return whole_number(name, value, 1, MOST_THREADS)


def size(name: str, value: object) -> str:
    """An amount of memory or disk space above zero, with its unit."""
    found = _SIZE.fullmatch(text(name, value))
    if found is None or not float(found[1]):
        raise UsageError(
            f"{name} must be a size above 0 with its unit", hint="4GB for example, or 512MiB"
        )
    return found[0]


def seconds(name: str, value: object) -> float:
    """A finite number as a float."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction):
        raise _wrong(name, "a number of seconds", value)
    try:
        number = float(value)
    except (OverflowError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"{name} is a finite number of seconds")
    return number


def positive_seconds(name: str, value: object) -> float:
    """A finite number above zero."""
    found = seconds(name, value)
    if found <= 0:
        raise UsageError(f"{name} must be a number of seconds above 0")
    return found


def one_of(name: str, value: object, words: Sequence[str]) -> str:
    """One of a few words."""
    if value not in words:
        raise UsageError(f"{name} must be one of {', '.join(words)}")
    return str(value)


def truth(name: str, value: object) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise _wrong(name, "True or False", value)
    return value


def path(name: str, value: object) -> str:
    """The path of a file or folder, or a URL that holds one."""
    found = text(name, os.fspath(value) if isinstance(value, os.PathLike) else value)
    if "\0" in found:
        raise UsageError(f"{name} holds a NUL character")
    return found


def names(name: str, value: object) -> tuple[str, ...]:
    """Several names; one alone would be read letter by letter, so it is refused."""
    if not isinstance(value, list | tuple | set | frozenset):
        raise _wrong(name, 'a list of names such as ["edge"]', value)
    return tuple(text(f"each name of {name}", one) for one in value)


def mapping(name: str, value: object, example: str) -> Mapping[object, object]:
    """A mapping; what it maps is for the caller to look at."""
    if not isinstance(value, Mapping):
        raise _wrong(name, f"a mapping such as {example}", value)
    return value


def keys(value: object) -> dict[str, tuple[tuple[str, ...], ...]]:
    """The keys of each table: one list of columns, or several."""
    found = mapping("keys", value, '{"edge": ["src", "dst"]}')
    return {text("a table of keys", table): key_columns("keys", k) for table, k in found.items()}


def key_columns(name: str, value: object) -> tuple[tuple[str, ...], ...]:
    """The keys of one table: one list of columns, or several."""
    given = tuple(value) if isinstance(value, list | tuple | set | frozenset) else ()
    several = given if given and not isinstance(given[0], str) else (given,)
    found = []
    for key in several:
        columns = tuple(key) if isinstance(key, list | tuple | set | frozenset) else ()
        if not columns or not all(isinstance(column, str) for column in columns):
            raise UsageError(f"{name}: a key is a list of columns", hint='write ["src", "dst"]')
        found.append(columns)
    return tuple(found)


def _wrong(name: str, wanted: str, value: object) -> UsageError:
    return UsageError(f"{name} must be {wanted}, not {_kind(value)}")


def _kind(value: object) -> str:
    # The type alone: printing a stranger's object can fail, or take for ever.
    return "None" if value is None else f"a value of type {type(value).__name__}"
