"""A residual as a sum of products: leaves joined on variables, conditions, and the free variables.

The value of a problem is a function of its free variables: the number of combinations of leaf rows
(or of distinct outputs) that agree with them and satisfy every condition. docs/planner.md explains
the terms, docs/proofs/plans.md proves the rewrites.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from sqlrs.catalog import Table
from sqlrs.query import (
    Atom,
    Comparison,
    Constant,
    Filter,
    General,
    Inequality,
    Predicate,
    Term,
    Variable,
)
from sqlrs.residuals import Residual


@dataclass(frozen=True)
class Ranks:
    """Columns of a leaf that hold ranks in place of values, and which ranks are above which.

    A value's rank is its place among the values of one column of a table, the rarest first. Ranks
    are ``narrow`` where 32 bits hold them, which makes groups of them cheaper.
    """

    table: Table
    column: str
    columns: frozenset[str]
    above: frozenset[tuple[str, str]] = frozenset()
    narrow: bool = False

    @cached_property
    def label(self) -> tuple[object, ...]:
        """The ranks without what is known of the table."""
        return (self.table.identity, self.column, self.columns, self.above)


@dataclass(frozen=True)
class Leaf:
    """An input relation: rows of a table, or of an earlier step's result called ``table``.

    ``maximised`` columns are not kept: a kept value then counts as often as its most frequent
    completion by them, which bounds every choice of their values from above. ``expected`` is the
    number of rows that an earlier step's result is taken to have.
    """

    name: str
    table: Table | str
    columns: tuple[tuple[str, Variable], ...]
    constants: tuple[tuple[str, Constant], ...] = ()
    filters: frozenset[Filter] = frozenset()
    guarded: frozenset[str] = frozenset()
    maximised: tuple[str, ...] = ()
    keys: tuple[frozenset[Variable], ...] = ()
    expected: float = 0.0
    ranks: Ranks | None = None
    passing: Passing | None = None

    @classmethod
    def of(cls, atom: Atom, never_null: frozenset[Variable]) -> Leaf:
        """The rows of an atom, those with NULL in a joined or compared column left out."""
        columns = tuple((c, t) for c, t in atom.terms if isinstance(t, Variable))
        return cls(
            name=atom.alias,
            table=atom.table,
            columns=columns,
            constants=tuple((c, t) for c, t in atom.terms if isinstance(t, Constant)),
            filters=frozenset(atom.filters),
            guarded=frozenset(
                c for c, v in columns if v in never_null and atom.table.column(c).nullable
            ),
            keys=atom.keys,
        )

    @cached_property
    def variables(self) -> frozenset[Variable]:
        """The variables that the leaf provides."""
        return frozenset(v for _, v in self.columns)

    @cached_property
    def label(self) -> tuple[object, ...]:
        """Everything but the variables and the name."""
        table = self.table if isinstance(self.table, str) else self.table.identity
        names = tuple(c for c, _ in self.columns)
        rest = (
            self.filters,
            self.guarded,
            self.maximised,
            self.ranks and self.ranks.label,
            self.passing and self.passing.label,
        )
        return (table, names, frozenset(self.constants), *rest)

    @cached_property
    def label_hash(self) -> int:
        """A hash of the label, computed once."""
        return hash(self.label)

    def substituted(self, image: Mapping[Variable, Variable]) -> Leaf:
        """The leaf with variables replaced."""
        if self.variables.isdisjoint(image):
            return self
        return replace(
            self,
            columns=tuple((c, image.get(v, v)) for c, v in self.columns),
            keys=tuple(frozenset(image.get(v, v) for v in key) for key in self.keys),
        )

    def merged(self, other: Leaf) -> Leaf | None:
        """One leaf for both where a common key says that their rows are the same, else None."""
        if self.table != other.table or self.maximised or other.maximised:
            return None
        if self.ranks != other.ranks or self.passing or other.passing:
            return None
        mine: dict[str, Term] = {**dict(self.columns), **dict(self.constants)}
        theirs: dict[str, Term] = {**dict(other.columns), **dict(other.constants)}
        keys = self.table.keys if isinstance(self.table, Table) else frozenset()
        if not any(all(mine[c] == theirs[c] for c in key) for key in keys):
            return None
        if any(mine[c] != theirs[c] for c in mine.keys() & theirs.keys()):
            return None
        return replace(
            self,
            columns=(*self.columns, *(p for p in other.columns if p[0] not in mine)),
            constants=(*self.constants, *(p for p in other.constants if p[0] not in mine)),
            filters=self.filters | other.filters,
            guarded=self.guarded | other.guarded,
        )


@dataclass(frozen=True)
class Passing:
    """For each row of one leaf the number of rows of another that lie beyond it in an order.

    Both agree in the ``common`` columns, pairs of names. The other's column ``beyond`` is compared
    with the column ``at``: greater if ``upwards``, else less, and unequal if ``strict``.
    """

    rows: Leaf
    counted: Leaf
    common: tuple[tuple[str, str], ...]
    at: str
    beyond: str
    upwards: bool
    strict: bool

    @cached_property
    def label(self) -> tuple[object, ...]:
        """All of it without the variables."""
        order = (self.at, self.beyond, self.upwards, self.strict)
        return (self.rows.label, self.counted.label, self.common, order)


@dataclass(frozen=True)
class Equal:
    """Two free variables that an identification of variables makes equal."""

    left: Variable
    right: Variable

    @property
    def variables(self) -> frozenset[Variable]:
        """Both variables."""
        return frozenset((self.left, self.right))

    def __str__(self) -> str:
        return f"{self.left} = {self.right}"


@dataclass(frozen=True)
class Above:
    """The rank of one variable is above that of another."""

    left: Variable
    right: Variable

    @property
    def variables(self) -> frozenset[Variable]:
        """Both variables."""
        return frozenset((self.left, self.right))

    def __str__(self) -> str:
        return f"{self.left} above {self.right}"


@dataclass(frozen=True)
class Renamed:
    """A predicate in which variables were identified with others."""

    predicate: Comparison | General
    image: tuple[tuple[Variable, Variable], ...]

    @cached_property
    def variables(self) -> frozenset[Variable]:
        """The variables that stand in for the predicate's own."""
        return frozenset(v for _, v in self.image)

    def __str__(self) -> str:
        return f"{self.predicate} with {', '.join(f'{a} = {b}' for a, b in self.image)}"


