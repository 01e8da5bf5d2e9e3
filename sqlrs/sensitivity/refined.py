"""Refined residual sensitivity RS+: the step bounds iterated over distances, exactly.

    T̂_0 = T,  T̂_s = max over groups g with s_g > 0 of Ψ_g(T̂_{s−e_g}),  RS+ = max_s w[|s|] · L(T̂_s)

With every private table a group of its own this is the lattice, which never exceeds the residual
sensitivity RS; with all tables in one group it is the joint step. The grouping follows from the
query, the schema and the weights alone. Proofs: docs/proofs/refined.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache, partial
from itertools import combinations
from math import comb, prod

from sqlrs.records import dataclass
from sqlrs.residuals.residual import Members, Residuals
from sqlrs.sensitivity.bound import Bound
from sqlrs.sensitivity.ceiling import Ceiling, Distances, turning_point
from sqlrs.sensitivity.horizon import Horizon
from sqlrs.sensitivity.recursion import Group, Recursion, Roles, Vector, apply
from sqlrs.sensitivity.residual_bound import residual_is_quick, residual_sensitivity
from sqlrs.sensitivity.steps import compile_recursion
from sqlrs.sensitivity.weights import Weights

# Additions, about two seconds and half a minute of them. They decide, from public facts, how many
# groups the lattice has, and when distances are so many that RS has to do.
MAX_LATTICE_WORK = 4_000_000
MAX_WORK = 100_000_000
# About ten milliseconds: a bound that may be computed again after every statement.
_QUICK_WORK = 20_000
# A box of so many distances is evaluated in some milliseconds.
_FEW_VECTORS = 20_000


@dataclass(frozen=True)
class Method:
    """How RS+ is computed for one query and one sequence of weights; nothing here is private."""

    groups: tuple[Group, ...]
    ceiling: Ceiling
    degrees: Distances
    lattice: bool
    work: int


def reached(residuals: Residuals) -> tuple[Members, ...]:
    """Every set whose T_E the released bound needs, each once, the small ones first.

    Sets that keys decide are left out of the recursion. Where RS may be the smaller bound or has
    to stand in, its sets are needed too.
    """
    needed = {*compile_recursion(residuals).coordinates, *residuals.required}
    return tuple(sorted(needed, key=lambda members: (len(members), sorted(members))))


def roles(residuals: Residuals) -> tuple[Roles, ...]:
    """For an explanation: feasible role sets, components and decided residuals; no data."""
    return compile_recursion(residuals).roles


def refined_sensitivity(
    residuals: Residuals, values: Mapping[Members, int], weights: Weights
) -> Bound:
    """RS+ from T_E of the sets in ``reached``; a value that is absent raises KeyError."""
    recursion = compile_recursion(residuals)
    method = _method(residuals, weights)
    if method is None:
        return residual_sensitivity(residuals, values, weights)
    return folded(recursion, _start(recursion, values), weights, method)


def released_sensitivity(
    residuals: Residuals, values: Mapping[Members, int], weights: Weights
) -> Bound:
    """min(RS, RS+): smooth, because both are. The lattice is never above RS, so it stands alone."""
    refined = refined_sensitivity(residuals, values, weights)
    method = _method(residuals, weights)
    # None: RS has taken the place of RS+ already.
    if method is None or method.lattice:
        return refined
    plain = residual_sensitivity(residuals, values, weights, enough=refined.value)
    return min(refined, plain, key=lambda bound: bound.value)


def is_quick(residuals: Residuals, weights: Weights) -> bool:
    """Whether ``released_sensitivity`` takes a few milliseconds; no data."""
    return folds_quickly(compile_recursion(residuals), weights)


def is_bounded_quickly(residuals: Residuals, weights: Weights) -> bool:
    """Whether ``settled_sensitivity`` takes a few milliseconds; no data."""
    method = _method(residuals, weights)
    if method is None or len(method.groups) < 2:
        return False
    vectors = prod(turning_point(degree, weights) + 1 for degree in method.degrees)
    if vectors > _FEW_VECTORS:
        return False
    return method.lattice or residual_is_quick(residuals.query, weights)


def settled_sensitivity(
    residuals: Residuals,
    least: Mapping[Members, int],
    most: Mapping[Members, int],
    weights: Weights,
) -> Fraction | None:
    """The released sensitivity of all values between these, None where it may not be one number.

    It does not exceed the smaller of RS and the peak with the largest values. With the least ones
    it is not below the smaller of RS and what is attained on the way to some goal.
    """
    method = _method(residuals, weights)
    assert method is not None
    recursion = compile_recursion(residuals)
    first, last = (_start(recursion, values) for values in (least, most))
    if not can_ever_change(recursion, last):
        return Fraction(0)
    number, peak = _horizon(method, last, weights).peak()
    if not method.lattice:
        number = min(number, residual_sensitivity(residuals, most, weights, number).value)
    if not can_ever_change(recursion, first):
        return None
    # Mostly the way to the peak of the largest values shows it; else the one to the least's own.
    if _attained(recursion, first, weights, method.groups, peak).value < number:
        _, peak = _horizon(method, first, weights).peak()
        if _attained(recursion, first, weights, method.groups, peak).value < number:
            return None
    if method.lattice:
        return number
    plain = residual_sensitivity(residuals, least, weights, number).value
    return number if plain >= number else None


def _start(recursion: Recursion, values: Mapping[Members, int]) -> Vector:
    return tuple(values[members] for members in recursion.coordinates)


def gauge(
    residuals: Residuals, largest: Mapping[Members, int], weights: Weights
) -> Callable[[Mapping[Members, int]], tuple[int, ...]]:
    """How far a row of each table can move the answer, about, where the largest values matter."""
    method = _method(residuals, weights)
    assert method is not None
    recursion = compile_recursion(residuals)
    _, peak = _horizon(method, _start(recursion, largest), weights).peak()

    def measure(values: Mapping[Members, int]) -> tuple[int, ...]:
        return tuple(
            sum(v * prod(map(comb, peak, powers)) for powers, v in polynomial.items())
            for polynomial in method.ceiling.closest(_start(recursion, values))
        )

    return measure


def _horizon(method: Method, start: Vector, weights: Weights) -> Horizon:
    ceiling = method.ceiling
    return Horizon(ceiling.closest(start), len(method.groups), weights, ceiling.units)


def folds_quickly(recursion: Recursion, weights: Weights) -> bool:
    """Whether the recursion has a lattice of few distances; no data."""
    method = choose_method(recursion, weights)
    return method is not None and method.lattice and method.work <= _QUICK_WORK


@lru_cache(maxsize=128)
def _method(residuals: Residuals, weights: Weights) -> Method | None:
    return _chosen(partial(_grouping, residuals), weights)


@lru_cache(maxsize=512)
def _grouping(residuals: Residuals, coarser: int) -> _Grouping | None:
    return _Grouping.of(compile_recursion(residuals), coarser)


def choose_method(recursion: Recursion, weights: Weights) -> Method | None:
    """The finest grouping of the private tables whose distances are not too many; no data.

    The tables that move the fewest values share a group first. None: even one group has too many
    distances, as with the weights of a tiny privacy parameter.
    """
    return _chosen(partial(_Grouping.of, recursion), weights)


@dataclass(frozen=True)
class _Grouping:
    """The private tables in groups, and what follows from these, whatever the weights."""

    groups: tuple[Group, ...]
    ceiling: Ceiling
    degrees: Distances
    lattice: bool
    once: int

    @classmethod
    def of(cls, recursion: Recursion, coarser: int) -> _Grouping | None:
        """So many groups fewer than there are tables; None where none is left."""
        steps = sorted(recursion.steps, key=lambda step: -step.cost)
        count = max(1, len(steps)) - coarser
        if count < 1:
            return None
        groups: tuple[Group, ...] = tuple((step,) for step in steps[: count - 1])
        if steps:
            groups = (*groups, tuple(steps[count - 1 :]))
        ceiling = Ceiling.of(recursion, groups)
        once = sum(step.cost + len(recursion.coordinates) for step in steps)
        return cls(groups, ceiling, ceiling.degrees(), len(groups) == len(steps), once)


def _chosen(grouping: Callable[[int], _Grouping | None], weights: Weights) -> Method | None:
    coarser = 0
    while (found := grouping(coarser)) is not None:
        # The search seldom goes farther than twice the turning point in any direction.
        distances = prod(2 * turning_point(degree, weights) + 2 for degree in found.degrees)
        work = distances * found.once
        if work <= (MAX_LATTICE_WORK if grouping(coarser + 1) else MAX_WORK):
            return Method(found.groups, found.ceiling, found.degrees, found.lattice, work)
        coarser += 1
    return None


def folded(recursion: Recursion, start: Vector, weights: Weights, method: Method) -> Bound:
    """max_s w[|s|] · L(T̂_s) for the given T by the chosen method."""
    if any(value < 0 for value in start):
        raise ValueError("a number of results is not negative")
    if not can_ever_change(recursion, start):
        return Bound()
    horizon = _horizon(method, start, weights)
    # What is attained on some ways is attained: distances that cannot reach it need no look. With
    # one group there is only one way, the search itself.
    sure = Bound()
    if len(method.groups) > 1:
        most, peak = horizon.peak()
        sure = _attained(recursion, start, weights, method.groups, peak)
        if sure == Bound(most, sum(peak)):
            return sure
    best = Bound()
    for k, layer in enumerate(_layers(start, method.groups)):
        for distances in list(layer):
            beyond = horizon.beyond(distances)
            if beyond < sure.value or beyond <= best.value:
                del layer[distances]
                continue
            value = weights[k] * recursion.last(layer[distances])
            if value > best.value:
                best = Bound(value, k)
        if not layer:
            break
    return best


def _attained(
    recursion: Recursion,
    start: Vector,
    weights: Weights,
    groups: tuple[Group, ...],
    goal: Distances,
) -> Bound:
    """The greatest w[|s|] · L where each group has gone to its goal or not begun; at most RS+.

    The groups go one after the other, in every order. Where no product binds, no other way to the
    goal leads farther than the best order.
    """
    done: dict[tuple[int, ...], Vector] = {(): start}
    best = Bound(Fraction(recursion.last(start)))
    for count in range(1, len(groups) + 1):
        following: dict[tuple[int, ...], Vector] = {}
        for gone in combinations(range(len(groups)), count):
            found = []
            for g in gone:
                values = done[tuple(other for other in gone if other != g)]
                for _ in range(goal[g]):
                    values = apply(groups[g], values)
                found.append(values)
            following[gone] = tuple(map(max, *found)) if count > 1 else found[0]
            k = sum(goal[g] for g in gone)
            value = weights[k] * recursion.last(following[gone])
            if value > best.value:
                best = Bound(value, k)
        done = following
    return best


def _layers(start: Vector, groups: tuple[Group, ...]) -> Iterator[dict[Distances, Vector]]:
    """For k = 0, 1, 2, …: T̂_s of all distance vectors s of total k.

    The reader may take vectors out of a layer; then all that are farther in each direction are left
    out as well, because some vector below them is missing.
    """
    layer = {(0,) * len(groups): start}
    while True:
        yield layer
        following: dict[Distances, list[Vector]] = {}
        for distances, values in layer.items():
            for g, group in enumerate(groups):
                farther = (*distances[:g], distances[g] + 1, *distances[g + 1 :])
                following.setdefault(farther, []).append(apply(group, values))
        layer = {
            distances: tuple(map(max, *found)) if len(found) > 1 else found[0]
            for distances, found in following.items()
            if len(found) == sum(1 for distance in distances if distance)
        }


def can_ever_change(recursion: Recursion, start: Vector) -> bool:
    """Whether L(T̂_s) > 0 for some s. Only the support of T matters, and it can only grow."""
    support = tuple(min(1, value) for value in start)
    while recursion.steps and recursion.last(support) == 0:
        grown = tuple(
            max(old, min(1, new))
            for old, new in zip(support, apply(recursion.steps, support), strict=True)
        )
        if grown == support:
            break
        support = grown
    return recursion.last(support) > 0
