"""Residuals with external variables: compared values that no atom of E holds range over a domain.

T_E is then the largest count over values of the boundary and of the external variables. One
external variable is a sweep over intervals; several, or a DISTINCT output, are tried point by
point over the values that can matter. docs/proofs/external.md proves both exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from sqlrs.catalog import Family
from sqlrs.emit import RESULTS, Places, grouped_count, join_of, largest, literal, number
from sqlrs.identifiers import column
from sqlrs.planning.trees import ascending
from sqlrs.query import Comparison, Constant, Term, Variable
from sqlrs.residuals import Residual
from sqlrs.templates import template

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


@dataclass(frozen=True)
class Sweep:
    """One external variable: the largest overlap of the intervals that the rows allow."""

    residual: Residual
    name: str = "sweep"

    def statement(self) -> exp.Select:
        """Events at both ends of each interval, and the largest running sum."""
        residual, names = self.residual, Names.of(self.residual)
        (external,) = residual.external
        places: Places = {v: column(name) for v, name in names.compared}
        bounds = [p for p in residual.comparisons if external in p.variables]
        low = _end([(p.left, p.strict) for p in bounds if p.right == external], places, 1)
        high = _end([(p.right, p.strict) for p in bounds if p.left == external], places, -1)
        tree = _expanded(template("external/sweep.sql"), names.keys)
        intervals = tree.find(exp.CTE)
        assert intervals is not None and intervals.alias == "intervals"
        columns = [*map(column, names.keys), *_four(low, high), column(RESULTS)]
        intervals.set("this", exp.select(*columns).from_(ROWS))
        return _with_first(tree, ROWS, grouped_rows(residual, names))

    def lines(self) -> list[str]:
        """The variable that is swept, and between which columns."""
        (external,) = self.residual.external
        return [f"sweep over all values of {external}: largest overlap of the rows' intervals"]


@dataclass(frozen=True)
class Domain:
    """Several external variables, or a DISTINCT output: every point that can matter is tried."""

    residual: Residual
    name: str = "domain"

    def statement(self) -> exp.Select:
        """Rows, the choices of each external variable, and the count for each combination."""
        return _DomainStatement(self.residual).build()

    def lines(self) -> list[str]:
        """The variables that range over the domain."""
        names = ", ".join(map(str, sorted(self.residual.external)))
        return [f"try every value of {names} that the data or a constant can make the best"]


def external_plan(residual: Residual) -> Sweep | Domain:
    """The plan of a residual with external variables, by its shape alone."""
    if len(residual.external) == 1 and residual.output is None:
        return Sweep(residual)
    return Domain(residual)


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
    rows = grouped_count(joined, places, wanted, None)
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
    bounds: list[tuple[Term, bool]], places: Places, side: int
) -> tuple[exp.Expression, exp.Expression]:
    """The tightest bound on one side, as a value and a phase.

    ``side`` is 1 for lower bounds, −1 for upper ones. A strict bound on a discrete value is the
    next value; on a dense one it is the point beside the value, which the phase says.
    """
    if all(term.type.discrete for term, _ in bounds):
        shifted: list[exp.Expression] = [
            shift(_value(term, places), side if strict else 0, term) for term, strict in bounds
        ]
        return _tightest(shifted, side), number(0)
    values = [_value(term, places) for term, _ in bounds]
    tightest = _tightest(values, side)
    beside = [
        exp.EQ(this=_value(term, places), expression=tightest.copy())
        for term, strict in bounds
        if strict
    ]
    if len(beside) == len(bounds) == 1:
        return tightest, number(side)
    if not beside:
        return tightest, number(0)
    phase = exp.Case().when(exp.or_(*beside), number(side)).else_(number(0))
    return tightest, phase


def _value(term: Term, places: Places) -> exp.Expression:
    return places[term].copy() if isinstance(term, Variable) else literal(term)


def _tightest(values: list[exp.Expression], side: int) -> exp.Expression:
    different = list(dict.fromkeys(values))
    if len(different) == 1:
        return different[0]
    kind = exp.Greatest if side > 0 else exp.Least
    return kind(this=different[0], expressions=different[1:])


def shift(value: exp.Expression, by: int, term: Term) -> exp.Expression:
    """A discrete value moved by whole steps; integers are widened so that no step overflows."""
    if term.type.family is Family.INTEGER:
        value = exp.cast(value, "DECIMAL(38, 0)")
    if by == 0:
        return value
    kind = exp.Add if by > 0 else exp.Sub
    return kind(this=value, expression=number(abs(by)))


def _four(
    low: tuple[exp.Expression, exp.Expression], high: tuple[exp.Expression, exp.Expression]
) -> list[exp.Expr]:
    names = ("low", "low_phase", "high", "high_phase")
    return [exp.alias_(value, name) for value, name in zip((*low, *high), names, strict=True)]


class _DomainStatement:
    """Builds the statement of a ``Domain``.

    Compared values become numbers that leave room for as many points between neighbours as there
    are external variables: integers and dates are their own numbers, dense values get the rank of
    the value times that room. The best point can be taken as the least solution of its lower
    bounds, so the choices of a variable are its lower bounds and the next few points after them.
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

    def build(self) -> exp.Select:
        """The whole statement."""
        ctes: list[tuple[str, exp.Expression]] = [(ROWS, grouped_rows(self.residual, self.names))]
        for i, (members, constants) in enumerate(self.classes):
            if not members[0].type.discrete:
                ctes.append((f"domain{i}", self._ranked(members, constants)))
        ctes.append(("numbered_rows", self._numbered_rows()))
        ctes += [(f"choices_{z}", self._choices(v)) for v, z in self.externals.items()]
        counted = self._counted()
        tree = largest(counted, "per_choice")
        for name, cte in reversed(ctes):
            tree = _with_first(tree, name, cte)
        return tree

    def _ranked(self, members: list[Variable], constants: list[Constant]) -> exp.Select:
        """Each value of the class with its number."""
        compared = dict(self.names.compared)
        sources: list[exp.Expression] = [
            exp.select(exp.alias_(column(compared[v]), "value")).from_(ROWS)
            for v in members
            if v in compared
        ]
        sources += [exp.select(exp.alias_(literal(c), "value")) for c in constants]
        values = sources[0]
        for source in sources[1:]:
            values = exp.union(values, source, distinct=True)
        rank = exp.Window(
            this=exp.DenseRank(), order=exp.Order(expressions=[ascending(column("value"))])
        )
        scaled = exp.Mul(this=number(self.room + 1), expression=rank)
        return exp.select("value", exp.alias_(scaled, "place")).from_(
            exp.Subquery(this=values, alias=exp.TableAlias(this=exp.to_identifier("active_values")))
        )

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
            if variable.type.discrete:
                place = shift(column(name, ROWS), 0, variable)
            else:
                alias = f"of_{name}"
                domain = exp.alias_(
                    exp.to_table(f"domain{self._class_of(variable)}"), alias, table=True
                )
                on = exp.EQ(this=column("value", alias), expression=column(name, ROWS))
                select = select.join(domain, on=on)
                place = column("place", alias)
            select = select.select(exp.alias_(place, name))
        return select

    def _choices(self, external: Variable) -> exp.Expression:
        """The points that the external variable may take in each boundary group."""
        sources, steps = self._lower_sources(external)
        keys = self.names.keys
        parts: list[exp.Expression] = []
        for source in sources:
            for step in range(steps + 1):
                place = self._place(source, self._class_of(external))
                point = exp.Add(this=place, expression=number(step)) if step else place
                moved = exp.alias_(point, self.externals[external])
                parts.append(exp.select(*map(column, keys), moved).from_("numbered_rows"))
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
        if term.type.discrete:
            return shift(literal(term), 0, term)
        domain = f"domain{order}"
        found = exp.EQ(this=column("value", domain), expression=literal(term))
        return exp.select(column("place", domain)).from_(domain).where(found).subquery()

    def _lower_sources(self, external: Variable) -> tuple[list[Term], int]:
        """The known values below the variable, also through other external ones, and the steps."""
        known: dict[Term, None] = {}
        open_, seen = [external], {external}
        while open_:
            here = open_.pop()
            for p in self.across:
                if p.right != here:
                    continue
                if isinstance(p.left, Variable) and p.left in self.externals:
                    if p.left not in seen:
                        seen.add(p.left)
                        open_.append(p.left)
                else:
                    known[p.left] = None
        return list(known), len(seen)

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
                select.join(exp.to_table(name), on=exp.and_(*equal))
                if equal
                else select.join(exp.to_table(name), join_type="cross")
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
