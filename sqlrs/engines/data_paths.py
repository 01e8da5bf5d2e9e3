"""What an owner's path names: one file, several by wildcards, or a folder with its partitions."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlrs.engines.versioned_folders import marks, refusal_of
from sqlrs.errors import UsageError
from sqlrs.records import dataclass

DELIMITERS = {".csv": ",", ".tsv": "\t"}
"""What separates the fields of a file with this ending, unless its schema says otherwise."""
EDGES = frozenset({".txt", ".edges", ".edgelist", ".el", ".mtx"})
"""The endings of files that are edge lists, whatever else is said of them."""
JSON = frozenset({".jsonl", ".ndjson", ".json"})
BOOKS = frozenset({".xlsx", ".xlsm"})
SQLITE = frozenset({".sqlite", ".sqlite3"})
DUCKDB = frozenset({".duckdb", ".ddb", ".db"})
STREAMED = frozenset({".gz", ".zst"})
"""Compressions that DuckDB's readers read themselves."""
PACKED = frozenset({".bz2", ".xz", ".zip"})
"""Compressions that are unpacked into the spill folder first."""

_TEXT = frozenset({*DELIMITERS, *EDGES, *JSON})
_KNOWN = frozenset({*_TEXT, *BOOKS, *SQLITE, ".parquet"})
_REMOTE = re.compile(r"(s3|s3a|s3n|gs|gcs|r2|az|azure|abfss?|https?|hf)://", re.IGNORECASE)
_PARTITION = re.compile(r"([^=]+)=(.*)")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_KINDS = (
    "files end in .parquet, .csv, .tsv, .jsonl, .xlsx, .sqlite, or .txt, .edges, .mtx for an edge "
    "list; text may be compressed (.gz, .zst, .bz2, .xz, .zip)"
)


@dataclass(frozen=True)
class DataPath:
    """The files of one table, all of one kind.

    ``named`` is the file, or the folder that holds all of them: what is recorded about them stands
    beside it. ``partitions``: the names of folders such as year=2024, and the values of each.
    """

    named: Path
    files: tuple[Path, ...]
    suffix: str
    compression: str | None = None
    partitions: tuple[tuple[str, frozenset[str]], ...] = ()

    @property
    def several(self) -> bool:
        """Whether a folder or wildcards were given; such files are read as their schema says."""
        return self.files != (self.named,)


def is_remote(text: str) -> bool:
    """Whether a path is an address in a network."""
    return _REMOTE.match(text) is not None


def is_sqlite(path: Path) -> bool:
    """Whether a file says that it is a database of SQLite's."""
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\x00"
    except OSError:
        return False


def located(table: str, given: Path) -> DataPath:
    """The files that a path names, sorted; every failure is a UsageError."""
    if not table:
        raise UsageError(f"the table for {given} has no name", hint="write NAME=FILE")
    if given.is_dir():
        folder = given.absolute()
        return _of_folder(folder, _files_below(folder))
    if given.exists() or not glob.has_magic(str(given)):
        if not given.is_file():
            raise UsageError(f"there is no file {given}")
        _require_readable(given)
        # A file of SQLite's may be called .db, as those of others are.
        suffix, compression = (".sqlite", None) if is_sqlite(given) else kind_of(given)
        return DataPath(given, (given,), suffix, compression)
    # Two ** find a file once for each way to share the folders out among them.
    found = sorted({Path(one) for one in glob.glob(str(given), recursive=True)})
    files = [one for one in found if one.is_file() and not one.name.endswith(".schema.toml")]
    if not files:
        raise UsageError(f"there is no file {given}", hint="no file fits these wildcards")
    parts = given.parts
    plain = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    return _of_folder(Path(*parts[:plain]).absolute(), [one.absolute() for one in files])


def tables_in(folder: Path) -> dict[str, Path]:
    """A folder as a database: each file or folder of files is a table with its name.

    A folder of partitions (year=2024), or of parts that are called part-…, is one table.
    """
    with _searching(folder):
        return _tables_in(folder)


