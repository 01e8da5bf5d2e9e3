"""Query -> residual queries: subsets of atoms, their boundary, kept predicates and components.

For a set E of atoms, T_E is the largest number of results of ⋈_{i∈E} R_i that agree on one value of
the boundary (and of the external variables). docs/concepts.md defines the terms; docs/proofs/
residuals.md proves that the conventions fixed here are the same for every E of a query, which the
smoothness of every bound built on T_E needs. In a query with weights each result counts the product
of the weights of its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import chain, combinations
from math import prod

from sqlrs.effort import spend
from sqlrs.query import (
    Atom,
    Comparison,
    General,
    Inequality,
    Predicate,
    Query,
    Variable,
    closure,
)
from sqlrs.records import dataclass
from sqlrs.refusals import refusal
from sqlrs.residuals.across import Mask, touched_by, without_free

Members = frozenset[int]

MAX_ATOMS = 12
# There are 2 to this number of residuals, and an explanation, which is free, looks at all of them.
MAX_PRIVATE_ATOMS = 10
DEFAULT_MAX_EXTERNAL = 2


@dataclass(frozen=True)
class Reading:
    """How predicates that reach across a boundary are read: one choice for the whole query.

    ``exact_comparisons``: external compared variables range over their whole domain. Otherwise a
    comparison is kept only where one connected part of E holds all its variables.
    ``solved``: general predicates that a solver evaluates, kept in the same exact way.
    """

    exact_comparisons: bool = True
    solved: frozenset[General] = frozenset()

    @classmethod
    def of(
        cls,
        query: Query,
        *,
        max_external: int = DEFAULT_MAX_EXTERNAL,
        solved: frozenset[General] = frozenset(),
    ) -> Reading:
        """The reading by public facts: exact unless a residual has too many external variables."""
        exact = cls(exact_comparisons=True, solved=solved)
        if not solved and all(len(p.variables) < 2 for p in query.comparisons):
            return exact
        residuals = Residuals(query, exact)
        most = max(
            len(part.external)
            for members in subsets(query.everything)
            for part in residuals.parts(members)
        )
        return exact if most <= max_external else cls(exact_comparisons=False, solved=solved)


@dataclass(frozen=True)
class Residual:
    """The residual query q_E of one set of atoms E."""

    query: Query
    members: Members
    boundary: frozenset[Variable]
    external: frozenset[Variable]
    inequalities: frozenset[Inequality]
    comparisons: frozenset[Comparison]
    generals: tuple[General, ...]

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """The atoms of E in the query's order."""
        return tuple(self.query.atoms[i] for i in sorted(self.members))

    @cached_property
    def variables(self) -> frozenset[Variable]:
        """var(E)."""
        return self.query.variables(self.members)

    @cached_property
    def output(self) -> frozenset[Variable] | None:
        """O ∩ var(E), or None when rows are counted."""
        return None if self.query.distinct is None else self.query.distinct & self.variables

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """K(E): the predicates this residual keeps, in a stable order."""
        return (
            *sorted(self.inequalities, key=str),
            *sorted(self.comparisons, key=str),
            *self.generals,
        )

    @cached_property
    def determined(self) -> frozenset[Variable]:
        """The closure of the boundary under keys: variables whose values the boundary decides."""
        return self._closure[0]

    @property
    def determined_atoms(self) -> Members:
        """The atoms whose row the boundary decides."""
        return self._closure[1]

    @cached_property
    def decided(self) -> bool:
        """Whether T_E is known without looking at data: by keys, or because nothing is output.

        It is taken to be 1, or with weights what a result counts at most.
        """
        if self.output is not None and self.output <= self.determined:
            return True
        return self.determined_atoms == self.members

    @property
    def weighted(self) -> Members:
        """The atoms of E whose rows have weights."""
        return self.query.weighted & self.members

    @cached_property
    def _closure(self) -> tuple[frozenset[Variable], Members]:
        return closure(self.query, self.members, self.boundary)

    def __str__(self) -> str:
        return "{" + ", ".join(atom.alias for atom in self.atoms) + "}"


def subsets(members: Iterable[int]) -> Iterable[Members]:
    """All subsets, the empty one first."""
    items = sorted(members)
    return map(
        frozenset, chain.from_iterable(combinations(items, n) for n in range(len(items) + 1))
    )


