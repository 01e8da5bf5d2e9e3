"""A query's recursion as arrays of integers: what the database's own fold reads.

The form of the arrays is described where they are read: sql_templates/procedures/grow.sql,
horizon.sql and coefficients.sql. Places count from 1; the answer's bound comes last.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from sqlrs.records import dataclass
from sqlrs.sensitivity.ceiling import Ceiling
from sqlrs.sensitivity.recursion import Gain, Move, Recursion

Program = tuple[int, ...]

_NO_PRODUCT = -1


@dataclass(frozen=True)
class Programs:
    """The steps of all private tables, where each starts, the bound L, and the ceiling above it.

    The ceiling is a sum of monomials for each answer; its coefficients are linear in the values.
    """

    steps: Program
    starts: Program
    answers: Program
    monomials: Program
    ceilings: Program
    degrees: Program

    @classmethod
    def of(cls, recursion: Recursion) -> Programs:
        """The programs of a query; nothing here depends on data."""
        size = len(recursion.coordinates)
        steps: list[int] = []
        starts = [1]
        for step in recursion.steps:
            steps += chain.from_iterable(map(_move, step.moves))
            starts.append(len(steps) + 1)
        ceiling = Ceiling.of(recursion, tuple((step,) for step in recursion.steps))
        monomials, ceilings = _linear(ceiling, size) if recursion.steps else ((), ())
        return cls(
            steps=tuple(steps),
            starts=tuple(starts),
            answers=last_program(recursion),
            monomials=monomials,
            ceilings=ceilings,
            degrees=ceiling.degrees(),
        )


def last_program(recursion: Recursion) -> Program:
    """The bound L as a move whose target stands behind all values."""
    size = len(recursion.coordinates)
    return _move(Move(size, tuple(chain.from_iterable(recursion.answers)), None))


def _linear(ceiling: Ceiling, size: int) -> tuple[Program, Program]:
    """Each monomial of each answer, and its coefficient as a constant and multiples of values."""
    constants = ceiling.polynomials((0,) * size)
    units = [
        ceiling.polynomials(tuple(int(place == other) for other in range(size)))
        for place in range(size)
    ]
    monomials: list[int] = []
    coefficients: list[int] = []
    for answer, constant in enumerate(constants):
        for powers in sorted({p for unit in units for p in unit[answer]} | set(constant)):
            base = constant.get(powers, 0)
            terms = [
                (place + 1, unit[answer].get(powers, 0) - base)
                for place, unit in enumerate(units)
                if unit[answer].get(powers, 0) != base
            ]
            monomials += (answer + 1, *powers)
            coefficients += (base, len(terms), *chain.from_iterable(terms))
    return tuple(monomials), tuple(coefficients)


def _move(move: Move) -> Program:
    product = (_NO_PRODUCT,) if move.factors is None else _listed(move.factors)
    gains = chain.from_iterable(map(_gain, move.gains))
    return (move.target + 1, len(move.gains), *gains, *product)


def _gain(gain: Gain) -> Program:
    return (gain.constant, *_listed(gain.terms))


def _listed(places: Iterable[int]) -> Program:
    counted = tuple(place + 1 for place in places)
    return (len(counted), *counted)
