"""A chain of residuals with witnesses -> one statement that joins their rows once.

Witnesses are looked for in few groups, those of the next residual among rows that have the
witnesses of the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import cast

from sqlglot import exp

from sqlrs.dialects import dialect_named
from sqlrs.planning.key_joins import has_condition
from sqlrs.planning.plan import PrunedSemiJoins, SemiJoins, table_names
from sqlrs.planning.witness_chains import WitnessChain, witnesses_of
from sqlrs.planning.witnesses import part_of, predicates_of
from sqlrs.query import Variable
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Residual
from sqlrs.sql.factorised import StatementBuilder
from sqlrs.sql.plain import grouped_count, join_of, joined_further, largest_of
from sqlrs.sql.semi_joins import has_witnesses, in_order_of_bounds
from sqlrs.sql.together import in_one_row
from sqlrs.trees.build import (
    filtered_by,
    inner,
    joined_with,
    named,
    number,
    select_from,
    table_named,
    union_of,
)
from sqlrs.trees.identifiers import again, column
from sqlrs.trees.naming import RESULTS, column_names
from sqlrs.trees.predicates import Places

_ROWS = "counted_rows"


def chain_statement(chain: WitnessChain, dialect: str) -> exp.Select:
    """One row with the value of each plan, in order."""
    reserved = frozenset[str]().union(*(table_names(plan.residual) for plan in chain.plans))
    writer = _Writer(
        chain, StatementBuilder(dialect_named(dialect), reserved | {_ROWS, "all_values"})
    )
    return writer.select()


@dataclass(frozen=True)
class _Writer:
    chain: WitnessChain
    building: StatementBuilder

    @cached_property
    def first(self) -> PrunedSemiJoins:
        return self.chain.pruned[0]

    @cached_property
    def boundary(self) -> list[Variable]:
        return sorted(self.first.residual.boundary)

    @cached_property
    def columns(self) -> dict[Variable, str]:
        """The columns of the counted rows that are read later: of groups and of witnesses."""
        residual, found = self.chain.pruned[-1].residual, self.chain.pruned[-1].found
        needed = set(self.boundary)
        for group in found.groups:
            read = (p.variables for p in predicates_of(residual, found, group))
            needed.update(residual.query.variables(group).union(*read))
        held = self.first.residual.query.variables(self.first.found.counted)
        return column_names(needed & held)

    def select(self) -> exp.Select:
        """Bounds; groups that may win or that a count sums up; those that a bound leaves."""
        rows = self._rows()
        places: Places = {v: column(name, _ROWS) for v, name in self.columns.items()}
        joined = exp.Select(from_=exp.From(this=again(rows)))
        bounds = self._add(
            "bounds", grouped_count(joined, places, self.boundary, None, shown=self._names)
        )
        picked = self._add("picked", self._picked(bounds))
        groups = list(self._exact(rows, picked))
        best = self._add("best_picked", self._largest(groups[-1:]))
        left = self._add("survivors", self._survivors(bounds, best, picked))
        rest = self._exact(rows, left)
        values = [self._largest(both) for both in zip(groups, rest, strict=True)]
        for count, place in self.chain.counts:
            summed, _ = self._further(groups[place], count, self.chain.pruned[place])
            total = exp.Sum(this=column(RESULTS, groups[place]))
            whole = exp.Coalesce(this=total, expressions=[number(0)])
            summed.set("expressions", [named(whole, RESULTS)])
            values.append(summed)
        names = [self._add("value", value) for value in values]
        return self.building.finished(in_one_row(names, "all_values"))

    @cached_property
    def _names(self) -> dict[Variable, str]:
        return {v: self.columns[v] for v in self.boundary}

    def _add(self, name: str, tree: exp.Expression) -> str:
        return self.building.add(name, tree)

    def _rows(self) -> exp.Expression:
        """The counted rows under one alias: kept where a condition leaves few, else read anew."""
        counted = _counted(self.first)
        select, places = join_of(counted)
        shown = [named(again(places[v]), name) for v, name in self.columns.items()]
        select.set("expressions", shown)
        if len(counted.members) > 1 and any(map(has_condition, counted.atoms)):
            return table_named(self._add("rows_in_common", select), alias=_ROWS)
        return inner(select, _ROWS)

    def _picked(self, bounds: str) -> exp.Expression:
        """The groups with the largest bounds, and those that a count sums up."""
        most = exp.Max(this=column(RESULTS, bounds))
        largest = select_from(table_named(bounds), most).subquery()
        near = exp.GTE(
            this=exp.Mul(this=column(RESULTS, bounds), expression=number(2)), expression=largest
        )
        keys = self._keys(bounds)
        seeds = filtered_by(select_from(table_named(bounds), *keys), [near])
        seeds = in_order_of_bounds(seeds, bounds, keys, self.first.seeds)
        parts = [select_from(inner(seeds, "seeds"), *self._keys("seeds"))]
        for count, place in self.chain.counts:
            select, places = self._further(bounds, count, self.chain.pruned[place])
            shown = (named(again(places[v]), name) for v, name in self._names.items())
            select.set("expressions", list(shown))
            if select not in parts:
                parts.append(select)
        return union_of(parts) if len(parts) > 1 else parts[0]

    def _further(
        self, groups: str, count: SemiJoins, smaller: PrunedSemiJoins
    ) -> tuple[exp.Select, Places]:
        """The groups with the rows of a count's other tables."""
        places: Places = {v: column(name, groups) for v, name in self._names.items()}
        select = exp.Select(from_=exp.From(this=table_named(groups)))
        whole, part = _counted(count), _counted(smaller)
        return joined_further(select, places, whole, part, whole.members - part.members)

    def _exact(self, rows: exp.Expression, among: str) -> Iterator[str]:
        """For each plan its groups with the values that are among these, counted exactly."""
        some = [
            exp.In(this=column(name, _ROWS), query=self._one(among, name))
            for name in self._names.values()
        ]
        shown = [column(name, _ROWS) for name in self.columns.values()]
        here = self._add("some_rows", filtered_by(select_from(again(rows), *shown), some))
        known = set[object]()
        for plan in self.chain.pruned:
            places: Places = {v: column(name, here) for v, name in self.columns.items()}
            new = [group for form, group in witnesses_of(plan).items() if form not in known]
            known |= witnesses_of(plan).keys()
            if new:
                found = [has_witnesses(plan.residual, plan.found, one, places) for one in new]
                kept = select_from(table_named(here), *(again(one) for one in places.values()))
                here = self._add("with_witnesses", filtered_by(kept, found))
                places = {v: column(name, here) for v, name in self.columns.items()}
            joined = exp.Select(from_=exp.From(this=table_named(here)))
            counted = grouped_count(joined, places, self.boundary, None, shown=self._names)
            yield self._add("groups", counted)

    def _survivors(self, bounds: str, best: str, picked: str) -> exp.Expression:
        """The groups whose bound exceeds the best one, without those that are counted already."""
        above = exp.GT(this=column(RESULTS, bounds), expression=column(RESULTS, best))
        left = joined_with(
            select_from(table_named(bounds), *self._keys(bounds)), table_named(best), []
        )
        gone = select_from(table_named(picked), *self._keys(picked))
        return exp.except_(filtered_by(left, [above]), gone, copy=False)

    def _keys(self, relation: str) -> Sequence[exp.Expression]:
        return [column(name, relation) for name in self._names.values()]

    def _one(self, relation: str, name: str) -> exp.Expression:
        return select_from(table_named(relation), column(name, relation)).subquery(copy=False)

    def _largest(self, groups: Iterable[str]) -> exp.Select:
        rows = [select_from(table_named(name), column(RESULTS, name)) for name in groups]
        return largest_of(cast(exp.Select, union_of(rows) if len(rows) > 1 else rows[0]))


def _counted(plan: SemiJoins | PrunedSemiJoins) -> Residual:
    held = plan.residual.query.variables(plan.found.counted)
    return part_of(plan.residual, plan.found.counted, held)