class Residuals:
    """All residuals of a query under one reading."""

    def __init__(self, query: Query, reading: Reading | None = None) -> None:
        for kind, size, most in (
            ("tables", len(query.atoms), MAX_ATOMS),
            ("private tables", len(query.private), MAX_PRIVATE_ATOMS),
        ):
            if size > most:
                raise refusal(
                    "too_many_tables",
                    f"the query joins {size} {kind}; at most {most} are supported",
                )
        self.query = query
        self.reading = Reading.of(query) if reading is None else reading
        self._residuals: dict[Members, Residual] = {}
        self._parts: dict[Members, tuple[Residual, ...]] = {}
        # Sets of variables as bits: there are up to 2 to the number of atoms of everything below.
        self._names = tuple(sorted(query.variables(query.everything)))
        number = {variable: i for i, variable in enumerate(self._names)}

        def mask(variables: Iterable[Variable]) -> Mask:
            return sum(1 << number[v] for v in variables)

        self._atoms = [mask(atom.variables) for atom in query.atoms]
        self._spans = {p: mask(p.variables) for p in query.predicates}
        self._sets: dict[Mask, frozenset[Variable]] = {}
        self._inside: dict[Mask, frozenset[Inequality]] = {}

    @cached_property
    def required(self) -> tuple[Members, ...]:
        """Every E ≠ [n] whose complement holds only private atoms; ∅ too where it qualifies."""
        return tuple(
            self.query.everything - outside for outside in subsets(self.query.private) if outside
        )

    def of(self, members: Members) -> Residual:
        """The residual query of ``members``."""
        if members not in self._residuals:
            self._residuals[members] = self._build(members)
        return self._residuals[members]

    def parts(self, members: Members) -> tuple[Residual, ...]:
        """The independent parts of q_E: T_E is the product of their values.

        Two parts share no variable at all, boundary included, and no kept predicate spans them.
        """
        if members not in self._parts:
            pieces = self.connected(members)
            if len(pieces) > 1:
                whole = self.of(members)
                kept: tuple[Predicate, ...] = (
                    *whole.inequalities,
                    *whole.comparisons,
                    *whole.generals,
                )
                pieces = self._components(members, [self._spans[p] for p in kept])
            self._parts[members] = tuple(self.of(piece) for piece in pieces)
        return self._parts[members]

    def connected(self, members: Members) -> tuple[Members, ...]:
        """The components of E by shared variables alone, boundary counted."""
        return self._components(members, ())

    def undecided(self, wanted: Iterable[Members]) -> tuple[Residual, ...]:
        """The parts of the wanted residuals that only the data can tell, each once."""
        found = {
            part.members: part
            for members in wanted
            for part in self.parts(members)
            if not part.decided
        }
        return tuple(sorted(found.values(), key=lambda r: (len(r.members), sorted(r.members))))

    def assemble(
        self, wanted: Iterable[Members], measured: Mapping[Members, int]
    ) -> dict[Members, int]:
        """T_E of every wanted set from the measured parts; an absent value raises KeyError.

        With weights it is W_E, which no sum of weights that one value of the boundary allows
        exceeds: a measured part counts weights already, a part that keys decide is one result,
        which counts at most the product of its atoms' bounds, and so does each atom outside E.
        """
        values: dict[Members, int] = {}
        if not self.query.weighted:
            for members in wanted:
                parts = self.parts(members)
                values[members] = prod([measured[p.members] for p in parts if not p.decided])
            return values
        for members in wanted:
            value = self._heaviest(self.query.everything - members)
            for part in self.parts(members):
                value *= self._heaviest(part.members) if part.decided else measured[part.members]
            values[members] = value
        return values

    def _heaviest(self, members: Members) -> int:
        """What one row of each of these atoms counts at most: the product of their bounds."""
        weights = (self.query.atoms[i].weight for i in self.query.weighted & members)
        return prod(weight.bound for weight in weights if weight is not None)

    def _components(self, members: Members, links: Iterable[Mask]) -> tuple[Members, ...]:
        """The atoms grouped by shared variables, two variables of one link counting as shared."""
        # A link may hold external variables only, so it takes part as a group without atoms.
        groups: list[tuple[list[int], Mask]] = []
        own = (([i], self._atoms[i]) for i in sorted(members))
        for atoms, variables in chain(own, (([], link) for link in links)):
            apart = []
            for group in groups:
                if group[1] & variables:
                    atoms = group[0] + atoms
                    variables |= group[1]
                else:
                    apart.append(group)
            groups = [*apart, (atoms, variables)]
        found = [atoms for atoms, _ in groups if atoms]
        return (members,) if len(found) == 1 else tuple(map(frozenset, sorted(found, key=min)))

    def _build(self, members: Members) -> Residual:
        query = self.query
        spend(len(members) + len(self._spans))
        inside, outside = self._union(members), self._union(query.everything - members)
        # The query itself is the count, not a bound: nothing may be left out of it.
        whole = members == query.everything
        pieces = [inside] if whole else [self._union(piece) for piece in self.connected(members)]

        def local(predicate: Predicate) -> bool:
            return any(not self._spans[predicate] & ~piece for piece in pieces)

        reached, variables = touched_by(inside, self._exact, self._spans)
        reached, external = without_free(reached, self._set(variables & ~inside))
        return Residual(
            query=query,
            members=members,
            boundary=self._set(inside & outside),
            external=external,
            inequalities=frozenset[Inequality]().union(*map(self._inequalities, pieces)),
            comparisons=frozenset(p for p in query.comparisons if p in reached or local(p)),
            generals=tuple(p for p in query.generals if p in reached or local(p)),
        )

    def _union(self, members: Members) -> Mask:
        found = 0
        for i in members:
            found |= self._atoms[i]
        return found

    def _set(self, mask: Mask) -> frozenset[Variable]:
        if mask not in self._sets:
            self._sets[mask] = frozenset(v for i, v in enumerate(self._names) if mask >> i & 1)
        return self._sets[mask]

    def _inequalities(self, piece: Mask) -> frozenset[Inequality]:
        """The inequalities between variables of one piece."""
        if piece not in self._inside:
            self._inside[piece] = frozenset(
                p for p in self.query.inequalities if not self._spans[p] & ~piece
            )
        return self._inside[piece]

    @cached_property
    def _exact(self) -> frozenset[Predicate]:
        compared = self.query.comparisons if self.reading.exact_comparisons else frozenset()
        return frozenset[Predicate](self.reading.solved).union(compared)
