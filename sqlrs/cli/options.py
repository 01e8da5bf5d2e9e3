"""The options that every command shares: where the data is and what is private."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from sqlrs.config import Config, UnitSection
from sqlrs.errors import UsageError
from sqlrs.inputs.said_owners import said_owners
from sqlrs.inputs.said_values import written_bounds, written_domain
from sqlrs.inputs.signatures import call
from sqlrs.settings import NEIGHBOURS

_Said = TypeVar("_Said")

FOUND = Path("sqlrs.toml")
"""The configuration that is read where no option names one or the data."""
_PANEL = "Data"
_MOST_DIGITS = 18
_DATA = (
    *("db", "table", "types", "undirected", "private", "public", "key"),
    *("unit", "owner", "max_rows"),
    *("domain", "bounds", "function", "config"),
)
LIMITS = ("memory_limit", "temp_directory", "max_temp_directory_size", "threads", "timeout")
"""What a command that reads rows may use."""
UNIT_LIMITS = ("max_contribution", "max_owned_results")
"""What of one unit may enter an answer, and how much work its owners may be."""
CHOICES = ("plan", "solver", "neighbours", "max_groups", *UNIT_LIMITS)
"""What the owner chooses for each query."""

Sql = Annotated[
    str, typer.Argument(metavar="SQL", help="The counting query; - reads it from stdin.")
]
Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="URL",
        help="duckdb:///file.db, postgresql://…, spark://…, sc://…, "
        "or the path of a file or folder.",
        rich_help_panel=_PANEL,
    ),
]
TableFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        metavar="NAME=FILE",
        help="A file (Parquet, CSV, JSON lines, Excel, SQLite, edge list), a folder or wildcards. "
        "Repeatable.",
        rich_help_panel=_PANEL,
    ),
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME='COL TYPE, …'",
        help="The columns of a file that carries no types; inferred once and recorded beside it "
        "without this. Repeatable.",
        rich_help_panel=_PANEL,
    ),
]
Undirected = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME[,…]",
        help="Tables whose file lists undirected edges: each is read both ways and protected "
        "as one.",
        rich_help_panel=_PANEL,
    ),
]
Private = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME[,…]",
        help="Private tables; every table not declared public is private.",
        rich_help_panel=_PANEL,
    ),
]
Public = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME[,…]", help="Tables that are public.", rich_help_panel=_PANEL),
]
Key = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=COL[,COL…]",
        help="A key, checked once against the data. Repeatable.",
        rich_help_panel=_PANEL,
    ),
]
Units = Annotated[
    list[str] | None,
    typer.Option(
        "--unit",
        metavar="TABLE.COL",
        help="Protect a unit with everything that it owns instead of a row: the column of its ids, "
        "or a word where no table lists the units.",
        rich_help_panel=_PANEL,
    ),
]
Owner = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TABLE=COL[,COL]",
        help="Who owns the rows of a table: the columns that hold the unit's id, or a link to a "
        "table with an owner, TABLE=COL@OTHER; found by foreign keys without this. Repeatable.",
        rich_help_panel=_PANEL,
    ),
]
MaxRows = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TABLE=N",
        help="Use at most N rows of a unit of this table. Repeatable.",
        rich_help_panel=_PANEL,
    ),
]
Domain = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TABLE.COL=A,B",
        help="The values of a column that answers are grouped by: A,B or 0..120, or a column of a "
        "public table, @TABLE.COL. Repeatable.",
        rich_help_panel=_PANEL,
    ),
]
Bounds = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TABLE.COL=LOW,HIGH",
        help="Between which numbers a column is summed; LOW,HIGH,STEP rounds floating point to "
        "the step. Repeatable.",
        rich_help_panel=_PANEL,
    ),
]
Function = Annotated[
    list[str] | None,
    typer.Option(
        metavar="'NAME(TYPE, …) -> TYPE'",
        help="A function of the database without side effects, whose result depends on its "
        "arguments alone. Repeatable.",
        rich_help_panel=_PANEL,
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="A TOML file with all of this; ./sqlrs.toml if no option names the data.",
        rich_help_panel=_PANEL,
    ),
]
Ledger = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Where budgets are kept, e.g. sqlite:///budget.db.",
        rich_help_panel=_PANEL,
    ),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="e.g. 4GB; DuckDB spills beyond it.", rich_help_panel=_PANEL),
]
TempDirectory = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Where DuckDB spills; the system's folder for temporary files by default.",
        rich_help_panel=_PANEL,
    ),
]
MaxTempDirectorySize = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="e.g. 100GB; how much DuckDB may spill, half of the free disk space by default.",
        rich_help_panel=_PANEL,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="How many threads DuckDB may have; all cores by default.",
        rich_help_panel=_PANEL,
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="Stop a statement after this.", rich_help_panel=_PANEL),
]
Plan = Annotated[
    str | None,
    typer.Option(metavar="plain|factorised|pruned|auto", help="How residuals are evaluated."),
]
Solver = Annotated[
    bool,
    typer.Option(
        "--solver", help="Solve general predicates for the sensitivity instead of dropping them."
    ),
]
Neighbours = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(NEIGHBOURS),
        help="Protect a row that is added, removed or replaced, or one that is added or removed.",
    ),
]
MaxGroups = Annotated[
    int | None, typer.Option(metavar="N", help="Refuse an answer of more groups.")
]
MaxContribution = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="The largest threshold that a unit's part of an answer may be cut to."
    ),
]
MaxOwnedResults = Annotated[
    int | None,
    typer.Option(metavar="N", help="The most combinations of owners that results may have."),
]
Analyst = Annotated[str | None, typer.Option(metavar="NAME", help="Who is charged.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def with_data(*further: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options that name the data, and ``further`` ones of ``gather`` by name.

    The command's first parameter receives the configuration that they add up to.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
        shared = inspect.signature(gather, eval_str=True).parameters
        added = [p for name, p in shared.items() if name in (*_DATA, *further)]

        def run(**given: Any) -> None:
            data = gather(**{p.name: given.pop(p.name) for p in added})
            command(data, **given)

        parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*own, *added)]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        run.__doc__ = command.__doc__
        return run

    return decorate


def gather(
    *,
    db: Db = None,
    table: TableFiles = None,
    types: Types = None,
    undirected: Undirected = None,
    private: Private = None,
    public: Public = None,
    key: Key = None,
    unit: Units = None,
    owner: Owner = None,
    max_rows: MaxRows = None,
    domain: Domain = None,
    bounds: Bounds = None,
    function: Function = None,
    config: ConfigFile = None,
    ledger: Ledger = None,
    analyst: Analyst = None,
    memory_limit: MemoryLimit = None,
    temp_directory: TempDirectory = None,
    max_temp_directory_size: MaxTempDirectorySize = None,
    threads: Threads = None,
    timeout: Timeout = None,
    plan: Plan = None,
    solver: Solver = False,
    neighbours: Neighbours = None,
    max_groups: MaxGroups = None,
    max_contribution: MaxContribution = None,
    max_owned_results: MaxOwnedResults = None,
) -> Config:
    """The configuration file, named or found, with the command line's options on top."""
    if config is None and not db and not table:
        # Data named on the command line stands alone: what a file that lies around declares
        # public or a key was said of other data.
        config = found()
    base = Config.read(config) if config else Config()
    keys: dict[str, tuple[tuple[str, ...], ...]] = dict(base.keys)
    for name, columns in (_pair("--key", text) for text in key or []):
        keys[name] = (*keys.get(name, ()), tuple(columns.split(",")))
    return base.override(
        db=db,
        tables=_by_name("--table", (_pair("--table", text) for text in table or [])),
        types={**base.types, **_by_name("--types", (_pair("--types", one) for one in types or []))},
        graphs={**base.graphs, **dict.fromkeys(_names(undirected), "undirected")},
        private=_names(private),
        public=_names(public),
        keys=keys,
        unit=_unit(unit, owner, max_rows).over(base.unit),
        domain={
            **base.domain,
            **_by_name(
                "--domain", (_said("--domain", one, written_domain) for one in domain or [])
            ),
        },
        bounds={
            **base.bounds,
            **_by_name(
                "--bounds", (_said("--bounds", one, written_bounds) for one in bounds or [])
            ),
        },
        functions={
            **base.functions,
            **_by_name("--function", (call("--function", text) for text in function or [])),
        },
        ledger=ledger,
        analyst=analyst,
        memory_limit=memory_limit,
        temp_directory=temp_directory,
        max_temp_directory_size=max_temp_directory_size,
        threads=threads,
        timeout=timeout,
        plan=plan,
        solver=solver,
        neighbours=neighbours,
        max_groups=max_groups,
        max_contribution=max_contribution,
        max_owned_results=max_owned_results,
    )


