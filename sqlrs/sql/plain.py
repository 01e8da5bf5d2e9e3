"""Residual -> sqlglot tree, in the plain form: join, GROUP BY the boundary, MAX of the counts.

The tree is written in no dialect: the last call, ``tree.sql(dialect=...)``, chooses one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from sqlrs.catalog import Table
from sqlrs.query import Atom, Constant, Variable
from sqlrs.residuals.residual import Members, Residual
from sqlrs.sql.side_by_side import SideBySide
from sqlrs.trees.build import (
    connected_order,
    filtered_by,
    inner,
    joined_with,
    named,
    number,
    rows_of,
    select_from,
)
from sqlrs.trees.constants import literal
from sqlrs.trees.identifiers import again, column
from sqlrs.trees.naming import RESULTS
from sqlrs.trees.predicates import Places, filter_condition, predicate_condition
from sqlrs.trees.totals import row_weights, summand, summed, whole


def plain(residual: Residual) -> exp.Select:
    """T_E by its definition, as one statement that yields one integer (0 for an empty join).

    The residual must have no external variable: those need a domain to range over.
    """
    if residual.external:
        raise ValueError("the plain form cannot range over external variables")
    rows = _rows_by_boundary(residual)
    return largest(rows, "per_boundary_value") if residual.boundary else rows


def plain_numbered(residual: Residual) -> exp.Select:
    """The same of a residual with a boundary, and how many values of the boundary have results."""
    found = largest(_rows_by_boundary(residual), "per_boundary_value")
    return found.select(exp.Count(this=exp.Star()), copy=False)


def _rows_by_boundary(residual: Residual) -> exp.Select:
    joined, places = join_of(residual)
    boundary = sorted(residual.boundary)
    return grouped_count(joined, places, boundary, residual.output, weights_in(residual))


def plain_among(residual: Residual, among: Mapping[Variable, exp.Select]) -> exp.Select:
    """The same for the values of the boundary whose parts are each among those given.

    All rows of such a value are read, so that its count is exact.
    """
    joined, places = join_of(residual, among=among)
    boundary = sorted(residual.boundary)
    rows = grouped_count(joined, places, boundary, residual.output, weights_in(residual))
    return largest_of(rows)


def largest_of(rows: exp.Select) -> exp.Select:
    """The largest ``results`` of ``rows``; 0 if there are none."""
    counted = "per_boundary_value"
    value = exp.Coalesce(this=exp.Max(this=column(RESULTS, counted)), expressions=[number(0)])
    return select_from(inner(rows, counted), named(value, RESULTS))


def largest_side_by_side(residual: Residual, sides: SideBySide) -> exp.Select:
    """T_E of each of several queries, as one row; ``residual`` is of what they have in common.

    It has a boundary and no external variable.
    """
    joined, places = join_of(residual, sides.columns)
    tables = {atom.alias: atom.table for atom in residual.atoms}
    names = [f"{RESULTS}_{place}" for place, _ in enumerate(sides.weights)]
    sides_of = [factors_of(weights, tables) for weights in sides.weights]
    totals = [
        named(exp.Sum(this=summand(own)) if own else summed(own), name)
        for name, own in zip(names, sides_of, strict=True)
    ]
    joined.set("expressions", totals)
    boundary = [again(places[v]) for v in sorted(residual.boundary)]
    joined.set("group", exp.Group(expressions=boundary))
    rows = "per_boundary_value"
    largest = (
        named(
            exp.Coalesce(
                this=whole(own, exp.Max(this=column(name, rows))), expressions=[number(0)]
            ),
            name,
        )
        for name, own in zip(names, sides_of, strict=True)
    )
    return select_from(inner(joined, rows), *largest)


def factors_of(
    weights: Iterable[tuple[str, str]], tables: Mapping[str, Table]
) -> list[exp.Expression]:
    """The weights of a row by alias and column, those of the ``tables`` that are there."""
    return [
        weight
        for alias, name in weights
        if alias in tables
        for weight in row_weights([name], tables[alias], alias)
    ]


def join_of(
    residual: Residual,
    further: Callable[[str], Iterable[str]] = lambda alias: (),
    among: Mapping[Variable, exp.Select] | None = None,
    first: Callable[[exp.Select], exp.Select] = lambda select: select,
) -> tuple[exp.Select, Places]:
    """FROM, JOIN and WHERE of the residual, and the column that stands for each variable.

    ``further``: columns that are read of the atom of an alias beside its own.
    ``among``: variables whose values are some alone, in every atom that holds them; ``first`` keeps
    an engine from joining before it picks these rows.
    """

    def rows(atom: Atom) -> exp.Expression:
        return _rows(atom, further, among, first)

    begin, *rest = connected_order(residual.atoms)
    places, within = _own_places(begin)
    select = exp.Select(from_=exp.From(this=rows(begin)))
    joined_here = {v for v, _ in within}
    where = [*(equal for _, equal in within), *atom_conditions(begin)]
    return _joined_all(select, places, joined_here, where, rest, rows, residual)


def joined_further(
    select: exp.Select, places: Places, residual: Residual, smaller: Residual, members: Members
) -> tuple[exp.Select, Places]:
    """The groups of a smaller residual, whose boundary has these places, with all other atoms.

    These are the ``members``.
    """
    kept = frozenset(places)
    # What is known comes first: each atom is found by what atoms before it hold.
    rest: list[Atom] = []
    waiting = [residual.query.atoms[i] for i in sorted(members)]
    while waiting:
        known = kept.union(*(atom.variables for atom in rest))
        near = (atom for atom in waiting if not known.isdisjoint(atom.variables))
        rest.append(next(near, waiting[0]))
        waiting.remove(rest[-1])
    further = replace(
        residual,
        members=members,
        inequalities=residual.inequalities - smaller.inequalities,
        comparisons=residual.comparisons - smaller.comparisons,
        generals=(),
    )

    def rows(atom: Atom) -> exp.Expression:
        return rows_of(atom.table, atom.reads, atom.alias)

    return _joined_all(select, places, set(), [], rest, rows, further)


def _joined_all(
    select: exp.Select,
    places: Places,
    joined_here: set[Variable],
    where: list[exp.Expression],
    rest: Iterable[Atom],
    rows: Callable[[Atom], exp.Expression],
    residual: Residual,
) -> tuple[exp.Select, Places]:
    """What is there, joined with the rest, by all conditions of a residual."""
    for atom in rest:
        own, within = _own_places(atom)
        common = {
            v: exp.EQ(this=again(places[v]), expression=again(here))
            for v, here in own.items()
            if v in places
        }
        select = joined_with(select, rows(atom), list(common.values()))
        joined_here |= {*common, *(v for v, _ in within)}
        where += [*(equal for _, equal in within), *atom_conditions(atom)]
        places = {**own, **places}
    where += not_null(residual, places, joined_here)
    where += [predicate_condition(p, places) for p in residual.predicates]
    return filtered_by(select, where), places


def _rows(
    atom: Atom,
    further: Callable[[str], Iterable[str]],
    among: Mapping[Variable, exp.Select] | None,
    first: Callable[[exp.Select], exp.Select],
) -> exp.Expression:
    """What stands in FROM for an atom."""
    used = atom.reads.union(further(atom.alias))
    rows = rows_of(atom.table, used, atom.alias)
    some = [
        exp.In(this=column(name, atom.alias), query=among[term].copy().subquery(copy=False))
        for name, term in atom.terms
        if among and isinstance(term, Variable) and term in among
    ]
    if not some:
        return rows
    # Inside FROM, an engine thins the rows out before it joins them.
    columns = (column(name, atom.alias) for name in sorted(used))
    return inner(first(filtered_by(select_from(rows, *columns), some)), atom.alias)


def weights_in(residual: Residual) -> list[exp.Expression]:
    """The weights of a row of the residual's join, over the aliases of its atoms."""
    return [
        weight
        for atom in residual.atoms
        if atom.weight is not None
        for weight in row_weights([atom.weight.column], atom.table, atom.alias)
    ]


