"""Refined residual sensitivity RS+: the step bounds iterated over distances, exactly.

    T̂_0 = T,  T̂_s = max over groups g with s_g > 0 of Ψ_g(T̂_{s−e_g}),  RS+ = max_s w[|s|] · L(T̂_s)

With every private table a group of its own this is the lattice, which never exceeds the residual
sensitivity RS; with all tables in one group it is the joint step. The grouping follows from the
query, the schema and the weights alone. Proofs: docs/proofs/refined.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
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
    start = tuple(values[members] for members in recursion.coordinates)
    method = _method(residuals, weights)
    if method is None:
        return residual_sensitivity(residuals, values, weights)
    return folded(recursion, start, weights, method)


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

    It is not below the smaller of RS and what is attained with the least values, and does not
    exceed the smaller of RS and the peak with the largest ones.
    """
    low = _refined(residuals, least, weights, upper=False)
    high = _refined(residuals, most, weights, upper=True)
    method = _method(residuals, weights)
    assert method is not None
    if not method.lattice:
        plain = residual_sensitivity(residuals, least, weights, enough=low).value
        # With larger values RS is as large or larger.
        if low == high <= plain:
            return low
        low = min(low, plain)
        high = min(high, residual_sensitivity(residuals, most, weights, enough=high).value)
    return low if low == high else None


def _refined(
    residuals: Residuals, values: Mapping[Members, int], weights: Weights, *, upper: bool
) -> Fraction:
    """A number that RS+ is not below, or one that it does not exceed; as a rule it is that."""
    method = _method(residuals, weights)
    assert method is not None
    recursion = compile_recursion(residuals)
    start = tuple(values[members] for members in recursion.coordinates)
    if not can_ever_change(recursion, start):
        return Fraction(0)
    refined, peak = _horizon(method, start, weights).peak()
    return refined if upper else _attained(recursion, start, weights, method.groups, peak).value


def gauge(
    residuals: Residuals, largest: Mapping[Members, int], weights: Weights
) -> Callable[[Mapping[Members, int]], tuple[int, ...]]:
    """How far a row of each table can move the answer, about, where the largest values matter."""
    method = _method(residuals, weights)
    assert method is not None
    coordinates = compile_recursion(residuals).coordinates

    def start(values: Mapping[Members, int]) -> Vector:
        return tuple(values[members] for members in coordinates)

    _, peak = _horizon(method, start(largest), weights).peak()

    def measure(values: Mapping[Members, int]) -> tuple[int, ...]:
        return tuple(
            sum(v * prod(map(comb, peak, powers)) for powers, v in polynomial.items())
            for polynomial in method.ceiling.closest(start(values))
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
    return choose_method(compile_recursion(residuals), weights)


def choose_method(recursion: Recursion, weights: Weights) -> Method | None:
    """The finest grouping of the private tables whose distances are not too many; no data.

    The tables that move the fewest values share a group first. None: even one group has too many
    distances, as with the weights of a tiny privacy parameter.
    """
    steps = sorted(recursion.steps, key=lambda step: -step.cost)
    for count in range(max(1, len(steps)), 0, -1):
        groups: tuple[Group, ...] = tuple((step,) for step in steps[: count - 1])
        if steps:
            groups = (*groups, tuple(steps[count - 1 :]))
        ceiling = Ceiling.of(recursion, groups)
        degrees = ceiling.degrees()
        # The search seldom goes farther than twice the turning point in any direction.
        distances = prod(2 * turning_point(degree, weights) + 2 for degree in degrees)
        once = sum(step.cost + len(recursion.coordinates) for step in steps)
        work = distances * once
        if work <= (MAX_LATTICE_WORK if count > 1 else MAX_WORK):
            return Method(groups, ceiling, degrees, len(groups) == len(steps), work)
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
