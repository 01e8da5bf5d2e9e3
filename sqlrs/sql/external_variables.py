"""Residuals with external variables: compared values that no atom of E holds range over a domain.

T_E is then the largest count over values of the boundary and of the external variables. One
external variable is a sweep over intervals; several, or a DISTINCT output, are tried point by
point over the values that can matter. docs/proofs/external.md proves both exact.
"""

from __future__ import annotations

from collections.abc import Iterable

import sqlglot
from sqlglot import exp

from sqlrs.catalog import Family
from sqlrs.query import Comparison, Constant, Term, Variable
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Residual
from sqlrs.sql.places import (
    Scale,
    below_all,
    day_number,
    extreme,
    greatest,
    least,
    moved,
    number_of,
    number_of_term,
    ranked,
    scale_of,
    stepped,
    value_of_term,
)
from sqlrs.sql.plain import grouped_count, join_of, largest, weights_in
from sqlrs.templates import template
from sqlrs.trees.build import ascending, inner, named, number, select_from, table_named
from sqlrs.trees.identifiers import column
from sqlrs.trees.naming import RESULTS
from sqlrs.trees.predicates import Places

ROWS = "grouped_rows"


@dataclass(frozen=True)
class Names:
    """Short column names for the variables of the grouped rows."""

    boundary: tuple[tuple[Variable, str], ...]
    compared: tuple[tuple[Variable, str], ...]
    output: tuple[tuple[Variable, str], ...]

    @classmethod
    def of(cls, residual: Residual) -> Names:
        """Names for the boundary, for what is set against external variables, and the output."""
        across = [p for p in residual.predicates if not p.variables.isdisjoint(residual.external)]
        compared = frozenset[Variable]().union(*(p.variables for p in across)) - residual.external
        output = residual.output or frozenset()
        return cls(
            tuple((v, f"b{i}") for i, v in enumerate(sorted(residual.boundary))),
            tuple((v, f"x{i}") for i, v in enumerate(sorted(compared))),
            tuple((v, f"o{i}") for i, v in enumerate(sorted(output))),
        )

    @property
    def keys(self) -> list[str]:
        """The names of the boundary's columns."""
        return [name for _, name in self.boundary]

    def all(self) -> Iterable[tuple[Variable, str]]:
        """Every variable with its name; one variable may have several."""
        return (*self.boundary, *self.compared, *self.output)


def sweep_statement(residual: Residual) -> exp.Select:
    """Events at both ends of each row's interval, and the largest running sum."""
    names = Names.of(residual)
    (external,) = residual.external
    places: Places = {v: column(name) for v, name in names.compared}
    bounds = [p for p in residual.comparisons if external in p.variables]
    lower = [(p.left, p.strict) for p in bounds if p.right == external]
    upper = [(p.right, p.strict) for p in bounds if p.left == external]
    scale = scale_of(term for term, _ in (*lower, *upper))
    low, high = _end(lower, places, scale, 1), _end(upper, places, scale, -1)
    tree = _expanded(template("external/sweep.sql"), names.keys)
    intervals = tree.find(exp.CTE)
    assert intervals is not None and intervals.alias == "intervals"
    columns = [*map(column, names.keys), *_four(low, high), column(RESULTS)]
    intervals.set("this", exp.select(*columns).from_(ROWS))
    return _with_first(tree, ROWS, grouped_rows(residual, names))


def domain_statement(residual: Residual) -> exp.Select:
    """Rows, the choices of each external variable, and the count for each combination."""
    return _DomainStatement(residual).build()


def solver_rows(residual: Residual) -> exp.Select:
    """What the solver reads: each row's number, group, output and the numbers that are compared.

    The engine says which values of the boundary and of the output are equal: each comes as the
    number of its rank. Days come as numbers, because no date of Python's is infinite.
    """
    names = Names.of(residual)
    rows = grouped_rows(residual, names)
    ranks = [_rank(key for _, key in keys) for keys in (names.boundary, names.output)]
    numbers = [
        day_number(column(name)) if v.type.family is Family.DATE else column(name)
        for v, name in names.compared
    ]
    return select_from(inner(rows, ROWS), column(RESULTS), *ranks, *numbers)


def _rank(keys: Iterable[str]) -> exp.Expression:
    """A number that is the same for equal values of the columns, as the engine groups them."""
    if not (ordered := [ascending(column(key)) for key in keys]):
        return number(1)
    return exp.Window(this=exp.DenseRank(), order=exp.Order(expressions=ordered))


def grouped_rows(residual: Residual, names: Names) -> exp.Select:
    """The residual's rows without external predicates, counted per value of what matters."""
    held = residual.variables
    internal = Residual(
        query=residual.query,
        members=residual.members,
        boundary=residual.boundary,
        external=frozenset(),
        inequalities=residual.inequalities,
        comparisons=frozenset(p for p in residual.comparisons if p.variables <= held),
        generals=tuple(p for p in residual.generals if p.variables <= held),
    )
    joined, places = join_of(internal)
    wanted = list(dict(names.all()))
    rows = grouped_count(joined, places, wanted, None, weights_in(internal))
    selected = [exp.alias_(places[v].copy(), name) for v, name in names.all()]
    return rows.select(*selected)


