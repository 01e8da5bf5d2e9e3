"""The seam to a database: what the rest of sqlrs asks of an engine; nothing of any driver."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from decimal import Decimal
from typing import Protocol, TypeVar, cast, runtime_checkable

from sqlglot import exp

from sqlrs.catalog import Catalog, Family, Routine, Table
from sqlrs.errors import EngineFailed, UsageError
from sqlrs.records import dataclass
from sqlrs.trees.build import table_of
from sqlrs.trees.identifiers import column

Row = tuple[object, ...]
Fetch = Callable[[str], list[Row]]
Learned = TypeVar("Learned")

_NO_INTEGERS = "the database did not answer a statement with the integers it should"


class Snapshot(Protocol):
    """A read-only transaction: every statement sees the same state of the data."""

    def scalar(self, statement: exp.Expression) -> int:
        """Run a statement that yields one integer."""
        ...

    def rows(self, statement: exp.Expression) -> list[Row]:
        """Run a statement and fetch all its rows."""
        ...

    def catalog(self) -> Catalog:
        """The catalog as it is in this snapshot, without what the owner declared."""
        ...

    def routines(self, names: Collection[str]) -> tuple[Routine, ...]:
        """What the database says of the functions with these names, which are in lower case."""
        ...

    def interrupt(self) -> None:
        """Stop the running statement and every later one, from any thread."""
        ...


class Measurable(Protocol):
    """What can be measured: an engine, or one snapshot of it."""

    @property
    def dialect(self) -> str:
        """The dialect of its SQL."""
        ...

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Begin a snapshot; it ends with the context."""
        ...


@runtime_checkable
class Engine(Protocol):
    """A database with the tables. It fails with ``EngineFailed``, stops with ``Interrupted``.

    ``keeps_schema``: the statements of a snapshot see the schema of its beginning, whatever others
    change meanwhile.
    """

    dialect: str
    keeps_schema: bool

    def catalog(self) -> Catalog:
        """Tables, views, types and keys, all tables private until declared otherwise."""
        ...

    def check_keys(self, catalog: Catalog, keys: Mapping[str, Sequence[Sequence[str]]]) -> None:
        """Verify declared keys on the data (unique and never null); a violation is a UsageError."""
        ...

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Begin a snapshot; it ends with the context."""
        ...

    def interrupt(self) -> None:
        """Stop every open snapshot, from any thread: its statements end with ``Interrupted``."""
        ...

    def close(self) -> None:
        """Give the connection back or close it."""
        ...


@runtime_checkable
class TellsHowFar(Protocol):
    """An engine that knows, while a statement runs, how much of its work has been done."""

    def share_done(self) -> float | None:
        """Of the tasks that are known so far, from 0 to 1; None where nobody knows."""
        ...


@runtime_checkable
class HoldsStill(Protocol):
    """A snapshot that fixes each table by itself, when it first reads it or is told to."""

    def hold(self, tables: Iterable[Table]) -> None:
        """Fix these tables now; no row is read for it."""
        ...


@runtime_checkable
class Fetching(Protocol):
    """A snapshot of a database elsewhere, whose rows can be brought here to be joined."""

    @property
    def keeps_rows_unseen(self) -> bool:
        """Whether nobody else sees rows on their way here."""
        ...

    def size(self, table: Table, texts: Iterable[str]) -> tuple[int, int]:
        """The rows of a table, and the bytes of these columns of texts; it decides plans alone."""
        ...

    def fetched(self, statements: Mapping[str, exp.Select], memory: int) -> Measurable:
        """Run the statements, and keep their rows as tables of these names until the end.

        They are joined in so many bytes of memory; the rest is spilled.
        """
        ...

    def forget_fetched(self) -> None:
        """Give the memory of all fetched rows back."""
        ...


def hold_still(snapshot: Snapshot, tables: Iterable[Table]) -> None:
    """Fix all that is about to be read, before a charge: what is gone costs nobody anything."""
    if not isinstance(snapshot, HoldsStill):
        return
    try:
        snapshot.hold(tables)
        return
    except EngineFailed as error:
        failed = error
    raise EngineFailed(f"{failed.message}; nothing was charged", code=failed.code, hint=failed.hint)


class LastCatalog:
    """The catalog read last, and the fingerprint of the schema that it was read from.

    A fingerprint changes with the schema and is had for one statement, so that each release can
    look at the schema again.
    """

    def __init__(self, fingerprint: str) -> None:
        self._fingerprint = fingerprint
        self._last: tuple[list[Row], Catalog] | None = None

    def get(
        self, fetch: Fetch, read: Callable[[Fetch], Catalog], *, fixed: bool = False
    ) -> Catalog:
        """The catalog of the snapshot in which ``fetch`` runs a text; ``read`` where it is new.

        ``fixed``: nobody can change the schema, so that it need not be looked at twice.
        """
        last = self._last
        if last is not None and fixed:
            return last[1]
        now = [] if fixed else fetch(self._fingerprint)
        if last is not None and last[0] == now:
            return last[1]
        catalog = read(fetch)
        self._last = (now, catalog)
        return catalog


@dataclass(frozen=True)
class Opened:
    """A snapshot that is open already, in the place of its engine."""

    opened: Snapshot
    dialect: str

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """The snapshot; whoever opened it ends it."""
        return nullcontext(self.opened)


def one_integer(rows: list[Row]) -> int:
    """The single integer of a result. Anything else is a failure, never a zero."""
    values = integers(rows)
    if len(values) != 1:
        raise EngineFailed(_NO_INTEGERS)
    return values[0]


def integers(rows: list[Row]) -> list[int]:
    """The integers of a result's only row. Anything else is a failure."""
    if len(rows) != 1:
        raise EngineFailed(_NO_INTEGERS)
    return [_integer(value) for value in rows[0]]


