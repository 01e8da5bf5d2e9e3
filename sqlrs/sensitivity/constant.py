"""Queries whose sensitivity the query alone fixes, and that sensitivity.

The bound L(T) of one step is made of values T_E. Where keys decide all of them, or public tables
alone hold them, L is the same on all databases: no smoothing is needed. docs/proofs/laplace.md; of
a sum the values are W_E: docs/proofs/weighted.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity.steps import compile_recursion, open_part
from sqlrs.sensitivity.weighted import compile_sums, counted, largest_weight, needs_sums


def is_constant(residuals: Residuals) -> bool:
    """Whether no private row changes how much another one can change the count or the sum."""
    private, everything = residuals.query.private, residuals.query.everything
    if not largest_weight(residuals.query):
        return True
    # What is left without one atom tells most queries apart at little cost.
    if any(open_part(residuals, everything - {i}) & private for i in private):
        return False
    return not any(members & private for members in compile_recursion(residuals).coordinates)


def constant_sensitivity(residuals: Residuals, values: Mapping[Members, int]) -> int:
    """L(T) from the values of public tables, which are all that it depends on.

    They are sums W_E where ``needs_sums`` says so, and counts otherwise.
    """
    bound = largest_weight(residuals.query)
    if not bound:
        return 0
    if needs_sums(residuals.query):
        recursion = compile_sums(residuals)
        own = [values[members] for members in compile_recursion(residuals).coordinates]
        # No coordinate moves, so the counts, which only limit how sums move, are not read.
        return recursion.last((*(0 for _ in own), *own))
    recursion = compile_recursion(counted(residuals))
    return bound * recursion.last(tuple(values[members] for members in recursion.coordinates))
