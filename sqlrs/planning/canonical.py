"""A problem's form without its names: equal forms mean one result serves both problems.

The converse may fail for very symmetric problems, where the search for the least form is cut short:
then work is done twice, and nothing is wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from sqlrs.planning.leaves import Leaf
from sqlrs.planning.problem import Above, Condition, Renamed
from sqlrs.query import Comparison, Constant, General, Inequality, Variable

_MOST_TRIALS = 48

_Form = tuple[Hashable, ...]
# A label, its hash, the variables that it links, and whether their order matters.
_Link = tuple[Hashable, int, tuple[Variable, ...], bool]


@dataclass(frozen=True)
class Canonical:
    """The form, and the variables in the order in which the form numbers them."""

    form: _Form
    order: tuple[Variable, ...]


def canonical(
    leaves: Sequence[Leaf],
    conditions: Sequence[Condition],
    marks: dict[Variable, Hashable],
    kind: Hashable = None,
) -> Canonical:
    """The form of leaves and conditions. ``marks`` tell variables apart, e.g. by being free."""
    variables = sorted(frozenset[Variable]().union(*(leaf.variables for leaf in leaves)))
    links: list[_Link] = []
    for leaf in leaves:
        links.append((leaf.label, leaf.label_hash, tuple(v for _, v in leaf.columns), True))
    for condition in conditions:
        label, roles, ordered = _shape(condition)
        links.append((label, hash(label), roles, ordered))
    start = {v: hash(marks.get(v)) for v in variables}
    best: list[tuple[tuple[object, ...], _Form, tuple[Variable, ...]]] = []
    trials = 0

    def form_of(order: tuple[Variable, ...]) -> None:
        number = {v: i for i, v in enumerate(order)}
        rows = []
        for label, label_hash, roles, ordered in links:
            places = tuple(number[v] for v in roles)
            places = places if ordered else tuple(sorted(places))
            rows.append((label_hash, places, label))
        rows.sort(key=lambda row: row[:2])
        key = tuple(row[:2] for row in rows)
        if not best or key < best[0][0]:
            form = (kind, tuple(marks.get(v) for v in order), *((p, x) for _, p, x in rows))
            best[:] = [(key, form, order)]

    def explore(colours: dict[Variable, int]) -> None:
        nonlocal trials
        colours = _refined(colours, links)
        classes: dict[int, list[Variable]] = {}
        for variable in variables:
            classes.setdefault(colours[variable], []).append(variable)
        tied = [c for c in sorted(classes) if len(classes[c]) > 1]
        if not tied:
            form_of(tuple(sorted(variables, key=lambda v: colours[v])))
            trials += 1
            return
        for variable in _up_to_exchange(classes[tied[0]], links):
            if trials >= _MOST_TRIALS:
                return
            explore({**colours, variable: hash((colours[variable], "first"))})

    explore(start)
    _, form, order = best[0]
    return Canonical(form, order)


def _up_to_exchange(tied: Sequence[Variable], links: Sequence[_Link]) -> list[Variable]:
    """One of all variables that can be exchanged with each other: the same forms follow."""
    if len(tied) < 3:
        return list(tied)
    found: list[Variable] = []
    whole = _exchanged(links, {})
    for variable in tied:
        if not any(_exchanged(links, {variable: o, o: variable}) == whole for o in found):
            found.append(variable)
    return found


def _exchanged(links: Sequence[_Link], image: Mapping[Variable, Variable]) -> Counter[Hashable]:
    """The links with two variables in each other's place."""
    counts: Counter[Hashable] = Counter()
    for _, label_hash, roles, ordered in links:
        there = [image.get(v, v) for v in roles]
        counts[label_hash, tuple(there) if ordered else frozenset(there)] += 1
    return counts


def _refined(
    colours: dict[Variable, int],
    links: Sequence[_Link],
) -> dict[Variable, int]:
    classes = len(set(colours.values()))
    while classes < len(colours):
        near: dict[Variable, list[int]] = {v: [] for v in colours}
        for _, label_hash, roles, ordered in links:
            seen = tuple(colours[v] for v in roles)
            seen = seen if ordered else tuple(sorted(seen))
            for place, variable in enumerate(roles):
                near[variable].append(hash((label_hash, place if ordered else 0, seen)))
        colours = {v: hash((c, tuple(sorted(near[v])))) for v, c in colours.items()}
        refined = len(set(colours.values()))
        if refined == classes:
            break
        classes = refined
    return colours


def _shape(condition: Condition) -> tuple[Hashable, tuple[Variable, ...], bool]:
    """The condition without its variables, its variables, and whether their order matters."""
    if isinstance(condition, Comparison):
        sides = (condition.left, condition.right)
        constants = tuple(t if isinstance(t, Constant) else None for t in sides)
        return (
            ("<", condition.strict, constants),
            tuple(t for t in sides if isinstance(t, Variable)),
            True,
        )
    if isinstance(condition, Renamed):
        label, roles, _ = _shape(condition.predicate)
        image = dict(condition.image)
        return label, tuple(image[v] for v in roles), True
    if isinstance(condition, General):
        return ("general", condition.condition), condition.arguments, True
    if isinstance(condition, Above):
        return "above", (condition.left, condition.right), True
    kind = "≠" if isinstance(condition, Inequality) else "="
    return kind, (condition.left, condition.right), False
