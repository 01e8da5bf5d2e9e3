"""A plan: how one residual is evaluated, as a value that describes itself."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Protocol

from sqlrs.planning.bags import Grouping, Join, described
from sqlrs.planning.inclusion_exclusion import Sum
from sqlrs.planning.leading import Leaders
from sqlrs.planning.leaves import Leaf, Picked, Ranked, RunningSum, weights_of
from sqlrs.planning.problem import Above, Condition, Equal, Renamed
from sqlrs.planning.prune import Pruning
from sqlrs.planning.table_statistics import Statistics
from sqlrs.planning.witnesses import Witnessed
from sqlrs.planning.words import Words
from sqlrs.query import Variable
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Members, Residual
from sqlrs.trees.predicates import predicate_text

# What --plan may say. Residuals with external variables have one plan each, by their shape.
HOW = ("auto", "plain", "factorised", "pruned")


class ResidualPlan(Protocol):
    """How one residual is evaluated. Every plan of a residual yields the identical number."""

    @property
    def residual(self) -> Residual:
        """What is evaluated."""
        ...

    @property
    def name(self) -> str:
        """The kind of plan: plain, factorised, pruned, or one for external variables."""
        ...

    def lines(self) -> list[str]:
        """The plan for people: its steps and why it was chosen. Nothing here depends on data."""
        ...


@dataclass(frozen=True)
class Plain:
    """Join everything, group by the boundary, take the largest count."""

    residual: Residual
    reason: str = "asked for"
    name: str = "plain"

    def lines(self) -> list[str]:
        """One line: the join and the grouping."""
        atoms = ", ".join(atom.alias for atom in self.residual.atoms)
        boundary = ", ".join(map(str, sorted(self.residual.boundary)))
        number = "sum" if self.residual.weighted else "count"
        then = f", {number} per value of {boundary}, largest" if boundary else f", {number}"
        return [f"join {atoms}{then}", f"reason: {self.reason}"]


@dataclass(frozen=True)
class SemiJoins:
    """Rows that distinct outputs decide, each counted once where it has its witnesses."""

    residual: Residual
    found: Witnessed
    name: str = "semi-joins"

    def lines(self) -> list[str]:
        """The join, the witnesses and the grouping."""
        return [*_witness_lines(self.residual, self.found), "reason: no row is counted twice"]


@dataclass(frozen=True)
class PrunedSemiJoins:
    """Counts without witnesses bound every group; exact are those that may hold the maximum.

    ``seeds``: so many groups with the largest bounds come first.
    """

    residual: Residual
    found: Witnessed
    seeds: int = 64
    name: str = "pruned"

    def lines(self) -> list[str]:
        """The bounds, then the two exact evaluations."""
        exact = _witness_lines(self.residual, self.found)
        return [
            *_witness_lines(self.residual, replace(self.found, groups=())),
            "exact for the groups with the largest of these bounds:",
            *exact,
            "exact where a bound exceeds the best so far:",
            *exact,
            "largest",
            "reason: few groups are expected to have a bound above the maximum",
        ]


def _witness_lines(residual: Residual, found: Witnessed) -> list[str]:
    def names(members: Members) -> str:
        return ", ".join(residual.query.atoms[i].alias for i in sorted(members))

    having = "".join(f" where there is {names(group)}" for group in found.groups)
    boundary = ", ".join(map(str, sorted(residual.boundary)))
    then = f", count per value of {boundary}, largest" if boundary else ", count"
    return [f"join {names(found.counted)}{having}{then}"]


@dataclass(frozen=True)
class Factorised:
    """Joins and groupings along a tree decomposition, corrected for inequalities across bags.

    ``ways``: others to count every group, which are cheaper where other plans hold their steps.
    """

    residual: Residual
    total: Sum
    reason: str = "asked for"
    ways: tuple[Sum, ...] = ()
    name: str = "factorised"

    @cached_property
    def forms(self) -> frozenset[Hashable]:
        """The forms of all its groupings that may be steps of other plans."""
        problem = self.total.problem
        last = [Grouping(term.join, problem.free) for term in self.total.terms]
        if problem.output is not None:
            last = []
        return frozenset(step.canonical.form for step in (*self.steps, *last))

    @property
    def steps(self) -> list[Grouping]:
        """The steps that depend on tables alone, innermost first."""
        return table_steps([self.total])

    @property
    def cost(self) -> float:
        """What the planner expects."""
        return self.total.cost

    def lines(self) -> list[str]:
        """One line for each step and for each correction."""
        largest_too = ["largest"] if self.residual.boundary else []
        return [*sum_lines(self.total), *largest_too, f"reason: {self.reason}"]


@dataclass(frozen=True)
class Pruned:
    """Bounds first, then exact evaluation of the few boundary values that may hold the maximum.

    ``ways``: those that count every group.
    """

    residual: Residual
    pruning: Pruning
    reason: str = "asked for"
    ways: tuple[Sum, ...] = ()
    name: str = "pruned"

    @property
    def steps(self) -> list[Grouping]:
        """The steps that depend on tables alone, innermost first."""
        return table_steps(self.pruning.sums)

    @property
    def cost(self) -> float:
        """What the planner expects for a maximum that stands out."""
        return self.pruning.cost

    def lines(self) -> list[str]:
        """The bounds, then the two exact evaluations."""
        pruning = self.pruning
        lines = []
        for level in pruning.levels:
            lines.append(f"bound for each ({described(level.variables)}):")
            lines += [f"  {line}" for line in sum_lines(level.surviving)]
        for side in pruning.sides:
            lines.append(f"bound for each ({side.variable}):")
            lines += [f"  {line}" for line in sum_lines(side.total)]
        seeds = described(pruning.levels[-1].variables)
        lines.append(f"exact for the ({seeds}) with the largest bounds:")
        lines += [f"  {line}" for line in sum_lines(pruning.seeded)]
        lines.append("exact where a bound exceeds the best so far:")
        lines += [f"  {line}" for line in sum_lines(pruning.rest)]
        return [*lines, "largest", f"reason: {self.reason}"]


@dataclass(frozen=True)
class Leading:
    """The groups that lead without lookups, exactly; where they are not enough, another plan."""

    residual: Residual
    leaders: Leaders
    otherwise: Factorised | Pruned
    name: str = "leading"

    @property
    def steps(self) -> list[Grouping]:
        """The steps that depend on tables alone, innermost first."""
        return table_steps([self.leaders.core, self.leaders.exact])

    @property
    def cost(self) -> float:
        """What the planner expects if the groups that lead are enough."""
        return self.leaders.cost

    def lines(self) -> list[str]:
        """The counts without lookups, the exact ones, and what is done if they are not enough."""
        lines = [f"the {self.leaders.most} largest groups without lookups:"]
        lines += [f"  {line}" for line in sum_lines(self.leaders.core)]
        lines += ["exact for these:", *(f"  {line}" for line in sum_lines(self.leaders.exact))]
        return [*lines, "if one of the others may be larger:", *self.otherwise.lines()]


@dataclass(frozen=True)
class InWords:
    """Counts as digits of words, all groups of a word in one sum; another plan past a digit."""

    residual: Residual
    words: Words
    otherwise: Factorised
    name: str = "words"

    @property
    def steps(self) -> list[Grouping]:
        """The steps of the corrections; those of the first term are words."""
        others = replace(self.words.total, terms=self.words.others)
        return table_steps([others])

    @property
    def cost(self) -> float:
        """What the planner expects if every count has room in its digit."""
        return self.words.cost

    def lines(self) -> list[str]:
        """The steps, and which variable's values are digits."""
        *lines, reason = self.otherwise.lines()
        return [*lines, f"the values of {self.words.packed} are digits of words", reason]


