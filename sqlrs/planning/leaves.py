"""The inputs of a problem: rows of a table as they are, or what is made of them before a join.

Each kind is a frozen value that cannot be wrong. All of them have a name, the columns that hold
variables, keys, and a ``label``: everything but the name and the variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cached_property
from typing import Any, Self, TypeVar

from sqlrs.catalog import Table
from sqlrs.query import Atom, Constant, Filter, Term, Variable
from sqlrs.records import dataclass
from sqlrs.residuals.colours import ColourLink, Label

Columns = tuple[tuple[str, Variable], ...]


@dataclass(frozen=True)
class _Input:
    """What every kind of leaf has."""

    name: str
    columns: Columns
    keys: tuple[frozenset[Variable], ...] = ()

    def __post_init__(self) -> None:
        for key in self.keys:
            if not key <= self.variables:
                raise ValueError(f"a key of {self.name} names a variable that it does not hold")

    @cached_property
    def variables(self) -> frozenset[Variable]:
        """The variables that the leaf provides."""
        return frozenset(v for _, v in self.columns)

    @property
    def counted(self) -> bool:
        """Whether a row carries a number of results, or stands for one."""
        return False

    @cached_property
    def label(self) -> tuple[object, ...]:
        """Everything but the variables and the name."""
        raise NotImplementedError

    @cached_property
    def link(self) -> ColourLink:
        """The label, and the variables in the order of the columns."""
        return ColourLink(Label(self.label), tuple(v for _, v in self.columns))

    def substituted(self, image: Mapping[Variable, Variable]) -> Self:
        """The leaf with variables replaced."""
        if self.variables.isdisjoint(image):
            return self
        return replace(
            self,
            columns=tuple((c, image.get(v, v)) for c, v in self.columns),
            keys=tuple(frozenset(image.get(v, v) for v in key) for key in self.keys),
        )


@dataclass(frozen=True, kw_only=True)
class OfTable(_Input):
    """A leaf over the rows of a table that pass its conditions.

    A row counts as often as the product of the columns ``weights`` says; a column that is there
    twice, because two atoms became one leaf, is multiplied twice.
    """

    table: Table
    constants: tuple[tuple[str, Constant], ...] = ()
    filters: frozenset[Filter] = frozenset()
    guarded: frozenset[str] = frozenset()
    weights: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        named = {c for c, _ in (*self.columns, *self.constants)} | self.guarded | {*self.weights}
        known = {column.name for column in self.table.columns}
        if not named <= known:
            raise ValueError(f"{self.name} names a column that {self.table.label} does not have")

    @property
    def counted(self) -> bool:
        """A row without a weight stands for one result."""
        return bool(self.weights)

    @cached_property
    def conditions_label(self) -> tuple[object, ...]:
        """The table, the columns, conditions and weights of a row, without variables."""
        names = tuple(c for c, _ in self.columns)
        return (
            *(self.table.identity, names, frozenset(self.constants)),
            *(self.filters, self.guarded, self.weights),
        )


@dataclass(frozen=True, kw_only=True)
class TableRows(OfTable):
    """The rows of a table, those left out with NULL in a ``guarded`` column."""

    @classmethod
    def of(cls, atom: Atom, never_null: frozenset[Variable]) -> TableRows:
        """The rows of an atom, those with NULL in a joined or compared column left out."""
        columns = tuple((c, t) for c, t in atom.terms if isinstance(t, Variable))
        return cls(
            name=atom.alias,
            columns=columns,
            keys=atom.keys,
            table=atom.table,
            constants=tuple((c, t) for c, t in atom.terms if isinstance(t, Constant)),
            filters=frozenset(atom.filters),
            guarded=frozenset(
                c for c, v in columns if v in never_null and atom.table.column(c).nullable
            ),
            weights=() if atom.weight is None else (atom.weight.column,),
        )

    @cached_property
    def label(self) -> tuple[object, ...]:
        """Everything but the variables and the name."""
        return ("rows", *self.conditions_label)

    def sent(self, by: str) -> SentRows:
        """The same rows, sent to tasks by a column."""
        return SentRows(**self._all, by=by)

    def ranked(self, ranks: Ranks) -> Ranked:
        """The same rows with ranks in place of values."""
        return Ranked(**self._all, ranks=ranks)

    @property
    def _all(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, kw_only=True)
class SentRows(TableRows):
    """The same rows, those with one value in the column ``by`` all sent to one task."""

    by: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights or len(self.variables) < len(self.columns):
            raise ValueError("rows are sent with one column of each variable, and no weight")

    @cached_property
    def label(self) -> tuple[object, ...]:
        """Everything but the variables and the name."""
        return ("sent rows", self.by, *self.conditions_label)


@dataclass(frozen=True, kw_only=True)
class Completions(OfTable):
    """The rows of a table by some columns, each with its most frequent completion by others.

    The ``maximised`` columns are not kept: a kept value counts as often as its most frequent
    completion by them, which bounds every choice of their values from above. With weights the
    heaviest one takes the place of the most frequent.
    """

    maximised: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.maximised:
            raise ValueError(f"{self.name} maximises nothing")

    @property
    def counted(self) -> bool:
        """A completion of unique rows counts once, and no number is carried along."""
        return not self.keys or bool(self.weights)

    @cached_property
    def label(self) -> tuple[object, ...]:
        """Everything but the variables and the name."""
        return ("completions", *self.conditions_label, self.maximised)


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


@dataclass(frozen=True, kw_only=True)
class Ranked(OfTable):
    """The rows of a table with ranks in place of the values of some columns."""

    ranks: Ranks

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.ranks.columns <= {c for c, _ in self.columns}:
            raise ValueError(f"{self.name} ranks a column that it does not hold")

    @cached_property
    def label(self) -> tuple[object, ...]:
        """Everything but the variables and the name."""
        return ("ranked", *self.conditions_label, self.ranks.label)


@dataclass(frozen=True)
class Passing:
    """For each row of one leaf the number of rows of another that lie beyond it in an order.

    Rows of the other leaf that have weights count these.
    Both agree in the ``common`` columns, pairs of names. The other's column ``beyond`` is compared
    with the column ``at``: greater if ``upwards``, else less, and unequal if ``strict``.
    """

    rows: TableRows
    counted: TableRows
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


@dataclass(frozen=True, kw_only=True)
class RunningSum(_Input):
    """The values of one leaf, each with the number of another one's rows beyond it."""

    passing: Passing

    @property
    def table(self) -> Table:
        """The table whose values it holds."""
        return self.passing.rows.table

    @property
    def counted(self) -> bool:
        """Each row carries the number of rows beyond it."""
        return True

    @cached_property
    def label(self) -> tuple[object, ...]:
        """Everything but the variables and the name."""
        return ("running sum", tuple(c for c, _ in self.columns), self.passing.label)


