"""Schemas of files: recorded beside them, or inferred from their rows once and recorded.

Inferring is an act of the owner's, whose result is public from then on.
"""

from __future__ import annotations

import csv
import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sqlglot import exp

from sqlrs.engines.file_heads import comments_above
from sqlrs.engines.file_schema import Ask, TextSchema, Typed, filled, typed_columns
from sqlrs.errors import UsageError

_ISO_DATE = "%Y-%m-%d"
_TEXT_KEYS = frozenset({"format", "delimiter", "quote", "date_format", "timestamp_format"})
_KEYS = frozenset({*_TEXT_KEYS, "header", "columns", "partitions", "skip"})
_FORMATS = ("separated", "json", "json_array", "cells", "parquet")
_LONGEST = 18
_NUMBER = re.compile(r"[+-]?\d+")
_JSON_TYPE = re.compile("BIGINT|UBIGINT|HUGEINT|DOUBLE|BOOLEAN|DATE|TIMESTAMP|VARCHAR|UUID")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def schema_file(path: Path) -> Path:
    """Where the schema of a file is recorded."""
    return path.with_name(f"{path.name}.schema.toml")


def inferred_partitions(partitions: Sequence[tuple[str, frozenset[str]]]) -> Typed:
    """The types of columns that folders name, by the names that are there."""
    return tuple((name, _partition_type(values)) for name, values in partitions)


def _partition_type(values: frozenset[str]) -> str:
    if values and all(_NUMBER.fullmatch(one) and len(one) <= _LONGEST for one in values):
        return "BIGINT"
    if values and all(_DAY.fullmatch(one) for one in values):
        return "DATE"
    return "VARCHAR"


def recorded_schema(path: Path, *, needs_columns: bool = True) -> TextSchema | None:
    """The schema that stands beside the file, if one does."""
    place = schema_file(path)
    try:
        document = tomllib.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"cannot read {place}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise UsageError(f"{place} is not TOML") from None
    for name in sorted(set(document) - _KEYS):
        raise UsageError(f"{place}: there is no key {name!r}", hint=f"{', '.join(sorted(_KEYS))}")
    header = document.get("header")
    if not isinstance(header, list) and header is not False:
        raise UsageError(
            f"{place}: header is the list of the first line's fields, or false", hint="header = []"
        )
    columns, partitions = document.get("columns", {}), document.get("partitions", {})
    if needs_columns and (not isinstance(columns, dict) or not columns):
        raise UsageError(f"{place}: columns maps each column to its type", hint="[columns]")
    if not isinstance(partitions, dict):
        raise UsageError(f"{place}: partitions maps each to its type", hint="[partitions]")
    texts = {name: document[name] for name in _TEXT_KEYS if name in document}
    if not all(isinstance(text, str) and text for text in texts.values()):
        raise UsageError(f"{place}: {', '.join(sorted(texts))} are texts")
    if texts.get("format", "separated") not in _FORMATS:
        raise UsageError(f"{place}: the format is unknown", hint=", ".join(_FORMATS))
    skip = document.get("skip", 0)
    if type(skip) is not int or skip < 0:
        raise UsageError(f"{place}: skip is the number of lines above the first one that is read")
    return TextSchema(
        skip=skip,
        columns=typed_columns(str(place), [*columns.items()]) if columns else (),
        header=tuple(map(str, header)) if isinstance(header, list) else None,
        partitions=typed_columns(str(place), [*partitions.items()]) if partitions else (),
        **{"delimiter": ",", **texts},
    )


def inferred_schema(
    table: str, path: Path, patterns: Sequence[str], delimiter: str | None, ask: Ask
) -> TextSchema:
    """The schema of separated values, inferred from all rows of all files."""
    if path.is_file() and path.stat().st_size == 0:
        raise UsageError(f"{path} is empty: not even its columns are known")
    schemas = [_sniffed(table, path, pattern, delimiter, ask) for pattern in patterns]
    first, *others = schemas
    names = [name for name, _ in first.columns]
    if any([name for name, _ in one.columns] != names or one.skip != first.skip for one in others):
        raise UsageError(
            f"the files in {path} do not all have the same columns",
            hint="name those that have: --table NAME='FOLDER/2024-*.csv'",
        )
    return replace(
        first,
        columns=tuple(
            (name, _common_type([one.columns[place][1] for one in schemas]))
            for place, name in enumerate(names)
        ),
    )


def _common_type(kinds: Sequence[str]) -> str:
    if len(set(kinds)) == 1:
        return kinds[0]
    return "DOUBLE" if set(kinds) == {"BIGINT", "DOUBLE"} else "VARCHAR"


def below_comments(schema: TextSchema, pattern: str, ask: Ask) -> TextSchema:
    """A declared schema, whose names may stand below lines of comments."""
    if first_line(schema, pattern, ask) == schema.header:
        return schema
    below = replace(schema, skip=len(comments_above(pattern, ask)))
    # The last of them may hold the names: "#id,name".
    last = replace(schema, skip=max(0, below.skip - 1))
    return last if first_line(last, pattern, ask) == schema.header else below


