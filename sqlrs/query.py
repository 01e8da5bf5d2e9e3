"""The conjunctive query as a value: frozen dataclasses that cannot be wrong.

q = count of π_o σ_{P1 ∧ … ∧ Pκ}(R_1(x_1) ⋈ … ⋈ R_n(x_n)), see docs/concepts.md. Nothing here knows
SQL: a condition that only the database can read is an opaque, hashable value.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import FrozenInstanceError, field, replace
from functools import cached_property

from sqlrs.catalog import ColumnType, Table, Value
from sqlrs.records import dataclass


class Variable(tuple[str]):
    """A join variable: all columns that share it are equal. Two variables are the same by name.

    Planning looks variables up and compares them more than anything else, and a tuple of the name
    is quicker at it than methods are.
    """

    name: str
    type: ColumnType

    def __new__(cls, name: str, type: ColumnType) -> Variable:
        """A variable of a name, whose values are those of a type."""
        self = super().__new__(cls, (name,))
        self.__dict__.update(name=name, type=type)
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __reduce__(self) -> tuple[object, ...]:
        return Variable, (self.name, self.type)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Variable({self.name!r}, {self.type!r})"


@dataclass(frozen=True)
class Constant:
    """A literal of the query, with the type of the column it is set against."""

    value: Value
    type: ColumnType = field(compare=False)

    def __str__(self) -> str:
        return repr(self.value) if isinstance(self.value, str) else str(self.value)


Term = Variable | Constant


@dataclass(frozen=True)
class Filter:
    """A condition on the columns of one atom, written over bare column names."""

    condition: Hashable
    columns: frozenset[str]


@dataclass(frozen=True)
class Weight:
    """What each row counts: a column of whole numbers from 0 to ``bound``, never null."""

    column: str
    bound: int

    def __post_init__(self) -> None:
        if self.bound < 0:
            raise ValueError("a weight has a bound of 0 or more")


@dataclass(frozen=True)
class Atom:
    """One occurrence of a table. ``terms`` holds every joined, compared, output and key column.

    A row counts ``weight`` times, once where there is none.
    """

    alias: str
    table: Table
    terms: tuple[tuple[str, Term], ...]
    filters: tuple[Filter, ...] = ()
    weight: Weight | None = None

    def __post_init__(self) -> None:
        columns = [column for column, _ in self.terms]
        if len(set(columns)) != len(columns):
            raise ValueError(f"atom {self.alias} lists a column twice")
        for column, term in self.terms:
            if not self.table.column(column).type.joins_with(term.type):
                raise ValueError(f"{self.alias}.{column} cannot hold {term}")
        for key in self.table.keys:
            if not key <= set(columns):
                raise ValueError(f"atom {self.alias} leaves out a column of a key")
        for condition in self.filters:
            for column in condition.columns:
                self.table.column(column)
        if self.weight is not None and self.table.column(self.weight.column).nullable:
            raise ValueError(f"the weight of {self.alias} may be null")

    @cached_property
    def variables(self) -> frozenset[Variable]:
        """The variables x_i of the atom."""
        return frozenset(term for _, term in self.terms if isinstance(term, Variable))

    @cached_property
    def reads(self) -> frozenset[str]:
        """The columns of the table that the atom needs, computed ones by their own name."""
        weight = () if self.weight is None else (self.weight.column,)
        named = (column for column, _ in self.terms)
        return frozenset(named).union(weight, *(f.columns for f in self.filters))

    @cached_property
    def keys(self) -> tuple[frozenset[Variable], ...]:
        """The variables of each key; columns fixed by a constant are already known."""
        terms = dict(self.terms)
        found = {
            frozenset(t for t in (terms[c] for c in key) if isinstance(t, Variable))
            for key in self.table.keys
        }
        return tuple(sorted(found, key=sorted))


@dataclass(frozen=True)
class Inequality:
    """left ≠ right, stored in one order."""

    left: Variable
    right: Variable

    def __post_init__(self) -> None:
        if not self.left < self.right:
            raise ValueError("an inequality holds two variables in order")

    @classmethod
    def between(cls, one: Variable, other: Variable) -> Inequality:
        """The inequality of two different variables, in either order."""
        return cls(min(one, other), max(one, other))

    @cached_property
    def variables(self) -> frozenset[Variable]:
        """Both variables."""
        return frozenset((self.left, self.right))

    def __str__(self) -> str:
        return f"{self.left} ≠ {self.right}"


@dataclass(frozen=True)
class Comparison:
    """left < right (strict) or left ≤ right; at least one side is a variable."""

    left: Term
    right: Term
    strict: bool

    def __post_init__(self) -> None:
        if not self.variables:
            raise ValueError("a comparison needs a variable")
        if self.left == self.right:
            raise ValueError("a comparison needs two different sides")
        if not (self.left.type.ordered and self.left.type.joins_with(self.right.type)):
            raise ValueError("a comparison needs two sides of one ordered type")

    @cached_property
    def variables(self) -> frozenset[Variable]:
        """The variables on either side."""
        return frozenset(t for t in (self.left, self.right) if isinstance(t, Variable))

    def __str__(self) -> str:
        return f"{self.left} {'<' if self.strict else '≤'} {self.right}"


@dataclass(frozen=True)
class General:
    """Any other condition over several atoms. ``condition`` names ``arguments`` by position."""

    condition: Hashable
    arguments: tuple[Variable, ...]

    def __post_init__(self) -> None:
        if not self.arguments or len(set(self.arguments)) != len(self.arguments):
            raise ValueError("a general predicate names each of its variables once")

    @cached_property
    def variables(self) -> frozenset[Variable]:
        """The variables it depends on."""
        return frozenset(self.arguments)


Predicate = Inequality | Comparison | General


@dataclass(frozen=True)
class Query:
    """A counting query. ``distinct`` is None for a count of rows, else the output variables o.

    With weights it is a sum: each result counts the product of its rows' weights. Of a DISTINCT
    query only atoms whose row the output decides have one.
    """

    atoms: tuple[Atom, ...]
    inequalities: frozenset[Inequality] = frozenset()
    comparisons: frozenset[Comparison] = frozenset()
    generals: tuple[General, ...] = ()
    distinct: frozenset[Variable] | None = None

    def __post_init__(self) -> None:
        if not self.atoms:
            raise ValueError("a query has at least one atom")
        aliases = [atom.alias for atom in self.atoms]
        if len(set(aliases)) != len(aliases):
            raise ValueError("two atoms have the same alias")
        tables: dict[tuple[str | None, str], Table] = {}
        for atom in self.atoms:
            if tables.setdefault(atom.table.identity, atom.table) != atom.table:
                raise ValueError(f"table {atom.table.label} is described in two ways")
        types: dict[Variable, ColumnType] = {}
        for variable in (v for atom in self.atoms for v in atom.variables):
            if not types.setdefault(variable, variable.type).joins_with(variable.type):
                raise ValueError(f"variable {variable} has two types")
        used = frozenset[Variable]().union(*(p.variables for p in self.predicates))
        if unknown := (used | (self.distinct or frozenset())) - set(types):
            raise ValueError(f"no atom holds {', '.join(map(str, sorted(unknown)))}")

    @cached_property
    def predicates(self) -> tuple[Predicate, ...]:
        """All predicates, in a stable order."""
        return (
            *sorted(self.inequalities, key=str),
            *sorted(self.comparisons, key=str),
            *self.generals,
        )

    @cached_property
    def weighted(self) -> frozenset[int]:
        """The positions of the atoms whose rows have weights: the query sums their products."""
        return frozenset(i for i, atom in enumerate(self.atoms) if atom.weight is not None)

    @cached_property
    def unweighted(self) -> Query:
        """The count of the same results, each once."""
        if not self.weighted:
            return self
        return replace(self, atoms=tuple(replace(atom, weight=None) for atom in self.atoms))

    @cached_property
    def everything(self) -> frozenset[int]:
        """[n]: the positions of all atoms."""
        return frozenset(range(len(self.atoms)))

    @cached_property
    def private(self) -> frozenset[int]:
        """The positions of the private atoms."""
        return frozenset(i for i, atom in enumerate(self.atoms) if atom.table.private)

    @cached_property
    def private_tables(self) -> tuple[frozenset[int], ...]:
        """D_r of each private table r: the positions of its atoms, in order of appearance."""
        groups: dict[tuple[str | None, str], set[int]] = {}
        for i in sorted(self.private):
            groups.setdefault(self.atoms[i].table.identity, set()).add(i)
        return tuple(frozenset(group) for group in groups.values())

    @property
    def tables(self) -> frozenset[Table]:
        """The tables of the atoms."""
        return frozenset(atom.table for atom in self.atoms)

    @property
    def large_units(self) -> tuple[str, ...]:
        """What is protected where it is more than a row, in words."""
        tables = {self.atoms[min(atoms)].table for atoms in self.private_tables}
        return tuple(
            f"units of {table.rows_per_unit} rows of {table.label}"
            for table in sorted(tables, key=lambda table: table.label)
            if table.rows_per_unit > 1
        )

    def variables(self, members: Iterable[int]) -> frozenset[Variable]:
        """var(E): all variables of the given atoms."""
        return frozenset[Variable]().union(*(self.atoms[i].variables for i in members))

    @cached_property
    def never_null(self) -> frozenset[Variable]:
        """Variables that a join, an inequality or a comparison makes non-null in every residual."""
        places: dict[Variable, int] = {}
        for term in (term for atom in self.atoms for _, term in atom.terms):
            if isinstance(term, Variable):
                places[term] = places.get(term, 0) + 1
        joined = frozenset(v for v, n in places.items() if n > 1)
        return joined.union(
            *(p.variables for p in self.inequalities), *(p.variables for p in self.comparisons)
        )


def closure(
    query: Query, members: frozenset[int], start: frozenset[Variable]
) -> tuple[frozenset[Variable], frozenset[int]]:
    """The variables that ``start`` determines through keys of ``members``, and the atoms reached.

    An atom without a key is a bag: knowing all its columns does not determine its row.
    """
    known, reached = set(start), set[int]()
    while found := [
        i for i in members - reached if any(key <= known for key in query.atoms[i].keys)
    ]:
        for i in found:
            known |= query.atoms[i].variables
            reached.add(i)
    return frozenset(known), frozenset(reached)
