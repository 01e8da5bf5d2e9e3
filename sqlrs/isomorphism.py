"""Residuals that differ only in names have one value: an exact test that assumes no data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from sqlrs.query import Comparison, Constant, Inequality, Predicate, Term, Variable
from sqlrs.residuals import Members, Residual

_Node = int | Variable | tuple[str, int]


@dataclass(frozen=True)
class _Graph:
    """A residual as a labelled graph: atoms, variables and predicates joined by labelled edges."""

    label: dict[_Node, Hashable]
    edges: dict[_Node, dict[_Node, tuple[Hashable, ...]]]


def representatives(residuals: Iterable[Residual]) -> dict[Members, Residual]:
    """For each residual the first isomorphic one, so that one evaluation serves all of them."""
    buckets: dict[Hashable, list[tuple[Residual, _Graph, dict[_Node, int]]]] = {}
    found: dict[Members, Residual] = {}
    for residual in residuals:
        graph = _graph(residual)
        colours = _refine(graph)
        signature = tuple(sorted(Counter(colours.values()).items()))
        bucket = buckets.setdefault(signature, [])
        for candidate, other, other_colours in bucket:
            if _match(graph, colours, other, other_colours):
                found[residual.members] = candidate
                break
        else:
            bucket.append((residual, graph, colours))
            found[residual.members] = residual
    return found


def _graph(residual: Residual) -> _Graph:
    label: dict[_Node, Hashable] = {}
    edges: dict[_Node, dict[_Node, tuple[Hashable, ...]]] = {}

    def connect(one: _Node, other: _Node, how: Hashable) -> None:
        for a, b in ((one, other), (other, one)):
            near = edges.setdefault(a, {})
            near[b] = (*near.get(b, ()), how)

    output = residual.output or frozenset()
    for variable in residual.variables | residual.external:
        label[variable] = (
            "variable",
            variable.type,
            variable in residual.boundary,
            variable in output,
            variable in residual.external,
            variable in residual.query.never_null,
        )
    for i in residual.members:
        atom = residual.query.atoms[i]
        constants = frozenset((c, t) for c, t in atom.terms if isinstance(t, Constant))
        label[i] = ("atom", atom.table.identity, frozenset(atom.filters), constants)
        for column, term in sorted(atom.terms, key=lambda pair: pair[0]):
            if isinstance(term, Variable):
                connect(i, term, column)
    for position, predicate in enumerate(residual.predicates):
        node = ("predicate", position)
        kind, places = _shape(predicate)
        label[node] = kind
        for place, variable in places:
            connect(node, variable, place)
    return _Graph(label, edges)


def _shape(predicate: Predicate) -> tuple[Hashable, list[tuple[Hashable, Variable]]]:
    """A predicate without its variables, and the role that each variable plays in it."""
    if isinstance(predicate, Inequality):
        return "≠", [("side", predicate.left), ("side", predicate.right)]
    if isinstance(predicate, Comparison):
        sides: list[tuple[Hashable, Term]] = [("low", predicate.left), ("high", predicate.right)]
        constants = tuple((s, t) for s, t in sides if isinstance(t, Constant))
        kind = ("<", predicate.strict, constants)
        return kind, [(s, t) for s, t in sides if isinstance(t, Variable)]
    return ("general", predicate.condition), list(enumerate(predicate.arguments))


def _refine(graph: _Graph) -> dict[_Node, int]:
    """Colour nodes by label and neighbourhood until the colours are stable."""
    colours = {node: hash(label) for node, label in graph.label.items()}
    classes = len(set(colours.values()))
    while True:
        colours = {
            node: hash(
                (
                    colour,
                    tuple(
                        sorted(
                            (hash(how), colours[near])
                            for near, how in graph.edges.get(node, {}).items()
                        )
                    ),
                )
            )
            for node, colour in colours.items()
        }
        refined = len(set(colours.values()))
        if refined == classes:
            return colours
        classes = refined


def _match(
    one: _Graph, colours: dict[_Node, int], other: _Graph, other_colours: dict[_Node, int]
) -> bool:
    """Whether an isomorphism exists: colours guide the search, labels and edges are compared."""
    sizes = Counter(colours.values())
    order = _search_order(one, colours, sizes)
    by_colour: dict[int, list[_Node]] = {}
    for node, colour in other_colours.items():
        by_colour.setdefault(colour, []).append(node)
    image: dict[_Node, _Node] = {}
    used: set[_Node] = set()

    def fits(node: _Node, candidate: _Node) -> bool:
        if candidate in used or one.label[node] != other.label[candidate]:
            return False
        near, far = one.edges.get(node, {}), other.edges.get(candidate, {})
        return len(near) == len(far) and all(
            far.get(image[n]) == how for n, how in near.items() if n in image
        )

    def extend(position: int) -> bool:
        if position == len(order):
            return True
        node = order[position]
        for candidate in by_colour.get(colours[node], ()):
            if fits(node, candidate):
                image[node] = candidate
                used.add(candidate)
                if extend(position + 1):
                    return True
                del image[node]
                used.discard(candidate)
        return False

    return len(one.label) == len(other.label) and extend(0)


def _search_order(graph: _Graph, colours: dict[_Node, int], sizes: Counter[int]) -> list[_Node]:
    """Rare colours first, then always a node beside the ones already placed."""
    remaining = sorted(graph.label, key=lambda node: (sizes[colours[node]], str(node)))
    order: list[_Node] = []
    beside: set[_Node] = set()
    while remaining:
        chosen = next((node for node in remaining if node in beside), remaining[0])
        remaining.remove(chosen)
        order.append(chosen)
        beside.update(graph.edges.get(chosen, {}))
    return order