Other = Comparison | General | Renamed | Equal | Above
Condition = Predicate | Renamed | Equal | Above


def substituted(condition: Other, image: Mapping[Variable, Variable]) -> Other:
    """The condition with variables replaced; an ``Equal`` holds free ones, which stay."""
    if isinstance(condition, Equal) or condition.variables.isdisjoint(image):
        return condition
    if isinstance(condition, Above):
        return Above(
            image.get(condition.left, condition.left), image.get(condition.right, condition.right)
        )
    if isinstance(condition, Renamed):
        renamed = tuple((a, image.get(b, b)) for a, b in condition.image)
        return Renamed(condition.predicate, renamed)
    return Renamed(condition, tuple((v, image.get(v, v)) for v in sorted(condition.variables)))


@dataclass(frozen=True)
class Problem:
    """What is to be counted, for each value of the free variables."""

    leaves: tuple[Leaf, ...]
    free: frozenset[Variable]
    inequalities: frozenset[Inequality] = frozenset()
    others: tuple[Other, ...] = ()
    output: frozenset[Variable] | None = None

    @classmethod
    def of(cls, residual: Residual) -> Problem:
        """The residual's count for each value of its boundary."""
        never_null = residual.query.never_null
        return cls(
            leaves=tuple(Leaf.of(atom, never_null) for atom in residual.atoms),
            free=residual.boundary,
            inequalities=residual.inequalities,
            others=(*sorted(residual.comparisons, key=str), *residual.generals),
            output=residual.output,
        )

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """All variables, in order."""
        return tuple(sorted(frozenset[Variable]().union(*(x.variables for x in self.leaves))))

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """All conditions, in a stable order."""
        return (*sorted(self.inequalities, key=lambda p: (p.left, p.right)), *self.others)

    def restricted(self, leaves: Iterable[Leaf]) -> Problem:
        """The problem joined with further leaves."""
        return replace(self, leaves=(*leaves, *self.leaves))
