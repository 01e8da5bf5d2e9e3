"""Trees of joins and groupings -> SQL: one CTE for each step, equal steps once."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sqlrs import emit
from sqlrs.catalog import Table
from sqlrs.emit import RESULTS, Places
from sqlrs.identifiers import again, column, identifier
from sqlrs.planning.inclusion_exclusion import Sum, Term
from sqlrs.planning.problem import Above, Condition, Equal, Leaf, Passing, Problem, Ranks, Renamed
from sqlrs.planning.tree import Grouping, Input, Join, is_counted
from sqlrs.planning.trees import (
    all_of,
    filtered_by,
    grouped_by,
    inner,
    joined_with,
    named,
    select_from,
    table,
    with_columns,
)
from sqlrs.query import Inequality, Variable

# PostgreSQL cuts names at 63 bytes.
_LONGEST_NAME = 48
_OPERATORS: Mapping[type[Condition], type[exp.Expression]] = {
    Equal: exp.EQ,
    Inequality: exp.NEQ,
    Above: exp.GT,
}
_DECIMAL = exp.DataType.build("DECIMAL(38, 0)")
_INTEGER = exp.DataType.build("INTEGER")


# The name, columns and whether rows are counted, of a step whose result is already there.
Stored = tuple[str, tuple[str, ...], bool]
Kept = Mapping[Hashable, Stored]


@dataclass(frozen=True)
class Relation:
    """A named result: the column of each variable, and whether ``results`` counts its rows."""

    name: str
    columns: Mapping[Variable, str]
    counted: bool


@dataclass
class Statement:
    """A statement under construction: its CTEs in order, and the steps that need no further CTE."""

    dialect: str
    reserved: frozenset[str] = frozenset()
    kept: Kept = field(default_factory=dict)
    ctes: dict[str, exp.Expression] = field(default_factory=dict)
    _steps: dict[Hashable, Stored] = field(default_factory=dict)
    _relations: dict[Hashable, str] = field(default_factory=dict)

    def add(self, name: str, tree: exp.Expression) -> str:
        """Keep a result under a name like the given one."""
        unique = free_name(name[:_LONGEST_NAME], {*self.reserved, *self.ctes})
        self.ctes[unique] = tree
        return unique

    def finished(self, select: exp.Select) -> exp.Select:
        """The select with all CTEs before it."""
        # An engine that inlines a step joins in its own order, and evaluates some steps twice.
        kept = None if self.dialect == "spark" else True
        ctes = [
            exp.CTE(this=tree, alias=exp.TableAlias(this=identifier(name)), materialized=kept)
            for name, tree in self.ctes.items()
        ]
        if ctes:
            select.set("with_", exp.With(expressions=ctes))
        return select

    def step(self, grouping: Grouping) -> Relation:
        """The relation of a step, from an equal one where there is one."""
        form, order = grouping.canonical.form, grouping.canonical.order
        kept = [v for v in order if v in grouping.keep]
        known = self.kept.get(form) or self._steps.get(form)
        if known is None:
            select, columns = self.grouped(grouping)
            name = self.add(step_name(grouping), select)
            known = stored(name, grouping, columns)
            self._steps[form] = known
        name, names, counted = known
        return Relation(name, dict(zip(kept, names, strict=True)), counted)

    def grouped(
        self, grouping: Grouping, *, last: bool = False
    ) -> tuple[exp.Select, dict[Variable, str]]:
        """The select of one step and its columns; the last one has a count in every case."""
        select, places, counts = self.joined(grouping.join)
        keep = sorted(grouping.keep)
        if grouping.distinct is not None:
            return self._counted_once(select, places, counts, grouping, last)
        columns = column_names(keep)
        select = with_columns(select, *(named(again(places[v]), columns[v]) for v in keep))
        if grouping.unique:
            number = [named(product(counts), RESULTS)] if counts or last else []
            return with_columns(select, *number), columns
        value = exp.Max(this=product(counts)) if grouping.largest else self._summed(select, counts)
        select = with_columns(select, named(value, RESULTS))
        return grouped_by(select, (again(places[v]) for v in keep)), columns

    def _summed(self, joined: exp.Select, counts: Sequence[exp.Expression]) -> exp.Expression:
        """The number of results of a group.

        DuckDB may move a part of an aggregate below one of several joins, which multiplies the
        groups where keys overlap; it leaves constants and expressions over all inputs alone.
        """
        joins = joined.args.get("joins") or []
        if self.dialect != "duckdb" or len(joins) < 2:
            return summed(counts)
        if not counts:
            return exp.Sum(this=emit.number(1))
        equal = [j.args["on"].copy() for j in joins if j.args.get("on") is not None]
        if not equal:
            return summed(counts)
        always = exp.If(this=all_of(equal), true=product(counts))
        return exp.Sum(this=exp.Case(ifs=[always]))

    def _counted_once(
        self,
        select: exp.Select,
        places: Places,
        counts: Sequence[exp.Expression],
        grouping: Grouping,
        last: bool,
    ) -> tuple[exp.Select, dict[Variable, str]]:
        once = sorted(grouping.distinct or ())
        keep = sorted(grouping.keep)
        columns = column_names(once)
        number = [named(product(counts), RESULTS)] if counts else []
        select = with_columns(
            select,
            *(named(again(places[v]), columns[v]) for v in once),
            *number,
            *([] if once or number else [named(emit.number(1), "found")]),
        ).distinct(copy=False)
        if grouping.distinct == grouping.keep and not (last and not keep):
            if last and not counts:
                select = with_columns(select, named(emit.number(1), RESULTS))
            return select, columns
        total = summed([column(RESULTS, "combinations")] if counts else [])
        outer = select_from(
            inner(select, "combinations"),
            *(column(columns[v], "combinations") for v in keep),
            named(total, RESULTS),
        )
        outer = grouped_by(outer, (column(columns[v], "combinations") for v in keep))
        return outer, {v: columns[v] for v in keep}

    def joined(self, join: Join) -> tuple[exp.Select, Places, list[exp.Expression]]:
        """FROM, JOIN and WHERE of a bag, the columns of its variables, and its inputs' counts."""
        select = exp.Select()
        places: Places = {}
        counts: list[exp.Expression] = []
        where: list[exp.Expression] = []
        taken: set[str] = set()
        inputs: list[Places] = []
        for one in _connected(join.inputs):
            source, own, here, count = self._source(one, taken)
            inputs.append(own)
            equal: list[exp.Expression] = [
                exp.EQ(this=again(places[v]), expression=again(p))
                for v, p in sorted(own.items())
                if v in places
            ]
            where += here
            counts += count
            places = {**own, **places}
            if select.args.get("from_") is None:
                select.set("from_", exp.From(this=source))
            else:
                select = joined_with(select, source, equal)
        for condition in join.conditions:
            # A condition on one input is a filter there; on several, engines misjudge the join.
            alone = (own for own in inputs if condition.variables <= own.keys())
            where.append(condition_tree(condition, next(alone, places)))
        return filtered_by(select, where), places, counts

    def _source(
        self, one: Input, taken: set[str]
    ) -> tuple[exp.Expression, Places, list[exp.Expression], list[exp.Expression]]:
        """An input in FROM: its tree, columns, conditions and count."""
        if isinstance(one, Grouping):
            relation = self.step(one)
            alias = free_name(relation.name, taken)
            own: Places = {v: column(c, alias) for v, c in relation.columns.items()}
            count: list[exp.Expression] = [column(RESULTS, alias)] if relation.counted else []
            return _aliased(relation.name, alias), own, [], count
        alias = free_name(one.name, taken)
        if one.maximised:
            columns = column_names(one.variables)
            tree = self._most_frequent(one, columns)
            own = {v: column(c, alias) for v, c in columns.items()}
            count = [column(RESULTS, alias)] if is_counted(one) else []
            return inner(tree, alias), own, [], count
        if one.passing is not None:
            one = Leaf(one.name, self._passing(one, one.passing), one.columns)
            own, where = leaf_places(one, alias)
            return _table(one.table, alias), own, where, [column(RESULTS, alias)]
        if one.ranks is not None:
            not_null = one.guarded - one.ranks.columns
            ranked = self._ranked(one, one.ranks)
            one = Leaf(one.name, ranked, one.columns, guarded=not_null)
        own, where = leaf_places(one, alias)
        return _table(one.table, alias), own, where, []

    def _passing(self, leaf: Leaf, passing: Passing) -> str:
        """The values of a leaf, each with the number of another one's rows beyond it."""
        if leaf.label in self._relations:
            return self._relations[leaf.label]
        names = [name for name, _ in passing.common]
        value, number, kind = (free_name(n, {*names}) for n in ("value", "number", "kind"))
        # At a value that both have, a sum that stops before the other leaf's rows leaves them out.
        kinds = (0, 1) if passing.strict else (1, 0)
        points = self._values(passing.rows, [*names, passing.at])
        counted = self._values(passing.counted, [*(c for _, c in passing.common), passing.beyond])
        ends = zip(
            (points, counted), (emit.number(0), exp.Count(this=exp.Star())), kinds, strict=True
        )
        for (select, places), many, first in ends:
            called = zip(places, [*names, value], strict=True)
            with_columns(
                grouped_by(select, map(again, places)),
                *(named(place, name) for place, name in called),
                named(many, number),
                named(emit.number(first), kind),
            )
        both = exp.union(points[0], counted[0], distinct=False, copy=False)
        order = [
            exp.Ordered(this=column(value), desc=passing.upwards),
            exp.Ordered(this=column(kind)),
        ]
        total = exp.Window(
            this=exp.Sum(this=column(number)),
            partition_by=[column(name) for name in names],
            order=exp.Order(expressions=order),
            spec=exp.WindowSpec(
                kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW"
            ),
        )
        running = select_from(
            exp.Subquery(this=both, alias=exp.TableAlias(this=identifier("together"))),
            *(column(name) for name in names),
            named(column(value), value),
            named(total, RESULTS),
            column(kind),
        )
        select = select_from(
            inner(running, "running"),
            *(column(name, "running") for name in names),
            named(column(value, "running"), passing.at),
            column(RESULTS, "running"),
        )
        where: list[exp.Expression] = [
            exp.EQ(this=column(kind, "running"), expression=emit.number(kinds[0])),
            exp.GT(this=column(RESULTS, "running"), expression=emit.number(0)),
        ]
        beyond = self.add(f"{_plain(leaf.name)}_beyond", filtered_by(select, where))
        self._relations[leaf.label] = beyond
        return beyond

    def _values(self, leaf: Leaf, names: Sequence[str]) -> tuple[exp.Select, list[exp.Expression]]:
        """The rows of a leaf after its conditions, still without columns, and the named columns."""
        _, where = leaf_places(leaf, leaf.name)
        select = exp.Select(from_=exp.From(this=_table(leaf.table, leaf.name)))
        return filtered_by(select, where), [column(name, leaf.name) for name in names]

    def _ranked(self, leaf: Leaf, ranks: Ranks) -> str:
        """The rows of a leaf with ranks in place of values, of which some are above others."""
        if leaf.label in self._relations:
            return self._relations[leaf.label]
        names = [name for name, _ in leaf.columns]
        if ranks.above:
            every = replace(ranks, above=frozenset())
            base = self._ranked(replace(leaf, ranks=every), every)
            select = select_from(table(base), *(column(name, base) for name in names))
            where: list[exp.Expression] = [
                exp.GT(this=column(high, base), expression=column(low, base))
                for high, low in sorted(ranks.above)
            ]
        else:
            select = exp.Select(from_=exp.From(this=_table(leaf.table, leaf.name)))
            taken = {leaf.name.lower()}
            for name in names:
                place = column(name, leaf.name)
                if name in ranks.columns:
                    by = self._ranks(ranks)
                    alias = free_name(by, taken)
                    found = exp.EQ(this=place, expression=column("value", alias))
                    select = joined_with(select, _aliased(by, alias), [found])
                    place = column("rank", alias)
                select = with_columns(select, named(place, name))
            where = row_conditions(leaf, leaf.name)
        name = self.add(f"{_plain(leaf.name)}_by_rank", filtered_by(select, where))
        self._relations[leaf.label] = name
        return name

    def _ranks(self, ranks: Ranks) -> str:
        """The values of a column with their ranks, the rarest first."""
        form = ranks.label[:2]
        if form not in self._relations:
            value = column(ranks.column, ranks.table.name)
            order = [exp.Ordered(this=exp.Count(this=exp.Star())), exp.Ordered(this=again(value))]
            rank: exp.Expression = exp.Window(
                this=exp.RowNumber(), order=exp.Order(expressions=order)
            )
            if ranks.narrow:
                rank = exp.Cast(this=rank, to=_INTEGER.copy())
            select = select_from(
                _table(ranks.table, ranks.table.name), named(value, "value"), named(rank, "rank")
            )
            self._relations[form] = self.add("ranks", grouped_by(select, [again(value)]))
        return self._relations[form]

    def _most_frequent(self, leaf: Leaf, columns: Mapping[Variable, str]) -> exp.Select:
        """The kept values of a leaf, each with its largest count over the maximised columns."""
        places, where = leaf_places(leaf, leaf.name)
        select = select_from(
            _table(leaf.table, leaf.name),
            *(named(again(places[v]), c) for v, c in sorted(columns.items())),
        )
        select = filtered_by(select, where)
        if not is_counted(leaf):
            return select.distinct(copy=False) if columns else select.limit(1, copy=False)
        counted = grouped_by(
            with_columns(select, named(exp.Count(this=exp.Star()), RESULTS)),
            [
                *(again(places[v]) for v in sorted(columns)),
                *(column(c, leaf.name) for c in leaf.maximised),
            ],
        )
        kept = [column(c, "repeated") for _, c in sorted(columns.items())]
        most = named(exp.Max(this=column(RESULTS, "repeated")), RESULTS)
        outer = select_from(inner(counted, "repeated"), *kept, most)
        return grouped_by(outer, map(again, kept))

    def totals(self, total: Sum) -> tuple[exp.Select, dict[Variable, str]]:
        """The value of a problem for each value of its free variables."""
        free = sorted(total.problem.free)
        columns = column_names(free)
        selects = [self._term(term, total.problem) for term in total.terms]
        if len(selects) == 1:
            return selects[0], columns
        rows = union_of(selects)
        name = self.add(f"corrected_{'_'.join(columns.values())}".rstrip("_"), rows)
        select = select_from(
            table(name),
            *(column(c, name) for c in columns.values()),
            named(exp.Sum(this=column(RESULTS, name)), RESULTS),
        )
        return grouped_by(select, (column(c, name) for c in columns.values())), columns

    def _term(self, term: Term, problem: Problem) -> exp.Select:
        once = None
        if problem.output is not None:
            once = (problem.output | problem.free) & term.join.variables
        root = Grouping(term.join, problem.free, once, problem.output)
        select, _ = self.grouped(root, last=True)
        if term.coefficient != 1:
            number = select.expressions[-1]
            value = exp.Mul(this=exp.paren(number.this), expression=emit.number(term.coefficient))
            number.set("this", value)
        return select


