"""Residuals that differ only in names have one value: an exact test that assumes no data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property

from sqlrs.effort import spend
from sqlrs.query import Constant, Variable
from sqlrs.residuals.colours import Colours, Label, Link, predicate_link, refined
from sqlrs.residuals.residual import Members, Residual


def representatives(residuals: Iterable[Residual]) -> dict[Members, Residual]:
    """For each residual the first isomorphic one, so that one evaluation serves all of them."""
    classes = Classes()
    return {residual.members: classes.first(residual) for residual in residuals}


@dataclass(frozen=True)
class _Graph:
    """A residual without its names: labelled variables, the links between them, and colours."""

    labels: dict[Variable, Label]
    links: list[Link]
    colours: Colours

    @cached_property
    def signature(self) -> int:
        """The same for isomorphic residuals."""
        links = sorted([hash(link.label) for link in self.links])
        return hash((tuple(sorted(self.colours.values())), tuple(links)))

    @cached_property
    def said(self) -> Counter[Hashable]:
        """The links with their multiplicities."""
        return Counter(link.renamed({}) for link in self.links)

    @cached_property
    def by_colour(self) -> dict[int, list[Variable]]:
        """The variables of each colour."""
        found: dict[int, list[Variable]] = {}
        for variable, colour in self.colours.items():
            found.setdefault(colour, []).append(variable)
        return found

    @cached_property
    def order(self) -> list[tuple[Variable, list[Link]]]:
        """Rare colours first, then linked variables; with each the links that it completes."""
        rarity = {v: len(self.by_colour[colour]) for v, colour in self.colours.items()}
        near: dict[Variable, dict[Variable, None]] = {v: {} for v in self.labels}
        for link in self.links:
            for variable in link.roles:
                near[variable].update(dict.fromkeys(link.roles))
        placed: dict[Variable, int] = {}
        for start in sorted(self.labels, key=lambda v: rarity[v]):
            waiting = [start]
            while waiting:
                variable = waiting.pop()
                if variable not in placed:
                    placed[variable] = len(placed)
                    waiting.extend(sorted(near[variable], key=lambda v: -rarity[v]))
        completed: list[list[Link]] = [[] for _ in placed]
        for link in self.links:
            if link.roles:
                completed[max(placed[v] for v in link.roles)].append(link)
        return list(zip(placed, completed, strict=True))


class Classes:
    """The isomorphism classes of residuals of one query, as they come."""

    def __init__(self) -> None:
        self._buckets: dict[int, list[tuple[Residual, _Graph]]] = {}
        self._atoms: dict[int, Link] = {}
        self._variables: dict[Hashable, Label] = {}

    def first(self, residual: Residual) -> Residual:
        """The first residual so far that is isomorphic to this one, which may be itself."""
        graph = self._graph(residual)
        bucket = self._buckets.setdefault(graph.signature, [])
        for candidate, other in bucket:
            if _match(other, graph):
                return candidate
        bucket.append((residual, graph))
        return residual

    def _atom(self, residual: Residual, i: int) -> Link:
        """An atom without its variables, and these, by column."""
        if i not in self._atoms:
            atom = residual.query.atoms[i]
            terms = sorted(atom.terms, key=lambda pair: pair[0])
            held = [(column, term) for column, term in terms if isinstance(term, Variable)]
            label = (
                *("atom", atom.table.identity, frozenset(atom.filters)),
                frozenset((c, t) for c, t in terms if isinstance(t, Constant)),
                tuple(column for column, _ in held),
            )
            self._atoms[i] = Link(Label(label), tuple(variable for _, variable in held))
        return self._atoms[i]

    def _variable(self, residual: Residual, variable: Variable) -> Label:
        output = residual.output
        flags = (
            variable,
            variable in residual.boundary,
            output is not None and variable in output,
            variable in residual.external,
        )
        if flags not in self._variables:
            never_null = variable in residual.query.never_null
            self._variables[flags] = Label((variable.type, *flags[1:], never_null))
        return self._variables[flags]

    def _graph(self, residual: Residual) -> _Graph:
        variables = residual.variables | residual.external
        labels = {variable: self._variable(residual, variable) for variable in variables}
        links = [self._atom(residual, i) for i in residual.members]
        for kept in (residual.inequalities, residual.comparisons, residual.generals):
            links += [predicate_link(predicate) for predicate in kept]
        return _Graph(labels, links, refined({v: hash(x) for v, x in labels.items()}, links))


def _match(one: _Graph, other: _Graph) -> bool:
    """Whether an isomorphism exists: colours guide the search, labels and links are compared."""
    if len(one.labels) != len(other.labels) or len(one.links) != len(other.links):
        return False
    order = one.order
    image: dict[Variable, Variable] = {}
    used: set[Variable] = set()

    def extend(position: int) -> bool:
        spend()
        if position == len(order):
            return Counter(link.renamed(image) for link in one.links) == other.said
        variable, completed = order[position]
        for candidate in other.by_colour.get(one.colours[variable], ()):
            if candidate in used or one.labels[variable] != other.labels[candidate]:
                continue
            image[variable] = candidate
            used.add(candidate)
            if all(link.renamed(image) in other.said for link in completed) and extend(
                position + 1
            ):
                return True
            del image[variable]
            used.discard(candidate)
        return False

    return extend(0)
