"""The positions that an equality pattern is about: columns of the new row, known values, constants.

Docs and proofs call the known values and the constants tokens: docs/proofs/feasible_roles.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import NamedTuple

from sqlrs.query import Atom, Comparison, Constant, Term, Variable
from sqlrs.sensitivity.equal_constants import meaning, surely_below, surely_different
from sqlrs.sensitivity.equality_patterns import Pattern


class Slot(NamedTuple):
    """A column of an atom: t's column, and the position of its value or else its variable."""

    own: int
    known: int | None
    variable: int


class Positions:
    """The columns first, then the tokens; variables without a token have numbers of their own."""

    def __init__(
        self,
        atoms: Iterable[Atom],
        comparisons: Iterable[Comparison],
        known: frozenset[Variable],
    ) -> None:
        terms = [pair for atom in atoms for pair in atom.terms]
        self.columns: dict[str, int] = {}
        for column, _ in terms:
            self.columns.setdefault(column, len(self.columns))
        self.tokens: dict[object, int] = {}
        self.constants: dict[int, Constant] = {}
        for _, term in terms:
            self._add_token(term, known)
        for term in (side for c in comparisons for side in (c.left, c.right)):
            self._add_token(term, known)
        self._numbers: dict[Variable, int] = {}

    @property
    def width(self) -> int:
        """How many positions there are."""
        return len(self.columns) + len(self.tokens)

    @property
    def unmerged(self) -> Pattern:
        """The pattern in which no two positions are equal."""
        return tuple(1 << column for column in range(len(self.columns)))

    def of(self, term: Term) -> int | None:
        """The position of a token, None for a variable that has none."""
        return self.tokens.get(_identity(term))

    def number(self, variable: Variable) -> int | None:
        """The number of a variable without a token, None if no slot holds it."""
        return self._numbers.get(variable)

    def slot(self, column: str, term: Term) -> Slot:
        """A column of an atom."""
        return self.placed(term, self.columns[column])

    def placed(self, term: Term, own: int = -1) -> Slot:
        """Where a term has its value; without a column of t, as far as it is known."""
        known = self.of(term)
        if known is not None:
            return Slot(own, known, -1)
        assert isinstance(term, Variable)
        return Slot(own, None, self._numbers.setdefault(term, len(self._numbers)))

    def different_constants(self) -> list[tuple[int, int]]:
        """The positions of constants that no pattern may make equal."""
        return [
            (one, other)
            for (one, a), (other, b) in combinations(self.constants.items(), 2)
            if surely_different(a, b)
        ]

    def ordered_constants(self) -> Iterator[tuple[int, int, bool]]:
        """The positions of constants of which the first is surely below the second."""
        for (one, a), (other, b) in combinations(self.constants.items(), 2):
            if surely_below(a, b):
                yield one, other, True
            elif surely_below(b, a):
                yield other, one, True

    def _add_token(self, term: Term, known: frozenset[Variable]) -> None:
        identity = _identity(term)
        if identity in self.tokens or (isinstance(term, Variable) and term not in known):
            return
        position = self.width
        self.tokens[identity] = position
        if isinstance(term, Constant):
            self.constants[position] = term


def _identity(term: Term) -> object:
    """What makes two tokens one."""
    return term if isinstance(term, Variable) else meaning(term)
