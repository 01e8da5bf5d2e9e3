"""Mechanisms: a sensitivity and a noise together, as one thing that a release can use."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from sqlrs.errors import UsageError
from sqlrs.mechanisms.base import Mechanism
from sqlrs.mechanisms.smooth import paper, refined

# By its name on the command line: epsilon, the shape if one is asked for, and whether error bars
# are wanted make a mechanism.
_MECHANISMS: dict[str, Callable[[Decimal, int | None, bool], Mechanism]] = {
    "polylaplace": refined,
    "cauchy": paper,
}
NAMES = tuple(_MECHANISMS)


def mechanism_named(
    name: str, epsilon: Decimal, shape: int | None = None, *, with_error_bars: bool = False
) -> Mechanism:
    """The mechanism of that name, or a UsageError."""
    if name not in _MECHANISMS:
        raise UsageError(f"there is no mechanism {name!r}", hint=f"use {' or '.join(NAMES)}")
    return _MECHANISMS[name](epsilon, shape, with_error_bars)
