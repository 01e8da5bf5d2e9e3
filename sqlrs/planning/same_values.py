"""Residuals with one value: alike but for names, also once what changes no largest count is gone.

Of a bow tie, the two edges from a to c with a third one from a have the value of the two alone,
since where they are there is a third one too. docs/proofs/plans.md, section 5a, has the proof.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from sqlrs.planning.canonical import canonical
from sqlrs.planning.problem import Problem
from sqlrs.planning.separate import reduced
from sqlrs.residuals.isomorphism import representatives
from sqlrs.residuals.residual import Members, Residual


def same_values(residuals: Iterable[Residual]) -> dict[Members, Residual]:
    """For each residual the first one that has its value on any rows, as far as that is seen."""
    alike = representatives(residuals)
    firsts = {one.members: one for one in alike.values()}
    whole = {m: Problem.of(one) for m, one in firsts.items() if _is_counted_by_rows(one)}
    smaller = {members: reduced(problem) for members, problem in whole.items()}
    # Those of which nothing was left out are told apart already.
    if all(smaller[members].leaves == whole[members].leaves for members in whole):
        return alike
    found: dict[Hashable, Residual] = {}
    same = {
        members: found.setdefault(_form(smaller[members]), one) if members in smaller else one
        for members, one in firsts.items()
    }
    return {members: same[one.members] for members, one in alike.items()}


def _is_counted_by_rows(residual: Residual) -> bool:
    return residual.output is None and not residual.external and not residual.generals


def _form(problem: Problem) -> Hashable:
    free = {v: v in problem.free for v in problem.variables}
    return canonical(problem.leaves, problem.conditions, free).form
