"""Edge lists as tables of named columns: a weight or a time beside the ends, by declared types."""

from __future__ import annotations

from sqlglot import exp

from sqlrs.engines.edge_lists import EdgeForm
from sqlrs.engines.file_schema import TextSchema, filled
from sqlrs.errors import UsageError
from sqlrs.trees.identifiers import column, identifier

_GAPS = {"space": r"\s+", "tab": r"\s*\t\s*", "comma": r"\s*,\s*", "semicolon": r"\s*;\s*"}


def named_rows(
    form: EdgeForm, schema: TextSchema, name: str, path: exp.Literal, skip: int
) -> exp.Select:
    """The statement that reads all fields; a line with fewer or more, or of other types, fails."""
    if len(schema.columns) != form.fields:
        raise UsageError(
            f"a line of {name} has {form.fields} fields, but {len(schema.columns)} are declared",
            hint="name all of them in order: --types edge='src BIGINT, dst BIGINT, weight DOUBLE'",
            code="file_unfit",
        )
    gap = exp.Literal.string(_GAPS[form.separator])
    query = filled("duckdb/read_fields.sql", path=path, skip=exp.Literal.number(skip), gap=gap)
    fields = column("fields")
    whole = exp.EQ(
        this=exp.Anonymous(this="len", expressions=[fields]),
        expression=exp.Literal.number(form.fields),
    )
    failed = exp.Anonymous(this="error", expressions=[exp.Literal.string(f"a line of {name}")])
    parts = []
    for place, (title, kind) in enumerate(schema.columns, 1):
        taken = exp.Anonymous(
            this="list_extract", expressions=[fields.copy(), exp.Literal.number(place)]
        )
        text = exp.case().when(whole.copy(), taken).else_(failed.copy())
        if (written := schema.form(kind)) is not None:
            parts.append(schema.strictly(text, title, kind, written))
            continue
        cast = exp.Cast(this=text, to=exp.DataType.build(kind, dialect="duckdb", udt=True))
        parts.append(exp.Alias(this=cast, alias=identifier(title)))
    return query.select(*parts, append=False)