def _tables_in(folder: Path) -> dict[str, Path]:
    entries = sorted(one for one in folder.iterdir() if not _hidden(one))
    if any(_PARTITION.fullmatch(one.name) for one in entries if one.is_dir()):
        return {folder.resolve().name: folder}
    tables: dict[str, Path] = {}
    for entry in entries:
        known = entry.is_dir() and any(_files_below(entry))
        if known or (entry.is_file() and _is_known(entry)):
            name = entry.name if entry.is_dir() else table_name(entry)
            if name.lower() in {one.lower() for one in tables}:
                raise UsageError(
                    f"{folder} holds two tables {name}", hint="name them: --table NAME=FILE"
                )
            tables[name] = entry
    if not tables:
        raise UsageError(f"{folder} holds no data", hint=_KINDS)
    return tables


def table_name(path: Path) -> str:
    """The name of a file without its ending."""
    suffix, compression = kind_of(path)
    return path.name[: -len(suffix + (compression or ""))]


def kind_of(path: Path) -> tuple[str, str | None]:
    """The ending that says what a file is, and the one of its compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = None
    if len(suffixes) > 1 and suffixes[-1] in STREAMED | PACKED:
        compression = suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    if suffix not in (_KNOWN if compression is None else _TEXT):
        raise UsageError(f"the kind of {path} is unknown", hint=_KINDS)
    return suffix, compression


def _is_known(path: Path) -> bool:
    try:
        kind_of(path)
    except UsageError:
        return False
    return True


def _hidden(path: Path) -> bool:
    return path.name.startswith((".", "_")) or path.name.endswith(".schema.toml")


@contextmanager
def _searching(folder: Path) -> Iterator[None]:
    """What the system does not let anybody look at is said in one line."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be searched for data: {error.filename}: {error.strerror}",
            hint="give the folder of a table, or its files with wildcards",
        ) from None


def _files_below(folder: Path) -> list[Path]:
    with _searching(folder):
        return sorted(
            one
            for one in folder.rglob("*")
            if one.is_file()
            and _is_known(one)
            and not any(_hidden(Path(part)) for part in one.relative_to(folder).parts)
        )


def _of_folder(folder: Path, files: list[Path]) -> DataPath:
    if not files:
        raise UsageError(f"{folder} holds no data", hint=_KINDS)
    for mark in marks([one.as_posix() for one in files], folder.as_posix()):
        if any(Path(mark.folder).glob(mark.file)):
            raise refusal_of(folder, mark)
    kinds = {kind_of(one) for one in files}
    if len(kinds) > 1:
        raise UsageError(
            f"the files in {folder} are of several kinds",
            hint=f"name those of one kind: {folder}/*{files[0].suffix}",
        )
    ((suffix, compression),) = kinds
    single = (suffix in BOOKS | SQLITE | EDGES) or compression in PACKED
    if len(files) > 1 and single:
        raise UsageError(f"several files {suffix} are not read as one table", hint="give one file")
    for one in files:
        _require_readable(one)
    _require_different(files)
    if len(files) == 1 and single:
        return DataPath(files[0], (files[0],), suffix, compression)
    return DataPath(folder, tuple(files), suffix, compression, _partitions(folder, files))


def _require_different(files: list[Path]) -> None:
    """Refuse one file under several names: each of its rows would stand in the table as often."""
    names: dict[tuple[int, int], Path] = {}
    for one in files:
        found = one.stat()
        first = names.setdefault((found.st_dev, found.st_ino), one)
        if first is not one:
            raise UsageError(
                f"{first} and {one} are links to one file, whose rows would be read twice",
                hint="leave one of them out, or name the files: data/part-*.parquet",
            )


def _partitions(folder: Path, files: list[Path]) -> tuple[tuple[str, frozenset[str]], ...]:
    """The folders above the files that are called name=value, as DuckDB takes them."""
    found = [
        [match.groups() for part in one.parent.parts if (match := _PARTITION.fullmatch(part))]
        for one in files
    ]
    names = [tuple(name for name, _ in values) for values in found]
    if len(set(names)) > 1:
        raise UsageError(f"the folders in {folder} do not all name the same partitions")
    return tuple(
        (name, frozenset(values[place][1] for values in found) - {_NO_VALUE})
        for place, name in enumerate(names[0])
    )


def _require_readable(path: Path) -> None:
    try:
        path.open("rb").close()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
