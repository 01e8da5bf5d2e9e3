"""What DuckDB does not read itself -> a file in the spill folder that it does.

Compressed text is unpacked. The rows of a sheet, of a table of SQLite or of a list of dictionaries
become lines of JSON in which every value is a text or null: the schema says what it must be.
"""

from __future__ import annotations

import bz2
import json
import lzma
import re
import shutil
import sqlite3
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID

from sqlrs.engines.file_schema import TextSchema, Typed
from sqlrs.errors import UsageError
from sqlrs.records import dataclass

# A text that is a value of no type but text: a cell that the schema cannot mean.
_NO_VALUE = "?"
_MIDNIGHT = time()


def unpack(packed: Path, compression: str, target: Path) -> None:
    """Write what a compressed file holds; an archive must hold one file."""
    try:
        if compression == ".zip":
            with zipfile.ZipFile(packed) as archive:
                inside = [one for one in archive.infolist() if not one.is_dir()]
                if len(inside) != 1:
                    raise UsageError(
                        f"{packed} holds {len(inside)} files", hint="an archive of one file is read"
                    )
                with archive.open(inside[0]) as source, _private(target) as sink:
                    shutil.copyfileobj(source, sink)
        else:
            opened = bz2.open if compression == ".bz2" else lzma.open
            with opened(packed, "rb") as source, _private(target) as sink:
                shutil.copyfileobj(source, sink)
    except (OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile, zlib.error, RuntimeError):
        raise UsageError(
            f"{packed} could not be unpacked as {compression}", code="file_unreadable"
        ) from None


