"""What is public about a file of text: declared, recorded beside it, or inferred once.

Names, types and the form of the lines are never taken from the rows of a release: a single row
would change them. Inferring them is an act of the owner's, whose result is recorded and public.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlrs.errors import UsageError
from sqlrs.records import dataclass
from sqlrs.templates import template
from sqlrs.trees.identifiers import column, identifier

Declared = str | Mapping[str, str]
Typed = tuple[tuple[str, str], ...]
# Runs a statement of DuckDB's on a file; None where it cannot be read.
Ask = Callable[[exp.Expression], list[tuple[Any, ...]] | None]

# Types as DuckDB itself writes them.
_INTEGER = re.compile(r"U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)")
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_TIMESTAMP_DIGITS = {"TIMESTAMP_S": 0, "TIMESTAMP_MS": 3, "TIMESTAMP": 6, "TIMESTAMP_NS": 9}
# strptime reads "infinity" as some day of 1900.
_SOME_DIGIT = r".*\d.*"
# What DuckDB reads of a JSON number are the digits of a double.
_JSON_DIGITS = 15
_HINT = "write NAME='column TYPE, column TYPE', for example visit='patient BIGINT, day DATE'"


@dataclass(frozen=True)
class TextSchema:
    """Columns with their types, and how lines are read. ``header``: the fields of the first line.

    Without a header the rows begin with the first line. ``format``: separated values, JSON, or the
    cells of a sheet. ``partitions``: columns that stand in the names of the folders. ``skip``: how
    many lines of comments stand above all that.
    """

    columns: Typed
    header: tuple[str, ...] | None
    delimiter: str
    quote: str = '"'
    date_format: str | None = None
    timestamp_format: str | None = None
    format: str = "separated"
    partitions: Typed = ()
    skip: int = 0

    def __str__(self) -> str:
        return ", ".join(f"{_column_text(name)} {kind}" for name, kind in self.all_columns)

    @property
    def all_columns(self) -> Typed:
        """The columns of the lines, then those of the folders."""
        return (*self.columns, *self.partitions)

    def rows(self, path: exp.Expression) -> exp.Select:
        """The statement that reads the rows of the files, and fails on one that does not fit."""
        forms = {name: self.form(kind) for name, kind in self.columns}
        query = self._source(
            path, [(n, kind if forms[n] is None else "VARCHAR") for n, kind in self.columns]
        )
        return query.select(
            *(self.strictly(column(name), name, kind, forms[name]) for name, kind in self.columns),
            *(column(name) for name, _ in self.partitions),
            append=False,
        )

    def unfit_row(self, path: exp.Expression) -> exp.Select:
        """The statement that finds the first row that does not fit, its number and the column's."""
        texts = self._source(path, [(name, "VARCHAR") for name, _ in self.columns])
        numbered = texts.select(exp.alias_(_call("row_number_over"), "place"), append=True)
        for call in list(numbered.find_all(exp.Anonymous)):
            if call.name == "row_number_over":
                call.replace(exp.Window(this=exp.RowNumber()))
        wrong = exp.case()
        for place, (name, kind) in enumerate(self.columns, 1):
            cast = self.strictly(column(name), name, kind, self.form(kind)).this
            if not isinstance(cast, exp.Cast):
                target = exp.DataType.build(kind, dialect="duckdb", udt=True)
                cast = exp.Cast(this=column(name), to=target)
            tried = exp.TryCast(this=cast.this, to=cast.to)
            held = exp.and_(_is_null(tried), exp.Not(this=_is_null(column(name))))
            wrong = wrong.when(held, exp.Literal.number(place))
        columns = [column("place"), exp.alias_(wrong, "wrong")]
        found = exp.select(*columns).from_(numbered.subquery("texts"))
        first = exp.select("place", "wrong").from_(found.subquery("found"))
        return first.where(exp.Not(this=_is_null(column("wrong")))).order_by("place").limit(1)

    def _source(self, path: exp.Expression, types: Sequence[tuple[str, str]]) -> exp.Select:
        columns = typed_struct(types)
        if self.format == "separated":
            query = filled(
                "duckdb/read_separated.sql",
                path=path,
                header=exp.Boolean(this=self.header is not None),
                skip=exp.Literal.number(self.skip),
                delimiter=exp.Literal.string(self.delimiter),
                quote=exp.Literal.string(self.quote),
                columns=columns,
                hive=exp.Boolean(this=bool(self.partitions)),
            )
        else:
            query = filled(
                "duckdb/read_json.sql",
                path=path,
                format=exp.Literal.string(
                    "array" if self.format == "json_array" else "newline_delimited"
                ),
                columns=columns,
                hive=exp.Boolean(this=bool(self.partitions)),
            )
        return with_partitions(query, self.partitions)

    def form(self, kind: str) -> str | None:
        """The texts that a type takes without a loss, where DuckDB's own cast would round.

        3.5 is no integer: it would become 4.
        """
        if _INTEGER.fullmatch(kind):
            return r"\s*[+-]?\d+\s*"
        if decimal := _DECIMAL.fullmatch(kind):
            return rf"\s*[+-]?(\d+|\d*\.\d{{0,{decimal[2]}}}0*)\s*"
        if kind == "DATE":
            return r"\d+-\d{1,2}-\d{1,2}" if self.date_format is None else _SOME_DIGIT
        if kind in _TIMESTAMP_DIGITS:
            clock = rf"\d{{1,2}}:\d{{2}}(:\d{{2}}(\.\d{{0,{_TIMESTAMP_DIGITS[kind]}}}0*)?)?Z?"
            iso = rf"\d+-\d{{1,2}}-\d{{1,2}}([ T]{clock})?"
            return iso if self.timestamp_format is None else _SOME_DIGIT
        return None

    def strictly(
        self, text: exp.Expression, name: str, kind: str, form: str | None
    ) -> exp.Expression:
        """The column, its text converted if it has the form; any other text fails."""
        if form is None:
            return text
        fits = _call("regexp_full_match", text, exp.Literal.string(form))
        # "?" is a value of none of these types, so that its conversion fails. NULL stays NULL.
        checked: exp.Expression = (
            exp.case().when(exp.Not(this=fits), exp.Literal.string("?")).else_(text.copy())
        )
        layout = self.date_format if kind == "DATE" else None
        layout = self.timestamp_format if kind in _TIMESTAMP_DIGITS else layout
        if layout is not None:
            checked = _call("strptime", checked, exp.Literal.string(layout))
        target = exp.DataType.build(kind, dialect="duckdb")
        return exp.Alias(this=exp.Cast(this=checked, to=target), alias=identifier(name))


