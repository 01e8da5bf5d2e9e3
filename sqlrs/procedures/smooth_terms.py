"""A term of a measure whose sensitivity follows the data -> how a function folds its bound.

The bound of a sum is that of the count of the same results, times the most that one result counts:
docs/proofs/procedures.md.
"""

from __future__ import annotations

from sqlglot import exp

from sqlrs.mechanisms.vector_base import Summand
from sqlrs.noise import DEFAULT_SHAPE
from sqlrs.planning.same_values import same_values
from sqlrs.procedures.definition import least_epsilon, plain_statement, work_at_each_distance
from sqlrs.procedures.programs import Programs
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Members
from sqlrs.sensitivity.steps import compile_recursion
from sqlrs.sensitivity.weighted import counted, largest_weight

MOST_WORK = 8_000_000
"""Additions of one fold, some seconds; PL/pgSQL makes about a million of them in a second."""


@dataclass(frozen=True)
class SmoothTerm:
    """``factor`` times the fold of measured values, each a product of those at its places."""

    factor: int
    programs: Programs
    values: tuple[tuple[int, ...], ...]
    once: int

    @classmethod
    def of(cls, summand: Summand, measured: list[exp.Expr], plan: str) -> SmoothTerm:
        """The statements of its values are added to those that are measured."""
        residuals = counted(summand.residuals)
        recursion = compile_recursion(residuals)
        programs = Programs.of(recursion)
        # Refuses what joins too many private tables for any epsilon.
        least_epsilon(recursion, programs, DEFAULT_SHAPE)
        same = same_values(residuals.undecided(recursion.coordinates))
        place: dict[Members, int] = {}
        values = []
        for members in recursion.coordinates:
            own = []
            for part in residuals.parts(members):
                if not part.decided:
                    one = same[part.members]
                    if one.members not in place:
                        measured.append(plain_statement(one, plan))
                        place[one.members] = len(measured)
                    own.append(place[one.members])
            values.append(tuple(own))
        factor = abs(summand.signed.coefficient) * largest_weight(summand.residuals.query)
        return cls(factor, programs, tuple(values), work_at_each_distance(recursion, programs))
