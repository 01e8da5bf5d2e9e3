"""Trees of joins and groupings -> SQL: one CTE for each step, equal steps once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import cast

from sqlglot import exp

from sqlrs.dialects.base import Dialect
from sqlrs.planning.bags import Grouping, Input, Join, is_table
from sqlrs.planning.inclusion_exclusion import Sum, Term
from sqlrs.planning.leaves import Leaf, Picked, TableRows
from sqlrs.planning.problem import Above, Condition, Equal, Problem, Renamed
from sqlrs.query import Inequality, Variable
from sqlrs.records import dataclass
from sqlrs.sql.index_order import in_index_order
from sqlrs.sql.leaf_sources import LeafSource, aliased, leaf_source, picked_source
from sqlrs.sql.thinned import among, is_few
from sqlrs.trees.build import (
    connected_order,
    filtered_by,
    grouped_by,
    inner,
    joined_with,
    named,
    select_from,
    table_named,
    union_of,
    with_columns,
)
from sqlrs.trees.build import number as number_of
from sqlrs.trees.identifiers import again, column, identifier
from sqlrs.trees.naming import RESULTS, column_names, free_name, plain_name
from sqlrs.trees.predicates import Places, predicate_condition
from sqlrs.trees.totals import product, summed
from sqlrs.values import behave_alike

# Room for a number behind the name, in what PostgreSQL keeps of it.
_LONGEST_NAME = 48
_OPERATORS: Mapping[type[Condition], type[exp.Expression]] = {
    Equal: exp.EQ,
    Inequality: exp.NEQ,
    Above: exp.GT,
}


# The name, columns and whether rows are counted, of a step whose result is already there.
Stored = tuple[str, tuple[str, ...], bool]
Kept = Mapping[Hashable, Stored]


@dataclass(frozen=True)
class StepResult:
    """A named result: the column of each variable, and whether ``results`` counts its rows."""

    name: str
    columns: Mapping[Variable, str]
    counted: bool


@dataclass
class StatementBuilder:
    """A statement under construction: its CTEs in order, and the steps that need no further CTE."""

    dialect: Dialect
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

    def read_once(self, name: str) -> exp.Subquery:
        """A result that is read once: in its place, no longer a step that is stored first."""
        return inner(cast(exp.Query, self.ctes.pop(name)), name)

    def once(self, form: Hashable, name: str, make: Callable[[], exp.Select]) -> str:
        """The name of a result that is made at its first use and found by its form later."""
        if form not in self._relations:
            self._relations[form] = self.add(name, make())
        return self._relations[form]

    def keep_picked(self, leaf: Picked, select: exp.Select) -> None:
        """Keep the rows that were picked for a leaf."""
        self.once((Picked, leaf.name), leaf.name, lambda: select)

    def picked(self, leaf: Picked) -> str:
        """The name of the rows that were picked for a leaf, which must be there."""
        return self._relations[Picked, leaf.name]

    def finished(self, select: exp.Select) -> exp.Select:
        """The select with all CTEs before it."""
        # An engine that inlines a step joins in its own order, and evaluates some steps twice.
        kept = True if self.dialect.materialised else None
        ctes = [
            exp.CTE(this=tree, alias=exp.TableAlias(this=identifier(name)), materialized=kept)
            for name, tree in self.ctes.items()
        ]
        if ctes:
            select.set("with_", exp.With(expressions=ctes))
        return select

    def has(self, grouping: Grouping) -> bool:
        """Whether an equal step is there."""
        return grouping.canonical.form in self._steps

    def step(self, grouping: Grouping) -> StepResult:
        """The relation of a step, from an equal one where there is one."""
        form, kept = grouping.canonical.form, in_order(grouping)
        known = self.kept.get(form) or self._steps.get(form)
        if known is None:
            select, columns = self.grouped(grouping)
            name = self.add(step_name(grouping), select)
            known = stored(name, grouping, columns)
            self._steps[form] = known
        name, names, counted = known
        return StepResult(name, dict(zip(kept, names, strict=True)), counted)

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
        if grouping.unique or grouping.opened:
            number = [named(product(counts), RESULTS)] if counts or last else []
            return with_columns(select, *number), columns
        value = (
            exp.Max(this=product(counts))
            if grouping.largest
            else self._summed(grouping, select, counts)
        )
        select = with_columns(select, named(value, RESULTS))
        select = grouped_by(select, (again(places[v]) for v in keep))
        return _read_in_order(select, grouping.join), columns

    def _summed(
        self, grouping: Grouping, joined: exp.Select, counts: Sequence[exp.Expression]
    ) -> exp.Expression:
        """The number of results of a group."""
        joins = joined.args.get("joins") or ()
        joined_on = [j.args["on"] for j in joins if j.args.get("on") is not None]
        inputs = grouping.join.inputs
        held = Counter(variable for one in inputs for variable in one.variables)
        own = {variable for variable in grouping.keep if held[variable] == 1}
        each = not any(own.isdisjoint(one.variables) for one in inputs)
        return self.dialect.summed(
            counts, product(counts), joined_on, len(inputs), each_grouped=each
        )

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
        if keep and grouping.distinct != grouping.keep and grouping.one_row_each:
            value = self._summed(grouping, select, counts)
            columns = column_names(keep)
            with_columns(select, *(named(again(places[v]), columns[v]) for v in keep))
            select = with_columns(select, named(value, RESULTS))
            return grouped_by(select, (again(places[v]) for v in keep)), columns
        columns = column_names(once)
        number = [named(product(counts), RESULTS)] if counts else []
        select = with_columns(
            select,
            *(named(again(places[v]), columns[v]) for v in once),
            *number,
            *([] if once or number else [named(number_of(1), "found")]),
        )
        if not grouping.one_row_each:
            select = select.distinct(copy=False)
        if grouping.distinct == grouping.keep and not (last and not keep):
            if last and not counts:
                select = with_columns(select, named(number_of(1), RESULTS))
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
        taken: set[str] = set()
        pending = list(join.conditions)
        inputs, times = _once_each(join)
        first, *rest = connected_order(inputs)
        few = [one for one in inputs if self.dialect.hashes_large_tables and is_few(one)]
        source, places, where, counts = self._counted_source(first, taken, times[first])
        where += self._among(first, places, few)
        select = exp.Select(from_=exp.From(this=source))
        where += _readable(pending, places)
        equal: list[exp.Expression] = []
        for one in rest:
            source, own, here, count = self._counted_source(one, taken, times[one])
            common = [v for v in sorted(own) if v in places]
            if equal and self._keeps_order(join, common):
                alias = free_name("joined", taken)
                before = filtered_by(select, where)
                places, counts = self._first(before, places, counts, equal, common, alias)
                select, where = exp.Select(from_=exp.From(this=inner(before, alias))), []
            equal = [exp.EQ(this=again(places[v]), expression=again(own[v])) for v in common]
            # A condition on one input is a filter there; on several, engines misjudge the join.
            where += [*here, *_readable(pending, own)]
            where += self._among(one, own, few)
            counts = [*counts, *count]
            places = {**own, **places}
            select = joined_with(select, source, equal)
            where += _readable(pending, places)
        return filtered_by(select, where), places, counts

    def _among(self, one: Input, own: Places, few: Iterable[Input]) -> Iterator[exp.Expression]:
        """That the rows of a table agree with some of those inputs that have few rows."""
        if isinstance(one, TableRows):
            for other in few:
                if isinstance(other, Picked):
                    yield from among(own, self.picked(other), {v: c for c, v in other.columns})
                elif isinstance(other, Grouping):
                    step = self.step(other)
                    yield from among(own, step.name, step.columns)

    def _keeps_order(self, join: Join, common: Iterable[Variable]) -> bool:
        """Whether a bag is written so that the engine joins in the order of the plan.

        Engines know nothing of steps, and take an inequality for selective: their own order can be
        far worse.
        """
        return self.dialect.keeps_order(
            tables_only=all(map(is_table, join.inputs)),
            values_alike=all(behave_alike([v.type]) for v in common),
        )

    def _first(
        self,
        select: exp.Select,
        places: Places,
        counts: Sequence[exp.Expression],
        equal: Sequence[exp.Expression],
        common: Collection[Variable],
        alias: str,
    ) -> tuple[Places, list[exp.Expression]]:
        """Make a join a relation that is evaluated before what it is joined with next."""
        names = column_names(places)
        taken = set(names.values())
        numbers = {free_name(RESULTS, taken): count for count in counts}
        for v, name in sorted(names.items()):
            place = again(places[v])
            if v in common:
                place = self.dialect.joined_next(place, equal)
            with_columns(select, named(place, name))
        with_columns(select, *(named(again(count), name) for name, count in numbers.items()))
        self.dialect.evaluated_first(select)
        columns: Places = {v: column(name, alias) for v, name in names.items()}
        return columns, [column(name, alias) for name in numbers]

    def _counted_source(self, one: Input, taken: set[str], times: int) -> LeafSource:
        """An input in FROM that is joined so many times."""
        source, own, where, count = self._source(one, taken)
        if times > 1:
            # What is joined with itself is never NULL.
            where = [*where, *(_is_there(own[v]) for v in sorted(own))]
        return source, own, where, count * times

    def _source(self, one: Input, taken: set[str]) -> LeafSource:
        """An input in FROM: its tree, columns, conditions and count."""
        if isinstance(one, Picked):
            return picked_source(one, self.picked(one), free_name(one.name, taken))
        if isinstance(one, Leaf):
            return leaf_source(one, free_name(one.name, taken), self.once)
        relation = self.step(one)
        alias = free_name(relation.name, taken)
        own: Places = {v: column(c, alias) for v, c in relation.columns.items()}
        count: list[exp.Expression] = [column(RESULTS, alias)] if relation.counted else []
        return aliased(relation.name, alias), own, [], count

    def totals(self, total: Sum) -> tuple[exp.Select, dict[Variable, str]]:
        """The value of a problem for each value of its free variables."""
        free = sorted(total.problem.free)
        columns = column_names(free)
        selects = [self.term(term, total.problem) for term in total.terms]
        if len(selects) == 1:
            return selects[0], columns
        rows = union_of(selects)
        name = self.add(f"corrected_{'_'.join(columns.values())}".rstrip("_"), rows)
        select = select_from(
            table_named(name),
            *(column(c, name) for c in columns.values()),
            named(exp.Sum(this=column(RESULTS, name)), RESULTS),
        )
        return grouped_by(select, (column(c, name) for c in columns.values())), columns

    def term(self, term: Term, problem: Problem) -> exp.Select:
        """The count of one term for each value of the free variables, with its sign."""
        once = None
        if problem.output is not None:
            once = (problem.output | problem.free) & term.join.variables
        root = Grouping(term.join, problem.free, once, problem.output)
        select = self._kept_before(root)
        if select is None:
            select, _ = self.grouped(root, last=True)
        if term.coefficient != 1:
            number = select.expressions[-1]
            value = exp.Mul(this=exp.paren(number.this), expression=number_of(term.coefficient))
            number.set("this", value)
        return select

    def _kept_before(self, root: Grouping) -> exp.Select | None:
        """The last grouping of a plan, where it was kept as a step of other plans."""
        if root.distinct is not None or root.canonical.form not in self.kept:
            return None
        name, names, counted = self.kept[root.canonical.form]
        places = dict(zip(in_order(root), names, strict=True))
        columns = column_names(sorted(root.keep))
        value = column(RESULTS, name) if counted else number_of(1)
        return select_from(
            table_named(name),
            *(named(column(places[v], name), columns[v]) for v in sorted(root.keep)),
            named(value, RESULTS),
        )


def stored(name: str, grouping: Grouping, columns: Mapping[Variable, str]) -> Stored:
    """What later uses of a step need to know, in the order that its form gives its variables."""
    return name, tuple(columns[v] for v in in_order(grouping)), grouping.counted


def in_order(grouping: Grouping) -> tuple[Variable, ...]:
    """What a step keeps, in the order of its form: equal forms with equal ones are one relation."""
    return tuple(v for v in grouping.canonical.order if v in grouping.keep)


def largest(rows: exp.Select, grouped: bool) -> exp.Select:
    """The one number of a statement: the largest of the rows' counts, or their only one.

    Rows of which only the count is read are not kept: neither as a step nor with their values.
    """
    if not grouped:
        last = rows.expressions[-1]
        last.set("this", exp.Coalesce(this=last.this, expressions=[number_of(0)]))
        return rows
    if not rows.args.get("distinct"):
        rows.set("expressions", rows.expressions[-1:])
    alias = "per_boundary_value"
    value: exp.Expression = exp.Max(this=column(RESULTS, alias))
    return select_from(
        inner(rows, alias), named(exp.Coalesce(this=value, expressions=[number_of(0)]), RESULTS)
    )


def _once_each(join: Join) -> tuple[list[Input], Counter[Input]]:
    """The inputs without repeated ones, and how often each is there.

    A step has one row for each value of its variables: joined with itself on all of them, it is
    itself, with the product of its counts.
    """
    first: dict[Hashable, Input] = {}
    times: Counter[Input] = Counter()
    for place, one in enumerate(join.inputs):
        form: Hashable = place
        if isinstance(one, Grouping) and _unique_by_join(one):
            form = (one.canonical.form, in_order(one))
        times[first.setdefault(form, one)] += 1
    return list(first.values()), times


def _unique_by_join(step: Grouping) -> bool:
    """Whether each row of a step joins with itself alone."""
    return (
        bool(step.keep) and step.distinct is None and all(behave_alike([v.type]) for v in step.keep)
    )


def _is_there(place: exp.Expression) -> exp.Expression:
    return exp.Not(this=exp.Is(this=again(place), expression=exp.Null()))


def _readable(pending: list[Condition], places: Places) -> list[exp.Expression]:
    """The pending conditions that the columns suffice for, which are pending no more."""
    found = [c for c in pending if c.variables <= places.keys()]
    for condition in found:
        pending.remove(condition)
    return [condition_tree(condition, places) for condition in found]


def condition_tree(condition: Condition, places: Places) -> exp.Expression:
    """A condition over the columns of a bag."""
    if isinstance(condition, Equal | Inequality | Above):
        kind = _OPERATORS[type(condition)]
        return kind(this=again(places[condition.left]), expression=again(places[condition.right]))
    if isinstance(condition, Renamed):
        renamed = {own: places[other] for own, other in condition.image}
        return predicate_condition(condition.predicate, renamed)
    return predicate_condition(condition, places)


def step_name(grouping: Grouping) -> str:
    """What a step holds, as a name."""
    leaves = "_".join(plain_name(leaf.name) for leaf in grouping.join.leaves)
    keep = "_".join(plain_name(v.name) for v in sorted(grouping.keep))
    return f"{leaves}_per_{keep}" if keep else f"{leaves}_in_all"


def _read_in_order(select: exp.Select, join: Join) -> exp.Select:
    """A grouping of one whole table in the order of an index; any other one as it is."""
    leaf, *others = join.inputs
    if others or not isinstance(leaf, TableRows) or leaf.constants or leaf.filters or leaf.weights:
        return select
    return in_index_order(select, leaf.table)
