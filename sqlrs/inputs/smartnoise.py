"""A SmartNoise metadata file as a configuration of ours, and what of it was understood."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from importlib import import_module
from pathlib import Path
from typing import Any

from sqlrs.errors import UsageError
from sqlrs.records import dataclass

_NUMERIC = ("int", "float")
# What has no counterpart because nothing here needs it.
_NOT_NEEDED = {
    "rows": "the number of rows is not used",
    "rows_exact": "the number of rows is not used",
    "sample_max_ids": "no unit's rows are sampled: what is above a threshold is cut",
    "censor_dims": "groups are those of [domain] or of public tables, shown all, never censored",
    "clamp_counts": "noisy counts are not clamped; greatest(count(*), 0) does it in SQL",
    "use_dpsu": "no groups are found in the data",
    "clamp_columns": "values are always cut to [bounds]",
}
_COLUMN = ("type", "name", "private_id", "lower", "upper")
_COLUMN_NOT_NEEDED = ("nullable", "missing_value", "sensitivity", "cardinality")


@dataclass
class ReadMetadata:
    """The text of a configuration, and a line for each thing that is read, left out or missing."""

    private: list[str] = field(default_factory=list)
    owners: dict[str, str] = field(default_factory=dict)
    bounds: dict[str, tuple[object, object]] = field(default_factory=dict)
    report: list[str] = field(default_factory=list)

    def to_toml(self) -> str:
        """The sections, for a configuration that names the data itself."""
        lines = ["[data]", f"private = [{', '.join(_quoted(one) for one in self.private)}]"]
        if self.owners:
            columns = sorted(set(self.owners.values()))
            lines += ["", "[unit]", f"id = {_quoted(columns[0])}", "", "[unit.owners]"]
            lines += [f"{_quoted(name)} = {_quoted(by)}" for name, by in self.owners.items()]
        if self.bounds:
            lines += ["", "[bounds]"]
            lines += [f"{_quoted(n)} = [{low}, {high}]" for n, (low, high) in self.bounds.items()]
        return "\n".join(lines) + "\n"


def read_metadata(path: Path) -> ReadMetadata:
    """Read the file; what is no such file is a UsageError."""
    try:
        yaml = import_module("ruamel.yaml").YAML(typ="safe", pure=True)
    except ModuleNotFoundError:
        raise UsageError(
            "this needs the Python package ruamel.yaml", hint="pip install ruamel.yaml"
        ) from None
    try:
        content = yaml.load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except Exception:
        raise UsageError(f"{path} is not YAML") from None
    return understood(content)


def understood(content: object) -> ReadMetadata:
    """The configuration of a file's content: database, schema, table, then columns and facts."""
    found = ReadMetadata()
    for name, table in _tables(content):
        found.private.append(name)
        by_row = bool(table.get("row_privacy", False))
        for key, value in table.items():
            if isinstance(value, Mapping):
                _column(found, name, str(key), value, by_row)
            elif key in _NOT_NEEDED:
                found.report.append(f"left out: {name}.{key}: {_NOT_NEEDED[key]}")
            elif key == "row_privacy":
                who = "one row is protected" if by_row else "a unit is protected"
                found.report.append(f"read: {name}.{key}: {who}")
            elif key != "max_ids":
                found.report.append(f"not understood: {name}.{key}")
        if name in found.owners and isinstance(most := table.get("max_ids"), int):
            found.report.append(
                f"left out: {name}.max_ids = {most}: how much of a unit enters is chosen privately "
                f'for each question; [unit.max_rows] "{name}" = {most} would limit its rows'
            )
    if len(set(found.owners.values())) > 1:
        found.report.append(
            "missing: the units have columns of different names; id in [unit] should be the column "
            "of the table that lists them, as in patient.id"
        )
    if not found.private:
        raise UsageError("no table is described there", hint="database, schema, table, columns")
    return found


def _tables(content: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for schemas in _values(content, "a database"):
        for tables in _values(schemas, "a schema"):
            if not isinstance(tables, Mapping):
                raise UsageError("a schema holds tables", hint="this is no SmartNoise metadata")
            for name, table in tables.items():
                if not isinstance(table, Mapping):
                    raise UsageError(f"table {name} holds no columns")
                yield str(name), table


def _values(content: object, what: str) -> list[object]:
    if not isinstance(content, Mapping):
        raise UsageError(f"{what} is expected there", hint="this is no SmartNoise metadata")
    return list(content.values())


def _column(
    found: ReadMetadata, table: str, name: str, facts: Mapping[str, Any], by_row: bool
) -> None:
    place = f"{table}.{name}"
    if facts.get("private_id"):
        if by_row:
            found.report.append(f"left out: {place}: an id, but rows are protected")
        elif table in found.owners:
            found.report.append(f"not understood: {place}: a second private_id")
        else:
            found.owners[table] = name
            found.report.append(f"read: {place} says whose a row is")
    low, high = facts.get("lower"), facts.get("upper")
    numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (low, high))
    if facts.get("type") in _NUMERIC and low is not None and high is not None and numbers:
        found.bounds[place] = (low, high)
        found.report.append(f"read: {place} is summed between {low} and {high}")
        if facts["type"] == "float":
            found.report.append(f"missing: {place}: floats need a step, [low, high, step]")
    elif low is not None or high is not None:
        found.report.append(f"not understood: {place}: bounds of a {facts.get('type')}")
    for key in facts:
        if key in _COLUMN_NOT_NEEDED:
            found.report.append(f"left out: {place}.{key}: the schema of the database says it")
        elif key not in _COLUMN:
            found.report.append(f"not understood: {place}.{key}")


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    if not escaped.isprintable():
        raise UsageError("a name there has characters that cannot be printed")
    return f'"{escaped}"'
