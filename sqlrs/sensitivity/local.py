"""The bound on local sensitivity: residual sensitivity at distance 0. Not private, not smooth."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity.bound import Bound
from sqlrs.sensitivity.residual_bound import growths


def local_bound(residuals: Residuals, values: Mapping[Members, int]) -> Bound:
    """LS(I) ≤ max over private tables r of Σ_{∅≠F⊆D_r} T_{[n]−F}; absent values raise KeyError."""
    tables = range(len(residuals.query.private_tables))
    steps = growths(residuals, values, (tuple(tables),))
    return Bound(Fraction(max((step((0,)) for step in steps), default=0)), 0)