def stored(name: str, grouping: Grouping, columns: Mapping[Variable, str]) -> Stored:
    """What later uses of a step need to know, in the order that its form gives its variables."""
    order = [v for v in grouping.canonical.order if v in grouping.keep]
    return name, tuple(columns[v] for v in order), grouping.counted


def largest(building: Statement, rows: exp.Select, grouped: bool) -> exp.Select:
    """The one number of a statement: the largest of the rows' counts, or their only one."""
    if grouped:
        name = building.add("per_boundary_value", rows)
        value: exp.Expression = exp.Max(this=column(RESULTS, name))
        return select_from(
            table(name), named(exp.Coalesce(this=value, expressions=[emit.number(0)]), RESULTS)
        )
    last = rows.expressions[-1]
    last.set("this", exp.Coalesce(this=last.this, expressions=[emit.number(0)]))
    return rows


def leaf_places(leaf: Leaf, alias: str) -> tuple[Places, list[exp.Expression]]:
    """The column of each variable of a leaf, and the conditions on its rows."""
    places: Places = {}
    where: list[exp.Expression] = []
    for name, variable in leaf.columns:
        here = column(name, alias)
        if variable in places:
            where.append(exp.EQ(this=again(places[variable]), expression=here))
        else:
            places[variable] = here
            if name in leaf.guarded:
                where.append(exp.Not(this=exp.Is(this=again(here), expression=exp.Null())))
    return places, [*where, *row_conditions(leaf, alias)]


