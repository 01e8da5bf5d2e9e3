"""``sqlrs tables``: what the catalog holds, as the owner declared it."""

from __future__ import annotations

import json as json_text

from sqlrs.catalog import Table
from sqlrs.cli import options
from sqlrs.config import Config


@options.with_data()
def tables(data: Config, json: options.Json = False) -> None:
    """List every table: private or public, its keys, its columns and their types.

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