def integer_rows(rows: list[Row]) -> list[list[int]]:
    """The rows of a result that has nothing but integers. Anything else is a failure."""
    return [[_integer(value) for value in row] for row in rows]


@runtime_checkable
class InColumns(Protocol):
    """A snapshot whose driver gives whole columns, which take a tenth of the memory of rows."""

    def integer_columns(self, statement: exp.Expression) -> list[array[int]]:
        """Run a statement that yields nothing but integers of 64 bits."""
        ...


def integer_columns(snapshot: Snapshot, statement: exp.Expression, number: int) -> list[array[int]]:
    """The columns of a statement that has so many, all of them integers of 64 bits."""
    if isinstance(snapshot, InColumns):
        found = snapshot.integer_columns(statement)
    else:
        found = [array("q") for _ in range(number)]
        for row in snapshot.rows(statement):
            if len(row) != number:
                raise EngineFailed(_NO_INTEGERS)
            for column_, value in zip(found, row, strict=True):
                column_.append(_integer(value))
    if len(found) != number:
        raise EngineFailed(_NO_INTEGERS)
    return found


def _integer(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, Decimal) and value.is_finite() and value == int(value):
        return int(value)
    raise EngineFailed(_NO_INTEGERS)


@runtime_checkable
class Remembering(Protocol):
    """A snapshot that may know what earlier ones found out about the very same rows.

    ``learned`` is None where others may have changed the rows since. What it holds is private.
    """

    learned: dict[str, object] | None

    def scans_files(self, statement: exp.Expression) -> bool:
        """Whether a statement reads files where they are, which must be looked at each time."""
        ...


def learned(snapshot: Snapshot, what: str, begin: Callable[[], Learned]) -> Learned:
    """What all snapshots of the same rows learn of them under a name; it may be added to."""
    known = snapshot.learned if isinstance(snapshot, Remembering) else None
    return begin() if known is None else cast(Learned, known.setdefault(what, begin()))


def rows_for_good(snapshot: Snapshot, *read_by: exp.Expression) -> object | None:
    """What stands for the rows of a snapshot where no later one can have others, else None.

    Also None where one of the statements reads a file, which must be looked at each time.
    """
    # Asked often, and to look a protocol up takes long.
    known = getattr(snapshot, "learned", None)
    if known is None or any(map(cast(Remembering, snapshot).scans_files, read_by)):
        return None
    return cast(object, known)


def verify_keys(
    snapshot: Snapshot,
    catalog: Catalog,
    keys: Mapping[str, Sequence[Sequence[str]]],
    *,
    try_order: bool = False,
) -> None:
    """Check declared keys with a statement each; the error names the key and no value.

    ``try_order``: the rows may lie in the order of a key, which shows in a fourth of the time that
    it takes to group them, and where they do not, at the first row that does not.
    """
    for name, column_sets in keys.items():
        table = catalog.named(name)
        table.with_keys(column_sets)
        source = table_of(table)
        for columns in column_sets:
            if try_order and _increases(snapshot, table, columns):
                continue
            if snapshot.rows(_key_is_violated(source, columns)) != [(False,)]:
                raise UsageError(
                    f"({', '.join(columns)}) is not a key of table {table.label}: "
                    "its values repeat or are null",
                    code="key_violated",
                )


def _increases(snapshot: Snapshot, table: Table, columns: Sequence[str]) -> bool:
    """Whether a whole number is never null and grows from each row to the next, in some order.

    Then no two rows share it, in whatever order the engine has taken them.
    """
    if len(columns) != 1 or table.column(columns[0]).type.family is not Family.INTEGER:
        return False
    own, before = column("own"), column("before")
    lag = exp.Window(this=exp.Lag(this=column(columns[0])), over="OVER")
    chain = exp.select(exp.alias_(column(columns[0]), "own"), exp.alias_(lag, "before")).from_(
        table_of(table)
    )
    null = exp.Is(this=own, expression=exp.Null())
    falls = exp.LTE(this=own.copy(), expression=before)
    broken = exp.select("1").from_(chain.subquery("chain")).where(exp.or_(null, falls))
    return snapshot.rows(exp.select(exp.Exists(this=broken))) == [(False,)]


def _key_is_violated(table: exp.Table, columns: Sequence[str]) -> exp.Select:
    null = exp.or_(*(exp.Is(this=column(c), expression=exp.Null()) for c in columns))
    repeated = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
    base = exp.select("1").from_(table)
    with_null = base.where(null)
    with_repeat = base.group_by(*(column(c) for c in columns)).having(repeated)
    return exp.select(exp.or_(exp.Exists(this=with_null), exp.Exists(this=with_repeat)))
