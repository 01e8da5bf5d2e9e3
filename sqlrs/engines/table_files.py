"""What an owner calls a table -> a table in DuckDB: files of all kinds, folders, data frames.

Opening reads schemas only. Parquet files are scanned where they are, others are loaded when a
statement first reads them, and frames are copied at once. The schema is fixed before any row
counts: rows that do not fit it end the release, like everything else that rows can do.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from sqlrs.engines.data_paths import (
    BOOKS,
    DELIMITERS,
    EDGES,
    JSON,
    PACKED,
    SQLITE,
    DataPath,
    is_remote,
    located,
)
from sqlrs.engines.edge_lists import (
    EdgeForm,
    form_of,
    is_edge_record,
    lines_above,
)
from sqlrs.engines.file_heads import begins_with_comment, head_of
from sqlrs.engines.file_schema import (
    Declared,
    TextSchema,
    declared_schema,
    filled,
    with_own_types,
    with_partitions,
)
from sqlrs.engines.frames import is_frame
from sqlrs.engines.loaded_files import Columns, Files, Filling, FindUnfit, Run, States, states_of
from sqlrs.engines.schema_records import (
    below_comments,
    inferred_json_schema,
    inferred_partitions,
    inferred_schema,
    record_schema,
    recorded_schema,
    require_header,
    schema_file,
)
from sqlrs.engines.table_target import EDGE, TableTarget
from sqlrs.errors import UsageError
from sqlrs.records import dataclass
from sqlrs.trees.identifiers import identifier

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_FORMS = ("directed", "undirected")

# The least and greatest values that a Parquet file states of a column leave NaN out, so a scan in
# place would skip rows that a comparison keeps. These types have no value of that kind.
_SCANNED = re.compile(
    r"U?(TINYINT|SMALLINT|INTEGER|BIGINT)|DECIMAL\(\d+,\d+\)|VARCHAR|BOOLEAN|DATE|"
    r"TIMESTAMP(_S|_MS)?|TIMESTAMP WITH TIME ZONE"
)

FilePath = str | PathLike[str]

_LOG = logging.getLogger("sqlrs.files")


def open_tables(
    connection: DuckDBPyConnection,
    tables: Mapping[str, Any],
    *,
    database: str,
    spill: Path,
    types: Mapping[str, Declared] | None = None,
    graphs: Mapping[str, str] | None = None,
) -> Files:
    """Make each of them a table of schema main in ``database``; rows are read to infer types only.

    ``types`` declares the columns of files that carry none, ``graphs`` the tables that are edge
    lists and whether they are directed. Every failure is a UsageError without a word of the
    contents. What must be unpacked or converted goes through ``spill``.
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
    readable: list[Path] = []
    for place, (name, given) in enumerate(tables.items()):
        target = TableTarget(connection, files, database, name)
        declared, graph = types.get(name), graphs.get(name)
        if isinstance(given, list):
            from sqlrs.engines.copied_tables import copy_records

            copy_records(target, given, declared, graph, spill / f"records-{place}")
        elif is_frame(given):
            from sqlrs.engines.copied_tables import copy_frame

            copy_frame(target, given, declared, graph)
        elif is_remote(fspath(given)):
            from sqlrs.engines.copied_tables import copy_remote

            copy_remote(target, fspath(given), declared, graph)
        else:
            path = located(name, Path(fspath(given)))
            opening = _Opening(target, path, spill / f"staged-{place}{path.suffix}")
            plain = path.suffix not in EDGES or declared is not None
            if graph is not None and declared is not None and path.suffix in EDGES:
                raise UsageError(
                    f"{given} is a graph or a table of named columns, not both",
                    hint="leave --types out, or the graph",
                )
            opening.open(declared, graph or (None if plain else "directed"))
            readable += [*path.files, opening.staging]
    _allow(connection, readable)
    files.only_scanned = files.scanned.keys() == tables.keys()
    return files


