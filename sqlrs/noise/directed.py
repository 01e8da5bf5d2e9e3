"""Decimals that are rounded in a known direction: two of them enclose a real number."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache

OPPOSITE = {ROUND_FLOOR: ROUND_CEILING, ROUND_CEILING: ROUND_FLOOR}


@lru_cache(maxsize=64)
def directed(digits: int, rounding: str) -> Context:
    """So many digits, rounded down or up; no size is too large and none raises."""
    return Context(prec=digits, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def beyond(value: Decimal, context: Context) -> Decimal:
    """One unit in the last place beyond, in the direction of the context's rounding.

    For functions that decimal rounds to the nearest whatever the context says, such as exp and ln.
    """
    below = context.rounding == ROUND_FLOOR
    return context.next_minus(value) if below else context.next_plus(value)