def write_rows(target: Path, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write rows as lines of JSON, every value a text or null."""
    with _private(target) as sink:
        for row in rows:
            texts = {n: text_of(value) for n, value in zip(names, row, strict=True)}
            sink.write(json.dumps(texts, ensure_ascii=False).encode("utf-8", "replace") + b"\n")


@contextmanager
def _private(target: Path) -> Iterator[_Sink]:
    """A new file for this user alone, of at most half of what is free on the disk now."""
    target.touch(mode=0o600)
    with target.open("wb") as file:
        yield _Sink(file, shutil.disk_usage(target.parent).free // 2)


@dataclass
class _Sink:
    """Takes so many bytes: a small file can be made to unpack to more than any disk holds."""

    file: BinaryIO
    left: int

    def write(self, part: bytes) -> int:
        self.left -= len(part)
        if self.left < 0:
            raise UsageError(
                "the data takes more than half of the disk that is free for temporary files",
                code="file_too_large",
                hint="give --temp-directory on a larger disk, or load the data into DuckDB",
            )
        return self.file.write(part)


def text_of(value: object) -> str | None:
    """A value as the text by which a schema reads it."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat(" ")
        case str() | int() | Decimal() | date() | time() | UUID():
            return str(value)
        case float():
            return repr(value)
    return _NO_VALUE


# Lists of dictionaries


def columns_of_records(table: str, records: Sequence[Any]) -> tuple[str, ...]:
    """The keys of all dictionaries, in the order in which they come up."""
    names: dict[str, None] = {}
    for record in records:
        if not isinstance(record, Mapping) or not all(isinstance(key, str) for key in record):
            raise UsageError(
                f"tables[{table!r}] is no list of dictionaries with names as keys",
                hint='write [{"patient": 1, "day": "2024-02-29"}, …]',
            )
        names.update(dict.fromkeys(record))
    if not names:
        raise UsageError(f"tables[{table!r}] is empty: not even its columns are known")
    return tuple(names)


def likely_types(names: Sequence[str], rows: Sequence[Sequence[object]]) -> Typed:
    """The types that values in Python have; text where they are of several kinds."""
    return tuple((name, _likely([row[i] for row in rows])) for i, name in enumerate(names))


def _likely(values: Iterable[object]) -> str:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "BOOLEAN"
    if kinds == {int}:
        return "BIGINT"
    if kinds and kinds <= {int, float}:
        return "DOUBLE"
    if kinds == {date}:
        return "DATE"
    if kinds and kinds <= {date, datetime}:
        midnights = all(not isinstance(v, datetime) or v.time() == _MIDNIGHT for v in values)
        return "DATE" if midnights else "TIMESTAMP"
    return "UUID" if kinds == {UUID} else "VARCHAR"


# Sheets


def sheet_rows(table: str, path: Path) -> tuple[tuple[str, ...], Iterator[tuple[object, ...]]]:
    """The first line and the rows of the sheet that has the table's name, else of the first one."""
    try:
        from openpyxl import load_workbook
    except ModuleNotFoundError:
        raise UsageError(
            "Excel files need the Python package openpyxl", hint="pip install 'sqlrs[excel]'"
        ) from None
    try:
        book = load_workbook(path, read_only=True, data_only=True)
        named = [name for name in book.sheetnames if name.lower() == table.lower()]
        rows = book[(named or book.sheetnames)[0]].iter_rows(values_only=True)
        first = next(rows, ())
    except Exception:
        raise UsageError(f"{path} could not be read as table", code="file_unreadable") from None
    names = tuple(first)
    while names and names[-1] is None:
        names = names[:-1]
    if not names or not all(isinstance(name, str) and name for name in names):
        raise UsageError(
            f"the first line of the sheet in {path} does not name every column",
            hint="its cells are the names, the rows follow below",
        )
    width = len(names)
    # A sheet need not say how wide it is; then a row ends with its last cell.
    cells = (_dated((*row[:width], *[None] * (width - len(row)))) for row in rows)
    return names, (row for row in cells if any(value is not None for value in row))


def _dated(row: Sequence[object]) -> tuple[object, ...]:
    """A day is a moment to a sheet."""
    return tuple(
        value.date() if isinstance(value, datetime) and value.time() == _MIDNIGHT else value
        for value in row
    )


# SQLite

_TEXTS = re.compile("CHAR|CLOB|TEXT")
_DECIMAL = re.compile(r"(DECIMAL|NUMERIC)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")


def sqlite_tables(path: Path) -> tuple[str, ...]:
    """The names of the tables in a file of SQLite's."""
    return tuple(
        str(name)
        for (name,) in _sqlite(
            path,
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
            "ORDER BY name",
        )
    )


def sqlite_table(table: str, path: Path) -> str:
    """The name of the table in the file: the given one, or the only one."""
    names = sqlite_tables(path)
    named = [name for name in names if name.lower() == table.lower()]
    if named or len(names) == 1:
        return (named or names)[0]
    raise UsageError(
        f"{path} has no table {table}",
        hint=f"it has {', '.join(names)}" if names else "it has no table",
    )


def sqlite_schema(table: str, path: Path) -> TextSchema:
    """By the declared types of the columns: no row is looked at."""
    found = _sqlite(path, "SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden <> 1", table)
    columns = tuple((str(name), _sqlite_type(str(kind or "").upper())) for name, kind in found)
    return TextSchema(columns, None, ",", format="cells")


def sqlite_key(table: str, path: Path) -> tuple[str, ...]:
    """The columns of the primary key, none where it may hold a NULL or values of two kinds.

    SQLite lets a primary key be NULL unless it is one INTEGER or said NOT NULL, and tells the
    number 1 from the text '1' where a column is of neither kind.
    """
    found = _sqlite(
        path,
        'SELECT name, type, "notnull" FROM pragma_table_xinfo(?) WHERE pk > 0 ORDER BY pk',
        table,
    )
    key = [(str(name), str(kind or "").upper(), bool(never)) for name, kind, never in found]
    row_id = [kind for _, kind, _ in key] == ["INTEGER"]
    sound = all(
        (never or row_id) and (_sqlite_type(kind) == "BIGINT" or _TEXTS.search(kind))
        for _, kind, never in key
    )
    return tuple(name for name, _, _ in key) if sound else ()


def sqlite_rows(table: str, path: Path, schema: TextSchema) -> Iterator[tuple[object, ...]]:
    """The rows as SQLite has them, but truth as truth."""
    chosen = ", ".join(_quoted(name) for name, _ in schema.columns)
    truths = [kind == "BOOLEAN" for _, kind in schema.columns]
    for row in _sqlite(path, f"SELECT {chosen} FROM {_quoted(table)}"):
        yield tuple(
            bool(value) if truth and value in (0, 1) else value
            for value, truth in zip(row, truths, strict=True)
        )


def _sqlite_type(declared: str) -> str:
    """The type that a declaration means; SQLite itself would store anything."""
    if decimal := _DECIMAL.match(declared):
        digits, scale = int(decimal[2]), int(decimal[3] or 0)
        if scale <= digits <= 38 and digits > 0:
            return f"DECIMAL({digits}, {scale})"
    for word, kind in (
        ("BOOL", "BOOLEAN"),
        ("INT", "BIGINT"),
        ("TIME", "TIMESTAMP"),
        ("DATE", "DATE"),
        ("REAL", "DOUBLE"),
        ("FLOA", "DOUBLE"),
        ("DOUB", "DOUBLE"),
        ("NUMERIC", "DOUBLE"),
        ("DECIMAL", "DOUBLE"),
    ):
        if word in declared:
            return kind
    return "VARCHAR"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sqlite(path: Path, statement: str, *parameters: str) -> Iterator[tuple[Any, ...]]:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as opened:
            yield from opened.execute(statement, parameters)
    except (sqlite3.Error, UnicodeDecodeError):
        raise UsageError(f"{path} could not be read by SQLite", code="file_unreadable") from None