def row_conditions(leaf: Leaf, alias: str) -> list[exp.Expression]:
    """The conditions on single rows of a leaf."""
    return [
        *(
            exp.EQ(this=column(name, alias), expression=emit.literal(constant))
            for name, constant in leaf.constants
        ),
        *(
            emit.filter_condition(f, alias)
            for f in sorted(leaf.filters, key=lambda f: str(f.condition))
        ),
    ]


def condition_tree(condition: Condition, places: Places) -> exp.Expression:
    """A condition over the columns of a bag."""
    if isinstance(condition, Equal | Inequality | Above):
        kind = _OPERATORS[type(condition)]
        return kind(this=again(places[condition.left]), expression=again(places[condition.right]))
    if isinstance(condition, Renamed):
        renamed = {own: places[other] for own, other in condition.image}
        return emit.predicate_condition(condition.predicate, renamed)
    return emit.predicate_condition(condition, places)


def product(counts: Sequence[exp.Expression]) -> exp.Expression:
    """The product of counts; two or more are multiplied as decimals, which hold 38 digits."""
    if not counts:
        return emit.number(1)
    if len(counts) == 1:
        return again(counts[0])
    tree: exp.Expression = exp.Cast(this=again(counts[0]), to=_DECIMAL.copy())
    for count in counts[1:]:
        tree = exp.Mul(this=tree, expression=again(count))
    return tree


