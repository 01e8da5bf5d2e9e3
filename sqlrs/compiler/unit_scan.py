"""The rows of a private table that one unit owns: the one place where such a scan is written."""

from __future__ import annotations

from sqlglot import exp

from sqlrs.catalog import Catalog, ColumnType, Family, Table
from sqlrs.compiler.flat import not_null
from sqlrs.records import dataclass
from sqlrs.trees.build import named, rows_of, select_from, table_of
from sqlrs.trees.identifiers import column
from sqlrs.trees.naming import free_name
from sqlrs.units import Link, Owner
from sqlrs.values import values_of

_WORD = "owner"
_ROW = "t"
_MOST_LINKS = 20
INNER_NAMES = frozenset(
    {
        *(_ROW, "u", "owned", "numbered"),
        *(f"{word}{number}" for word in ("l", "link") for number in range(1, _MOST_LINKS + 1)),
    }
)
"""Aliases that stand inside a scan, or around all: no relation of a walk has one of them."""


class NotOwned(Exception):
    """Why the rows of a table are nobody's alone, in words."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True, eq=False)
class UnitScan:
    """The columns ``shown`` of a table, and the owner's id as the column ``owner``.

    The id is never NULL: rows without an owner are left out. ``tables`` are all that is read.
    """

    select: exp.Select
    shown: tuple[str, ...]
    owner: str
    kind: ColumnType
    tables: tuple[Table, ...]


def unit_scan(table: Table, catalog: Catalog) -> UnitScan:
    """The scan of a private table, its links followed; NotOwned where a row may have two owners.

    Where only some rows of a unit are used, rows_of leaves out the others first; who owns a row is
    found in the tables as they stand.
    """
    if len(table.owners) != 1:
        message = f"a row of {table.label} may belong to several units"
        if not table.owners:
            message = f"nothing says which unit a row of {table.label} belongs to"
        raise NotOwned(message, "name tables whose rows belong to one unit each")
    [owner] = table.owners
    shown = [one for one in table.columns if one.type.family is not Family.OPAQUE]
    hidden = free_name(_WORD, {one.name.lower() for one in table.columns})
    steps = _steps(owner, catalog)
    holder = f"l{len(steps)}" if steps else _ROW
    last = steps[-1][1] if steps else table
    kind = last.column(owner.column).type
    if not is_whole_value(kind):
        raise NotOwned(
            f"ids of the type {kind.name} can be equal without being the same",
            "let the owner keep the ids as whole numbers or texts",
        )
    select = select_from(
        rows_of(table, [one.name for one in table.columns], _ROW),
        *(column(one.name, _ROW) for one in shown),
        named(column(owner.column, holder), hidden),
    )
    before = _ROW
    for number, (link, target) in enumerate(steps, start=1):
        here = f"l{number}"
        equal = [
            exp.EQ(this=column(one, before), expression=column(other, here))
            for one, other in zip(link.columns, link.key, strict=True)
        ]
        join = exp.Join(this=table_of(target, here), on=exp.and_(*equal, copy=False))
        select.append("joins", join)
        before = here
    select.set("where", exp.Where(this=not_null(column(owner.column, holder))))
    names = tuple(one.name for one in shown)
    return UnitScan(select, names, hidden, kind, (table, *(target for _, target in steps)))


def is_whole_value(kind: ColumnType | None) -> bool:
    """Whether equal values are the same value: grouping may show any of them."""
    if kind is None:
        return False
    # A decimal column with fixed places has one form for each value, whatever its name says.
    fixed = kind.family is Family.DECIMAL and kind.places is not None
    return values_of(kind).one_form or fixed or kind.name.lower() == "uuid"


def _steps(owner: Owner, catalog: Catalog) -> list[tuple[Link, Table]]:
    found: list[tuple[Link, Table]] = []
    if len(owner.links) > _MOST_LINKS:
        raise NotOwned("the way from a row to its owner is too long", "let the owner shorten it")
    for link in owner.links:
        target = next((one for one in catalog.tables if one.identity == link.table), None)
        if target is None or not any(key <= set(link.key) for key in target.keys):
            raise NotOwned(
                "the way from a row to its owner does not lead through keys",
                "let the owner declare the key that the link holds",
            )
        rest = owner.links[len(found) + 1 :]
        if target.private and target.owners != (Owner(owner.column, rest),):
            # Whoever else owns the row on the way would take this one along.
            raise NotOwned(
                f"the way from a row to its owner leads through {target.label}, whose rows have "
                "another owner",
                "let the owner declare one way from each table to the unit",
            )
        found.append((link, target))
    return found