def _expanded(text: str, keys: list[str]) -> exp.Select:
    """The template with ``boundary`` replaced by the boundary's columns, none if there are none."""
    tree = sqlglot.parse_one(text, dialect="duckdb")
    for node in tree.walk():
        node.pop_comments()
    for place in [c for c in tree.find_all(exp.Column) if c.name == "boundary"]:
        parent = place.parent
        assert parent is not None and place.arg_key is not None
        items = parent.args[place.arg_key]
        at = next(i for i, item in enumerate(items) if item is place)
        parent.set(place.arg_key, [*items[:at], *map(column, keys), *items[at + 1 :]])
    assert isinstance(tree, exp.Select)
    return tree


def _with_first(tree: exp.Select, name: str, rows: exp.Expression) -> exp.Select:
    """The statement with ``rows`` as its first CTE."""
    head = exp.select("1").with_(name, as_=rows).args["with_"]
    ctes = tree.args["with_"]
    ctes.set("expressions", [*head.expressions, *ctes.expressions])
    return tree


def _end(
    bounds: list[tuple[Term, bool]], places: Places, scale: Scale, side: int
) -> tuple[exp.Expression, exp.Expression]:
    """The tightest bound on one side, as a value and a phase.

    ``side`` is 1 for lower bounds, −1 for upper ones. A strict bound on a discrete value is the
    next value; on a dense one it is the point beside the value, which the phase says.
    """
    if scale is Scale.NUMBERS:
        shifted = dict.fromkeys(
            moved(number_of_term(term, places), side if strict else 0) for term, strict in bounds
        )
        return (greatest if side > 0 else least)(*shifted), number(0)
    value = extreme([value_of_term(term, places, scale) for term, _ in bounds], side)
    beside = [
        exp.EQ(this=value_of_term(term, places, scale), expression=value.copy())
        for term, strict in bounds
        if strict
    ]
    if not beside:
        return value, number(0)
    phase = (
        number(side)
        if len(bounds) == 1
        else exp.Case().when(exp.or_(*beside), number(side)).else_(number(0))
    )
    return stepped(value, phase, side) if scale is Scale.WIDE else (value, phase)


def _four(
    low: tuple[exp.Expression, exp.Expression], high: tuple[exp.Expression, exp.Expression]
) -> list[exp.Expr]:
    names = ("low", "low_phase", "high", "high_phase")
    return [exp.alias_(value, name) for value, name in zip((*low, *high), names, strict=True)]