def union_of(selects: Sequence[exp.Select]) -> exp.Expression:
    """All rows of all selects."""
    tree: exp.Expression = selects[0]
    for select in selects[1:]:
        tree = exp.union(tree, select, distinct=False, copy=False)
    return tree


def summed(counts: Sequence[exp.Expression]) -> exp.Expression:
    """The number of results of the rows in a group."""
    return exp.Sum(this=product(counts)) if counts else exp.Count(this=exp.Star())


def column_names(variables: Iterable[Variable]) -> dict[Variable, str]:
    """A column name for each variable that no dialect confuses with another."""
    names: dict[Variable, str] = {}
    taken = {RESULTS}
    for variable in sorted(variables):
        names[variable] = free_name(_plain(variable.name), taken)
    return names


def step_name(grouping: Grouping) -> str:
    """What a step holds, as a name."""
    leaves = "_".join(_plain(leaf.name) for leaf in grouping.join.leaves)
    keep = "_".join(_plain(v.name) for v in sorted(grouping.keep))
    return f"{leaves}_per_{keep}" if keep else f"{leaves}_in_all"


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9_]", "_", name.lower()) or "_"


def free_name(wanted: str, taken: set[str]) -> str:
    """The wanted name, numbered where it is taken; it is taken from now on."""
    name, number = wanted, 2
    while name.lower() in taken:
        name, number = f"{wanted}_{number}", number + 1
    taken.add(name.lower())
    return name


def _aliased(name: str, alias: str) -> exp.Table:
    tree = table(name)
    if alias != name:
        tree.set("alias", exp.TableAlias(this=identifier(alias)))
    return tree


def _table(of: Table | str, alias: str) -> exp.Table:
    if isinstance(of, str):
        return _aliased(of, alias)
    return exp.Table(
        this=identifier(of.name),
        db=identifier(of.schema) if of.schema else None,
        alias=exp.TableAlias(this=identifier(alias)),
    )


def _connected(inputs: Sequence[Input]) -> list[Input]:
    """The inputs so that each shares a variable with an earlier one wherever possible."""
    remaining, order = list(inputs), []
    known: frozenset[Variable] = frozenset()
    while remaining:
        chosen = next((x for x in remaining if not known.isdisjoint(x.variables)), remaining[0])
        remaining.remove(chosen)
        order.append(chosen)
        known |= chosen.variables
    return order