def with_own_types(table: str, schema: TextSchema, ask: Ask) -> TextSchema:
    """The schema with each type in DuckDB's own words; another type is refused."""
    columns = own_types(table, schema.columns, ask) if schema.columns else ()
    partitions = own_types(table, schema.partitions, ask) if schema.partitions else ()
    if schema.format in ("json", "json_array"):
        for name, kind in columns:
            if (decimal := _DECIMAL.fullmatch(kind)) and int(decimal[1]) > _JSON_DIGITS:
                raise UsageError(
                    f"column {name} of table {table} has more digits than a number in JSON keeps",
                    hint=f"DECIMAL of at most {_JSON_DIGITS} digits",
                )
    return replace(schema, columns=columns, partitions=partitions)


def own_types(table: str, columns: Typed, ask: Ask) -> Typed:
    """The columns with each type in DuckDB's own words; another type is refused."""
    found = None
    with suppress(ValueError, SqlglotError):
        kinds = [exp.DataType.build(kind, dialect="duckdb", udt=True) for _, kind in columns]
        casts = [exp.Cast(this=exp.Null(), to=kind) for kind in kinds]
        found = ask(exp.select(*(_call("typeof", cast) for cast in casts)))
    if not found:
        raise UsageError(
            f"the types of table {table} are not DuckDB's",
            hint="BIGINT, DOUBLE, DECIMAL(10, 2), VARCHAR, BOOLEAN, DATE, TIMESTAMP, …",
        )
    return tuple(zip((name for name, _ in columns), map(str, found[0]), strict=True))


