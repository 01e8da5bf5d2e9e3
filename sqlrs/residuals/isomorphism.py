"""Residuals that differ only in names have one value: an exact test that assumes no data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property

from sqlrs.effort import spend
from sqlrs.query import Comparison, Constant, General, Term, Variable
from sqlrs.residuals.residual import Members, Residual

# An atom, a variable, or a predicate other than an inequality.
_Node = int | Variable | tuple[str, int]
_Near = dict[_Node, Hashable]


@dataclass(frozen=True)
class _Graph:
    """A residual as a labelled graph: atoms, variables and predicates joined by labelled edges."""

    label: dict[_Node, Hashable]
    edges: dict[_Node, _Near]
    colours: dict[_Node, int]

    @cached_property
    def order(self) -> list[_Node]:
        """Rare colours first, then always a node beside the ones already placed."""
        sizes = Counter(self.colours.values())
        remaining = sorted(self.label, key=lambda node: sizes[self.colours[node]])
        order: dict[_Node, None] = {}
        for start in remaining:
            waiting = [start]
            while waiting:
                node = waiting.pop()
                if node not in order:
                    order[node] = None
                    waiting.extend(sorted(self.edges[node], key=lambda n: -sizes[self.colours[n]]))
        return list(order)


def representatives(residuals: Iterable[Residual]) -> dict[Members, Residual]:
    """For each residual the first isomorphic one, so that one evaluation serves all of them."""
    classes = Classes()
    return {residual.members: classes.first(residual) for residual in residuals}


class Classes:
    """The isomorphism classes of residuals of one query, as they come."""

    def __init__(self) -> None:
        self._buckets: dict[Hashable, list[tuple[Residual, _Graph]]] = {}
        self._atoms: dict[int, tuple[Hashable, int, _Near]] = {}
        self._variables: dict[Hashable, tuple[Hashable, int]] = {}

    def first(self, residual: Residual) -> Residual:
        """The first residual so far that is isomorphic to this one, which may be itself."""
        graph = self._graph(residual)
        signature = hash(tuple(sorted(graph.colours.values())))
        bucket = self._buckets.setdefault(signature, [])
        for candidate, other in bucket:
            if _match(other, graph):
                return candidate
        bucket.append((residual, graph))
        return residual

    def _atom(self, residual: Residual, i: int) -> tuple[Hashable, int, _Near]:
        """The label of an atom, its hash, and its variables with the columns that hold them."""
        if i not in self._atoms:
            atom = residual.query.atoms[i]
            constants = frozenset((c, t) for c, t in atom.terms if isinstance(t, Constant))
            label = ("atom", atom.table.identity, frozenset(atom.filters), constants)
            near: dict[_Node, tuple[str, ...]] = {}
            for column, term in sorted(atom.terms, key=lambda pair: pair[0]):
                if isinstance(term, Variable):
                    near[term] = (*near.get(term, ()), column)
            self._atoms[i] = label, hash(label), {**near}
        return self._atoms[i]

    def _variable(self, residual: Residual, variable: Variable) -> tuple[Hashable, int]:
        output = residual.output
        flags = (
            variable,
            variable in residual.boundary,
            output is not None and variable in output,
            variable in residual.external,
        )
        if flags not in self._variables:
            never_null = variable in residual.query.never_null
            label = ("variable", variable.type, *flags[1:], never_null)
            self._variables[flags] = label, hash(label)
        return self._variables[flags]

    def _graph(self, residual: Residual) -> _Graph:
        label: dict[_Node, Hashable] = {}
        colours: dict[_Node, int] = {}
        edges: dict[_Node, _Near] = {}
        for variable in residual.variables | residual.external:
            label[variable], colours[variable] = self._variable(residual, variable)
            edges[variable] = {}
        for i in residual.members:
            label[i], colours[i], edges[i] = self._atom(residual, i)
            for node, how in edges[i].items():
                edges[node][i] = how
        for inequality in residual.inequalities:
            edges[inequality.left][inequality.right] = "≠"
            edges[inequality.right][inequality.left] = "≠"
        others: tuple[Comparison | General, ...] = (*residual.comparisons, *residual.generals)
        for position, predicate in enumerate(others):
            node = ("predicate", position)
            label[node], places = _shape(predicate)
            colours[node] = hash(label[node])
            edges[node] = {variable: place for place, variable in places}
            for place, variable in places:
                edges[variable][node] = place
        return _Graph(label, edges, _refined(colours, edges))


def _shape(predicate: Comparison | General) -> tuple[Hashable, list[tuple[Hashable, Variable]]]:
    """A predicate without its variables, and the role that each variable plays in it."""
    if isinstance(predicate, Comparison):
        sides: list[tuple[Hashable, Term]] = [("low", predicate.left), ("high", predicate.right)]
        constants = tuple((s, t) for s, t in sides if isinstance(t, Constant))
        kind = ("<", predicate.strict, constants)
        return kind, [(s, t) for s, t in sides if isinstance(t, Variable)]
    return ("general", predicate.condition), list(enumerate(predicate.arguments))


def _refined(colours: dict[_Node, int], edges: dict[_Node, _Near]) -> dict[_Node, int]:
    """The nodes coloured by label and neighbourhood, until the colours are stable."""
    place = {node: i for i, node in enumerate(edges)}
    near = [[(hash(how), place[n]) for n, how in beside.items()] for beside in edges.values()]
    current = [colours[node] for node in edges]
    classes = len(set(current))
    while True:
        current = [
            hash((colour, sum([hash((how, current[n])) for how, n in beside])))
            for colour, beside in zip(current, near, strict=True)
        ]
        refined = len(set(current))
        if refined == classes:
            return dict(zip(edges, current, strict=True))
        classes = refined


def _match(one: _Graph, other: _Graph) -> bool:
    """Whether an isomorphism exists: colours guide the search, labels and edges are compared."""
    if len(one.label) != len(other.label):
        return False
    by_colour: dict[int, list[_Node]] = {}
    for node, colour in other.colours.items():
        by_colour.setdefault(colour, []).append(node)
    order = one.order
    image: dict[_Node, _Node] = {}
    used: set[_Node] = set()

    def fits(node: _Node, candidate: _Node) -> bool:
        if one.label[node] != other.label[candidate]:
            return False
        near, far = one.edges[node], other.edges[candidate]
        return len(near) == len(far) and all(
            far.get(image[n]) == how for n, how in near.items() if n in image
        )

    def extend(position: int) -> bool:
        spend()
        if position == len(order):
            return True
        node = order[position]
        for candidate in by_colour.get(one.colours[node], ()):
            if candidate not in used and fits(node, candidate):
                image[node] = candidate
                used.add(candidate)
                if extend(position + 1):
                    return True
                del image[node]
                used.discard(candidate)
        return False

    return extend(0)
