"""docs/configuration.md: every key of sqlrs.toml, from the descriptions that read the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from sqlrs.config import Config, UnitSection
from sqlrs.console.config import ConsoleConfig
from sqlrs.inputs.sections import Key, keys_of
from sqlrs.proxy.config import ProxyConfig

_HEAD = """# Configuration

Every key of `sqlrs.toml`, as it is read; this page is generated. The file is given by `--config`,
or found as `./sqlrs.toml` ([command line](cli.md)). An option of the command line goes before the
file. The last columns name the option and the argument of `sqlrs.connect` that say the same. Paths
are relative to the file. A key or section that is not listed here, or a value of another kind, is
an error that names the line.

```toml
[data]
db = "duckdb:///clinic.db"
public = ["region"]
ledger = "sqlite:///budget.db"
memory_limit = "4GB"
threads = 2

[data.keys]
visit = ["patient", "day"]

[unit]
id = "patient.id"
max_rows = { visit = 20 }

[unit.owners]
visit = "patient"
edge = ["src", "dst"]
bill = "patient, day -> visit"

[functions]
bmi = "(double, double) -> double"

[proxy]
port = 6432

[proxy.analysts.alice]
max_epsilon = "2"
```
"""
_DATA = """The data, its declarations and its limits. Keys that hold something for each table, such
as `tables` and `keys`, can be sections of their own: `[data.tables]`.
"""
_UNIT = """Who is protected with all rows that it owns, where it is more than a row; without it each
row by itself. A table that is neither public nor has an owner, said here or found by the foreign
keys, is an error. Rows whose owner is NULL, or whose link leads nowhere, take part in nothing.
"""
_PROXY = """For `sqlrs serve`, beside `[data]`, which must name a `ledger`: [the proxy](proxy.md).
"""
_CONSOLE = """For `sqlrs console`, and for `sqlrs serve` where there is this section: [the
console](console.md). Users, limits and the certificate are those of `[proxy]`.
"""


def described() -> Iterator[tuple[str, str, type[Any]]]:
    """The name of each section with keys of its own, what is said first, and its description."""
    yield "data", _DATA, Config
    yield "unit", _UNIT, UnitSection
    yield "proxy", _PROXY, ProxyConfig
    for key in keys_of(ProxyConfig).values():
        if key.inner is not None:
            name = f"proxy.{key.name}" + (".NAME" if isinstance(key.default, Mapping) else "")
            yield name, f"{key.meaning}\n", key.inner
    yield "console", _CONSOLE, ConsoleConfig


def reference() -> str:
    """The whole page."""
    lines = [_HEAD]
    for name, text, section in described():
        keys = [key for key in keys_of(section).values() if not key.section and key.inner is None]
        lines += [f"## [{name}]\n", text, *_table(keys), ""]
        lines += [
            line
            for key in keys_of(section).values()
            if key.section and key.inner is None
            for line in (f"## [{key.name}]\n", *_table([key]), "")
        ]
    return "\n".join(lines)


def _table(keys: list[Key]) -> list[str]:
    rows = [["key", "kind", "default", "meaning", "option", "`connect`"], ["---"] * 6]
    rows += [
        [
            "any name" if key.section else f"`{key.name}`",
            key.kind.shown,
            _shown(key.default),
            key.meaning,
            f"`{key.option}`" if key.option else "",
            _argument(key),
        ]
        for key in keys
    ]
    # Columns that are empty all the way down stay out.
    kept = [i for i in range(6) if i < 4 or any(row[i] for row in rows[2:])]
    return [f"| {' | '.join(row[i] for i in kept)} |" for row in rows]


def _argument(key: Key) -> str:
    if key.argument == "settings":
        return f"`settings=Settings({key.name}=…)`"
    return f"`{key.argument}`" if key.argument else ""


def _shown(default: object) -> str:
    match default:
        case None | () | {}:
            return ""
        case bool():
            return f"`{str(default).lower()}`"
        case str() | Path():
            return f'`"{default}"`'
        case int() | float() | Decimal():
            return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"
    return ""
