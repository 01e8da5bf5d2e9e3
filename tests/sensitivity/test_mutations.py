"""Wrong rules that look right: the exhaustive checks must catch each of them.

Each mutation lives here alone. It replaces one rule of the refined bound or one convention of T by
a looser reading, and `check` has to report a failure on a query where the right rule passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import pytest

from sqlrs.query import Atom, Predicate, Query, Variable, closure
from sqlrs.residuals import residual as residuals_module
from sqlrs.residuals.residual import Members, Residual, Residuals
from sqlrs.sensitivity import components, feasible, refined, role_sets, steps
from tests.sensitivity.exhaustive import Evaluate, Rows, Shape, Values, check, definition
from tests.sensitivity.shapes import BAG, EDGE, NODE, shapes
from tests.support import brute
from tests.support.builders import atom, pattern, query, table

FAST = (Fraction(1, 2),)
BY_NAME = {shape.name: shape for shape in shapes()}
Mutation = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(autouse=True)
def forget_compiled() -> Iterator[None]:
    """Nothing that a mutation compiled may be seen by another test."""
    steps.compile_recursion.cache_clear()
    yield
    steps.compile_recursion.cache_clear()


def failures(shape: Shape, **options: Any) -> set[str]:
    return check(shape, stop_at_failure=True, **options).failed


def assert_right_rule_passes(shape: Shape) -> None:
    # The shapes with a name are checked with the right rules elsewhere, in full.
    if shape.name not in BY_NAME:
        assert not failures(shape)
        steps.compile_recursion.cache_clear()


# Rules of the recursion.


def feasible_by_all_predicates(patch: pytest.MonkeyPatch) -> None:
    """Feasibility by every predicate of the query, though T_E has dropped some."""
    original = feasible.role_families

    def families(residual: Residual, candidates: Members, *more: Any) -> Any:
        query = residual.query
        return original(
            replace(residual, inequalities=query.inequalities, comparisons=query.comparisons),
            candidates,
        )

    patch.setattr(steps, "role_families", families)


def components_ignore_predicates(patch: pytest.MonkeyPatch) -> None:
    """Components that only shared variables hold together."""
    patch.setattr(components, "_kept", lambda residuals, members: ())


def components_ignore_shared_variables(patch: pytest.MonkeyPatch) -> None:
    """Every atom a component of its own."""

    def split(residuals: Residuals, members: Members) -> tuple[Members, ...]:
        return tuple(frozenset({i}) for i in sorted(members))

    patch.setattr(steps, "components", split)


def different_boundary_values(patch: pytest.MonkeyPatch) -> None:
    """Patterns in which no two boundary values are equal."""
    original = role_sets.RoleSets.__init__

    def search(self: Any, residual: Residual, candidates: Members) -> None:
        original(self, residual, candidates)
        constants = self.positions.constants
        positions = [p for p in self.positions.tokens.values() if p not in constants]
        self._apart += [(x, y) for x, y in product(positions, repeat=2) if x < y]

    patch.setattr(role_sets.RoleSets, "__init__", search)


def a_role_set_left_out(patch: pytest.MonkeyPatch) -> None:
    """The largest role set of each family is forgotten."""
    original = feasible.role_families

    def families(residual: Residual, candidates: Members, *more: Any) -> Any:
        found = original(residual, candidates)
        return tuple(f - {max(f, key=lambda roles: (len(roles), sorted(roles)))} for f in found)

    patch.setattr(steps, "role_families", families)


def a_family_left_out(patch: pytest.MonkeyPatch) -> None:
    """Of several families only the first counts."""
    original = feasible.role_families
    patch.setattr(steps, "role_families", lambda *given: original(*given)[:1])


def forced_by_part_of_a_key(patch: pytest.MonkeyPatch) -> None:
    """A row is taken for the new one as soon as one column of its key agrees."""
    original = role_sets.RoleSets._key_slots

    def columns(self: Any, atom: Atom) -> Any:
        return ([slot] for key in original(self, atom) for slot in key)

    patch.setattr(role_sets.RoleSets, "_key_slots", columns)


def a_cap_for_bags(patch: pytest.MonkeyPatch) -> None:
    """All variables known, row known: wrong where equal rows may repeat."""

    def reach(
        query: Query, members: Members, start: frozenset[Variable]
    ) -> tuple[frozenset[Variable], Members]:
        known, reached = closure(query, members, start)
        whole = {i for i in members if query.atoms[i].variables <= known}
        return known, reached | whole

    patch.setattr(residuals_module, "closure", reach)


def a_key_that_is_none(patch: pytest.MonkeyPatch) -> None:
    """The first column is believed to be a key."""

    def keys(self: Atom) -> tuple[frozenset[Variable], ...]:
        return (frozenset(t for _, t in self.terms[:1] if isinstance(t, Variable)),)

    patch.setattr(Atom, "keys", property(keys))


def strict_cycles_through_weak_ones(patch: pytest.MonkeyPatch) -> None:
    """x ≤ y counts as x < y."""
    original = role_sets.has_strict_cycle
    patch.setattr(
        role_sets,
        "has_strict_cycle",
        lambda edges: original((low, high, True) for low, high, _ in edges),
    )


def stop_at_first_fall(patch: pytest.MonkeyPatch) -> None:
    """The search ends at the first distance."""
    patch.setattr(refined, "_layers", _first_layers(0, refined._layers))


TWICE_EACH = Shape(
    "each value twice",
    query(atom(NODE, "a"), atom(table("s", "v"), "a"), atom(NODE, "b"), atom(table("s", "v"), "b")),
    most=2,
    decays=FAST,
)
ONE_COLUMN_KEY = Shape(
    "a bag with a column that repeats",
    query(atom(BAG, "a", "b"), atom(NODE, "a")),
    most=3,
    decays=FAST,
)
WEAK_CYCLE = Shape(
    "weak cycle",
    query(atom(BAG, "a", "b"), atom(BAG, "b", "c"), at_most=[("a", "b"), ("b", "c")]),
    most=3,
    decays=FAST,
)


@pytest.mark.parametrize(
    ("mutation", "shape"),
    [
        (feasible_by_all_predicates, BY_NAME["x≠y beside w"]),
        (components_ignore_predicates, BY_NAME["x≤y, y≤x"]),
        (components_ignore_shared_variables, BY_NAME["path of three, bag"]),
        (different_boundary_values, TWICE_EACH),
        (a_role_set_left_out, BY_NAME["path of two, bag"]),
        (a_role_set_left_out, BY_NAME["triangle, equal allowed"]),
        (a_family_left_out, BY_NAME["path of three, different"]),
        (forced_by_part_of_a_key, BY_NAME["path of two, set"]),
        (a_cap_for_bags, BY_NAME["repeated variable, bag"]),
        (a_key_that_is_none, ONE_COLUMN_KEY),
        (strict_cycles_through_weak_ones, WEAK_CYCLE),
        (stop_at_first_fall, BY_NAME["path of two, bag"]),
    ],
    ids=lambda given: getattr(given, "__name__", None) or given.name,
)
def test_a_wrong_rule_is_caught(
    mutation: Mutation, shape: Shape, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_right_rule_passes(shape)
    mutation(monkeypatch)
    assert failures(shape)


# Which predicates T_E keeps.


class LinksOutsideTheBoundary(Residuals):
    """Keeps a predicate unless it links parts that share no variable outside the boundary."""

    def _build(self, members: Members) -> Residual:
        built = super()._build(members)
        pieces: list[frozenset[Variable]] = []
        for i in members:
            own = self.query.atoms[i].variables - built.boundary
            touching = [p for p in pieces if not own.isdisjoint(p)]
            pieces = [p for p in pieces if p not in touching] + [own.union(*touching)]

        def kept(predicate: Predicate) -> bool:
            inner = predicate.variables - built.boundary
            return predicate.variables <= built.variables and any(inner <= p for p in pieces)

        inequalities = frozenset(p for p in self.query.inequalities if kept(p))
        return replace(built, inequalities=inequalities)


class KeepsLess(Residuals):
    """Drops the inequalities of large sets only."""

    def _build(self, members: Members) -> Residual:
        built = super()._build(members)
        return replace(built, inequalities=frozenset()) if len(members) > 1 else built


LOOP_BESIDE = Shape(
    "x≠y in one atom",
    query(
        atom(BAG, "x", "y"),
        atom(table("s", "v"), "y"),
        atom(table("t", "v"), "x"),
        different="x y",
    ),
    most=2,
    decays=FAST,
)


@pytest.mark.parametrize(
    ("shape", "kept"),
    [(BY_NAME["u≠v over three tables"], LinksOutsideTheBoundary), (LOOP_BESIDE, KeepsLess)],
    ids=lambda given: getattr(given, "name", None) or given.__name__,
)
def test_keeping_more_in_a_smaller_set_is_caught(shape: Shape, kept: type[Residuals]) -> None:
    assert_right_rule_passes(shape)
    assert failures(shape, residuals=kept)


# Conventions of T.


def one_value(residuals: Residuals, members: Members, database: Mapping[str, Rows]) -> int:
    """T_E by the definition alone: nothing is decided, nothing split."""
    return brute.residual_value(residuals.of(members), database)


def product_of_maxima(
    residuals: Residuals, wanted: Sequence[Members], database: Mapping[str, Rows]
) -> Values:
    """Components that share only boundary variables multiply their maxima."""

    def value(members: Members) -> int:
        parts = components.components(residuals, members)
        return prod(one_value(residuals, part, database) for part in parts)

    right = definition(residuals, wanted, database)
    return {m: value(m) if len(m) == 2 else right[m] for m in wanted}


def null_groups_in_pairs(
    residuals: Residuals, wanted: Sequence[Members], database: Mapping[str, Rows]
) -> Values:
    """NULL forms a boundary group of its own, in some of the residuals."""
    shown = {
        label: tuple(tuple(-7 if v is None else v for v in row) for row in rows)
        for label, rows in database.items()
    }
    right = definition(residuals, wanted, database)
    grouped = definition(residuals, wanted, shown)
    return {m: grouped[m] if len(m) == 2 else right[m] for m in wanted}


def dense_in_pairs(
    residuals: Residuals, wanted: Sequence[Members], database: Mapping[str, Rows]
) -> Values:
    """Between two integers lies another value, in some of the residuals."""

    def dense(variable: Variable) -> list[object]:
        return [Fraction(n, 2) for n in range(-2, 10)]

    right = definition(residuals, wanted, database)
    between = brute.residual_values(residuals, wanted, database, domain=dense)
    return {m: between[m] if len(m) == 2 else right[m] for m in wanted}


def inequality_kept_in_single_atoms(
    residuals: Residuals, wanted: Sequence[Members], database: Mapping[str, Rows]
) -> Values:
    """An inequality on an external compared variable is dropped in some residuals only."""

    def value(members: Members) -> int:
        built = residuals.of(members)
        if len(members) > 1 or built.decided:
            return definition(residuals, [members], database)[members]
        known = built.variables | built.external
        kept = frozenset(p for p in residuals.query.inequalities if p.variables <= known)
        return brute.residual_value(replace(built, inequalities=kept), database)

    return {m: value(m) for m in wanted}


def predicate_off_when_large(
    residuals: Residuals, wanted: Sequence[Members], database: Mapping[str, Rows]
) -> Values:
    """A comparison is given up where there is much data."""
    if max(map(len, database.values())) < 2:
        return definition(residuals, wanted, database)
    without = Residuals(replace(residuals.query, comparisons=frozenset()))
    return definition(without, wanted, database)


def rounded_up(
    residuals: Residuals, wanted: Sequence[Members], database: Mapping[str, Rows]
) -> Values:
    """A larger T that does not itself obey the step: the next power of two."""
    right = definition(residuals, wanted, database)
    return {m: 1 << (value - 1).bit_length() if value else 0 for m, value in right.items()}


IN_AND_OUT = Shape(
    "in and out of a",
    query(atom(EDGE, "a", "u"), atom(EDGE, "w", "a"), atom(NODE, "a"), different="a u w"),
    values=(0, 1, 2),
    universe={"node": [(0,)]},
    most=2,
    decays=FAST,
)
NULLABLE = table("n", "a", "v", nullable="v")
NULLS = Shape(
    "null at the boundary",
    query(atom(NULLABLE, "x", "v"), atom(table("m", "a"), "x"), atom(table("w", "v"), "v")),
    universe={"n": [(0, None), (0, 0)], "m": [(0,)], "w": [(0,)]},
    most=3,
    decays=FAST,
)
INTERVALS = table("i", "low", "high", "u")
BETWEEN = Shape(
    "z between",
    query(
        atom(INTERVALS, "x", "y", "u"),
        atom(table("s", "u"), "u"),
        atom(table("z", "z"), "z"),
        less=[("x", "z"), ("z", "y")],
    ),
    universe={"i": [(0, 1, 0), (0, 2, 0)], "s": [(0,)], "z": [(0,), (1,)]},
    most=2,
    decays=FAST,
)
PUNCTURED = Shape(
    "z between, not v",
    query(
        atom(table("i", "low", "high", "v", "u"), "x", "y", "v", "u"),
        atom(table("s", "u"), "u"),
        atom(table("z", "z"), "z"),
        at_most=[("x", "z"), ("z", "y")],
        different="v z",
    ),
    universe={"i": [(0, 0, 0, 0), (0, 0, 1, 0)], "s": [(0,)], "z": [(0,), (1,)]},
    most=2,
    decays=FAST,
)
LARGE = Shape(
    "comparison inside",
    query(atom(BAG, "a", "b"), atom(NODE, "b"), less=[("a", "b")]),
    values=(0, 1, 2),
    most=2,
    decays=FAST,
)


@pytest.mark.parametrize(
    ("evaluate", "shape"),
    [
        (product_of_maxima, IN_AND_OUT),
        (null_groups_in_pairs, NULLS),
        (dense_in_pairs, BETWEEN),
        (inequality_kept_in_single_atoms, PUNCTURED),
        (predicate_off_when_large, LARGE),
        (rounded_up, BY_NAME["two bags"]),
    ],
    ids=lambda given: getattr(given, "__name__", None) or given.name,
)
def test_mixed_conventions_are_caught(evaluate: Evaluate, shape: Shape) -> None:
    assert_right_rule_passes(shape)
    assert failures(shape, evaluate=evaluate)


NO_OUTPUT = Shape(
    "a part without output",
    query(
        atom(NODE, "a"),
        atom(BAG, "x", "y"),
        atom(BAG, "z", "w"),
        atom(table("t", "v"), "b"),
        distinct="x z",
    ),
    universe={"edge": [(0, 0), (1, 0)], "node": [(0,)], "t": [(0,)]},
    most=2,
    decays=FAST,
)


def test_an_empty_join_read_in_two_ways_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not failures(NO_OUTPUT)
    steps.compile_recursion.cache_clear()

    def everything_open(residuals: Residuals, members: Members) -> Members:
        return Members() if residuals.of(members).decided else members

    def mixed(
        residuals: Residuals, wanted: Sequence[Members], database: Mapping[str, Rows]
    ) -> Values:
        right = definition(residuals, wanted, database)
        return {
            m: one_value(residuals, m, database)
            if len(m) == 2 and not residuals.of(m).decided
            else right[m]
            for m in wanted
        }

    monkeypatch.setattr(steps, "open_part", everything_open)
    assert failures(NO_OUTPUT, evaluate=mixed)


# The search over distances.


def _first_layers(last: int, original: Callable[..., Iterator[Any]]) -> Callable[..., Any]:
    def layers(*given: Any) -> Iterator[Any]:
        for k, layer in enumerate(original(*given)):
            yield layer if k <= last else {}

    return layers


def test_a_stop_at_the_degree_over_beta_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = Shape(
        "path of four, different",
        pattern("ab bc cd de", of=BAG),
        universe={"edge": [(0, 1), (1, 2)]},
        most=1,
        decays=(Fraction(904837, 1_000_000),),  # e^−0.1
    )
    empty: dict[str, Rows] = {"edge": ()}
    assert not failures(shape, databases=[empty])
    monkeypatch.setattr(refined, "_layers", _first_layers(30, refined._layers))
    assert failures(shape, databases=[empty]) == {"smooth"}


def test_a_method_chosen_by_the_data_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = Shape(
        "three columns",
        query(*(atom(table(name, "v"), name) for name in "abc")),
        values=(0,),
        most=2,
        decays=(Fraction(4, 5),),
    )
    assert not failures(shape)
    original = refined.refined_sensitivity

    def by_data(residuals: Residuals, values: Values, weights: Any) -> Any:
        monkeypatch.setattr(refined, "MAX_LATTICE_WORK", sum(values.values()) % 2 * 10**9)
        return original(residuals, values, weights)

    monkeypatch.setattr(refined, "_method", refined._method.__wrapped__)
    monkeypatch.setattr(refined, "refined_sensitivity", by_data)
    assert "smooth" in failures(shape)
