"""GROUPING SETS, ROLLUP and CUBE -> the sets of expressions that rows are grouped by, in turn."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product

from sqlglot import exp

from sqlrs.compiler.source import Source
from sqlrs.effort import spend

SEVERAL = (exp.GroupingSets, exp.Rollup, exp.Cube)
MOST_SETS = 64

WrittenSet = tuple[exp.Expr, ...]


def written_sets(group: exp.Expr, source: Source) -> list[WrittenSet]:
    """The sets of a GROUP BY as they are written: one of each item, in every combination."""
    found: list[WrittenSet] = [()]
    for item in group.expressions:
        found = [(*one, *further) for one, further in product(found, _sets(item, source))]
        _limit(found, group, source)
    return found


def _sets(item: exp.Expr, source: Source) -> list[WrittenSet]:
    if isinstance(item, exp.GroupingSets):
        found = [one for inner in item.expressions for one in _inside(inner, source)]
    elif isinstance(item, exp.Rollup):
        parts = [_parts(one) for one in item.expressions]
        found = [_together(parts[:length]) for length in range(len(parts), -1, -1)]
    elif isinstance(item, exp.Cube):
        parts = [_parts(one) for one in item.expressions]
        if 1 << len(parts) > MOST_SETS:
            raise source.refusal("too_complex", item)
        sizes = range(len(parts), -1, -1)
        found = [_together(some) for size in sizes for some in combinations(parts, size)]
    else:
        return [(item,)]
    _limit(found, item, source)
    return found


def _inside(item: exp.Expr, source: Source) -> list[WrittenSet]:
    """One element of GROUPING SETS: a list in parentheses, an expression, or several sets."""
    return _sets(item, source) if isinstance(item, SEVERAL) else [_parts(item)]


def _parts(item: exp.Expr) -> WrittenSet:
    return tuple(item.expressions) if isinstance(item, exp.Tuple) else (item,)


def _together(parts: Iterable[WrittenSet]) -> WrittenSet:
    return tuple(one for part in parts for one in part)


def _limit(found: list[WrittenSet], place: exp.Expr, source: Source) -> None:
    spend(len(found))
    if len(found) > MOST_SETS:
        raise source.refusal("too_complex", place)
