"""What an owner declares about a function of the database: the types it takes and returns."""

from __future__ import annotations

import re

from sqlrs.errors import UsageError
from sqlrs.inputs import arguments
from sqlrs.records import dataclass

_TYPE = re.compile(r"[a-z][a-z0-9_ ]*(\(\d{1,3}(, ?\d{1,3})?\))?", re.ASCII)
# Between two types, not between the two numbers of decimal(10, 2).
_COMMA = re.compile(r",(?! ?\d)")
_CALL = re.compile(r"([a-z_][a-z0-9_]*)\s*(\(.*)", re.IGNORECASE | re.ASCII | re.DOTALL)
_HINT = "write the types it takes and returns: (double, double) -> double"


@dataclass(frozen=True)
class Signature:
    """The types of a function's arguments and of its result, as the owner wrote them."""

    takes: tuple[str, ...]
    returns: str

    def __str__(self) -> str:
        return f"({', '.join(self.takes)}) -> {self.returns}"


def signature(name: str, value: object) -> Signature:
    """The signature that a text says, ``(double, double) -> double`` for example."""
    if isinstance(value, Signature):
        return value
    left, arrow, returns = arguments.text(name, value).partition("->")
    left = left.strip()
    inside = _plain(left[1:-1]) if left[:1] == "(" and left[-1:] == ")" else "?"
    takes = [_plain(one) for one in _COMMA.split(inside)] if inside else []
    returns = _plain(returns)
    if not arrow or not all(map(_TYPE.fullmatch, (*takes, returns))):
        raise UsageError(f"{name} is not the signature of a function", hint=_HINT)
    return Signature(tuple(takes), returns)


def signatures(name: str, value: object) -> dict[str, Signature]:
    """The signatures of functions by their names."""
    found = arguments.mapping(name, value, '{"bmi": "(double, double) -> double"}')
    return {
        arguments.text(f"a function of {name}", one): signature(f"{name}.{one}", text)
        for one, text in found.items()
    }


def call(option: str, text: str) -> tuple[str, Signature]:
    """Name and signature in one text: ``bmi(double, double) -> double``."""
    found = _CALL.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            f"{option} {text!r} does not declare a function",
            hint="write name(types) -> type: bmi(double, double) -> double",
        )
    return found[1], signature(f"{option} {found[1]}", found[2])


def _plain(kind: str) -> str:
    return " ".join(kind.lower().split())
