"""Units by definition: which rows take part, whose they are, and the database without a unit.

Follows the words alone: a row has an id for each of its owners, found by following links row by
row. It shares with the code under test only the descriptions (`Owner`, `Link`).
"""

from __future__ import annotations

from sqlrs.catalog import Catalog, Table
from tests.support.brute import Database, Row


def ids_of(table: Table, row: Row, catalog: Catalog, database: Database) -> frozenset[object]:
    """The units that own a row; none where one of its chains leads nowhere."""
    found: set[object] = set()
    for owner in table.owners:
        here, at = table, row
        for link in owner.links:
            wanted = [_value(here, at, column) for column in link.columns]
            there = next(t for t in catalog.tables if t.identity == link.table)
            partners = [
                other
                for other in database[there.label]
                if None not in wanted and [_value(there, other, k) for k in link.key] == wanted
            ]
            assert len(partners) <= 1, "a link leads to a key"
            if not partners or (
                there.private and not ids_of(there, partners[0], catalog, database)
            ):
                return frozenset()
            here, at = there, partners[0]
        value = _value(here, at, owner.column)
        if value is None:
            return frozenset()
        found.add(value)
    return frozenset(found)


def owned_rows(catalog: Catalog, database: Database) -> Database:
    """The rows that take part: all public ones, and private ones that have owners."""
    return {
        t.label: [
            row for row in database[t.label] if not t.private or ids_of(t, row, catalog, database)
        ]
        for t in catalog.tables
    }


def without_unit(catalog: Catalog, database: Database, unit: object) -> Database:
    """The database without all rows that a unit owns."""
    return {
        t.label: [
            row
            for row in database[t.label]
            if not t.private or unit not in ids_of(t, row, catalog, database)
        ]
        for t in catalog.tables
    }


def units_in(catalog: Catalog, database: Database) -> frozenset[object]:
    """All units that own a row."""
    return frozenset(
        unit
        for t in catalog.tables
        if t.private
        for row in database[t.label]
        for unit in ids_of(t, row, catalog, database)
    )


def _value(table: Table, row: Row, column: str) -> object:
    return row[[c.name for c in table.columns].index(column)]
