"""Structure -> its cheapest tree: small problems are searched exhaustively, large ones greedily.

Of two joined parts one is a single relation: engines join that way, and a result that both sides
share is grouped.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from sqlrs.planning.estimate import Mask
from sqlrs.planning.parts import Part, Parts
from sqlrs.planning.structure import Structure

_EXHAUSTIVE = 5


@dataclass(frozen=True, slots=True)
class Tree:
    """All leaves joined in the cheapest way found, and its cost with the last grouping."""

    parts: Parts
    whole: Part
    cost: float


@lru_cache(maxsize=4096)
def cheapest(structure: Structure) -> Tree:
    """The search without names: a release plans many problems that differ in names only."""
    parts = Parts(structure)
    found = [_component(parts, component) for component in _components(parts)]
    whole = found[0] if len(found) == 1 else parts.product(found)
    return Tree(parts, whole, whole.cost + parts.finish(whole))


def _components(parts: Parts) -> list[Mask]:
    """The leaves that variables or conditions connect."""
    remaining, found = parts.everything, []
    while remaining:
        component = remaining & -remaining
        while (near := component | parts.touching(component)) != component:
            component = near
        found.append(component)
        remaining &= ~component
    return found


def _component(parts: Parts, component: Mask) -> Part:
    if component.bit_count() <= _EXHAUSTIVE:
        return _exhaustive(parts, component)
    return _greedy(parts, component)


def _exhaustive(parts: Parts, component: Mask) -> Part:
    """The best part of every set of leaves, from those of smaller sets."""
    table: dict[Mask, list[Part]] = {}
    bits = [1 << i for i in range(len(parts.sizes)) if component >> i & 1]
    for size in range(1, len(bits) + 1):
        for chosen in combinations(bits, size):
            leaves = sum(chosen)
            raw = (
                parts.single(leaves.bit_length() - 1)
                if size == 1
                else _best_split(parts, leaves, table)
            )
            if raw is not None:
                table[leaves] = [raw] if leaves == component else parts.options(raw)
    return table[component][0]


def _best_split(parts: Parts, leaves: Mask, table: dict[Mask, list[Part]]) -> Part | None:
    """The cheapest join of two parts that make up ``leaves``, None if nothing connects them."""
    best: Part | None = None
    least = math.inf
    # Without a grouping behind it the last join is summed up: then its weight tells as much.
    last = leaves == parts.everything and bool(parts.structure.free)
    for half in _halves(leaves):
        ones, others = table.get(half), table.get(leaves ^ half)
        if ones is None or others is None or not parts.touching(half) & leaves & ~half:
            continue
        for one in ones:
            bushy = len(one.inputs) > 1
            for other in others:
                # Equal steps of both sides cost once, so the sum of costs is no lower bound.
                if one.cost >= least or other.cost >= least:
                    continue
                if bushy and len(other.inputs) > 1:
                    continue
                part = parts.joined(one, other, least, last=last)
                if part is not None:
                    best, least = part, part.cost + parts.finish(part) if last else part.weight
    return best


def _greedy(parts: Parts, component: Mask) -> Part:
    """The two parts whose join is the cheapest are joined first, until one part is left."""
    left = [parts.options(parts.single(i)) for i in range(len(parts.sizes)) if component >> i & 1]
    known: dict[tuple[Mask, Mask], Part | None] = {}
    while len(left) > 1:
        found: list[tuple[float, int, int, Part]] = []
        for i, j in combinations(range(len(left)), 2):
            pair = (left[i][0].leaves, left[j][0].leaves)
            if pair not in known:
                touching = parts.touching(pair[0]) & pair[1]
                known[pair] = _best_pair(parts, left[i], left[j]) if touching else None
            part = known[pair]
            if part is not None:
                found.append((part.weight, i, j, part))
        _, i, j, part = min(found, key=lambda f: f[:3])
        left = [options for k, options in enumerate(left) if k not in (i, j)]
        left.append([part] if part.leaves == component else parts.options(part))
    return left[0][0]


def _best_pair(parts: Parts, left: list[Part], right: list[Part]) -> Part:
    best: Part | None = None
    for one in left:
        for other in right:
            if len(one.inputs) == 1 or len(other.inputs) == 1:
                least = math.inf if best is None else best.weight
                best = parts.joined(one, other, least) or best
    assert best is not None
    return best


def _halves(leaves: Mask) -> Iterator[Mask]:
    """Every proper subset that holds the lowest leaf: one side of each split."""
    lowest = leaves & -leaves
    rest = leaves ^ lowest
    subset = rest
    while subset:
        subset = (subset - 1) & rest
        yield subset | lowest
