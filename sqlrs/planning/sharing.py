"""What the plans of one statement hold for each other, and which others need no more than that.

Every plan of a residual yields the identical number, so which one is taken, and in which round, may
depend on what is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TypeVar

from sqlrs.planning.bags import Grouping, Input, Join, unique_rows
from sqlrs.planning.inclusion_exclusion import Sum
from sqlrs.planning.plan import Factorised, InWords, Pruned, ResidualPlan
from sqlrs.planning.words import read_from

_Held = frozenset[Hashable]
Plan = TypeVar("Plan", bound=ResidualPlan)

# How far the bounds must be expected to cost more than the groups that make them needless.
_WORTH_LEADING = 1.3


def with_shared_steps(plans: Sequence[Plan]) -> list[Plan | Factorised | InWords]:
    """The plans, each in the way of which the others hold all that takes long, if there is one."""
    found: list[Plan | Factorised | InWords] = _led(plans)
    times = Counter(form for plan in found for form in _forms(plan))
    # A way that is taken holds steps for others.
    for place in [*range(len(found))] * 2:
        own = Counter(_forms(found[place]))
        held = frozenset((times - own).keys())
        if (better := _in_a_held_way(found[place], held)) is not None:
            times = times - own + Counter(better.forms)
            found[place] = better
    return [_read_from(plan, found) or plan for plan in found]


def that_share(plans: Sequence[ResidualPlan], others: Sequence[ResidualPlan]) -> list[ResidualPlan]:
    """Those of the others that hardly take longer beside the plans: all that they group is held."""
    first = with_shared_steps(plans)
    held = _Held().union(*map(_forms, first))
    return [
        one
        for one in others
        if (isinstance(one, Factorised) and _is_held(one.total, held))
        or _in_a_held_way(one, held) is not None
        or _read_from(one, first) is not None
    ]


def _led(plans: Sequence[Plan]) -> list[Plan | Factorised | InWords]:
    """The plans, one of which counts every group where that spares several the bounds."""
    found: list[Plan | Factorised | InWords] = [*plans]
    most, bounding = 0.0, [plan for plan in plans if isinstance(plan, Pruned) and plan.ways]
    for place, plan in enumerate(plans):
        for way in plan.ways if isinstance(plan, Pruned) and len(bounding) > 1 else ():
            every = Factorised(plan.residual, way, reason="others take the same steps")
            spared = [one for one in bounding if one is plan or _in_a_held_way(one, every.forms)]
            gain = sum(one.cost for one in spared) - _WORTH_LEADING * way.cost
            if len(spared) > 1 and gain > most:
                most, found = gain, [*plans[:place], every, *plans[place + 1 :]]
    return found


def _forms(plan: ResidualPlan) -> _Held:
    """The forms of all groupings that a plan has for others."""
    return plan.forms if isinstance(plan, Factorised) else _Held()


def _in_a_held_way(plan: ResidualPlan, held: _Held) -> Factorised | None:
    """The plan in another way, where all that takes long is held, and not for its own way."""
    if not isinstance(plan, Factorised | Pruned):
        return None
    if isinstance(plan, Factorised) and _is_held(plan.total, held):
        return None
    for way in plan.ways:
        if _is_held(way, held):
            return Factorised(plan.residual, way, reason="others take the same steps")
    return None


def _read_from(plan: ResidualPlan, others: Sequence[ResidualPlan]) -> InWords | None:
    """The plan with the digits of another one that has its words as a step."""
    if not isinstance(plan, InWords):
        return None
    for other in others:
        if isinstance(other, InWords) and (words := read_from(plan.words, other.words)):
            return InWords(plan.residual, words, plan.otherwise)
    return None


def _is_held(total: Sum, held: _Held) -> bool:
    free = total.problem.free
    if total.problem.output is not None:
        return False
    return all(
        Grouping(term.join, free).canonical.form in held
        or (unique_rows(term.join, free) and _takes_little(term.join, held))
        for term in total.terms
    )


def _is_there(one: Input, held: _Held) -> bool:
    """Whether an input is a table or a step that is held, or takes little more than these."""
    if not isinstance(one, Grouping) or one.canonical.form in held:
        return True
    return (one.largest or one.unique) and _takes_little(one.join, held)


def _takes_little(join: Join, held: _Held) -> bool:
    """Whether what is there is joined, and one input has all variables: no join has more rows."""
    return any(one.variables == join.variables for one in join.inputs) and all(
        _is_there(one, held) for one in join.inputs
    )
