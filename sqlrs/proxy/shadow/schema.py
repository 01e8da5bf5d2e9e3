"""The DDL of the exposed tables for the shadow, built as sqlglot trees."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from sqlrs.proxy.backend import (
    ExposedColumn,
    ExposedFunction,
    ExposedReference,
    ExposedSchema,
    ExposedTable,
    ExposedView,
)
from sqlrs.trees.build import table_named
from sqlrs.trees.identifiers import identifier


def ddl(schema: ExposedSchema) -> Iterator[str]:
    """CREATE SCHEMA, CREATE TABLE, CREATE FUNCTION and GRANT statements, one by one."""
    named = (*schema.relations, *schema.functions)
    for name in sorted({one.schema for one in named} - {"public"}):
        target = exp.Table(db=identifier(name))
        yield exp.Create(kind="SCHEMA", this=target).sql(dialect="postgres")
        yield _grant("USAGE", "SCHEMA", target)
    for table in schema.tables:
        target = table_named(table.name, table.schema)
        entries: list[exp.Expression] = [_column(column) for column in table.columns]
        entries += [_key(columns, first=not number) for number, columns in enumerate(table.keys)]
        definition = exp.Schema(this=target.copy(), expressions=entries)
        yield exp.Create(kind="TABLE", this=definition).sql(dialect="postgres")
        yield _grant("SELECT", "TABLE", target)
    for table in schema.tables:
        for link in table.references:
            yield _foreign_key(table, link)
    for function in schema.functions:
        yield _function(function)


def _function(function: ExposedFunction) -> str:
    """A function of the owner's, by its types alone: the shadow describes calls and makes none."""
    types = [exp.DataType.build(one, dialect="postgres", udt=True) for one in function.takes]
    target = table_named(function.name, function.schema)
    returned = exp.DataType.build(function.returns, dialect="postgres", udt=True)
    nothing = exp.select(exp.cast(exp.Null(), returned.copy())).sql(dialect="postgres")
    return exp.Create(
        kind="FUNCTION",
        this=exp.UserDefinedFunction(this=target, expressions=types, wrapped=True),
        properties=exp.Properties(
            expressions=[
                exp.ReturnsProperty(this=returned),
                exp.LanguageProperty(this=exp.var("sql")),
                exp.StabilityProperty(this=exp.Literal.string("IMMUTABLE")),
            ]
        ),
        expression=exp.Literal.string(nothing),
    ).sql(dialect="postgres")


def view_ddl(view: ExposedView) -> list[str]:
    """CREATE VIEW and its GRANT; nothing for a view whose query PostgreSQL's parser cannot read."""
    target = table_named(view.name, view.schema)
    try:
        query = parse_one(view.sql, read="postgres")
    except SqlglotError:
        return []
    create = exp.Create(kind="VIEW", this=target, expression=query)
    return [create.sql(dialect="postgres"), _grant("SELECT", "TABLE", target)]


def search_path(schema: ExposedSchema) -> str:
    """The setting that makes PostgreSQL look names up where the data's own database does."""
    return ", ".join(identifier(name).sql(dialect="postgres") for name in schema.search_path)


def _column(column: ExposedColumn) -> exp.ColumnDef:
    constraints = (
        [] if column.nullable else [exp.ColumnConstraint(kind=exp.NotNullColumnConstraint())]
    )
    return exp.ColumnDef(
        this=identifier(column.name),
        kind=exp.DataType.build(column.type, dialect="postgres", udt=True),
        constraints=constraints,
    )


def _key(columns: tuple[str, ...], *, first: bool) -> exp.Expression:
    names: list[exp.Expression] = [identifier(column) for column in columns]
    if first:
        return exp.PrimaryKey(expressions=names)
    return exp.UniqueColumnConstraint(this=exp.Schema(expressions=names))


def _foreign_key(table: ExposedTable, link: ExposedReference) -> str:
    schema, name = link.table
    there = exp.Schema(this=table_named(name, schema), expressions=list(map(identifier, link.key)))
    key = exp.ForeignKey(
        expressions=list(map(identifier, link.columns)), reference=exp.Reference(this=there)
    )
    target = table_named(table.name, table.schema)
    added = exp.AddConstraint(expressions=[key])
    return exp.Alter(kind="TABLE", this=target, actions=[added]).sql(dialect="postgres")


def _grant(privilege: str, kind: str, target: exp.Table) -> str:
    return exp.Grant(
        privileges=[exp.GrantPrivilege(this=exp.var(privilege))],
        kind=kind,
        securable=target.copy(),
        principals=[exp.GrantPrincipal(this=exp.var("PUBLIC"))],
    ).sql(dialect="postgres")