@dataclass(frozen=True, kw_only=True)
class Picked(_Input):
    """The few values that an earlier step of the statement picked: a result under this name.

    ``expected`` is the number of rows that it is taken to have; ``limited``: it has no more.
    """

    expected: float
    limited: bool = False

    @cached_property
    def label(self) -> tuple[object, ...]:
        """Everything but the variables; the name says which result it is."""
        return ("picked", self.name, tuple(c for c, _ in self.columns))


Leaf = TableRows | Completions | Ranked | RunningSum | Picked


def weights_of(leaf: Leaf) -> tuple[str, ...]:
    """The columns whose product a row of the leaf counts, or each row that it sums up."""
    match leaf:
        case TableRows() | Completions() | Ranked():
            return leaf.weights
        case RunningSum(passing=passing):
            return passing.counted.weights
    return ()


def merged(one: Leaf, other: Leaf) -> Leaf | None:
    """One leaf for both where a common key says that their rows are the same, else None."""
    if isinstance(one, Ranked) and isinstance(other, Ranked):
        return _merged(one, other) if one.ranks == other.ranks else None
    if isinstance(one, TableRows) and isinstance(other, TableRows):
        return _merged(one, other)
    return None


_Rows = TypeVar("_Rows", TableRows, Ranked)


def _merged(one: _Rows, other: _Rows) -> _Rows | None:
    if one.table != other.table:
        return None
    mine: dict[str, Term] = {**dict(one.columns), **dict(one.constants)}
    theirs: dict[str, Term] = {**dict(other.columns), **dict(other.constants)}
    if not any(all(mine[c] == theirs[c] for c in key) for key in one.table.keys):
        return None
    if any(mine[c] != theirs[c] for c in mine.keys() & theirs.keys()):
        return None
    return replace(
        one,
        columns=(*one.columns, *(p for p in other.columns if p[0] not in mine)),
        constants=(*one.constants, *(p for p in other.constants if p[0] not in mine)),
        filters=one.filters | other.filters,
        guarded=one.guarded | other.guarded,
        weights=tuple(sorted((*one.weights, *other.weights))),
    )


def completed(leaf: TableRows | Completions, kept: Columns) -> Completions:
    """The leaf with only some columns kept, the others by their most frequent completion."""
    before = leaf.maximised if isinstance(leaf, Completions) else ()
    return Completions(
        name=leaf.name,
        columns=kept,
        keys=(frozenset(v for _, v in kept),) if leaf.keys else (),
        table=leaf.table,
        constants=leaf.constants,
        filters=leaf.filters,
        guarded=leaf.guarded,
        weights=leaf.weights,
        maximised=(*before, *(c for c, v in leaf.columns if (c, v) not in kept)),
    )
