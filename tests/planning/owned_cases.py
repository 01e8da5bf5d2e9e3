"""What units contribute, word by word: random measures with an owner, and Contributions of them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlrs.catalog import Table
from sqlrs.measures import Contributions, KeyDomain, Ordinals, Signed
from sqlrs.query import Constant, Inequality, Query, Term, Variable
from tests.planning.adapters import Direct
from tests.planning.strategies import TABLES
from tests.planning.test_grouped import (
    evaluate,
    in_order,
    keys_of,
    listed,
    random_atom,
    random_domain,
    random_pairs,
    random_rows,
    random_weight,
    value_of,
    with_remainder,
    with_values,
)
from tests.privacy.vector_worlds import placed
from tests.support import brute
from tests.support.brute import Row
from tests.support.builders import INTEGER

Numbers = dict[object, dict[Ordinals, int]]
"""Of each unit the number in each group."""


@dataclass(frozen=True)
class OwnedCase:
    """Terms with the tables they see, domains with the rows in order, and all stored rows."""

    terms: tuple[Signed, ...]
    domains: tuple[KeyDomain, ...]
    groups: list[list[Row]]
    rows: dict[str, list[Row]]

    def fill(self, snapshot: Direct) -> None:
        for of in TABLES:
            snapshot.fill(of, self.rows[of.name])

    def contributions(self, grid: Sequence[int]) -> Contributions:
        """By definition."""
        return placed(self.numbers().values(), grid)

    def numbers(self) -> Numbers:
        """What each unit contributes to each group."""
        found: Numbers = {}
        for term in self.terms:
            # One name may be computed in two ways, each in a term of its own.
            tables = {a.table.name: a.table for a in term.query.atoms}
            rows = {name: with_values(of, self.rows[name]) for name, of in tables.items()}
            for owner, group, weight in owned_results(term, self.domains, self.groups, rows):
                if owner is not None:
                    own = found.setdefault(owner, {})
                    own[group] = own.get(group, 0) + term.coefficient * weight
        return found


def owned_results(
    term: Signed,
    domains: Sequence[KeyDomain],
    groups: Sequence[Sequence[Row]],
    rows: Mapping[str, Sequence[Row]],
) -> list[tuple[object, Ordinals, int]]:
    """Each result with its owner, group and weight; those in no group are left out."""
    (owner,) = set(term.owners)
    every = keys_of(domains, groups)
    seen = set[Row]()
    found = []
    for a, weight in brute.weighed(term.query, term.query.everything, rows, evaluate):
        if not all(brute.holds(p, a, evaluate) for p in term.query.predicates):
            continue
        if term.query.distinct is not None:
            output = tuple(a[v] for v in sorted(term.query.distinct))
            if output in seen:
                continue
            seen.add(output)
        values = [value_of(key, a) for key in term.keys]
        for group, wanted in every.items():
            if all(values[i] == value for i, value in wanted.items()):
                found.append((value_of(owner, a), group, weight))
    return found


def seen(contributions: Contributions) -> tuple[object, ...]:
    """What a release depends on: units at the first place, and sums of 0, may be left out."""
    totals = {group: found for group, found in contributions.totals.items() if any(found)}
    return contributions.grid, contributions.units[1:], contributions.below[1:], totals


def random_measure(rng: random.Random) -> OwnedCase:
    """One to three terms over the same rows: few units, most of them in several groups."""
    count = rng.choice([0, 0, 1, 1, 2])
    apart = [(i,) for i in range(count)]
    numbers = apart if count < 2 or rng.random() < 0.5 else [(1, 0)]
    groups = [random_domain(len(some), rng) for some in numbers]
    domains = tuple(listed(some, rows) for some, rows in zip(numbers, groups, strict=True))
    terms = tuple(random_term(rng, count) for _ in range(rng.choice([1, 1, 2, 3])))
    rows = {of.name: random_rows(of, rng) for of in TABLES}
    return OwnedCase(terms, domains, [in_order(one) for one in groups], rows)


def random_term(rng: random.Random, count: int) -> Signed:
    """A query with keys and one owner, which may be a key too, or a constant."""
    tables: dict[str, Table] = {
        of.name: with_remainder(of, rng.choice(of.columns).name) if rng.random() < 0.6 else of
        for of in TABLES
    }
    atoms = [random_atom(f"t{i}", rng, tables) for i in range(rng.choice([1, 2, 2, 3]))]
    names = sorted(frozenset[Variable]().union(*(one.variables for one in atoms)))
    if not names:
        return random_term(rng, count)
    terms: list[Term | None] = [*names, *names, Constant(1, INTEGER), None]
    keys = tuple(rng.choice(terms) for _ in range(count))
    owner: Term = rng.choice(names) if rng.random() < 0.9 else Constant(1, INTEGER)
    pairs = random_pairs(names, rng)
    different = frozenset(Inequality.between(*pair) for pair in pairs if rng.random() < 0.4)
    output = None
    if rng.random() < 0.4:
        output = frozenset(v for v in names if v in (*keys, owner) or rng.random() < 0.4)
    if rng.random() < 0.4:
        atoms = [random_weight(one, output, rng) for one in atoms]
    found = Query(tuple(atoms), different, distinct=output)
    owners = (owner,) * rng.choice([1, 1, 2])
    return Signed(rng.choice([1, 1, 2, -1, -3]), found, keys, owners)
