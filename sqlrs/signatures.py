"""What an owner declares about a function of the database: the types it takes and returns."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlrs import arguments
from sqlrs.errors import UsageError

_TYPE = r"[a-z][a-z0-9_ ]*(?:\(\d{1,3}(?:, ?\d{1,3})?\))?"
_SIGNATURE = re.compile(rf"\(\s*({_TYPE}(?:\s*,\s*{_TYPE})*)?\s*\)\s*->\s*({_TYPE})", re.IGNORECASE)
_CALL = re.compile(r"([a-z_][a-z0-9_]*)\s*(\(.*)", re.IGNORECASE | re.ASCII | re.DOTALL)
# The expression above tries many ways to read a long text.
_LONGEST = 2000
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
    text = arguments.text(name, value).strip()
    found = _SIGNATURE.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        raise UsageError(f"{name} is not the signature of a function", hint=_HINT)
    takes = re.findall(_TYPE, found[1] or "", re.IGNORECASE)
    return Signature(tuple(_plain(one) for one in takes), _plain(found[2]))


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