def _unit(
    unit: list[str] | None, owner: list[str] | None, max_rows: list[str] | None
) -> UnitSection:
    """The unit as options say it."""
    if len(unit or []) > 1:
        raise UsageError("two units are declared", hint="give --unit once")
    return UnitSection(
        unit[0] if unit else None,
        _by_name("--owner", (_said("--owner", one, said_owners) for one in owner or [])),
        _by_name("--max-rows", (_said("--max-rows", one, _number) for one in max_rows or [])),
    )


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise UsageError(f"{name} must be a whole number, 1 or more")
    return int(text)


def found() -> Path | None:
    """The configuration in the current directory, if there is one; the user is told."""
    if not FOUND.is_file():
        return None
    print(f"sqlrs: reading ./{FOUND}", file=sys.stderr)
    return FOUND


def read_input(*, one_line: bool = False) -> str:
    """What was piped in, as text."""
    if sys.stdin is None:
        raise UsageError("standard input is closed")
    try:
        text = sys.stdin.readline() if one_line else sys.stdin.read()
        # Some editors put a mark before the text.
        return text.removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise UsageError("standard input is not text in UTF-8") from None


def _pair(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise UsageError(f"{option} {text!r} is not of the form NAME=VALUE")
    return name, value


def _said(option: str, text: str, read: Callable[[str, str], _Said]) -> tuple[str, _Said]:
    name, value = _pair(option, text)
    return name, read(f"{option} {name}", value)


def _by_name(option: str, pairs: Iterable[tuple[str, _Said]]) -> dict[str, _Said]:
    """What was said of each name; the databases take VISIT and visit for one."""
    said: dict[str, _Said] = {}
    seen = set[str]()
    for name, value in pairs:
        if name.lower() in seen:
            raise UsageError(f"{option} names {name} twice", hint="give each name once")
        seen.add(name.lower())
        said[name] = value
    return said


def _names(given: list[str] | None) -> tuple[str, ...]:
    return tuple(name for text in given or [] for name in text.split(",") if name)