@dataclass(frozen=True)
class _Opening:
    """The files of one table on their way there."""

    target: TableTarget
    data: DataPath
    staging: Path

    def open(self, types: Declared | None, graph: str | None) -> None:
        """Create the table or view, and remember how it is filled."""
        states = states_of(self.data.files)
        suffix, path = self.data.suffix, self.data.named
        if types is not None and (suffix in SQLITE or suffix == ".mtx"):
            raise UsageError(f"{path} has types of its own", hint="leave --types out")
        if self.data.compression in PACKED:
            from sqlrs.engines import staged

            staged.unpack(path, str(self.data.compression), self.staging)
        if suffix == ".parquet":
            self._open_parquet(types, graph, states)
        elif suffix in SQLITE:
            self._open_sqlite(graph, states)
        elif suffix in BOOKS:
            self._open_sheet(types, graph, states)
        elif suffix in EDGES and types is not None:
            self._open_named_edges(types, states)
        elif graph is not None and self._is_edge_list(types):
            self._open_edges(graph, states)
        else:
            self._open_text(types, graph, states)

    def _open_parquet(self, types: Declared | None, graph: str | None, states: States) -> None:
        path, target = self.data.named, self.target
        partitions = self._partitions(types)
        rows = filled(
            "duckdb/read_parquet.sql", path=self.source, hive=exp.Boolean(this=bool(partitions))
        )
        rows = with_partitions(rows, partitions)
        columns = target.described(rows, path)
        if len(self.data.files) > 1:
            alike = target.ask(filled("duckdb/parquet_schemas.sql", path=self.source))
            if alike is None or len(alike) != 1:
                raise UsageError(
                    f"the Parquet files in {path} do not all have the same columns and types",
                    hint="write them with one schema, or give those that have one",
                )
        if graph is not None:
            reading = target.create_graph(str(path), rows, columns, graph)
            target.files.add(target.name, path, states, Filling(target.insert(reading)))
        elif all(_SCANNED.fullmatch(kind) for _, kind in columns):
            target.run(exp.Create(this=target.table, kind="VIEW", expression=rows), path)
            target.files.scanned[target.name] = columns
            target.files.add(target.name, path, states, None)
        else:
            empty = exp.Create(this=target.table, kind="TABLE", expression=rows.copy().limit(0))
            target.run(empty, path)
            target.files.add(target.name, path, states, Filling(target.insert(rows)))

    def _partitions(self, types: Declared | None) -> tuple[tuple[str, str], ...]:
        """The columns that folders name: declared, recorded, or inferred once and recorded."""
        path, found = self.data.named, self.data.partitions
        if types is not None and not found:
            raise UsageError(f"{path} has types of its own", hint="leave --types out")
        if not found:
            return ()
        folders = [name for name, _ in found]
        if types is not None:
            schema = declared_schema(self.target.name, types, ",", "parquet", folders)
            if schema.columns:
                raise UsageError(
                    f"{path} has types of its own",
                    hint=f"--types may name those of its folders: {', '.join(folders)}",
                )
        else:
            schema = self._recorded_or(
                lambda: TextSchema((), None, ",", format="parquet"), needs_columns=False
            )
        return with_own_types(self.target.name, schema, self.target.ask).partitions

    def _recorded_or(
        self, infer: Callable[[], TextSchema], *, needs_columns: bool = True
    ) -> TextSchema:
        """The schema that stands beside the file; if none does, one that is inferred now."""
        path = self.data.named
        found = recorded_schema(path, needs_columns=needs_columns)
        if found is None:
            schema = replace(infer(), partitions=inferred_partitions(self.data.partitions))
            record_schema(self.target.name, path, schema)
            found = recorded_schema(path, needs_columns=needs_columns)
            if found is None:
                raise UsageError(f"the types of {path} could not be recorded beside it")
            _LOG.warning(
                "sqlrs: %s: types inferred once: %s; recorded in %s",
                path.name,
                found,
                schema_file(path),
            )
        if {name for name, _ in found.partitions} != {name for name, _ in self.data.partitions}:
            raise UsageError(
                f"the folders in {path} name other columns than {schema_file(path).name}"
            )
        return found

    def _open_text(self, types: Declared | None, graph: str | None, states: States) -> None:
        """Separated values or JSON, by a schema."""
        target, path, suffix = self.target, self.data.named, self.data.suffix
        delimiter = DELIMITERS.get(suffix, ",")
        format = "separated" if suffix in DELIMITERS else self._json_format()
        if types is not None:
            folders = [name for name, _ in self.data.partitions]
            schema = declared_schema(target.name, types, delimiter, format, folders)
            if format == "separated":
                schema = below_comments(schema, self._texts[0], target.ask)
        elif format == "separated":
            # A comma is common in CSV files, not certain; a tab is what a TSV file has.
            fixed = None if delimiter == "," else delimiter
            schema = self._recorded_or(
                lambda: inferred_schema(target.name, path, self._texts, fixed, target.ask)
            )
        else:
            schema = self._recorded_or(
                lambda: inferred_json_schema(target.name, path, self.source, format, target.ask)
            )
        for text in self._texts if format == "separated" else ():
            require_header(schema, path, text, target.ask)
        schema = with_own_types(target.name, schema, target.ask)
        find = partial(_unfit_row, schema, self.source)
        self._add(schema.rows(self.source), schema.all_columns, graph, states, find_unfit=find)

    def _json_format(self) -> str:
        if self.data.suffix != ".json":
            return "json"
        head = head_of(exp.Literal.string(self._texts[0]), self.target.ask)
        first = next((line.strip() for line in head if line.strip()), "")
        return "json_array" if first.startswith("[") else "json"

    def _open_sheet(self, types: Declared | None, graph: str | None, states: States) -> None:
        from sqlrs.engines import staged

        target, path = self.target, self.data.named
        names, rows = staged.sheet_rows(target.name, path)

        def infer() -> TextSchema:
            return TextSchema(staged.likely_types(names, list(rows)), names, ",", format="cells")

        if types is not None:
            schema = declared_schema(target.name, types, ",", "cells", ())
        else:
            schema = self._recorded_or(infer)
        if schema.header != names:
            raise UsageError(
                f"the first line of the sheet in {path} is not {', '.join(schema.header or ())}",
                code="file_unfit",
            )
        schema = with_own_types(target.name, schema, target.ask)
        columns = [name for name, _ in schema.columns]

        def write() -> None:
            staged.write_rows(self.staging, columns, staged.sheet_rows(target.name, path)[1])

        find = partial(_unfit_row, schema, _literal(self.staging))
        self._add(schema.rows(_literal(self.staging)), schema.columns, graph, states, write, find)

    def _open_sqlite(self, graph: str | None, states: States) -> None:
        from sqlrs.engines import staged

        target, path = self.target, self.data.named
        name = staged.sqlite_table(target.name, path)
        schema = with_own_types(target.name, staged.sqlite_schema(name, path), target.ask)
        columns = [one for one, _ in schema.columns]

        def write() -> None:
            staged.write_rows(self.staging, columns, staged.sqlite_rows(name, path, schema))

        find = partial(_unfit_row, schema, _literal(self.staging))
        self._add(schema.rows(_literal(self.staging)), schema.columns, graph, states, write, find)
        if graph is None and (key := staged.sqlite_key(name, path)):
            # DuckDB holds it again while it loads the rows.
            held = exp.PrimaryKey(expressions=[identifier(column) for column in key])
            action = exp.AddConstraint(expressions=[held])
            target.run(exp.Alter(kind="TABLE", this=target.table, actions=[action]), path)

    def _is_edge_list(self, types: Declared | None) -> bool:
        """Whether lines are edges of some form, not separated values by a schema."""
        if self.data.suffix in EDGES:
            return True
        if types is not None or self.data.several or self.data.suffix in JSON:
            return False
        if is_edge_record(self.data.named) or schema_file(self.data.named).exists():
            return is_edge_record(self.data.named)
        return begins_with_comment(head_of(_literal(self._text), self.target.ask))

    def _open_edges(self, graph: str, states: States) -> None:
        path, source = self.data.named, _literal(self._text)
        head = head_of(source, self.target.ask)
        matrix = self.data.suffix == ".mtx"
        known = schema_file(path).exists()
        form = form_of(path, head, matrix=matrix, directed=graph == "directed")
        if not known and form != EdgeForm() and not matrix:
            _LOG.warning(
                "sqlrs: %s: form found once: %s; recorded in %s", path.name, form, schema_file(path)
            )
        skip = lines_above(path, form, head)
        columns = tuple((end, form.ids) for end in EDGE)
        find = partial(form.find_unfit, source, skip)
        remedy = (
            f"every line of an edge list has the form that {schema_file(path).name} says"
            if schema_file(path).exists()
            else "every line of an edge list holds two integers"
        )
        self._add(form.rows(source, skip), columns, graph, states, find_unfit=find, remedy=remedy)

    def _open_named_edges(self, types: Declared, states: States) -> None:
        """All fields of an edge list as columns of a plain table."""
        target, path, source = self.target, self.data.named, _literal(self._text)
        head = head_of(source, target.ask)
        form = form_of(path, head, matrix=False, directed=True)
        schema = declared_schema(target.name, types, ",", "cells", ())
        schema = with_own_types(target.name, schema, target.ask)
        skip = lines_above(path, form, head)
        from sqlrs.engines.named_fields import named_rows

        rows = named_rows(form, schema, path.name, source, skip)
        find = partial(form.find_unfit, source, skip)
        self._add(rows, schema.columns, None, states, find_unfit=find)

    def _add(
        self,
        rows: exp.Select,
        columns: Columns,
        graph: str | None,
        states: States,
        write: Callable[[], None] | None = None,
        find_unfit: FindUnfit | None = None,
        remedy: str | None = None,
    ) -> None:
        """A table that is filled at its first use."""
        target, path = self.target, self.data.named
        reading: exp.Query = rows
        if graph is not None:
            reading = target.create_graph(str(path), rows, columns, graph)
        else:
            target.create(columns)
        if remedy is None:
            remedy = "the columns of a file are declared by --types or in " + schema_file(path).name
        is_staged = write is not None or self.data.compression in PACKED
        filling = Filling(
            target.insert(reading), find_unfit, remedy, self.staging if is_staged else None, write
        )
        target.files.add(target.name, path, states, filling)

    @property
    def _text(self) -> Path:
        """The file that holds the lines of a single one."""
        return self.staging if self.data.compression in PACKED else self.data.files[0]

    @property
    def _texts(self) -> list[str]:
        """The files for DuckDB's readers."""
        if self.data.compression in PACKED:
            return [_pattern(self.staging)]
        return [_pattern(file) for file in self.data.files]

    @property
    def source(self) -> exp.Expression:
        """What a reader of DuckDB's reads: one file, or a list of files."""
        literals = [exp.Literal.string(text) for text in self._texts]
        return exp.Array(expressions=literals) if len(literals) > 1 else literals[0]


def _unfit_row(schema: TextSchema, source: exp.Expression, run: Run) -> str | None:
    """Where the first row is that does not fit, and in which column."""
    found = run(schema.unfit_row(source).sql(dialect="duckdb", comments=False))
    if not found:
        return None
    place, wrong = (int(str(one)) for one in found[0])
    name, kind = schema.columns[wrong - 1]
    return f"row {place}, column {name} holds no {kind}"


def _allow(connection: DuckDBPyConnection, paths: Iterable[Path]) -> None:
    """Let SQL read these files, and no other one once external access is off."""
    allowed = dict.fromkeys(
        text for path in paths for text in (_pattern(path), str(path.absolute()))
    )
    if allowed:
        literals = exp.Array(expressions=[exp.Literal.string(text) for text in allowed])
        setting = exp.EQ(this=exp.column("allowed_paths"), expression=literals)
        statement = exp.Set(expressions=[exp.SetItem(this=setting)])
        connection.execute(statement.sql(dialect="duckdb"))


def _literal(path: Path) -> exp.Literal:
    return exp.Literal.string(_pattern(path))


def _pattern(path: Path) -> str:
    """The path for DuckDB's readers, which take wildcards: a name may have such characters."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in str(path.absolute()))
