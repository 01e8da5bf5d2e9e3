"""Steps that several statements of one release need: evaluated once, kept as temporary tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

from sqlrs.engines.base import Snapshot
from sqlrs.planning.factorise import Kept, Statement, Stored, stored
from sqlrs.planning.plan import Factorised, Plan, Pruned, table_names
from sqlrs.planning.tree import Grouping

_PREFIX = "sqlrs_step"


def shared_steps(plans: Iterable[Plan]) -> list[Grouping]:
    """The joins that more than one statement evaluates, inner ones first."""
    uses: Counter[Hashable] = Counter()
    steps: dict[Hashable, Grouping] = {}
    for plan in plans:
        if isinstance(plan, Factorised | Pruned):
            forms = {step.canonical.form: step for step in plan.steps}
            uses.update(forms.keys())
            for form, step in forms.items():
                steps.setdefault(form, step)
    return sorted(
        (s for form, s in steps.items() if uses[form] > 1 and len(s.join.leaves) > 1),
        key=lambda step: len(step.join.leaves),
    )


def keep_shared(plans: Iterable[Plan], snapshot: Snapshot, dialect: str) -> Kept:
    """Materialise the shared steps; what is returned makes the statements use them."""
    plans = list(plans)
    kept: dict[Hashable, Stored] = {}
    reserved = frozenset[str]().union(*(table_names(plan.residual) for plan in plans))
    number = 0
    for step in shared_steps(plans):
        building = Statement(dialect, reserved, kept)
        select, columns = building.grouped(step)
        while (name := f"{_PREFIX}_{number}") in reserved:
            number += 1
        number += 1
        snapshot.materialise(name, building.finished(select))
        kept[step.canonical.form] = stored(name, step, columns)
    return kept