def _own_places(atom: Atom) -> tuple[Places, list[tuple[Variable, exp.Expression]]]:
    """The first column of each variable of an atom, and what makes its further ones equal to it."""
    own: Places = {}
    within: list[tuple[Variable, exp.Expression]] = []
    for name, term in atom.terms:
        if not isinstance(term, Variable):
            continue
        here = column(name, atom.alias)
        if term in own:
            within.append((term, exp.EQ(this=again(own[term]), expression=here)))
        else:
            own[term] = here
    return own, within


def grouped_count(
    joined: exp.Select,
    places: Places,
    boundary: list[Variable],
    output: frozenset[Variable] | None,
    weights: Sequence[exp.Expression] = (),
    shown: Mapping[Variable, str] | None = None,
    *,
    few: bool = False,
) -> exp.Select:
    """The number of results, or of distinct outputs, for each value of the boundary.

    With ``weights`` it is the sum of their products. ``joined`` becomes a part of what is returned.
    Variables of the boundary that are ``shown`` are columns under these names, before the number.
    ``few``: not many values of the boundary are expected.
    """
    if output is not None:
        if weights:
            raise ValueError("of distinct outputs each counts once, and no row has a weight")
        names = {v: f"v{i}" for i, v in enumerate(sorted(output | set(boundary)))}
        columns = [exp.alias_(again(places[v]), name, copy=False) for v, name in names.items()]
        joined.set("expressions", columns or [number(1)])
        joined.set("distinct", exp.Distinct())
        joined = exp.Select(from_=exp.From(this=joined.subquery("distinct_outputs", copy=False)))
        places = {v: column(name, "distinct_outputs") for v, name in names.items()}
    total = summed(weights, few=few or not boundary)
    if weights and not boundary:
        total = exp.Coalesce(this=total, expressions=[number(0)])
    columns = [named(again(places[v]), name) for v, name in (shown or {}).items()]
    joined.set("expressions", [*columns, exp.alias_(total, RESULTS, copy=False)])
    if boundary:
        joined.set("group", exp.Group(expressions=[again(places[v]) for v in boundary]))
    return joined