def typed_struct(columns: Sequence[tuple[str, str]]) -> exp.Struct:
    """Names and types as DuckDB's readers take them."""
    return exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.Literal.string(name), expression=exp.Literal.string(kind))
            for name, kind in columns
        ]
    )


def with_partitions(query: exp.Select, partitions: Typed) -> exp.Select:
    """The statement of a reader with the types of the columns that folders name."""
    if partitions:
        given = exp.EQ(this=exp.column("hive_types"), expression=typed_struct(partitions))
        query.args["from_"].this.this.append("expressions", given)
    return query


def _is_null(value: exp.Expression) -> exp.Expression:
    return exp.Is(this=value, expression=exp.Null())


def _call(function: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=function, expressions=list(arguments))


def filled(name: str, **values: exp.Expression) -> exp.Select:
    """A template's statement with its parameters replaced."""
    tree = _parsed_template(name).copy()
    for placeholder in list(tree.find_all(exp.Placeholder)):
        placeholder.replace(values[placeholder.name].copy())
    return tree


@cache
def _parsed_template(name: str) -> exp.Select:
    return sqlglot.parse_one(template(name), dialect="duckdb", into=exp.Select)


def declared_columns(table: str, given: Declared) -> Typed:
    """The columns that the owner names, with their types."""
    return (
        _parsed(table, given) if isinstance(given, str) else typed_columns(table, [*given.items()])
    )


def declared_schema(
    table: str, given: Declared, delimiter: str, format: str, folders: Sequence[str]
) -> TextSchema:
    """The schema that the owner names; the file's first line must hold the names.

    A column that ``folders`` name may be among them; it is text unless it is.
    """
    columns = declared_columns(table, given)
    kinds = {name.lower(): kind for name, kind in columns}
    own = tuple(one for one in columns if one[0].lower() not in {f.lower() for f in folders})
    return TextSchema(
        own,
        tuple(name for name, _ in own) if format in ("separated", "cells") else None,
        delimiter,
        format=format,
        partitions=tuple((name, kinds.get(name.lower(), "VARCHAR")) for name in folders),
    )


def _parsed(table: str, text: str) -> tuple[tuple[str, str], ...]:
    """Column definitions as in CREATE TABLE, without constraints."""
    try:
        statements = sqlglot.parse(f"CREATE TABLE t ({text}\n)", dialect="duckdb")
    except (SqlglotError, AttributeError, RecursionError):
        statements = []
    create = statements[0] if len(statements) == 1 else None
    schema = create.this if isinstance(create, exp.Create) else None
    definitions = schema.expressions if isinstance(schema, exp.Schema) else []
    plain = [
        d
        for d in definitions
        if isinstance(d, exp.ColumnDef) and d.kind is not None and not d.constraints
    ]
    if not plain or len(plain) != len(definitions):
        raise UsageError(f"the types of table {table} are not columns with types", hint=_HINT)
    return typed_columns(table, [(d.name, d.args["kind"].sql(dialect="duckdb")) for d in plain])


def typed_columns(
    table: str, found: Sequence[tuple[object, object]]
) -> tuple[tuple[str, str], ...]:
    """Names and types, each a text, no name twice; DuckDB's names ignore case."""
    columns = [(name, kind) for name, kind in found if isinstance(name, str) and name]
    texts = tuple((name, kind) for name, kind in columns if isinstance(kind, str) and kind)
    if not texts or len(texts) != len(found):
        raise UsageError(f"the types of table {table} are not columns with types", hint=_HINT)
    if len({name.lower() for name, _ in texts}) != len(texts):
        raise UsageError(f"the types of table {table} name a column twice")
    return texts


def _column_text(name: str) -> str:
    return name if name.isidentifier() else exp.to_identifier(name, quoted=True).sql("duckdb")
