"""Several plans -> one statement: what more than one of them needs is evaluated once, before them.

One statement also lets an engine work on several residuals at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import cast

from sqlglot import exp

from sqlrs.dialects import dialect_named
from sqlrs.planning.bags import Grouping
from sqlrs.planning.leading import Leaders
from sqlrs.planning.plan import (
    Factorised,
    InWords,
    Leading,
    Pruned,
    ResidualPlan,
    table_names,
)
from sqlrs.planning.words import Words, form_in_words, steps_in_words
from sqlrs.sql.factorised import StatementBuilder, Stored, step_name, stored
from sqlrs.sql.in_words import shared_words
from sqlrs.sql.leading_groups import groups_of, kept_as, leading_select
from sqlrs.sql.write import statement_of
from sqlrs.trees.build import inner, named, number, select_from, table_named, union_of
from sqlrs.trees.identifiers import column
from sqlrs.trees.naming import RESULTS, free_name

# Some ten seconds: beyond that the memory of one plan at a time is the safer choice.
MOST_COST = 2e8
_PLACE = "place"


Stepped = Factorised | Pruned | Leading | InWords


def batches(plans: Iterable[ResidualPlan]) -> Iterator[ResidualPlan | list[Stepped]]:
    """Plans for one statement each time, in order; without steps or at great cost one is alone."""
    batch: list[Stepped] = []
    cost = 0.0
    for plan in plans:
        stepped = plan if isinstance(plan, Stepped) else None
        if batch and (stepped is None or cost + stepped.cost > MOST_COST):
            yield batch if len(batch) > 1 else batch[0]
            batch, cost = [], 0.0
        if stepped is None:
            yield plan
        else:
            batch.append(stepped)
            cost += stepped.cost
    if batch:
        yield batch if len(batch) > 1 else batch[0]


def together(plans: Sequence[Stepped], dialect: str) -> exp.Select:
    """A statement with one row: the value of each plan, in order."""
    # Inside a plan's own steps its names hide those outside, so the ones outside must be others.
    taken = set[str]().union(*(table_names(plan.residual) for plan in plans))
    kept: dict[Hashable, Stored] = {}
    outside: dict[str, exp.Expression] = {}
    for step in shared_steps(plans):
        name = free_name(f"shared_{step_name(step)}"[:40], taken)
        building = StatementBuilder(dialect_named(dialect), frozenset(taken), kept)
        select, columns = building.grouped(step)
        outside[name] = building.finished(select)
        kept[step.canonical.form] = stored(name, step, columns)
    for leaders in shared_leaders(plans):
        name = free_name("leading_groups", taken)
        building = StatementBuilder(dialect_named(dialect), frozenset(taken), kept)
        select, names = leading_select(leaders, building)
        outside[name] = building.finished(select)
        kept[kept_as(leaders)] = (name, names, True)
    for words, step in shared_in_words(plans):
        building = StatementBuilder(dialect_named(dialect), frozenset(taken), kept)
        kept |= shared_words(words, step, building)
        outside |= building.ctes
        taken |= building.ctes.keys()
    values = []
    for place, plan in enumerate(plans, 1):
        name = free_name(f"value_{place}", taken)
        outside[name] = statement_of(plan, dialect, kept, frozenset(taken))
        values.append(name)
    outer = StatementBuilder(dialect_named(dialect), ctes=outside)
    return outer.finished(in_one_row(values, free_name("all_values", taken)))


def in_one_row(values: Sequence[str], alias: str) -> exp.Select:
    """Relations of one row each as one row.

    Without a join: Spark would exchange rows for it, DuckDB look for the best of many orders.
    """
    rows = [
        select_from(table_named(name), named(number(i), _PLACE), column(RESULTS, name))
        for i, name in enumerate(values)
    ]
    own = [exp.EQ(this=column(_PLACE, alias), expression=number(i)) for i, _ in enumerate(values)]
    found = [exp.Case(ifs=[exp.If(this=is_it, true=column(RESULTS, alias))]) for is_it in own]
    return select_from(
        inner(cast(exp.Query, union_of(rows)), alias),
        *(named(exp.Max(this=one), name) for one, name in zip(found, values, strict=True)),
    )


def shared_leaders(plans: Sequence[Stepped]) -> list[Leaders]:
    """The groups that more than one plan begins with, once each; some plans need no more."""
    found = [plan.leaders for plan in plans if isinstance(plan, Leading)]
    uses: Counter[Hashable] = Counter(map(kept_as, found))
    uses.update(groups_of(plan.total) for plan in plans if isinstance(plan, Factorised))
    return list({kept_as(one): one for one in found if uses[kept_as(one)] > 1}.values())


def shared_in_words(plans: Sequence[Stepped]) -> Iterator[tuple[Words, Grouping]]:
    """The steps of one plan in words that are all words of another one."""
    several = [plan.words for plan in plans if isinstance(plan, InWords)]
    wanted = {form_in_words(words.whole, words) for words in several}
    for words in several:
        for step in reversed([*steps_in_words(words)]):
            form = form_in_words(step, words)
            if form in wanted:
                wanted.remove(form)
                yield words, step


def shared_steps(plans: Iterable[Stepped]) -> list[Grouping]:
    """The joins that more than one plan evaluates, inner ones first."""
    uses: Counter[Hashable] = Counter()
    steps: dict[Hashable, Grouping] = {}
    for plan in plans:
        forms = {step.canonical.form: step for step in plan.steps}
        uses.update(plan.forms if isinstance(plan, Factorised) else forms.keys())
        for form, step in forms.items():
            steps.setdefault(form, step)
    return sorted(
        (s for form, s in steps.items() if uses[form] > 1),
        key=lambda step: len(step.join.leaves),
    )
