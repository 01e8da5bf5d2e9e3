"""What a set of comparisons implies: the closure of difference bounds, exact on whole numbers."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

from sqlrs.catalog import ColumnType, Family, Value
from sqlrs.effort import spend
from sqlrs.query import Comparison, Constant, Term, Variable
from sqlrs.records import dataclass
from sqlrs.values import values_of

_EPOCH = datetime(1970, 1, 1)
# All constants whose order is known hang on this node by their distance from it.
_ORIGIN = "origin"
Node = Variable | Constant | str


@dataclass(frozen=True, order=True)
class Distance:
    """left − right ≤ limit, or < where ``open``; sorted from the tightest on."""

    limit: Fraction
    closed: bool

    def __add__(self, other: Distance) -> Distance:
        return Distance(self.limit + other.limit, self.closed and other.closed)


_ZERO = Distance(Fraction(0), True)


def position(value: Value) -> Fraction | None:
    """Where a value stands on the line of its type, or None where only the engine knows (text)."""
    match value:
        case bool():
            return None
        case int() | Decimal():
            return Fraction(value)
        case datetime():
            naive = value.replace(tzinfo=None)
            elapsed = naive - _EPOCH
            whole = elapsed.days * 86_400_000_000 + elapsed.seconds * 1_000_000
            return Fraction(whole + elapsed.microseconds)
        case date():
            return Fraction(value.toordinal())
    return None


class Closure:
    """The tightest bounds that follow from comparisons over one family of types."""

    def __init__(self, comparisons: Iterable[Comparison]) -> None:
        self._bounds: dict[tuple[Node, Node], Distance] = {}
        self._nodes: dict[Node, None] = {}
        for comparison in comparisons:
            self._add(comparison)
        for middle in self._nodes:
            before = [node for node in self._nodes if (node, middle) in self._bounds]
            after = [node for node in self._nodes if (middle, node) in self._bounds]
            spend(len(before) * len(after))
            for left in before:
                for right in after:
                    self._through(left, middle, right)

    @property
    def contradictory(self) -> bool:
        """Whether no values satisfy all comparisons."""
        return any(self._bounds.get((node, node), _ZERO) < _ZERO for node in self._nodes)

    def equalities(self) -> list[tuple[Variable, Term]]:
        """Variables that must equal another variable or a constant, each with what it equals."""
        found: list[tuple[Variable, Term]] = []
        variables = [node for node in self._nodes if isinstance(node, Variable)]
        for variable in variables:
            for other in self._nodes:
                term = self._equal(variable, other)
                if term is not None:
                    found.append((variable, term))
                    break
        return found

    def _equal(self, variable: Variable, other: Node) -> Term | None:
        above = self._bounds.get((variable, other))
        below = self._bounds.get((other, variable))
        if above is None or below is None or above + below != _ZERO:
            return None
        if other == _ORIGIN:
            value = _value(above.limit, variable.type)
            return None if value is None else Constant(value, variable.type)
        if above != _ZERO or isinstance(other, str):
            return None
        later = isinstance(other, Constant) or other < variable
        return other if later else None

    def _add(self, comparison: Comparison) -> None:
        left, left_at = _node(comparison.left)
        right, right_at = _node(comparison.right)
        limit = right_at - left_at
        closed = not comparison.strict
        if values_of(comparison.left.type).discrete and not closed:
            limit, closed = limit - 1, True
        self._nodes.update({left: None, right: None})
        self._tighten(left, right, Distance(limit, closed))

    def _through(self, left: Node, middle: Node, right: Node) -> None:
        first, second = self._bounds.get((left, middle)), self._bounds.get((middle, right))
        if first is not None and second is not None:
            self._tighten(left, right, first + second)

    def _tighten(self, left: Node, right: Node, bound: Distance) -> None:
        known = self._bounds.get((left, right))
        if known is None or bound < known:
            self._bounds[left, right] = bound


def _node(term: Term) -> tuple[Node, Fraction]:
    at = position(term.value) if isinstance(term, Constant) else None
    return (term, Fraction(0)) if at is None else (_ORIGIN, at)


def _value(at: Fraction, kind: ColumnType) -> Value | None:
    """The value that stands at a position; None for types whose values are not so simple."""
    if kind.family is Family.INTEGER:
        return int(at)
    if kind.family is Family.DATE:
        return date.fromordinal(int(at)) if 1 <= at <= date.max.toordinal() else None
    return None