def _sniffed(table: str, path: Path, pattern: str, delimiter: str | None, ask: Ask) -> TextSchema:
    above = comments_above(pattern, ask)
    found = _sniffed_below(table, path, pattern, delimiter, len(above), ask)
    fields = above[-1].count(found.delimiter) if above else 0
    if fields and fields == len(found.columns) - 1:
        # The names stand behind a comment's sign: "#id,name".
        return _sniffed_below(table, path, pattern, delimiter, len(above) - 1, ask)
    return found


def _sniffed_below(
    table: str, path: Path, pattern: str, delimiter: str | None, skip: int, ask: Ask
) -> TextSchema:
    sniff = filled(
        "duckdb/sniff.sql", path=exp.Literal.string(pattern), skip=exp.Literal.number(skip)
    )
    if delimiter is not None:
        given = exp.EQ(this=exp.column("delim"), expression=exp.Literal.string(delimiter))
        sniff.args["from_"].this.this.append("expressions", given)
    found = ask(sniff)
    if not found:
        raise cannot_infer(table, path)
    delim, has_header, columns, date_format, timestamp_format = found[0]
    schema = TextSchema(
        columns=tuple((str(column["name"]), str(column["type"])) for column in columns),
        header=None,
        delimiter=str(delim),
        date_format=None if date_format in (None, "", _ISO_DATE) else str(date_format),
        timestamp_format=str(timestamp_format) if timestamp_format else None,
        skip=skip,
    )
    if has_header:
        header = first_line(schema, pattern, ask)
        if header is None or len(header) != len(schema.columns):
            raise UsageError(
                f"the header of {path} is not one line", hint=f"write {schema_file(path).name}"
            )
        schema = replace(schema, header=header)
    return schema


def inferred_json_schema(
    table: str, path: Path, paths: exp.Expression, format: str, ask: Ask
) -> TextSchema:
    """The schema of JSON lines, inferred from all rows; what is nested is its text."""
    statement = filled(
        "duckdb/describe_json.sql",
        path=paths,
        format=exp.Literal.string("array" if format == "json_array" else "newline_delimited"),
    )
    found = ask(exp.Describe(this=statement))
    if not found:
        raise cannot_infer(table, path)
    columns = tuple(
        (str(row[0]), kind if _JSON_TYPE.fullmatch(kind := str(row[1])) else "VARCHAR")
        for row in found
    )
    return TextSchema(columns, None, ",", format=format)


def cannot_infer(table: str, path: Path) -> UsageError:
    """The columns of a file could not be found out."""
    return UsageError(
        f"the columns of {path} could not be inferred",
        code="file_unreadable",
        hint=f"declare them with --types {table}='column TYPE, …', "
        f"or write {schema_file(path).name} beside it",
    )


def first_line(schema: TextSchema, pattern: str, ask: Ask) -> tuple[str, ...] | None:
    """The fields of the file's first line, which is public where it is the header."""
    skip = exp.Literal.number(schema.skip)
    found = ask(filled("duckdb/first_line.sql", path=exp.Literal.string(pattern), skip=skip))
    if not found or found[0][0] is None:
        return None
    line = str(found[0][0]).rstrip("\r")
    fields = next(csv.reader([line], delimiter=schema.delimiter, quotechar=schema.quote), [])
    return tuple(fields)


def require_header(schema: TextSchema, path: Path, pattern: str, ask: Ask) -> None:
    """Refuse a file whose first line does not hold the schema's names. No row is looked at."""
    if schema.header is not None and first_line(schema, pattern, ask) != schema.header:
        raise UsageError(
            f"the first line of {path} is not {schema.delimiter.join(schema.header)}",
            code="file_unfit",
            hint="names and types are declared in order; for another separator or no header "
            f"write {schema_file(path).name}: docs/engines.md",
        )


def record_schema(table: str, path: Path, schema: TextSchema) -> None:
    """Write the schema beside the file, unless one is there."""
    lines = [
        f"# How sqlrs reads {json.dumps(path.name)}: names and types, which are public.",
        "# Inferred once from the rows; edit it, or delete it to have it inferred anew.",
    ]
    if schema.format == "separated":
        lines += [f"delimiter = {toml(schema.delimiter)}", f"quote = {toml(schema.quote)}"]
    else:
        lines.append(f"format = {toml(schema.format)}")
    if schema.skip:
        lines.append(f"skip = {schema.skip}")
    lines.append(f"header = {_toml_list(schema.header)}")
    if schema.date_format is not None:
        lines.append(f"date_format = {toml(schema.date_format)}")
    if schema.timestamp_format is not None:
        lines.append(f"timestamp_format = {toml(schema.timestamp_format)}")
    if schema.columns:
        lines += ["", "[columns]"]
    lines += [f"{toml(name)} = {toml(kind)}" for name, kind in schema.columns]
    if schema.partitions:
        lines += ["", "[partitions]"]
        lines += [f"{toml(name)} = {toml(kind)}" for name, kind in schema.partitions]
    try:
        # Never over one that is there: it may be in use since before.
        with schema_file(path).open("x", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    except OSError as error:
        if schema_file(path).exists():
            return
        raise UsageError(
            f"the types of {path} cannot be recorded beside it: {error.strerror}",
            hint=f"declare them: --types {table}='{schema}'",
        ) from None


def toml(text: str) -> str:
    """A text as TOML writes it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_list(header: tuple[str, ...] | None) -> str:
    return "false" if header is None else f"[{', '.join(map(toml, header))}]"
