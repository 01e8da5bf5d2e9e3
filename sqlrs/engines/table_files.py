"""Files -> DuckDB tables: CSV, TSV, Parquet and SNAP edge lists.

Opening reads schemas only. A Parquet file is scanned where it is, the others are loaded when a
statement first reads them. The schema is fixed before any row counts: rows that do not fit it end
the release, like everything else that rows can do.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp

from sqlrs.engines.base import Row
from sqlrs.engines.file_schema import (
    Declared,
    TextSchema,
    declared_schema,
    filled,
    record_inferred_schema,
    recorded_schema,
    require_header,
    schema_file,
    with_own_types,
)
from sqlrs.errors import EngineFailed, SqlrsError, UsageError
from sqlrs.trees.identifiers import column, identifier

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_SUFFIXES = frozenset({*_DELIMITERS, ".parquet", ".txt"})
_COMPRESSED = frozenset({".gz", ".zst"})
_EDGE = ("src", "dst")
_FORMS = ("directed", "undirected")

# The least and greatest values that a Parquet file states of a column leave NaN out, so a scan in
# place would skip rows that a comparison keeps. These types have no value of that kind.
_SCANNED = re.compile(
    r"U?(TINYINT|SMALLINT|INTEGER|BIGINT)|DECIMAL\(\d+,\d+\)|VARCHAR|BOOLEAN|DATE|"
    r"TIMESTAMP(_S|_MS)?|TIMESTAMP WITH TIME ZONE"
)

FilePath = str | PathLike[str]
Keys = dict[str, frozenset[frozenset[str]]]
Run = Callable[[str], list[Row]]
Columns = tuple[tuple[str, str], ...]

_LOG = logging.getLogger("sqlrs.files")


@dataclass(frozen=True)
class _FileState:
    """What tells one state of a file from another without reading it."""

    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, path: Path) -> _FileState | None:
        try:
            found = os.stat(path)
        except OSError:
            return None
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


@dataclass
class _File:
    """One file as a table: how it was when it was opened, and the statement that loads it."""

    path: Path
    state: _FileState | None
    fill: exp.Insert | None
    loaded: bool = False

    def require_unchanged(self) -> None:
        if self.state is None or _FileState.of(self.path) != self.state:
            raise EngineFailed(
                f"{self.path} has changed since it was opened",
                code="file_changed",
                hint="open the data again",
            )


@dataclass
class Files:
    """The tables that are files, by their names in lower case.

    ``scanned`` holds the columns of those that are read where they are.
    """

    keys: Keys = field(default_factory=dict)
    rows_per_unit: dict[str, int] = field(default_factory=dict)
    scanned: dict[str, Columns] = field(default_factory=dict)
    _files: dict[str, _File] = field(default_factory=dict)
    _unfit: dict[str, EngineFailed] = field(default_factory=dict)
    _loading: threading.Lock = field(default_factory=threading.Lock)

    def add(self, name: str, path: Path, state: _FileState | None, fill: exp.Insert | None) -> None:
        """A table that is scanned where it is, or filled by a statement at its first use."""
        self._files[name.lower()] = _File(path.absolute(), state, fill)

    def read_by(self, statement: exp.Expression) -> frozenset[str]:
        """The files that a statement reads."""
        if not self._files:
            return frozenset()
        names = frozenset(table.name.lower() for table in statement.find_all(exp.Table))
        return names & self._files.keys()

    def require_unchanged(self, names: frozenset[str]) -> None:
        """Fail if a file that is scanned is not the one that was opened."""
        for name in names:
            if self._files[name].fill is None:
                self._files[name].require_unchanged()

    def load(self, names: frozenset[str], run: Run) -> None:
        """Load those that are not yet; ``run`` must be outside a transaction."""
        with self._loading:
            for name in sorted(names):
                if name in self._unfit:
                    raise _copy(self._unfit[name])
                file = self._files[name]
                if file.fill is not None and not file.loaded:
                    self._load(name, file, file.fill, run)

    def _load(self, name: str, file: _File, fill: exp.Insert, run: Run) -> None:
        file.require_unchanged()
        run(exp.Transaction().sql(dialect="duckdb"))
        unfit = False
        try:
            run(fill.sql(dialect="duckdb", comments=False))
            file.require_unchanged()
        except EngineFailed as error:
            with suppress(SqlrsError):
                run(exp.Rollback().sql(dialect="duckdb"))
            unfit = error.code == EngineFailed.code
            if not unfit:
                raise
        if unfit:
            # For ever: a key that could not be checked on it must not be believed later.
            self._unfit[name] = EngineFailed(
                f"{file.path} does not fit its schema",
                code="file_unfit",
                hint="every line of an edge list holds two integers; the columns of a CSV file "
                f"are declared by --types or in {schema_file(file.path).name}",
            )
            raise _copy(self._unfit[name])
        run(exp.Commit().sql(dialect="duckdb"))
        file.loaded = True


def _copy(error: EngineFailed) -> EngineFailed:
    return EngineFailed(error.message, code=error.code, hint=error.hint)


def open_files(
    connection: DuckDBPyConnection,
    tables: Mapping[str, FilePath],
    *,
    database: str,
    types: Mapping[str, Declared] | None = None,
    graphs: Mapping[str, str] | None = None,
) -> Files:
    """Make each file a table of schema main in ``database``; no row is read but to infer types.

    ``types`` declares the columns of CSV and TSV files, ``graphs`` the tables that are edge lists
    and whether they are directed. Every failure is a UsageError without a word of the contents.
    """
    types, graphs = dict(types or {}), dict(graphs or {})
    folded = [name.casefold() for name in tables]
    if len(set(folded)) != len(folded):
        raise UsageError("two files are given for one table name")
    for name in sorted({*types, *graphs} - {*tables}):
        raise UsageError(f"no file is given for table {name}", hint="--table NAME=FILE")
    for name, form in graphs.items():
        if form not in _FORMS:
            raise UsageError(f"the graph {name} is not {form!r}", hint=" or ".join(_FORMS))
    files = Files()
    for name, given in tables.items():
        path = Path(fspath(given))
        suffix = _suffix(path)
        _require_readable(name, path)
        opening = _Opening(connection, files, database, name, path, suffix)
        opening.open(types.get(name), graphs.get(name, "directed" if suffix == ".txt" else None))
    _allow(connection, [Path(fspath(path)) for path in tables.values()])
    return files


@dataclass(frozen=True)
class _Opening:
    """One file on its way to a table."""

    connection: DuckDBPyConnection
    files: Files
    database: str
    name: str
    path: Path
    suffix: str

    def open(self, types: Declared | None, graph: str | None) -> None:
        """Create the table or view, and remember how it is filled."""
        state = _FileState.of(self.path)
        if types is not None and self.suffix not in _DELIMITERS:
            raise UsageError(f"{self.path} has types of its own", hint="leave --types out")
        if self.suffix == ".txt":
            rows: exp.Select = filled("duckdb/read_edges.sql", path=self.pattern)
            columns: Columns = (("src", "BIGINT"), ("dst", "BIGINT"))
        elif self.suffix == ".parquet":
            rows = filled("duckdb/read_parquet.sql", path=self.pattern)
            columns = self._described(rows)
        else:
            schema = self._text_schema(types)
            rows, columns = schema.rows(self.pattern.name), schema.columns
        if graph is not None:
            self._open_graph(rows, columns, graph, state)
        elif self.suffix == ".parquet" and all(_SCANNED.fullmatch(kind) for _, kind in columns):
            self._run(exp.Create(this=self._target(), kind="VIEW", expression=rows))
            self.files.scanned[self.name] = columns
            self.files.add(self.name, self.path, state, None)
        else:
            if self.suffix == ".parquet":
                empty = rows.copy().limit(0)
                self._run(exp.Create(this=self._target(), kind="TABLE", expression=empty))
            else:
                self._create_table(columns)
            self.files.add(self.name, self.path, state, self._insert(rows))

    def _open_graph(
        self, rows: exp.Select, columns: Columns, form: str, state: _FileState | None
    ) -> None:
        """An edge list: (src, dst) without repetitions, undirected ones both ways.

        An index for the key would cost more than the load: it is known to hold without one. NOT
        NULL rejects lines that are no edge.
        """
        if len(columns) != 2 or columns[0][1] != columns[1][1]:
            raise UsageError(
                f"{self.path} is no edge list: it does not have two columns of one type",
                hint="keep two columns, the ends of an edge; sqlrs count reads a file with more "
                "as a table (--table NAME=FILE)",
            )
        kind = columns[0][1]
        self._create_table(tuple((end, kind) for end in _EDGE), never_null=True)
        ends = [identifier(end) for end in _EDGE]
        edges = exp.CTE(this=rows, alias=exp.TableAlias(this=identifier("edges"), columns=ends))
        forth = exp.select(*(column(end) for end in _EDGE)).from_("edges").distinct()
        filling: exp.Query = forth
        if form == "undirected":
            back = exp.select(*(column(end) for end in reversed(_EDGE))).from_("edges")
            filling = exp.union(forth, back, distinct=True)
            self.files.rows_per_unit[self.name] = 2
        filling.set("with_", exp.With(expressions=[edges]))
        self.files.keys[self.name] = frozenset({frozenset(_EDGE)})
        self.files.add(self.name, self.path, state, self._insert(filling))

    def _text_schema(self, types: Declared | None) -> TextSchema:
        delimiter, pattern = _DELIMITERS[self.suffix], self.pattern.name
        if types is not None:
            schema = declared_schema(self.name, types, delimiter)
        elif (found := recorded_schema(self.path)) is not None:
            schema = found
        else:
            # A comma is common in CSV files, not certain; a tab is what a TSV file has.
            fixed = None if delimiter == "," else delimiter
            record_inferred_schema(self.name, self.path, pattern, fixed, self._ask)
            recorded = recorded_schema(self.path)
            if recorded is None:
                raise UsageError(f"the types of {self.path} could not be recorded beside it")
            schema = recorded
            _LOG.warning(
                "sqlrs: %s: types inferred once: %s; recorded in %s",
                self.path.name,
                schema,
                schema_file(self.path),
            )
        require_header(schema, self.path, pattern, self._ask)
        return with_own_types(self.name, schema, self._ask)

    @property
    def pattern(self) -> exp.Literal:
        """The path for DuckDB's readers, which take wildcards: a name may have such characters."""
        return exp.Literal.string(_pattern(self.path))

    def _described(self, rows: exp.Select) -> Columns:
        found = self._ask(exp.Describe(this=rows.copy()))
        if not found:
            raise UsageError(f"{self.path} could not be read as table", code="file_unreadable")
        return tuple((str(row[0]), str(row[1])) for row in found)

    def _create_table(self, columns: Columns, *, never_null: bool = False) -> None:
        constraints = [exp.ColumnConstraint(kind=exp.NotNullColumnConstraint())]
        definitions = [
            exp.ColumnDef(
                this=identifier(name),
                kind=exp.DataType.build(kind, dialect="duckdb", udt=True),
                constraints=constraints if never_null else [],
            )
            for name, kind in columns
        ]
        table = exp.Schema(this=self._target(), expressions=definitions)
        self._run(exp.Create(this=table, kind="TABLE"))

    def _insert(self, rows: exp.Query) -> exp.Insert:
        return exp.Insert(this=self._target(), expression=rows)

    def _target(self) -> exp.Table:
        return exp.Table(
            this=identifier(self.name), db=identifier("main"), catalog=identifier(self.database)
        )

    def _run(self, statement: exp.Expression) -> None:
        if self._ask(statement) is None:
            raise UsageError(f"{self.path} could not be read as table", code="file_unreadable")

    def _ask(self, statement: exp.Expression) -> list[Row] | None:
        """The rows of a statement. Why one fails may quote the file, so it is not told."""
        import duckdb

        with suppress(duckdb.Error):
            text = statement.sql(dialect="duckdb", comments=False)
            return self.connection.execute(text).fetchall()
        return None


def _allow(connection: DuckDBPyConnection, paths: list[Path]) -> None:
    """Let SQL read these files, and no other one once external access is off."""
    allowed = dict.fromkeys(
        text for path in paths for text in (_pattern(path), str(path.absolute()))
    )
    if allowed:
        literals = exp.Array(expressions=[exp.Literal.string(text) for text in allowed])
        setting = exp.EQ(this=exp.column("allowed_paths"), expression=literals)
        statement = exp.Set(expressions=[exp.SetItem(this=setting)])
        connection.execute(statement.sql(dialect="duckdb"))


def _pattern(path: Path) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in str(path.absolute()))


def _require_readable(name: str, path: Path) -> None:
    if not name:
        raise UsageError(f"the table for {path} has no name", hint="write NAME=FILE")
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    try:
        path.open("rb").close()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


def _suffix(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if len(suffixes) > 1 and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    if not suffixes or suffixes[-1] not in _SUFFIXES:
        raise UsageError(
            f"the kind of {path} is unknown",
            hint="files end in .csv, .tsv, .parquet, or .txt for a SNAP edge list; "
            "text files may be compressed (.gz)",
        )
    return suffixes[-1]
