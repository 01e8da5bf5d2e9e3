"""What the names of a query mean: identifiers, tables of the catalog, columns in scope."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from sqlglot import exp

from sqlrs.catalog import Catalog, Table, View
from sqlrs.errors import Span
from sqlrs.source import Source

_TO_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def fold(identifier: exp.Expr, dialect: str) -> str:
    """The form in which two spellings of one name are equal. Both engines fold ASCII only."""
    name = str(identifier.this)
    quoted = bool(identifier.args.get("quoted"))
    return name if quoted and dialect == "postgres" else name.translate(_TO_LOWER)


def fold_stored(name: str, dialect: str) -> str:
    """The folded form of a name as the catalog holds it."""
    return name if dialect == "postgres" else name.translate(_TO_LOWER)


@dataclass(frozen=True, eq=False)
class Relation:
    """A named item of FROM: its columns by folded name, each an expression over atoms' columns."""

    alias: str | None
    columns: tuple[tuple[str | None, exp.Expr], ...]


@dataclass(frozen=True, eq=False)
class Scope:
    """The names that an expression can see. ``visible`` are those that need no alias."""

    relations: tuple[Relation, ...]
    visible: tuple[tuple[str | None, exp.Expr], ...]
    parent: Scope | None = None

    def column(self, column: exp.Column, source: Source) -> exp.Expr:
        """What ``column`` means here, or a refusal that names the closest column."""
        name = fold(column.this, source.dialect)
        qualifier = column.args.get("table")
        alias = None if qualifier is None else fold(qualifier, source.dialect)
        scope: Scope | None = self
        while scope is not None:
            found = scope._found(name, alias, column, source)
            if found is not None:
                return found
            scope = scope.parent
        raise source.refusal(
            "unknown_column",
            column,
            f"there is no column {column.sql(source.dialect)}",
            self._suggestion(name, alias),
        )

    def _found(
        self, name: str, alias: str | None, column: exp.Column, source: Source
    ) -> exp.Expr | None:
        columns: Iterable[tuple[str | None, exp.Expr]] = self.visible
        if alias is not None:
            relation = next((r for r in self.relations if r.alias == alias), None)
            if relation is None:
                return None
            columns = relation.columns
        matches = [meaning for known, meaning in columns if known == name]
        if len(matches) > 1:
            shown = column.sql(source.dialect)
            raise source.refusal("ambiguous_name", column, f"{shown} can mean several columns")
        if not matches and alias is not None:
            raise source.refusal(
                "unknown_column",
                column,
                f"there is no column {column.sql(source.dialect)}",
                suggestion(name, [known for known, _ in columns if known]),
            )
        return matches[0] if matches else None

    def _suggestion(self, name: str, alias: str | None) -> str | None:
        if alias is not None:
            known = [r.alias for r in self.relations if r.alias]
            return f"the tables here are {', '.join(known)}" if known else None
        return suggestion(name, [known for known, _ in self.visible if known])


def suggestion(name: str, known: Sequence[str]) -> str | None:
    """A hint with the closest known name, or None."""
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else None


def find_table(table: exp.Table, catalog: Catalog, source: Source) -> Table | View:
    """The table or view of the catalog that ``table`` names. Files and system tables are never."""
    dialect = catalog.dialect
    name = fold(table.this, dialect)
    schema = table.args.get("db")
    candidates: list[Table | View] = [*catalog.tables, *catalog.views]
    named = [entry for entry in candidates if fold_stored(entry.name, dialect) == name]
    path = [fold_stored(entry, dialect) for entry in catalog.search_path]
    for wanted in path if schema is None else [fold(schema, dialect)]:
        for entry in named:
            # A table without a schema lives in the first one of the search path.
            home = path[0] if entry.schema is None else fold_stored(entry.schema, dialect)
            if home == wanted:
                return entry
    start = source.span(table.this if schema is None else schema).start
    raise source.refusal(
        "unknown_table",
        Span(start, source.span(table.this).end),
        f"there is no table {exp.table_(table.this, table.args.get('db')).sql(dialect)}",
        suggestion(name, [fold_stored(entry.name, dialect) for entry in candidates]),
    )
