"""``sqlrs tables``: what the catalog holds, as the owner declared it."""

from __future__ import annotations

import json as json_text

from sqlrs.catalog import Table
from sqlrs.cli import options
from sqlrs.config import Config


@options.with_data()
def tables(data: Config, json: options.Json = False) -> None:
    """List every table: private or public, its keys, its columns and their types."""
    with data.open(schema_only=True) as database:
        catalog = database.catalog
    found = sorted(catalog.tables, key=lambda table: table.label)
    views = sorted(view.label for view in catalog.views)
    if json:
        print(json_text.dumps({"tables": [_as_dict(table) for table in found], "views": views}))
        return
    print("\n".join([*(line for table in found for line in _lines(table)), *map(_view, views)]))


def _view(name: str) -> str:
    return f"{name}  [view]"


def _lines(table: Table) -> list[str]:
    keys = [f"key ({', '.join(key)})" for key in _keys(table)] or ["no key"]
    width = max(len(column.name) for column in table.columns)
    return [
        f"{table.label}  [{', '.join([_protection(table), *keys])}]",
        *(
            f"  {c.name:<{width}}  {c.type.name}{'' if c.nullable else ', never null'}"
            for c in table.columns
        ),
    ]


def _as_dict(table: Table) -> dict[str, object]:
    return {
        "name": table.label,
        "private": table.private,
        "rows_per_unit": table.rows_per_unit,
        "keys": _keys(table),
        "columns": [
            {"name": c.name, "type": c.type.name, "nullable": c.nullable} for c in table.columns
        ],
    }


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
