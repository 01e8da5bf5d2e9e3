"""The exposed tables in words: what is private, keys, whose the rows are, domains and bounds."""

from __future__ import annotations

from sqlrs.catalog import Catalog, Column, Listed, Range, Referred, Table
from sqlrs.database import Database
from sqlrs.records import dataclass
from sqlrs.row_owners import short_name
from sqlrs.units import Owner

_SHOWN = 10


@dataclass(frozen=True)
class DescribedTable:
    """One table; ``columns``: name, type and what else is declared."""

    name: str
    private: bool
    keys: tuple[str, ...]
    owned: tuple[str, ...]
    columns: tuple[tuple[str, str, str], ...]


def described_tables(database: Database) -> list[DescribedTable]:
    """All tables of a database, by name."""
    catalog = database.catalog
    found = sorted(catalog.tables, key=lambda table: table.label)
    return [_described(table, catalog) for table in found]


def _described(table: Table, catalog: Catalog) -> DescribedTable:
    keys = (
        ", ".join(column.name for column in table.columns if column.name in key)
        for key in sorted(table.keys, key=sorted)
    )
    owned = [_way(owner, table, catalog) for owner in table.owners]
    if table.rows_per_unit > 1:
        owned.append(f"units of {table.rows_per_unit} rows")
    if table.max_rows is not None:
        owned.append(f"at most {table.max_rows} rows of a unit are used")
    columns = ((one.name, one.type.name, ", ".join(column_words(one))) for one in table.columns)
    return DescribedTable(table.label, table.private, tuple(keys), tuple(owned), tuple(columns))


def _way(owner: Owner, table: Table, catalog: Catalog) -> str:
    tables = {one.identity: one for one in catalog.tables}
    steps = [", ".join(link.columns) for link in owner.links]
    last = table if not owner.links else tables[owner.links[-1].table]
    column = owner.column if last is table else f"{short_name(catalog, last)}.{owner.column}"
    return "owned by " + " → ".join([*steps, column])


def column_words(column: Column) -> list[str]:
    """What else is known of a column: NULL, its values, its bounds."""
    said = [] if column.nullable else ["never null"]
    match column.domain:
        case Listed(values):
            few = ", ".join(map(str, values[:_SHOWN])) + (", …" if len(values) > _SHOWN else "")
            said.append(f"one of {len(values)}: {few}")
        case Range(low, high):
            said.append(f"from {low} to {high}")
        case Referred((_, table), name):
            said.append(f"values of {table}.{name}")
    if column.bounds is not None:
        step = "" if column.bounds.grid is None else f" by {column.bounds.grid:f}"
        said.append(f"summed within {column.bounds.low:f} to {column.bounds.high:f}{step}")
    return said
