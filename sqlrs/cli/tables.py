"""``sqlrs tables``: what the catalog holds, as the owner declared it."""

from __future__ import annotations

import json as json_text

from sqlrs.catalog import Bounds, Column, Listed, PublicDomain, Range, Referred, Table, Value
from sqlrs.cli import options
from sqlrs.config import Config

# More values of a column are for --json.
_SHOWN = 10


@options.with_data()
def tables(data: Config, json: options.Json = False) -> None:
    """List every table: private or public, its keys, its columns, their types and values.

    Views and declared functions are listed too.
    """
    with data.open(schema_only=True) as database:
        catalog = database.catalog
    found = sorted(catalog.tables, key=lambda table: table.label)
    views = sorted(view.label for view in catalog.views)
    functions = sorted(map(str, catalog.functions))
    if json:
        shown = [_as_dict(table) for table in found]
        print(json_text.dumps({"tables": shown, "views": views, "functions": functions}))
        return
    lines = [line for table in found for line in _lines(table)]
    lines += [f"{name}  [view]" for name in views]
    lines += [f"{function}  [function]" for function in functions]
    print("\n".join(lines))


def _lines(table: Table) -> list[str]:
    keys = [f"key ({', '.join(key)})" for key in _keys(table)] or ["no key"]
    width = max(len(column.name) for column in table.columns)
    return [
        f"{table.label}  [{', '.join([_protection(table), *keys])}]",
        *(f"  {c.name:<{width}}  {', '.join([c.type.name, *_words(c)])}" for c in table.columns),
    ]


def _as_dict(table: Table) -> dict[str, object]:
    return {
        "name": table.label,
        "private": table.private,
        "rows_per_unit": table.rows_per_unit,
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


def _words(column: Column) -> list[str]:
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
    return f"private{unit}"


def _keys(table: Table) -> list[list[str]]:
    """Each key with its columns in the table's order."""
    return [
        [column.name for column in table.columns if column.name in key]
        for key in sorted(table.keys, key=sorted)
    ]
