"""How many random examples a test draws: few in the gate, ten times as many in the nightly run."""

from __future__ import annotations

from hypothesis import settings


def examples(number: int) -> int:
    """So many in the gate; the nightly profile, which draws 1000 by default, ten times as many."""
    return number * settings().max_examples // 100
