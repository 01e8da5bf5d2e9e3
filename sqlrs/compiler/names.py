"""What the names of a query mean: identifiers, tables of the catalog, columns in scope."""

from __future__ import annotations

from sqlglot import exp

from sqlrs.catalog import Catalog, Table, View
from sqlrs.compiler.hints import closest, column_hint, listed
from sqlrs.compiler.source import Source
from sqlrs.dialects import dialect_named
from sqlrs.effort import spend
from sqlrs.errors import Span
from sqlrs.records import dataclass

_COLUMNS_PER_STEP = 100


def fold(identifier: exp.Expr, dialect: str) -> str:
    """The form in which two spellings of one name are equal. Both engines fold ASCII only."""
    quoted = bool(identifier.args.get("quoted"))
    return dialect_named(dialect).folded(str(identifier.this), quoted=quoted)


def fold_stored(name: str, dialect: str) -> str:
    """The folded form of a name as the catalog holds it."""
    return dialect_named(dialect).folded(name, quoted=True)


@dataclass(frozen=True, eq=False)
class Relation:
    """A named item of FROM: its columns by folded name, each an expression over atoms' columns.

    ``schema`` is that of a table or view that stands there under its own name, without an alias.
    """

    alias: str | None
    columns: tuple[tuple[str | None, exp.Expr], ...]
    schema: str | None = None

    def is_called(self, alias: str, schema: str | None) -> bool:
        """Whether ``alias`` or ``schema.alias`` before a column means this item."""
        return self.alias == alias and schema in (None, self.schema)


@dataclass(frozen=True, eq=False)
class Scope:
    """The names that an expression can see. ``visible`` are those that need no alias."""

    relations: tuple[Relation, ...]
    visible: tuple[tuple[str | None, exp.Expr], ...]
    parent: Scope | None = None

    def column(self, column: exp.Column, source: Source) -> exp.Expr:
        """What ``column`` means here, or a refusal that names the closest column."""
        name = fold(column.this, source.dialect)
        alias, schema = qualifiers(column, source.dialect)
        scope: Scope | None = self
        while scope is not None:
            found = scope._found(name, alias, schema, column, source)
            if found is not None:
                return found
            scope = scope.parent
        raise source.refusal(
            "unknown_column",
            column,
            f"there is no column {column.sql(source.dialect)}",
            self._suggestion(column, alias),
        )

    def relation(
        self, alias: str, schema: str | None, column: exp.Column, source: Source
    ) -> Relation | None:
        """The item of this FROM that ``alias`` or ``schema.alias`` before a column means."""
        if schema is not None and any(r.alias == schema for r in self.relations):
            # An engine with structured columns could read it as alias.column.field.
            raise source.refusal(
                "ambiguous_name", column, f"{schema} can mean a schema and an item of FROM"
            )
        return next((r for r in self.relations if r.is_called(alias, schema)), None)

    def _found(
        self,
        name: str,
        alias: str | None,
        schema: str | None,
        column: exp.Column,
        source: Source,
    ) -> exp.Expr | None:
        columns = self.visible
        if alias is not None:
            relation = self.relation(alias, schema, column, source)
            if relation is None:
                return None
            columns = relation.columns
        spend(1 + len(columns) // _COLUMNS_PER_STEP)
        matches = [meaning for known, meaning in columns if known == name]
        if len(matches) > 1:
            shown = column.sql(source.dialect)
            raise source.refusal("ambiguous_name", column, f"{shown} can mean several columns")
        if not matches and alias is not None:
            owned = [known for known, _ in columns if known]
            raise source.refusal(
                "unknown_column",
                column,
                f"there is no column {column.sql(source.dialect)}",
                closest(name, owned) or listed(f"the columns of {alias} are", owned),
            )
        return matches[0] if matches else None

    def _suggestion(self, column: exp.Column, alias: str | None) -> str | None:
        if alias is not None:
            return listed("the tables here are", (r.alias for r in self.relations if r.alias))
        known = [known for known, _ in self.visible if known]
        return column_hint(column.name, known, quoted=bool(column.this.args.get("quoted")))


def qualifiers(column: exp.Column, dialect: str) -> tuple[str | None, str | None]:
    """The folded names of the item of FROM and of its schema that stand before a column."""
    table, schema = column.args.get("table"), column.args.get("db")
    return (
        None if table is None else fold(table, dialect),
        None if schema is None else fold(schema, dialect),
    )


def find_table(table: exp.Table, catalog: Catalog, source: Source) -> Table | View:
    """The table or view of the catalog that ``table`` names, or a refusal with the closest one."""
    found = entry_named(table, catalog)
    if found is not None:
        return found
    schema, dialect = table.args.get("db"), catalog.dialect
    names = [fold_stored(entry.name, dialect) for entry in catalog.entries]
    start = source.span(table.this if schema is None else schema).start
    raise source.refusal(
        "unknown_table",
        Span(start, source.span(table.this).end),
        f"there is no table {exp.table_(table.this, schema).sql(dialect)}",
        closest(fold(table.this, dialect), names) or listed("the tables are", names),
    )


def entry_named(table: exp.Table, catalog: Catalog) -> Table | View | None:
    """The entry of the catalog that a name of a query means: the first along the search path.

    What is not in the catalog, files and system tables among it, has no entry.
    """
    dialect = catalog.dialect
    name, schema = fold(table.this, dialect), table.args.get("db")
    path = [fold_stored(home, dialect) for home in catalog.search_path]
    named = [entry for entry in catalog.entries if fold_stored(entry.name, dialect) == name]
    for wanted in path if schema is None else [fold(schema, dialect)]:
        for entry in named:
            if home_of(entry, catalog) == wanted:
                return entry
    return None


def home_of(entry: Table | View, catalog: Catalog) -> str:
    """The folded name of an entry's schema; without one it lives in the search path's first."""
    return fold_stored(entry.schema or catalog.search_path[0], catalog.dialect)
