"""Arguments of the Python surface: each of the kind it must have, or an error that says which."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

from sqlrs.errors import UsageError


def text(name: str, value: object) -> str:
    """A text that every part of the program can store and print."""
    if not isinstance(value, str):
        raise _wrong(name, "a text", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{name} is not Unicode text") from None
    return value


def optional_text(name: str, value: object) -> str | None:
    """A text or None."""
    return None if value is None else text(name, value)


def whole_number(name: str, value: object) -> int:
    """An integer; a truth value is none."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(name, "a whole number", value)
    return value


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


def keys(value: object) -> dict[str, tuple[tuple[str, ...], ...]]:
    """The keys of each table: one list of columns, or several."""
    if not isinstance(value, Mapping):
        raise _wrong("keys", 'a mapping such as {"edge": ["src", "dst"]}', value)
    return {text("a table of keys", table): _keys(key) for table, key in value.items()}


def _keys(value: object) -> tuple[tuple[str, ...], ...]:
    given = tuple(value) if isinstance(value, list | tuple | set | frozenset) else ()
    several = given if given and not isinstance(given[0], str) else (given,)
    found = []
    for key in several:
        columns = tuple(key) if isinstance(key, list | tuple | set | frozenset) else ()
        if not columns or not all(isinstance(column, str) for column in columns):
            raise UsageError("a key is a list of columns", hint='write ["src", "dst"]')
        found.append(columns)
    return tuple(found)


def _wrong(name: str, wanted: str, value: object) -> UsageError:
    return UsageError(f"{name} must be {wanted}, not {_kind(value)}")


def _kind(value: object) -> str:
    # The type alone: printing a stranger's object can fail, or take for ever.
    return "None" if value is None else f"a value of type {type(value).__name__}"