def largest(rows: exp.Select, name: str) -> exp.Select:
    """The largest ``results`` of ``rows``, which become the CTE ``name``; 0 if there are none."""
    value = exp.Coalesce(this=exp.Max(this=column(RESULTS)), expressions=[number(0)])
    counted = exp.CTE(this=rows, alias=exp.TableAlias(this=exp.to_identifier(name)))
    return exp.Select(
        expressions=[value],
        from_=exp.From(this=exp.to_identifier(name)),
        with_=exp.With(expressions=[counted]),
    )


def atom_conditions(atom: Atom) -> list[exp.Expression]:
    """The atom's constants and filters, over its alias."""
    constants = [
        exp.EQ(this=column(name, atom.alias), expression=literal(term))
        for name, term in atom.terms
        if isinstance(term, Constant)
    ]
    return constants + [filter_condition(f, atom.alias) for f in atom.filters]


def not_null(
    residual: Residual, places: Places, joined_here: set[Variable]
) -> list[exp.Expression]:
    """Guards for variables that a join or predicate of the whole query makes non-null.

    A join inside the residual already drops NULLs, and so does a column that cannot hold them.
    """
    guarded = residual.query.never_null & residual.variables - joined_here
    nullable = {
        term
        for atom in residual.atoms
        for name, term in atom.terms
        if isinstance(term, Variable) and atom.table.column(name).nullable
    }
    return [
        exp.Not(this=exp.Is(this=again(places[v]), expression=exp.Null()))
        for v in sorted(guarded & nullable)
    ]
