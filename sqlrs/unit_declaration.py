"""The catalog where a unit is protected, with the owners of all private rows, or what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlrs.catalog import Catalog, Column, Table
from sqlrs.errors import UsageError
from sqlrs.inputs.said_owners import SaidOwner
from sqlrs.row_owners import Identity, RowOwners, short_name
from sqlrs.units import ROW, Owner, Unit

# Each distance takes so many steps for a table: without an end to it a release would.
MOST_MAX_ROWS = 1000
# Where budgets and journals are kept: no owner is asked for, so no query reads them.
_OWN_SCHEMAS = frozenset({"sqlrs", "sqlrs_ledger"})


def with_unit(
    catalog: Catalog,
    unit: str,
    owners: Mapping[str, Sequence[SaidOwner]],
    max_rows: Mapping[str, int],
) -> Catalog:
    """The catalog with its unit, and every private table with owners; else a UsageError.

    ``unit``: the column of its ids, ``table.column``, or a word where no table lists the units.
    ``owners`` and ``max_rows`` are by table.
    """
    name, home = _home(catalog, unit)
    said: dict[Identity, tuple[SaidOwner, ...]] = {}
    for table_name, ways in owners.items():
        table = catalog.named(table_name)
        if table.identity in said:
            raise UsageError(f"the owners of {table.label} are given twice", hint="give them once")
        if not table.private:
            raise UsageError(
                f"{table.label} is public: its rows have no owner",
                hint=f"leave out the owners of {table_name}, or do not declare it public",
            )
        said[table.identity] = tuple(ways)
    found = RowOwners(catalog, home, said)
    private = sorted(
        (t for t in catalog.tables if t.private and t.schema not in _OWN_SCHEMAS),
        key=lambda table: table.label,
    )
    owned = {table.identity: found.owners_of(table) for table in private}
    for table in private:
        _check_form(table, owned[table.identity])
    most = _most_rows(catalog, owned, max_rows)
    tables = tuple(
        replace(
            table,
            owners=owned[table.identity],
            max_rows=most.get(table.identity),
            # A unit takes the place of what a file's form says about its rows.
            rows_per_unit=1,
        )
        if table.identity in owned
        else table
        for table in catalog.tables
    )
    return replace(catalog, tables=tables, unit=Unit(name))


def _home(catalog: Catalog, unit: str) -> tuple[str, tuple[Table, Column] | None]:
    """The unit's name, the same however it was written, and the column of its ids."""
    if "." in unit:
        table, column = catalog.column_named(unit)
        return f"{short_name(catalog, table)}.{column.name}", (table, column)
    if unit in {table.name for table in catalog.tables}:
        table = catalog.named(unit)
        keys = [*key] if (key := min(table.keys, key=sorted, default=None)) else ["COLUMN"]
        raise UsageError(
            f"the unit {unit} is a table: which of its columns holds the ids?",
            hint=f"write {unit}.{keys[0]}",
        )
    if unit == ROW or not unit.isprintable():
        raise UsageError(
            "the unit has a name that it cannot have",
            hint="give it a word of your own, such as node; without a unit, rows are protected",
        )
    return unit, None


def _check_form(table: Table, owners: Sequence[Owner]) -> None:
    """Refuse to take apart the two rows of an undirected edge."""
    if table.rows_per_unit > 1 and len(owners) < 2:
        raise UsageError(
            f"each edge of {table.label} is two rows, which have one owner each",
            hint=f"both ends own an undirected edge: --owner {table.name}=src,dst",
        )


def _most_rows(
    catalog: Catalog, owned: Mapping[Identity, Sequence[Owner]], said: Mapping[str, int]
) -> dict[Identity, int]:
    found: dict[Identity, int] = {}
    for name, most in said.items():
        table = catalog.named(name)
        if table.identity in found:
            raise UsageError(f"max_rows of {table.label} is given twice", hint="give it once")
        if not table.private:
            raise UsageError(
                f"max_rows of {table.label}, which is public: no unit owns its rows",
                hint=f"leave out max_rows of {name}",
            )
        if len(owned.get(table.identity, ())) > 1:
            raise UsageError(
                f"max_rows of {table.label}, whose rows have several owners: to leave out rows of "
                "one of them would bring rows of another back",
                hint=f"leave out max_rows of {name}",
            )
        if not 1 <= most <= MOST_MAX_ROWS:
            raise UsageError(
                f"max_rows of {table.label} must be a whole number, 1 to {MOST_MAX_ROWS}"
            )
        found[table.identity] = most
    return found