class _DomainStatement:
    """Builds the statement of a ``Domain``.

    Compared values become places that leave room for as many points between neighbours as there
    are external variables: integers and dates have their own numbers, dense values get the rank of
    the value times that room. The best point can be taken as the least solution of its lower
    bounds, so the choices of a variable are its lower bounds and the next few points after them;
    without any lower bound it is a point below everything.
    """

    def __init__(self, residual: Residual) -> None:
        self.residual = residual
        self.names = Names.of(residual)
        self.across = sorted(
            (p for p in residual.comparisons if not p.variables.isdisjoint(residual.external)),
            key=str,
        )
        self.externals = {v: f"z{i}" for i, v in enumerate(sorted(residual.external))}
        self.room = len(self.externals)
        self.classes = _order_classes(self.across)
        self.scales = [scale_of(self._known(i)) for i in range(len(self.classes))]

    def build(self) -> exp.Select:
        """The whole statement."""
        ctes: list[tuple[str, exp.Expression]] = [(ROWS, grouped_rows(self.residual, self.names))]
        for i, scale in enumerate(self.scales):
            if scale is not Scale.NUMBERS and (known := self._known(i)):
                ctes.append((f"domain{i}", self._ranked(known, scale)))
        ctes.append(("numbered_rows", self._numbered_rows()))
        ctes += [(f"choices_{z}", self._choices(v)) for v, z in self.externals.items()]
        counted = self._counted()
        tree = largest(counted, "per_choice")
        for name, cte in reversed(ctes):
            tree = _with_first(tree, name, cte)
        return tree

    def _known(self, order: int) -> list[Term]:
        """The variables of the rows, and the constants, that belong to one order."""
        members, constants = self.classes[order]
        return [*(v for v in members if v not in self.externals), *constants]

    def _ranked(self, known: list[Term], scale: Scale) -> exp.Select:
        """Each value of the class with its place."""
        places: Places = {v: column(name) for v, name in self.names.compared}
        values, *rest = [
            select.from_(ROWS) if isinstance(term, Variable) else select
            for term in known
            for select in [exp.select(named(value_of_term(term, places, scale), "value"))]
        ]
        tree: exp.Expression = values
        for source in rest:
            tree = exp.union(tree, source, distinct=False)
        return ranked(tree, scale, self.room)

    def _class_of(self, variable: Variable) -> int:
        return next(i for i, (members, _) in enumerate(self.classes) if variable in members)

    def _numbered_rows(self) -> exp.Select:
        """The grouped rows with every compared value as a number."""
        select = exp.select(
            *(column(name, ROWS) for name in self.names.keys),
            *(column(name, ROWS) for _, name in self.names.output),
            column(RESULTS, ROWS),
        ).from_(ROWS)
        for variable, name in self.names.compared:
            order = self._class_of(variable)
            if self.scales[order] is Scale.NUMBERS:
                place = number_of(column(name, ROWS), variable.type)
            else:
                alias = f"of_{name}"
                domain = table_named(f"domain{order}", alias=alias)
                on = exp.EQ(this=column("value", alias), expression=column(name, ROWS))
                select = select.join(domain, on=on)
                place = column("place", alias)
            select = select.select(exp.alias_(place, name))
        return select

    def _choices(self, external: Variable) -> exp.Expression:
        """The points that the external variable may take in each boundary group."""
        sources, steps = self._lower_sources(external)
        order = self._class_of(external)
        starts = [self._place(source, order) for source in sources]
        if not starts:
            starts.append(number(below_all(self._known(order), self.scales[order], steps)))
        parts: list[exp.Expression] = []
        for start in starts:
            for step in range(steps + 1):
                point = exp.alias_(moved(start.copy(), step), self.externals[external])
                keys = map(column, self.names.keys)
                parts.append(exp.select(*keys, point).from_("numbered_rows"))
        tree = parts[0]
        for part in parts[1:]:
            tree = exp.union(tree, part, distinct=True)
        return tree if len(parts) > 1 else tree.distinct()  # type: ignore[attr-defined]

    def _place(self, term: Term, order: int) -> exp.Expression:
        """The number of a term in its order class."""
        if isinstance(term, Variable):
            if term in self.externals:
                return column(self.externals[term])
            return column(dict(self.names.compared)[term])
        scale = self.scales[order]
        if scale is Scale.NUMBERS:
            return number_of_term(term, {})
        domain = f"domain{order}"
        value = value_of_term(term, {}, scale)
        found = exp.EQ(this=column("value", domain), expression=value)
        return exp.select(column("place", domain)).from_(domain).where(found).subquery()

    def _lower_sources(self, external: Variable) -> tuple[list[Term], int]:
        """The known values below the variable, also through other external ones, and the steps."""
        known: dict[Term, None] = {}
        reached: list[Variable] = [external]
        for here in reached:
            for below in [p.left for p in self.across if p.right == here]:
                if not isinstance(below, Variable) or below not in self.externals:
                    known[below] = None
                elif below not in reached:
                    reached.append(below)
        return list(known), len(reached)

    def _counted(self) -> exp.Select:
        """The number of results, or distinct outputs, for each boundary value and choice."""
        select = exp.Select().from_("numbered_rows")
        for z in self.externals.values():
            name = f"choices_{z}"
            equal = [
                exp.EQ(this=column(k, name), expression=column(k, "numbered_rows"))
                for k in self.names.keys
            ]
            select = (
                select.join(table_named(name), on=exp.and_(*equal))
                if equal
                else select.join(table_named(name), join_type="cross")
            )
        conditions = [
            (exp.LT if p.strict else exp.LTE)(
                this=self._place(p.left, self._class_of(min(p.variables))),
                expression=self._place(p.right, self._class_of(min(p.variables))),
            )
            for p in self.across
        ]
        select = select.where(*conditions)
        points = [column(k, "numbered_rows") for k in self.names.keys]
        points += [column(z) for z in self.externals.values()]
        if self.residual.output is None:
            total = exp.alias_(exp.Sum(this=column(RESULTS, "numbered_rows")), RESULTS)
            return select.select(total).group_by(*points)
        outputs = [column(name, "numbered_rows") for _, name in self.names.output]
        distinct = select.select(*(p.copy() for p in points), *outputs).distinct()
        names = [*self.names.keys, *self.externals.values()]
        return (
            exp.select(exp.alias_(exp.Count(this=exp.Star()), RESULTS))
            .from_(distinct.subquery("distinct_outputs"))
            .group_by(*map(column, names))
        )


def _order_classes(
    comparisons: Iterable[Comparison],
) -> list[tuple[list[Variable], list[Constant]]]:
    """The variables and constants that comparisons connect: each class has one order."""
    groups: list[set[Term]] = []
    for p in comparisons:
        sides: set[Term] = {p.left, p.right}
        # A constant may be set against unrelated variables: it joins no two classes.
        links = {t for t in sides if isinstance(t, Variable)}
        touching = [g for g in groups if not links.isdisjoint(g)]
        groups = [g for g in groups if g not in touching]
        groups.append(sides.union(*touching))
    return [
        (
            sorted(t for t in group if isinstance(t, Variable)),
            sorted((t for t in group if isinstance(t, Constant)), key=str),
        )
        for group in groups
    ]
