"""Mechanisms: a sensitivity and a noise together, as one thing that a release can use."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from sqlrs.errors import UsageError
from sqlrs.mechanisms.base import Mechanism
from sqlrs.mechanisms.fitting import fitting
from sqlrs.mechanisms.smooth import paper, refined

CLIPPED = "clipped"
"""The one that can be named for statements too."""


def _clipped(epsilon: Decimal, shape: int | None, error_bars: Decimal | None) -> Mechanism:
    # Few ask for it, and it brings much along.
    from sqlrs.mechanisms.clipped_rows import clipped_rows

    return clipped_rows(epsilon, shape, error_bars)


# By its name on the command line: epsilon, the shape if one is asked for, and the epsilon of error
# bars if they are wanted make a mechanism. The first one is used where none is named.
_MECHANISMS: dict[str, Callable[[Decimal, int | None, Decimal | None], Mechanism]] = {
    "fitting": fitting,
    "polylaplace": refined,
    "cauchy": paper,
    CLIPPED: _clipped,
}
NAMES = tuple(_MECHANISMS)
DEFAULT = NAMES[0]


def mechanism_named(
    name: str, epsilon: Decimal, shape: int | None = None, *, error_bars: Decimal | None = None
) -> Mechanism:
    """The mechanism of that name, or a UsageError."""
    if name not in _MECHANISMS:
        raise UsageError(f"there is no mechanism {name!r}", hint=f"use {' or '.join(NAMES)}")
    return _MECHANISMS[name](epsilon, shape, error_bars)
