"""One residual -> the plan that evaluates it."""

from __future__ import annotations

from sqlrs.errors import UsageError
from sqlrs.planning.plan import HOW, Plain, Plan
from sqlrs.planning.statistics import Statistics
from sqlrs.residuals import Residual


def choose(
    residual: Residual, statistics: Statistics | None = None, *, how: str = "auto", dialect: str
) -> Plan:
    """The plan for a residual; ``how`` forces one. Statistics guide the choice, never the value."""
    if how not in HOW:
        raise UsageError(f"there is no plan {how!r}", hint=f"one of {', '.join(HOW)}")
    if residual.external:
        raise ValueError("external variables range over a domain that no plan here provides")
    return Plain(residual)
