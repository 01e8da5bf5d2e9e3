"""Queries whose sensitivity the query alone fixes, and that sensitivity.

The bound L(T) of one step is made of values T_E. Where keys decide all of them, or public tables
alone hold them, L is the same on all databases: no smoothing is needed. docs/proofs/laplace.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity.steps import compile_recursion, open_part


def is_constant(residuals: Residuals) -> bool:
    """Whether no private row changes how much another one can change the count."""
    private, everything = residuals.query.private, residuals.query.everything
    # What is left without one atom tells most queries apart at little cost.
    if any(open_part(residuals, everything - {i}) & private for i in private):
        return False
    return not any(members & private for members in compile_recursion(residuals).coordinates)


def constant_sensitivity(residuals: Residuals, values: Mapping[Members, int]) -> int:
    """L(T) from the values of public tables, which are all that it depends on."""
    recursion = compile_recursion(residuals)
    return recursion.last(tuple(values[members] for members in recursion.coordinates))
