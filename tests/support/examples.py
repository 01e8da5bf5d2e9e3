"""How many random examples a test draws: few in the gate, many more in the nightly run."""

from __future__ import annotations

from hypothesis import settings


def examples(number: int) -> int:
    """So many in a hundred of the profile's own: 50 in the gate, 1000 in the nightly run."""
    return number * settings().max_examples // 100
