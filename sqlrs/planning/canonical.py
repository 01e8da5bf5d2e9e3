"""A problem's form without its names: equal forms mean one result serves both problems.

The converse may fail for very symmetric problems, where the search for the least form is cut short:
then work is done twice, and nothing is wrong.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from sqlrs.planning.leaves import Leaf
from sqlrs.planning.problem import Above, Condition, Equal, Problem, Renamed
from sqlrs.query import Variable
from sqlrs.records import dataclass
from sqlrs.residuals.colours import ColourLink, Label, exchangeable, predicate_link, refined

_MOST_TRIALS = 48

_Form = tuple[Hashable, ...]
_EQUAL, _ABOVE = Label("="), Label("above")


@dataclass(frozen=True)
class Canonical:
    """The form, and the variables in the order in which the form numbers them."""

    form: _Form
    order: tuple[Variable, ...]


def canonical(
    leaves: Sequence[Leaf],
    conditions: Iterable[Condition],
    marks: Mapping[Variable, Hashable],
    kind: Hashable = None,
) -> Canonical:
    """The form of leaves and conditions. ``marks`` tell variables apart, e.g. by being free."""
    search = _LeastForm(links_of(leaves, conditions), marks, kind)
    variables = sorted(frozenset[Variable]().union(*(leaf.variables for leaf in leaves)))
    search.explore({v: hash(marks.get(v)) for v in variables})
    return Canonical(search.form, search.order)


def links_of(leaves: Iterable[Leaf], conditions: Iterable[Condition]) -> list[ColourLink]:
    """All that a problem says about its variables."""
    return [*(leaf.link for leaf in leaves), *map(_condition_link, conditions)]


def twins(problem: Problem) -> dict[Variable, int]:
    """Numbers that variables which are not free share if exchanging any two changes nothing.

    Signs are added for their sake: docs/proofs/plans.md, section 4.
    """
    links = links_of(problem.leaves, problem.conditions)
    same: list[list[Variable]] = []
    for variable in problem.variables:
        for group in same:
            bound = problem.free.isdisjoint((variable, group[0]))
            if bound and exchangeable(variable, group[0], links):
                group.append(variable)
                break
        else:
            same.append([variable])
    return {variable: number for number, group in enumerate(same) for variable in group}


class _LeastForm:
    """Depth first over the orders of variables that colours leave open, for the least form."""

    def __init__(
        self, links: Sequence[ColourLink], marks: Mapping[Variable, Hashable], kind: Hashable
    ) -> None:
        self.links = links
        self.marks = marks
        self.kind = kind
        self.trials = 0
        self.form: _Form = ()
        self.order: tuple[Variable, ...] = ()
        self._least: tuple[tuple[int, tuple[int, ...]], ...] | None = None

    def explore(self, colours: Mapping[Variable, int]) -> None:
        """Try the orders that agree with the colours, as long as there are trials left."""
        if len(set(colours.values())) < len(colours):
            colours = refined(colours, self.links)
        tied = _first_tied(colours)
        if not tied:
            self.trials += 1
            self._try(tuple(sorted(colours, key=lambda v: colours[v])))
            return
        for variable in self._up_to_exchange(tied):
            if self.trials >= _MOST_TRIALS:
                return
            self.explore({**colours, variable: hash((colours[variable], "first"))})

    def _up_to_exchange(self, tied: Sequence[Variable]) -> list[Variable]:
        """One of all variables that can be exchanged with each other: the same forms follow."""
        if len(tied) < 3:
            return list(tied)
        found: list[Variable] = []
        for variable in tied:
            if not any(exchangeable(variable, other, self.links) for other in found):
                found.append(variable)
        return found

    def _try(self, order: tuple[Variable, ...]) -> None:
        """Take the form with the variables in this order if it is the least so far."""
        number = {v: i for i, v in enumerate(order)}
        rows = []
        for label, roles, ordered in self.links:
            places = tuple([number[v] for v in roles])
            rows.append((hash(label), places if ordered else tuple(sorted(places)), label))
        rows.sort(key=lambda row: row[:2])
        key = tuple([row[:2] for row in rows])
        if self._least is None or key < self._least:
            self._least = key
            self.order = order
            said = ((places, label) for _, places, label in rows)
            self.form = (self.kind, tuple(self.marks.get(v) for v in order), *said)


def _first_tied(colours: Mapping[Variable, int]) -> list[Variable]:
    """The variables of the first colour that several have, none if there is no such colour."""
    classes: dict[int, list[Variable]] = {}
    for variable, colour in colours.items():
        classes.setdefault(colour, []).append(variable)
    tied = [colour for colour, members in classes.items() if len(members) > 1]
    return classes[min(tied)] if tied else []


def _condition_link(condition: Condition) -> ColourLink:
    """The condition without its variables, and these."""
    if isinstance(condition, Renamed):
        label, roles, _ = predicate_link(condition.predicate)
        image = dict(condition.image)
        return ColourLink(label, tuple(image[v] for v in roles))
    if isinstance(condition, Above):
        return ColourLink(_ABOVE, (condition.left, condition.right))
    if isinstance(condition, Equal):
        return ColourLink(_EQUAL, (condition.left, condition.right), ordered=False)
    return predicate_link(condition)
