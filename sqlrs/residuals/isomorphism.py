"""Residuals that differ only in names have one value: an exact test that assumes no data."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import cached_property

from sqlrs.effort import spend
from sqlrs.query import Constant, Variable
from sqlrs.records import dataclass
from sqlrs.residuals.colours import ColourLink, Colours, Label, predicate_link, refined
from sqlrs.residuals.residual import Members, Residual


def representatives(
    residuals: Iterable[Residual], fixed: Iterable[Variable] = ()
) -> dict[Members, Residual]:
    """For each residual the first isomorphic one, so that one evaluation serves all of them.

    Variables that are ``fixed`` stand for themselves: for each of their values the two are equal.
    """
    classes = Classes(frozenset(fixed))
    return {residual.members: classes.first(residual) for residual in residuals}


def isomorphic(one: Residual, other: Residual) -> bool:
    """Whether two residuals, also of different queries, differ in names alone."""
    return _match(Classes().graph(one), Classes().graph(other))


@dataclass(frozen=True)
class _Graph:
    """A residual without its names: labelled variables, the links between them, and colours.

    ``pairs`` are the inequalities, whose order does not matter.
    """

    labels: dict[Variable, Label]
    links: list[ColourLink]
    pairs: frozenset[frozenset[Variable]]
    colours: Colours

    @cached_property
    def signature(self) -> int:
        """The same for isomorphic residuals."""
        links = sorted([hash(link.label) for link in self.links])
        return hash((tuple(sorted(self.colours.values())), tuple(links)))

    @cached_property
    def kinds(self) -> dict[Hashable, list[int]]:
        """The places of the links that have one label and one colour in each role."""
        found: dict[Hashable, list[int]] = {}
        for place, link in enumerate(self.links):
            found.setdefault(self.kind(link), []).append(place)
        return found

    def kind(self, link: ColourLink) -> Hashable:
        """All that a link and its image have in common."""
        return link.label, tuple([self.colours[v] for v in link.roles])

    @cached_property
    def order(self) -> list[tuple[ColourLink, list[frozenset[Variable]]]]:
        """Rare links first, then those beside them; with each the pairs that it completes."""
        left = sorted(self.links, key=lambda link: len(self.kinds[self.kind(link)]))
        known: set[Variable] = set()
        open_pairs = list(self.pairs)
        order = []
        while left:
            beside = (i for i, link in enumerate(left) if not known.isdisjoint(link.roles))
            link = left.pop(next(beside, 0))
            known.update(link.roles)
            order.append((link, [pair for pair in open_pairs if pair <= known]))
            open_pairs = [pair for pair in open_pairs if not pair <= known]
        return order


class Classes:
    """The isomorphism classes of residuals of one query, as they come."""

    def __init__(self, fixed: frozenset[Variable] = frozenset()) -> None:
        self._fixed = fixed
        self._buckets: dict[int, list[tuple[Residual, _Graph]]] = {}
        self._atoms: dict[int, ColourLink] = {}
        self._variables: dict[Hashable, Label] = {}

    def first(self, residual: Residual) -> Residual:
        """The first residual so far that is isomorphic to this one, which may be itself."""
        graph = self.graph(residual)
        bucket = self._buckets.setdefault(graph.signature, [])
        for candidate, other in bucket:
            if _match(other, graph):
                return candidate
        bucket.append((residual, graph))
        return residual

    def _atom(self, residual: Residual, i: int) -> ColourLink:
        """An atom without its variables, and these, by column."""
        if i not in self._atoms:
            atom = residual.query.atoms[i]
            terms = sorted(atom.terms, key=lambda pair: pair[0])
            held = [(column, term) for column, term in terms if isinstance(term, Variable)]
            # In another query the name of a computed column may mean something else.
            computed = (c for c in atom.table.columns if c.computed is not None)
            label = (
                *("atom", atom.table.identity, frozenset(atom.filters), atom.weight),
                frozenset(c for c in computed if c.name in atom.reads),
                frozenset((c, t) for c, t in terms if isinstance(t, Constant)),
                tuple(column for column, _ in held),
            )
            self._atoms[i] = ColourLink(Label(label), tuple(variable for _, variable in held))
        return self._atoms[i]

    def _variable(self, residual: Residual, variable: Variable) -> Label:
        output = residual.output
        flags = (
            variable,
            variable in residual.boundary,
            output is not None and variable in output,
            variable in residual.external,
            variable if variable in self._fixed else None,
        )
        if flags not in self._variables:
            never_null = variable in residual.query.never_null
            self._variables[flags] = Label((variable.type, *flags[1:], never_null))
        return self._variables[flags]

    def graph(self, residual: Residual) -> _Graph:
        """A residual without its names."""
        variables = residual.variables | residual.external
        labels = {variable: self._variable(residual, variable) for variable in variables}
        links = [self._atom(residual, i) for i in residual.members]
        for kept in (residual.comparisons, residual.generals):
            links += [predicate_link(predicate) for predicate in kept]
        pairs = frozenset(predicate.variables for predicate in residual.inequalities)
        apart = [predicate_link(predicate) for predicate in residual.inequalities]
        colours = refined({v: hash(label) for v, label in labels.items()}, [*links, *apart])
        return _Graph(labels, links, pairs, colours)


def _match(one: _Graph, other: _Graph) -> bool:
    """Whether an isomorphism exists: colours guide the search, labels and links are compared."""
    sizes = [(len(g.labels), len(g.links), len(g.pairs)) for g in (one, other)]
    return sizes[0] == sizes[1] and _Matching(one, other).extend(0)


class _Matching:
    """The links of one graph laid on those of another one by one, each on one of its own."""

    def __init__(self, one: _Graph, other: _Graph) -> None:
        self.one = one
        self.other = other
        self._image: dict[Variable, Variable] = {}
        self._taken: set[Variable] = set()
        self._used: set[int] = set()

    def extend(self, position: int) -> bool:
        """Whether the links from this position on can be laid on links that are left."""
        spend()
        if position == len(self.one.order):
            return len(self._image) == len(self.one.labels)
        link, pairs = self.one.order[position]
        for place in self.other.kinds.get(self.one.kind(link), ()):
            if place in self._used:
                continue
            laid = self._lay(link.roles, self.other.links[place].roles)
            if laid is not None:
                self._used.add(place)
                if self._all_there(pairs) and self.extend(position + 1):
                    return True
                self._used.discard(place)
                self._lift(laid)
        return False

    def _lay(
        self, roles: tuple[Variable, ...], images: tuple[Variable, ...]
    ) -> list[Variable] | None:
        """The variables that have an image from now on, None where that cannot be."""
        laid: list[Variable] = []
        for variable, image in zip(roles, images, strict=True):
            known = self._image.get(variable)
            same = self.one.labels[variable] == self.other.labels[image]
            if known is None and same and image not in self._taken:
                self._image[variable] = image
                self._taken.add(image)
                laid.append(variable)
            elif known != image:
                self._lift(laid)
                return None
        return laid

    def _lift(self, laid: list[Variable]) -> None:
        for variable in laid:
            self._taken.discard(self._image.pop(variable))

    def _all_there(self, pairs: list[frozenset[Variable]]) -> bool:
        return all(frozenset([self._image[v] for v in pair]) in self.other.pairs for pair in pairs)