@dataclass(frozen=True, repr=False)
class KeptGroups:
    """The groups of whole tables that lead, their keys in the order of their step. Private.

    ``counts``: how much each counts, the largest first. ``least``: what no other group exceeds.
    """

    keys: tuple[tuple[int, ...], ...]
    counts: tuple[int, ...]
    least: int

    def __repr__(self) -> str:
        return "KeptGroups(private)"

    @property
    def most(self) -> int:
        """What no group exceeds, whatever conditions leave of its rows."""
        return max(self.counts, default=0)

    @property
    def listed(self) -> bool:
        """Whether their keys can stand in a statement, as numbers of 64 bits."""
        return all(-(2**63) <= number < 2**63 for key in self.keys for number in key)

    def that_may_reach(self, value: int) -> KeptGroups:
        """Those that can count so much; one of them at least."""
        number = max(1, sum(count >= value for count in self.counts))
        if number >= len(self.keys):
            return self
        return KeptGroups(self.keys[:number], self.counts[:number], self.counts[number])


@dataclass(frozen=True)
class ByKeptGroups:
    """Groups of whole tables that lead, known from before, exactly; else another plan.

    ``telling``: the variables of which these groups hold few of all values.
    """

    residual: Residual
    leaders: Leaders
    groups: KeptGroups
    telling: frozenset[Variable]
    otherwise: ResidualPlan
    name: str = "leading"

    @classmethod
    def of(
        cls, plan: ResidualPlan, leaders: Leaders, groups: KeptGroups, statistics: Statistics
    ) -> ByKeptGroups | None:
        """By the groups that are known, None where they are none, too wide or no few of all."""
        found = cls(plan.residual, leaders, groups, plan.residual.boundary, plan)
        if not groups.keys or not groups.listed:
            return None
        telling = frozenset(
            v
            for v, n in found.values.items()
            if 2 * len({*n}) <= found.number_of_values(v, statistics)
        )
        return replace(found, telling=telling) if telling else None

    @property
    def values(self) -> dict[Variable, tuple[int, ...]]:
        """The values of each variable, group by group."""
        grouping = self.leaders.grouping
        order = (v for v in grouping.canonical.order if v in grouping.keep)
        return dict(zip(order, zip(*self.groups.keys, strict=True), strict=True))

    def number_of_values(self, variable: Variable, statistics: Statistics) -> float:
        """About how many values a variable has in some table."""
        return max(
            statistics.repetition(atom.table, name).distinct
            for atom in self.residual.atoms
            for name, term in atom.terms
            if term == variable
        )

    def lines(self) -> list[str]:
        """The exact counts, and what is done if they are not enough."""
        lines = ["exact for the groups of whole tables that lead:"]
        lines += [f"  {line}" for line in sum_lines(self.leaders.exact)]
        return [*lines, "if one of the others may be larger:", *self.otherwise.lines()]


