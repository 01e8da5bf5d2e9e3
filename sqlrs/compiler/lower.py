"""Tables and conditions -> conjunctive query, or a refusal that marks what cannot be one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from sqlrs.catalog import Family
from sqlrs.compiler.conditions import Reference, as_column, reference
from sqlrs.compiler.flat import FlatQuery, Occurrence
from sqlrs.compiler.growth_of_text import check_growth
from sqlrs.compiler.literals import is_literal
from sqlrs.compiler.placing import Placement
from sqlrs.compiler.sorting import sort_conditions
from sqlrs.query import Atom, Query, Variable, Weight

# Up to a thousand residuals look at all of them; a comparison costs most.
MAX_INEQUALITIES = 100
MAX_COMPARISONS = 40


def lower(flat: FlatQuery, weights: Mapping[str, Weight] | None = None) -> Query:
    """The conjunctive query that the tables and conditions are; keys are columns, and output too.

    One that can never be true keeps a filter FALSE, which sqlrs.compiler.simplify recognises.
    ``weights``: those of the occurrences that have one.
    """
    refuse_opaque(flat)
    check_growth(flat.conditions, flat.source)
    placed = Placement(flat, sort_conditions(flat))
    distinct = _output(flat, placed)
    _refuse_too_many("<> between tables", len(placed.inequalities), MAX_INEQUALITIES, flat)
    others = len(placed.comparisons) + len(placed.generals)
    _refuse_too_many("other conditions on several tables", others, MAX_COMPARISONS, flat)
    return Query(
        tuple(_atom(one, placed, (weights or {}).get(one.alias)) for one in flat.occurrences),
        frozenset(placed.inequalities),
        frozenset(placed.comparisons),
        tuple(placed.generals),
        distinct,
    )


def refuse_opaque(flat: FlatQuery) -> None:
    """Refuse columns whose equality, or whose NULLs, are not those of values."""
    types = {
        (occurrence.alias, column.name): column.type
        for occurrence in flat.occurrences
        for column in occurrence.table.columns
        if column.type.family is Family.OPAQUE
    }
    weight = () if flat.weight is None else (flat.weight,)
    read = (*flat.conditions, *(flat.distinct or ()), *flat.keys, *weight)
    for condition in read if types else ():
        for column in condition.find_all(exp.Column):
            if reference(column) in types:
                name = types[reference(column)].name
                raise flat.source.refusal(
                    "type_mismatch",
                    column,
                    f"values of type {name} have no plain equality",
                    "the owner can store what matters of it in columns of plain types",
                )


def _refuse_too_many(kind: str, number: int, most: int, flat: FlatQuery) -> None:
    if number > most:
        message = f"the query has {number} {kind}; at most {most} are supported"
        raise flat.source.refusal("too_complex", message=message)


def _output(flat: FlatQuery, placed: Placement) -> frozenset[Variable] | None:
    """The output variables. Semi-joins count each row of the outer tables once: by their keys."""
    keys = [reference(column) for column in flat.keys if isinstance(column, exp.Column)]
    placed.used.update(keys)
    if flat.distinct is not None:
        places = (_output_column(value, flat) for value in flat.distinct)
        return _variables((*(place for place in places if place is not None), *keys), placed)
    if all(occurrence.outer for occurrence in flat.occurrences):
        return None
    outer = [occurrence for occurrence in flat.occurrences if occurrence.outer]
    own = [(o.alias, column) for o in outer for column in _key(o, flat)]
    return _variables((*own, *keys), placed)


def _output_column(value: exp.Expr, flat: FlatQuery) -> Reference | None:
    column = as_column(value)
    if column is not None:
        return reference(column)
    if is_literal(value):
        return None
    raise flat.source.refusal("distinct_expression", value)


def _key(occurrence: Occurrence, flat: FlatQuery) -> frozenset[str]:
    if not occurrence.table.keys:
        raise flat.source.refusal(
            "semi_join_needs_key",
            occurrence.place,
            f"EXISTS and IN (SELECT …) need a key of table {occurrence.table.label}",
        )
    return min(occurrence.table.keys, key=lambda key: (len(key), sorted(key)))


def _variables(places: Iterable[Reference], placed: Placement) -> frozenset[Variable]:
    known = tuple(places)
    placed.used.update(known)
    return frozenset(t for t in (placed.terms[place] for place in known) if isinstance(t, Variable))


def _atom(occurrence: Occurrence, placed: Placement, weight: Weight | None) -> Atom:
    alias, table = occurrence.alias, occurrence.table
    leaders = {placed.equal.leader(place) for place in placed.used}
    keys = frozenset[str]().union(*table.keys)
    terms = tuple(
        (column.name, placed.terms[alias, column.name])
        for column in table.columns
        if column.name in keys
        or placed.equal.leader((alias, column.name)) in leaders
        or len(placed.equal.members((alias, column.name))) > 1
    )
    return Atom(alias, table, terms, placed.filters_of(alias), weight)
