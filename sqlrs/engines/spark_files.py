"""Files as tables of Spark: Parquet, CSV, TSV and SNAP edge lists; one file, a folder or a pattern.

Opening reads the schema of Parquet files, the header of one CSV file, and no row. A release reads
the files that are there when it begins, under the schema of the opening.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from os import PathLike, fspath
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from sqlrs.catalog import Family, Table
from sqlrs.engines.file_schema import Declared
from sqlrs.engines.spark_catalog import columns_of, spark_type
from sqlrs.engines.versioned_folders import marks, plain_part, refusal_of
from sqlrs.errors import UsageError
from sqlrs.records import dataclass

FilePath = str | PathLike[str]

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_COMPRESSED = frozenset({".gz", ".bz2", ".zst"})
_EDGE = ("src", "dst")
_FORMS = ("directed", "undirected")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:/", re.ASCII | re.IGNORECASE)
_HOME = re.compile(r"[a-z][a-z0-9+.-]*:(//[^/]*)?", re.ASCII | re.IGNORECASE)
_LINE = r"^\s*([+-]?\d+)\s+([+-]?\d+)\s*$"
_NO_EDGE = r"^\s*(#|$)"
_HINT = "write NAME='column TYPE, column TYPE', for example visit='patient BIGINT, day DATE'"


@dataclass(frozen=True)
class FileTable:
    """A table that is files: where, of which kind, and its columns as Spark's own schema."""

    name: str
    path: str
    suffix: str
    schema: Any = field(compare=False, repr=False)
    graph: str | None = None

    @property
    def table(self) -> Table:
        """What is public of it. The ends of an edge list have no repetition and no NULL."""
        found = Table(self.name, columns_of(self.schema))
        if self.graph is None:
            return found
        units = 2 if self.graph == "undirected" else 1
        keyed = found.with_keys([_EDGE])
        return Table(keyed.name, keyed.columns, keyed.keys, rows_per_unit=units)

    def stored(self, session: Any) -> Any:
        """The rows as they stand in the files that are there now."""
        reader = session.read
        if self.suffix == ".txt":
            return reader.text(self.path)
        if self.suffix == ".parquet":
            return reader.schema(self.schema).parquet(self.path)
        return (
            reader.schema(self.schema)
            .option("header", True)
            .option("enforceSchema", False)
            .option("mode", "FAILFAST")
            .option("sep", _SEPARATORS[self.suffix])
            .option("escape", '"')
            .csv(self.path)
        )

    def rows(self, stored: Any) -> Any:
        """The rows of the table from those in the files. A line that is no edge makes it fail."""
        if self.graph is None:
            return stored
        if self.suffix == ".txt":
            ends = [f"CAST(regexp_extract(value, r'{_LINE}', {i}) AS BIGINT)" for i in (1, 2)]
            lines = stored.where(f"NOT value RLIKE r'{_NO_EDGE}'")
            stored = lines.selectExpr(
                *(f"{end} AS {name}" for end, name in zip(ends, _EDGE, strict=True))
            )
        else:
            stored = stored.toDF(*_EDGE)
            stored = stored.selectExpr(
                *(f"CASE WHEN {e} IS NULL THEN raise_error('') ELSE {e} END AS {e}" for e in _EDGE)
            )
        if self.graph == "undirected":
            stored = stored.union(stored.select(*reversed(_EDGE)))
        return stored.distinct()


def file_tables(
    session: Any,
    tables: Mapping[str, FilePath],
    types: Mapping[str, Declared],
    graphs: Mapping[str, str],
) -> list[FileTable]:
    """Each file as a table. Every failure is a UsageError without a word of the contents."""
    folded = [name.casefold() for name in tables]
    if len(set(folded)) != len(folded):
        raise UsageError("two files are given for one table name")
    for name in sorted({*types, *graphs} - {*tables}):
        raise UsageError(f"no file is given for table {name}", hint="--table NAME=FILE")
    for name, form in graphs.items():
        if form not in _FORMS:
            raise UsageError(f"the graph {name} is not {form!r}", hint=" or ".join(_FORMS))
    return [
        _opened(session, name, fspath(path), types.get(name), graphs.get(name))
        for name, path in tables.items()
    ]


