"""What a given connection's session says about the meaning of SQL is kept, or refused.

An analyst's SQL must mean what it means on the connection that the owner gave. PostgreSQL runs the
snapshots on that very connection. DuckDB runs them on duplicates, which forget every SET of the
session, so its settings are read once and set again on each duplicate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from sqlglot import exp

from sqlrs.catalog import Catalog
from sqlrs.errors import UsageError
from sqlrs.templates import template

Settings = Mapping[str, str | None]

# Settings of DuckDB that say where names are looked up (which snapshots set themselves), what is
# shown or recorded, and how much may be used. Nothing else that a session sets is left behind.
_NOT_CARRIED = frozenset(
    """
    search_path schema enable_progress_bar enable_progress_bar_print progress_bar_time
    enable_profiling profiling_mode profiling_output profile_output profiling_coverage
    profiling_renderer_settings custom_profiling_settings tracked_metrics log_query_path
    streaming_buffer_size max_streaming_buffer_size operator_memory_limit errors_as_json
    explain_output preserve_identifier_case max_expression_depth
    """.split()  # noqa: SIM905
)
# Settings of DuckDB under which it reads other SQL than what the statements are written in.
_LANGUAGE = {
    "active_grammar_extensions": "[]",
    "allow_parser_override_extension": "DEFAULT",
    "current_dialect": None,
    "dialect_compatibility_mode": "NONE",
}


def duckdb_settings(connection: Any) -> dict[str, str | None]:
    """Every setting of a DuckDB connection by its name."""
    return dict(connection.execute(template("duckdb/settings.sql")).fetchall())


def carried_settings(given: Settings, duplicate: Settings) -> dict[str, str]:
    """The settings of the given connection that a duplicate of it does not have."""
    for name, usual in _LANGUAGE.items():
        if given.get(name, usual) not in (usual, usual and usual.lower()):
            raise UsageError(
                f"the DuckDB connection reads another SQL ({name})",
                hint=f"RESET {name}, or give another connection",
            )
    return {
        name: value
        for name, value in given.items()
        if name not in _NOT_CARRIED and value is not None and value != duplicate.get(name)
    }


def try_settings(settings: Mapping[str, str], run: Callable[[str], object]) -> None:
    """Refuse a connection whose settings a duplicate does not take on."""
    for name, value in settings.items():
        with suppress(Exception):
            run(set_statement(name, value).sql(dialect="duckdb"))
            continue
        raise UsageError(
            f"the DuckDB connection's setting {name} cannot be carried over",
            hint="its configuration is locked: SET GLOBAL it before the lock",
        )


def refuse_temporary(catalog: Catalog, temporary: Iterable[object]) -> None:
    """Refuse temporary tables and views that hide a table or view of the catalog by their name."""
    known = {t.name.lower() for t in catalog.tables} | {v.name.lower() for v in catalog.views}
    for name in sorted(map(str, temporary)):
        if name.lower() in known:
            raise UsageError(
                f"a temporary table or view of the connection hides {name}",
                hint="drop or rename it, or give a connection without it",
            )


def refuse_postgres_language(settings: Iterable[object]) -> None:
    """Refuse settings of PostgreSQL under which it reads other SQL than the statements are in."""
    for name in settings:
        raise UsageError(
            f"under the PostgreSQL session's {name} the same SQL means something else",
            hint=f"RESET {name}, or set it to its default",
        )


def set_statement(name: str, value: str) -> exp.Set:
    """SET of one setting."""
    setting = exp.EQ(this=exp.column(name, quoted=True), expression=exp.Literal.string(value))
    return exp.Set(expressions=[exp.SetItem(this=setting)])
