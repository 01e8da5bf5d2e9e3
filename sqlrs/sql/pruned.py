"""A pruning -> one statement: bounds, seeds, the best of them, survivors, the largest of all."""

from __future__ import annotations

from sqlglot import exp

from sqlrs.planning.inclusion_exclusion import Sum
from sqlrs.planning.leaves import Picked
from sqlrs.planning.prune import Pruning
from sqlrs.sql.factorised import StatementBuilder, largest
from sqlrs.trees.build import (
    ascending,
    filtered_by,
    joined_with,
    named,
    number,
    select_from,
    table_named,
)
from sqlrs.trees.identifiers import again, column
from sqlrs.trees.naming import RESULTS


def pruned_statement(pruning: Pruning, building: StatementBuilder) -> exp.Select:
    """One statement: bounds, seeds, the best of them, survivors, and the largest of all."""
    return _PrunedWriter(pruning, building).select()


class _PrunedWriter:
    def __init__(self, pruning: Pruning, building: StatementBuilder) -> None:
        self.pruning = pruning
        self.building = building

    def select(self) -> exp.Select:
        first, *deeper = self.pruning.levels
        bound = self._bound(first.seeding)
        sides = [(side, self._bound(side.total)) for side in self.pruning.sides]
        self._seeds(first.seeds, bound)
        for level in deeper:
            self._seeds(level.seeds, self._bound(level.seeding))
        best = self.building.add("best_seed", self._best(self.pruning.seeded))
        evaluated = None if deeper else first.seeds
        self._survivors(first.survivors, bound, best, evaluated)
        for side, side_bound in sides:
            self._survivors(side.survivors, side_bound, best)
        for level in deeper:
            self._survivors(level.survivors, self._bound(level.surviving), best)
        rest = self.building.add("best_survivor", self._best(self.pruning.rest))
        both = exp.Greatest(this=column(RESULTS, best), expressions=[column(RESULTS, rest)])
        return self.building.finished(
            joined_with(select_from(table_named(best), named(both, RESULTS)), table_named(rest), [])
        )

    def _bound(self, total: Sum) -> str:
        rows, columns = self.building.totals(total)
        return self.building.add("_".join(["bound", *columns.values()]), rows)

    def _seeds(self, seeds: Picked, bound: str) -> None:
        keys = [column(c, bound) for c, _ in seeds.columns]
        order = [exp.Ordered(this=column(RESULTS, bound), desc=True)]
        order += [ascending(again(key)) for key in keys]
        select = select_from(table_named(bound), *keys)
        select.set("order", exp.Order(expressions=order))
        select.set("limit", exp.Limit(expression=number(self.pruning.first)))
        self.building.keep_picked(seeds, select)

    def _survivors(
        self, survivors: Picked, bound: str, best: str, evaluated: Picked | None = None
    ) -> None:
        keys = [column(c, bound) for c, _ in survivors.columns]
        select = joined_with(select_from(table_named(bound), *keys), table_named(best), [])
        where: list[exp.Expression] = [
            exp.GT(this=column(RESULTS, bound), expression=column(RESULTS, best))
        ]
        if evaluated is not None:
            name = self.building.picked(evaluated)
            seeds = select_from(table_named(name), *(column(c, name) for c, _ in evaluated.columns))
            already = exp.In(this=again(keys[0]), query=exp.Subquery(this=seeds))
            where.append(exp.Not(this=already))
        self.building.keep_picked(survivors, filtered_by(select, where))

    def _best(self, total: Sum) -> exp.Select:
        rows, _ = self.building.totals(total)
        return largest(rows, grouped=True)
