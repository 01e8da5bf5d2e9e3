"""The refined bound as a measurement may try it often: by numbers below and above it."""

from __future__ import annotations

from functools import lru_cache, partial

from sqlrs.measuring.work import Folding
from sqlrs.noise import Weights
from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity.components import components
from sqlrs.sensitivity.refined import (
    gauge,
    is_bounded_quickly,
    settled_sensitivity,
)
from sqlrs.sensitivity.steps import compile_recursion


def refined_folding(residuals: Residuals, weights: Weights) -> Folding | None:
    """How a query without weights folds, None where that takes too long to be repeated; no data."""
    if residuals.query.weighted or not is_bounded_quickly(residuals, weights):
        return None
    return Folding(
        partial(settled_sensitivity, residuals, weights=weights),
        partial(gauge, residuals, weights=weights),
        _factors(residuals),
    )


@lru_cache(maxsize=128)
def _factors(residuals: Residuals) -> dict[Members, tuple[Members, ...]]:
    sets = compile_recursion(residuals).coordinates
    return {members: components(residuals, members) for members in sets}