def table_steps(sums: Iterable[Sum]) -> list[Grouping]:
    """The steps below no seed or survivor: their results serve every statement of a release."""
    return [
        step
        for total in sums
        for term in total.terms
        for step in term.join.steps
        if not any(isinstance(leaf, Picked) for leaf in step.join.leaves)
    ]


def table_names(residual: Residual) -> frozenset[str]:
    """Names that a step must not take."""
    return frozenset(atom.table.name.lower() for atom in residual.query.atoms)


def sum_lines(total: Sum) -> list[str]:
    """The steps of every term."""
    lines: list[str] = []
    seen: set[object] = set()
    for term in total.terms:
        for step in term.join.steps:
            if step.canonical.form not in seen:
                seen.add(step.canonical.form)
                what = f"largest {_number(step.join)}" if step.largest else _number(step.join)
                lines.append(f"{what} per ({described(step.keep)}): {join_text(step.join)}")
        alone = len(total.terms) == 1 and term.coefficient == 1
        sign = "" if alone else f"{term.coefficient:+d} × "
        free = described(total.problem.free)
        what = f"per ({free})" if free else "in all"
        lines.append(f"{sign}{_number(term.join)} {what}: {join_text(term.join)}")
    return lines


def _number(join: Join) -> str:
    """What a step computes for each group."""
    return "sum" if any(map(weights_of, join.leaves)) else "count"


def join_text(join: Join) -> str:
    """A bag for people."""
    parts = [
        f"[{described(one.keep)}]" if isinstance(one, Grouping) else leaf_text(one)
        for one in join.inputs
    ]
    conditions = ", ".join(map(condition_text, join.conditions))
    where = f" where {conditions}" if conditions else ""
    return " ⋈ ".join(parts) + where


def leaf_text(leaf: Leaf) -> str:
    """An input for people."""
    held = dict(leaf.columns)
    above = leaf.ranks.above if isinstance(leaf, Ranked) else ()
    order = [f"{held[high]} above {held[low]}" for high, low in sorted(above)]
    if isinstance(leaf, RunningSum):
        ways = {(True, True): ">", (True, False): "≥", (False, True): "<", (False, False): "≤"}
        way = ways[leaf.passing.upwards, leaf.passing.strict]
        order = [described(leaf.variables), f"{leaf.passing.beyond} {way} {held[leaf.passing.at]}"]
    factors = "".join(f" × {weight}" for weight in weights_of(leaf))
    return f"{leaf.name}({', '.join(order) or described(leaf.variables)}){factors}"


def condition_text(condition: Condition) -> str:
    """A condition for people."""
    if isinstance(condition, Equal | Above):
        return str(condition)
    if isinstance(condition, Renamed):
        same = ", ".join(f"{own} = {other}" for own, other in condition.image if own != other)
        return f"{predicate_text(condition.predicate)} with {same}"
    return predicate_text(condition)
