"""Colour refinement: variables told apart by what links them, whatever their names.

Atoms, leaves and conditions are links: a label without variables, and the variables in their roles.
Colours are hashes. Different colours are different variables; equal colours are a guess, so whoever
merges anything compares labels, which are exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlrs.query import Comparison, Constant, Inequality, Predicate, Variable

Colours = dict[Variable, int]


class Label:
    """Any value, equal where the values are, with its hash computed once."""

    __slots__ = ("_hash", "value")

    def __init__(self, value: Hashable) -> None:
        self.value = value
        self._hash = hash(value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Label) and self._hash == other._hash and self.value == other.value


class ColourLink(NamedTuple):
    """Variables in the roles that they play for one label; ``ordered`` if the roles differ."""

    label: Label
    roles: tuple[Variable, ...]
    ordered: bool = True

    def renamed(self, image: Mapping[Variable, Variable]) -> Hashable:
        """What the link says once variables have other names."""
        roles = [image.get(v, v) for v in self.roles]
        return self.label, tuple(roles) if self.ordered else frozenset(roles)


_APART = Label("≠")


def predicate_link(predicate: Predicate) -> ColourLink:
    """A predicate without its variables, and these."""
    if isinstance(predicate, Inequality):
        return ColourLink(_APART, (predicate.left, predicate.right), ordered=False)
    if isinstance(predicate, Comparison):
        sides = (predicate.left, predicate.right)
        constants = tuple(side if isinstance(side, Constant) else None for side in sides)
        compared = tuple(side for side in sides if isinstance(side, Variable))
        return ColourLink(Label(("<", predicate.strict, constants)), compared)
    return ColourLink(Label(("general", predicate.condition)), predicate.arguments)


def refined(colours: Mapping[Variable, int], links: Sequence[ColourLink]) -> Colours:
    """The variables coloured by their links and what these lead to, until nothing more changes."""
    place = {variable: i for i, variable in enumerate(colours)}
    near = [(hash(label), [place[v] for v in roles], order) for label, roles, order in links]
    current = list(colours.values())
    classes = len(set(current))
    while True:
        around = [0] * len(current)
        for label, roles, ordered in near:
            seen = [current[i] for i in roles]
            if ordered:
                link = hash((label, *seen))
                for role, i in enumerate(roles):
                    around[i] += hash((link, role))
            else:
                link = hash((label, *sorted(seen)))
                for i in roles:
                    around[i] += link
        current = [hash(pair) for pair in zip(current, around, strict=True)]
        before, classes = classes, len(set(current))
        if classes in (before, len(current)):
            return dict(zip(colours, current, strict=True))


def exchangeable(one: Variable, other: Variable, links: Iterable[ColourLink]) -> bool:
    """Whether the links say the same with two variables in each other's place: exact."""
    touched = [link for link in links if one in link.roles or other in link.roles]
    exchange = {one: other, other: one}
    before = Counter(link.renamed({}) for link in touched)
    return before == Counter(link.renamed(exchange) for link in touched)
