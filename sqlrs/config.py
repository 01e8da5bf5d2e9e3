"""sqlrs.toml -> where the data is, what is private, which keys hold, which limits apply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from sqlrs.connecting import connect
from sqlrs.database import Database
from sqlrs.engines.file_schema import Declared
from sqlrs.errors import UsageError
from sqlrs.inputs import arguments
from sqlrs.inputs.said_owners import SaidOwner, by_table, said_owners, unit_name
from sqlrs.inputs.said_values import (
    SaidBounds,
    SaidDomain,
    by_column,
    said_bounds,
    said_domain,
)
from sqlrs.inputs.sections import (
    FILE,
    NAMES,
    SECONDS,
    SIZE,
    TEXT,
    TRUTH,
    KeyKind,
    key,
    mapped,
    nested,
    one_of,
    read_file,
    whole,
)
from sqlrs.inputs.signatures import Signature, signature
from sqlrs.ledger import Ledger
from sqlrs.planning.plan import HOW
from sqlrs.records import dataclass
from sqlrs.settings import (
    MOST_CONTRIBUTION,
    MOST_GROUPS,
    MOST_OWNED_RESULTS,
    NEIGHBOURS,
    Settings,
)

_Word = TypeVar("_Word")
KeyColumns = tuple[tuple[str, ...], ...]


def _columns(name: str, value: object) -> Declared:
    if isinstance(value, Mapping):
        return {one: arguments.text(f"{name}.{one}", kind) for one, kind in value.items()}
    return arguments.text(name, value)


FILES = mapped(TEXT, "paths by table")
KEYS = mapped(KeyKind("lists of columns", arguments.key_columns), "lists of columns by table")
TYPES = mapped(KeyKind("columns with types", _columns), "columns with types by table")
GRAPHS = mapped(one_of("directed", "undirected"), "`directed` or `undirected` by table")
ROWS = mapped(whole(1), "whole numbers by table")
SIGNATURES = mapped(KeyKind("signature", signature), "signatures by name")


def _by_column(kind: KeyKind[_Word], shown: str) -> KeyKind[Mapping[str, _Word]]:
    """A section of columns: visit.ward without quotes is visit with a section ward to TOML."""

    def read(name: str, value: object) -> Mapping[str, _Word]:
        return mapped(kind, shown).read(name, by_column(name, value))

    return KeyKind(shown, read)


DOMAINS = _by_column(KeyKind("domain", said_domain), "domains by column")
BOUNDS = _by_column(KeyKind("bounds", said_bounds), "bounds by column")


def _by_table(kind: KeyKind[_Word], shown: str) -> KeyKind[Mapping[str, _Word]]:
    """A section of tables, with their schemas or without."""

    def read(name: str, value: object) -> Mapping[str, _Word]:
        return mapped(kind, shown).read(name, by_table(name, value, "visit = …"))

    return KeyKind(shown, read)


UNIT = KeyKind("`table.column`, or a word", unit_name)
OWNERS = _by_table(KeyKind("owners", said_owners), "owners by table")
OWNED_ROWS = _by_table(whole(1), "whole numbers by table")
DEGREES = _by_column(whole(1), "whole numbers by column")


@dataclass(frozen=True)
class UnitSection:
    """[unit]: who is protected with everything that it owns, and who owns what."""

    id: str | None = key(
        UNIT,
        None,
        'The column of the ids, `"patient.id"`; a word, such as `"node"`, where no table lists the '
        "units.",
        "--unit",
        "unit",
    )
    owners: Mapping[str, tuple[SaidOwner, ...]] = key(
        OWNERS,
        {},
        'By table: the column that holds the id, `"patient"`; several, `["src", "dst"]`; or '
        'columns that hold the key of a table with an owner, `"l_orderkey -> orders"`. What is '
        "left out is found by the foreign keys.",
        "--owner",
        "owners",
    )
    max_rows: Mapping[str, int] = key(
        OWNED_ROWS,
        {},
        "By table: at most so many rows of a unit are used.",
        "--max-rows",
        "max_rows",
    )

    def over(self, below: UnitSection) -> UnitSection:
        """This on top of what a file says; the unit itself cannot be another one."""
        if None not in (self.id, below.id) and self.id != below.id:
            raise UsageError(
                f"two units are declared: {below.id} and {self.id}",
                hint="there is one unit, and what the file says of owners is about its own",
            )
        return UnitSection(
            self.id or below.id,
            {**below.owners, **self.owners},
            {**below.max_rows, **self.max_rows},
        )


@dataclass(frozen=True)
class Config:
    """Everything that opening the data needs; the command line overrides the file."""

    db: str | None = key(
        TEXT,
        None,
        "The URL of a database (`duckdb:///file.db`, `postgresql://…`, `spark://…`), or the path "
        "of a DuckDB or SQLite file or of a folder of tables.",
        "--db",
        "target",
    )
    tables: Mapping[str, str] = key(
        FILES,
        {},
        "Files, folders and wildcards, read by DuckDB: [data.md](data.md).",
        "--table",
        "tables",
        relative=True,
    )
    private: tuple[str, ...] = key(
        NAMES, (), "Private tables; so is every table that is not public.", "--private", "private"
    )
    public: tuple[str, ...] = key(NAMES, (), "Public tables.", "--public", "public")
    keys: Mapping[str, KeyColumns] = key(
        KEYS, {}, "Keys, checked once against the data.", "--key", "keys"
    )
    types: Mapping[str, Declared] = key(
        TYPES,
        {},
        'The columns of files that carry no types: `"id BIGINT, day DATE"`.',
        "--types",
        "types",
    )
    graphs: Mapping[str, str] = key(
        GRAPHS, {}, "Files that are edge lists, and of which form.", "--undirected", "graphs"
    )
    rows_per_unit: Mapping[str, int] = key(
        ROWS, {}, "How many rows one protected unit may have.", None, "rows_per_unit"
    )
    dataset: str = key(TEXT, "data", "Whose budget every answer is charged to.", None, "dataset")
    analyst: str = key(TEXT, "analyst", "Who is charged.", "--analyst", "analyst")
    ledger: str | None = key(
        TEXT, None, "Where budgets are kept, `sqlite:///budget.db` say.", "--ledger", "ledger"
    )
    repeats: bool = key(TRUTH, True, "Give a recorded answer again at no cost.")
    memory_limit: str | None = key(
        SIZE,
        None,
        "DuckDB spills beyond it; 80 % of the machine's memory by default.",
        "--memory-limit",
        "memory_limit",
    )
    temp_directory: Path | None = key(
        FILE,
        None,
        "Where DuckDB spills; the system's folder for temporary files by default.",
        "--temp-directory",
        "temp_directory",
        relative=True,
    )
    max_temp_directory_size: str | None = key(
        SIZE,
        None,
        "How much DuckDB may spill; half of the free disk space by default.",
        "--max-temp-directory-size",
        "max_temp_directory_size",
    )
    threads: int | None = key(
        whole(1, arguments.MOST_THREADS),
        None,
        "How many threads DuckDB may have; all cores by default.",
        "--threads",
        "threads",
    )
    timeout: float | None = key(
        SECONDS, None, "After so long a statement is stopped.", "--timeout", "timeout"
    )
    max_external: int = key(
        whole(0),
        Settings.max_external,
        "Compared variables outside a residual that are read exactly.",
        None,
        "settings",
    )
    plan: str = key(
        one_of(*HOW), Settings.plan, "How residuals are evaluated.", "--plan", "settings"
    )
    solver: bool = key(
        TRUTH,
        Settings.solver,
        "Solve general predicates for the sensitivity instead of dropping them.",
        "--solver",
        "settings",
    )
    solver_seconds: float = key(
        SECONDS,
        Settings.solver_seconds,
        "How long the solver may take for each boundary value.",
        None,
        "settings",
    )
    neighbours: str = key(
        one_of(*NEIGHBOURS),
        Settings.neighbours,
        "What is protected: a row added, removed or replaced, or one added or removed: "
        "[privacy-model.md](privacy-model.md#what-a-neighbour-is).",
        "--neighbours",
        "settings",
    )
    fetch_limit: int = key(
        whole(0),
        Settings.fetch_limit,
        "Of tables on Spark, up to so many bytes are fetched and joined here; 0: none: "
        "[engines.md](engines.md#spark).",
        None,
        "settings",
    )
    max_groups: int = key(
        whole(1, MOST_GROUPS),
        Settings.max_groups,
        "An answer of more groups is refused.",
        "--max-groups",
        "settings",
    )
    max_contribution: int = key(
        whole(1, MOST_CONTRIBUTION),
        Settings.max_contribution,
        "With a unit: the largest threshold that its part of an answer may be cut to.",
        "--max-contribution",
        "settings",
    )
    max_owned_results: int = key(
        whole(1, MOST_OWNED_RESULTS),
        Settings.max_owned_results,
        "With a unit: a release whose results have more combinations of owners fails.",
        "--max-owned-results",
        "settings",
    )
    packing_seconds: float = key(
        SECONDS,
        Settings.packing_seconds,
        "With a unit: how long a release may share out results among several owners.",
        None,
        "settings",
    )
    max_intermediate_rows: int | None = key(
        whole(1),
        None,
        "A query is refused, before any charge, if `declared_rows` allow a join of more rows: "
        "[planner.md](planner.md#how-large-a-join-can-be).",
        None,
        "settings",
    )
    refused_queries: tuple[str, ...] = key(
        NAMES,
        (),
        "Queries that are refused before any charge, in other words too: "
        "[planner.md](planner.md#how-large-a-join-can-be).",
        None,
        "settings",
    )
    declared_rows: Mapping[str, int] = key(
        OWNED_ROWS,
        {},
        "By table, public: it has at most so many rows. Not checked against the data.",
        None,
        "settings",
        section=True,
    )
    declared_degrees: Mapping[str, int] = key(
        DEGREES,
        {},
        "By `table.column`, public: at most so many rows have one value. Not checked.",
        None,
        "settings",
        section=True,
    )
    unit: UnitSection = key(
        nested(UnitSection),
        UnitSection(),
        "Who is protected, where it is more than a row: one person with everything it owns.",
        section=True,
        inner=UnitSection,
    )
    domain: Mapping[str, SaidDomain] = key(
        DOMAINS,
        {},
        "Which values a column has, where answers are grouped by it: "
        '`["A", "B"]`, `{from = 0, to = 120}`, or a column of a public table, `"ward.name"`.',
        "--domain",
        "domains",
        section=True,
    )
    bounds: Mapping[str, SaidBounds] = key(
        BOUNDS,
        {},
        "Between which numbers a column is summed: `[0, 5000]`, with the step to which floating "
        "point is rounded `[0, 300, 0.1]`.",
        "--bounds",
        "bounds",
        section=True,
    )
    functions: Mapping[str, Signature] = key(
        SIGNATURES,
        {},
        "Functions of the database that the owner vouches for: "
        "[engines.md](engines.md#functions-of-your-own).",
        "--function",
        "functions",
        section=True,
    )

    @classmethod
    def read(cls, path: Path) -> Config:
        """The file without [proxy] and [console]; a wrong or unknown key is an error."""
        return read_file(path, "data", cls, "proxy", "console")

    def open(self, ledger: Ledger | None = None, *, schema_only: bool = False) -> Database:
        """Connect as configured, with the configured ledger unless one is given."""
        if self.db is None and not self.tables:
            raise UsageError(
                "no data was named", hint="give --db URL, --table NAME=FILE, or --config FILE"
            )
        return connect(
            self.db or "duckdb://",
            tables=self.tables,
            private=self.private,
            public=self.public,
            keys=self.keys,
            types=self.types,
            graphs=self.graphs,
            rows_per_unit=self.rows_per_unit,
            unit=self.unit.id,
            owners=self.unit.owners,
            max_rows=self.unit.max_rows,
            domains=self.domain,
            bounds=self.bounds,
            functions=self.functions,
            schema_only=schema_only,
            # Who reads no row charges nothing, and must not make an empty ledger.
            ledger=ledger or (None if schema_only else self.open_ledger()),
            analyst=self.analyst,
            dataset=self.dataset,
            settings=Settings(
                max_external=self.max_external,
                plan=self.plan,
                solver=self.solver,
                solver_seconds=self.solver_seconds,
                neighbours=self.neighbours,
                fetch_limit=self.fetch_limit,
                max_groups=self.max_groups,
                max_contribution=self.max_contribution,
                max_owned_results=self.max_owned_results,
                packing_seconds=self.packing_seconds,
                max_intermediate_rows=self.max_intermediate_rows,
                declared_rows=self.declared_rows,
                declared_degrees=self.declared_degrees,
                refused_queries=self.refused_queries,
            ),
            memory_limit=self.memory_limit,
            temp_directory=self.temp_directory,
            max_temp_directory_size=self.max_temp_directory_size,
            threads=self.threads,
            timeout=self.timeout,
        )

    def open_ledger(self) -> Ledger | None:
        """The configured store of budgets, or None."""
        if self.ledger is None:
            return None
        from sqlrs.ledger.store import StoreLedger

        return StoreLedger(self.ledger, repeats=self.repeats)

    def override(self, **given: object) -> Config:
        """The configuration with every value that was given replaced.

        None, nothing and False stand for an option that was not given.
        """
        changes: dict[str, Any] = {
            name: value
            for name, value in given.items()
            if not (value is None or value is False or value in ("", (), {}))
        }
        return replace(self, **changes)
