"""A query's recursion as arrays of integers: what the database's own fold reads.

The form of the arrays is described where they are read: sql_templates/procedures/grow.sql and
ceiling.sql. Places count from 1; the answer's bound stands behind all coordinates.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from sqlrs.sensitivity.ceiling import Ceiling
from sqlrs.sensitivity.steps import Gain, Group, Move, Recursion

Program = tuple[int, ...]

_NO_PRODUCT = -1


@dataclass(frozen=True)
class Programs:
    """The steps of all private tables, where each starts, the bound L, and the ceilings."""

    steps: Program
    starts: Program
    answers: Program
    ceilings: Program
    degree: int

    @classmethod
    def of(cls, recursion: Recursion) -> Programs:
        """The programs of a query; nothing here depends on data."""
        size = len(recursion.coordinates)
        steps: list[int] = []
        starts = [1]
        for step in recursion.steps:
            steps += chain.from_iterable(map(_move, step.moves))
            starts.append(len(steps) + 1)
        gains = tuple(chain.from_iterable(recursion.answers))
        together: tuple[Group, ...] = (recursion.steps,) if recursion.steps else ((),)
        ceiling = Ceiling.of(recursion, together)
        rows = (*ceiling.rows[0], *ceiling.answers)
        return cls(
            steps=tuple(steps),
            starts=tuple(starts),
            answers=_move(Move(size, gains, None)),
            ceilings=tuple(chain.from_iterable(map(_gain, rows))),
            degree=ceiling.degrees()[0],
        )


def _move(move: Move) -> Program:
    product = (_NO_PRODUCT,) if move.factors is None else _listed(move.factors)
    gains = chain.from_iterable(map(_gain, move.gains))
    return (move.target + 1, len(move.gains), *gains, *product)


def _gain(gain: Gain) -> Program:
    return (gain.constant, *_listed(gain.terms))


def _listed(places: Iterable[int]) -> Program:
    counted = tuple(place + 1 for place in places)
    return (len(counted), *counted)
