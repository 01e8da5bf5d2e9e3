"""``sqlrs tables``: what the catalog holds, as the owner declared it."""

from __future__ import annotations

import json as json_text

from sqlrs.catalog import (
    Bounds,
    Catalog,
    Listed,
    PublicDomain,
    Range,
    Referred,
    Table,
    Value,
)
from sqlrs.cli import options
from sqlrs.config import Config
from sqlrs.console.table_words import column_words
from sqlrs.row_owners import short_name
from sqlrs.units import Owner


@options.with_data()
def tables(data: Config, json: options.Json = False) -> None:
    """List every table: private or public, its keys, its columns, their types and values.

    Where a unit is protected, also who owns the rows. Views and declared functions are listed too.
    """
    with data.open(schema_only=True) as database:
        catalog = database.catalog
    found = sorted(catalog.tables, key=lambda table: table.label)
    views = sorted(view.label for view in catalog.views)
    functions = sorted(map(str, catalog.functions))
    unit = None if catalog.unit is None else catalog.unit.name
    if json:
        shown = [_as_dict(table, catalog) for table in found]
        told = {"unit": unit, "tables": shown, "views": views, "functions": functions}
        print(json_text.dumps(told))
        return
    lines = [] if unit is None else [f"{unit}  [unit, protected with all rows that it owns]"]
    lines += [line for table in found for line in _lines(table, catalog)]
    lines += [f"{name}  [view]" for name in views]
    lines += [f"{function}  [function]" for function in functions]
    print("\n".join(lines))


def _lines(table: Table, catalog: Catalog) -> list[str]:
    keys = [f"key ({', '.join(key)})" for key in _keys(table)] or ["no key"]
    width = max(len(column.name) for column in table.columns)
    return [
        f"{table.label}  [{', '.join([_protection(table), *keys])}]",
        *(f"  {line}" for line in _owners(table, catalog)),
        *(
            f"  {c.name:<{width}}  {', '.join([c.type.name, *column_words(c)])}"
            for c in table.columns
        ),
    ]


def _owners(table: Table, catalog: Catalog) -> list[str]:
    """Who owns the rows, and which take part in nothing, by the schema alone."""
    if not table.owners:
        return []
    ways = [_way(one, table, catalog) for one in table.owners]
    lines = [f"owned by {' and '.join(' -> '.join(way) for way in ways)}"]
    if nullable := _nullable(table, catalog):
        lines.append(f"rows without {' or '.join(nullable)} take part in nothing")
    return lines


def _way(owner: Owner, table: Table, catalog: Catalog) -> list[str]:
    """The columns on the way from a row to its owner, with their table behind the first link."""
    return [
        ", ".join(names if place is table else (f"{short_name(catalog, place)}.{n}" for n in names))
        for place, names in _steps(owner, table, catalog)
    ]


def _steps(owner: Owner, table: Table, catalog: Catalog) -> list[tuple[Table, tuple[str, ...]]]:
    """Each table on the way with the columns that lead on, at last the one of the id."""
    tables = {one.identity: one for one in catalog.tables}
    places = [table, *(tables[link.table] for link in owner.links)]
    return [*zip(places, [*(link.columns for link in owner.links), (owner.column,)], strict=True)]


def _nullable(table: Table, catalog: Catalog) -> list[str]:
    """The columns on the way from a row to its owners that may be null."""
    steps = [step for owner in table.owners for step in _steps(owner, table, catalog)]
    found = [
        name if place is table else f"{short_name(catalog, place)}.{name}"
        for place, names in steps
        for name in names
        if place.column(name).nullable
    ]
    return [*dict.fromkeys(found)]


def _owner_as_dict(owner: Owner) -> dict[str, object]:
    return {
        "column": owner.column,
        "links": [
            {
                "columns": link.columns,
                "table": ".".join(filter(None, link.table)),
                "key": link.key,
            }
            for link in owner.links
        ],
    }


def _as_dict(table: Table, catalog: Catalog) -> dict[str, object]:
    return {
        "name": table.label,
        "private": table.private,
        "rows_per_unit": table.rows_per_unit,
        "owners": [_owner_as_dict(owner) for owner in table.owners],
        "rows_left_out_without": _nullable(table, catalog),
        "max_rows": table.max_rows,
        "keys": _keys(table),
        "columns": [
            {
                "name": c.name,
                "type": c.type.name,
                "nullable": c.nullable,
                "domain": _domain_as_dict(c.domain),
                "bounds": _bounds_as_dict(c.bounds),
            }
            for c in table.columns
        ],
    }


def _domain_as_dict(domain: PublicDomain | None) -> dict[str, object] | None:
    match domain:
        case Listed(values, origin):
            return {"values": [_shown(value) for value in values], "origin": origin}
        case Range(low, high, origin):
            return {"from": _shown(low), "to": _shown(high), "origin": origin}
        case Referred((schema, table), name, origin):
            label = ".".join(filter(None, (schema, table)))
            return {"column": f"{label}.{name}", "origin": origin}
    return None


def _bounds_as_dict(bounds: Bounds | None) -> dict[str, object] | None:
    if bounds is None:
        return None
    numbers = {"low": bounds.low, "high": bounds.high, "step": bounds.grid}
    texts = {name: None if one is None else f"{one:f}" for name, one in numbers.items()}
    return {**texts, "origin": bounds.origin}


def _shown(value: Value) -> object:
    """The value in JSON: exact numbers and dates as texts."""
    return value if isinstance(value, bool | int | str) else str(value)


def _protection(table: Table) -> str:
    if not table.private:
        return "public"
    unit = f", {table.rows_per_unit} rows a unit" if table.rows_per_unit > 1 else ""
    most = "" if table.max_rows is None else f", at most {table.max_rows} rows of a unit used"
    return f"private{unit}{most}"


def _keys(table: Table) -> list[list[str]]:
    """Each key with its columns in the table's order."""
    return [
        [column.name for column in table.columns if column.name in key]
        for key in sorted(table.keys, key=sorted)
    ]