def _opened(
    session: Any, name: str, path: str, types: Declared | None, graph: str | None
) -> FileTable:
    if not name:
        raise UsageError(f"the table for {path} has no name", hint="write NAME=FILE")
    suffix = _suffix(path, typed=types is not None)
    if not _SCHEME.match(path):
        path = str(Path(path).absolute())
        if not any(c in path for c in "*?[{") and not Path(path).exists():
            raise UsageError(f"there is no file {path}")
    _require_no_versions(session, path)
    if types is not None and suffix not in _SEPARATORS:
        raise UsageError(f"{path} has types of its own", hint="leave --types out")
    if suffix == ".txt":
        schema = session.createDataFrame([], "src BIGINT, dst BIGINT").schema
        return FileTable(name, path, suffix, schema, graph or "directed")
    schema = _declared(session, name, path, types) if suffix in _SEPARATORS else _own(session, path)
    if graph is not None:
        columns = columns_of(schema)
        if len(columns) != 2 or columns[0].type != columns[1].type:
            raise UsageError(f"{path} is no edge list: it does not have two columns of one type")
    if suffix in _SEPARATORS:
        _require_header(session, path, _SEPARATORS[suffix], schema)
    return FileTable(name, path, suffix, schema, graph)


def _require_no_versions(session: Any, path: str) -> None:
    """Refuse a folder that keeps versions of a table."""
    files = _files(session, path)
    homes, places = zip(*map(_place, files), strict=True) if files else ((), ())
    _, given = _place(path)
    if [given] == [*places]:
        return
    for mark in marks(places, plain_part(given)):
        if _files(session, f"{homes[0]}{mark.folder}", mark.file):
            raise refusal_of(path, mark)


def _files(session: Any, path: str, named: str = "*") -> list[str]:
    """The files of a folder or pattern; none where it is not there, which is told elsewhere."""
    reader = session.read.format("binaryFile").option("recursiveFileLookup", True)
    with suppress(Exception):
        return [*reader.option("pathGlobFilter", named).load(path).inputFiles()]
    return []


def _place(file: str) -> tuple[str, str]:
    """The file system of an address, and the path in it."""
    home = _HOME.match(file)
    return (home[0], unquote(file[home.end() :])) if home is not None else ("", file)


def _own(session: Any, path: str) -> Any:
    """The schema that Parquet files have."""
    with suppress(Exception):
        return session.read.parquet(path).schema
    raise UsageError(f"{path} could not be read as table", code="file_unreadable")


def _require_header(session: Any, path: str, separator: str, schema: Any) -> None:
    """Refuse a file whose first line is not the header: every release would fail, once charged."""
    lines, folders = None, list[str]()
    with suppress(Exception):
        # What the names of folders say stands beside the lines.
        texts = session.read.text(path)
        folders = [name.lower() for name in texts.columns[1:]]
        lines = texts.select("value").where("trim(value) <> ''").limit(1).collect()
    if lines is None:
        raise UsageError(f"{path} could not be read as table", code="file_unreadable")
    wanted = [field.name for field in schema.fields if field.name.lower() not in folders]
    for (line,) in lines:
        (found,) = csv.reader([line.removeprefix("\ufeff")], delimiter=separator)
        if [name.lower() for name in found] != [name.lower() for name in wanted]:
            raise UsageError(
                f"the first line of {path} is not the header {separator.join(wanted)}",
                hint="its types name all columns of the file, in their order",
            )


def _declared(session: Any, name: str, path: str, types: Declared | None) -> Any:
    if types is None:
        raise UsageError(
            f"the columns of {path} have no types",
            hint=f"declare them: --types {name}='column TYPE, …'; Spark would take them from rows",
        )
    text = types if isinstance(types, str) else ", ".join(f"`{n}` {k}" for n, k in types.items())
    with suppress(Exception):
        # No rows: it only reads the types.
        schema = session.createDataFrame([], text).schema
        kinds = [spark_type(one.dataType.simpleString()).family for one in schema.fields]
        if kinds and Family.OPAQUE not in kinds and "char" not in text.lower():
            return schema
    raise UsageError(f"the types of table {name} are not columns with types of Spark's", hint=_HINT)


def _suffix(path: str, *, typed: bool) -> str:
    suffixes = [suffix.lower() for suffix in PurePosixPath(path).suffixes]
    if len(suffixes) > 1 and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    if suffixes and suffixes[-1] in {*_SEPARATORS, ".parquet", ".txt"}:
        return suffixes[-1]
    if suffixes and not Path(path).is_dir():
        raise UsageError(
            f"the kind of {path} is unknown",
            hint="files end in .csv, .tsv, .parquet, or .txt for a SNAP edge list",
        )
    # A folder, or a pattern of folders: CSV files where their types are given.
    return ".csv" if typed else ".parquet"
