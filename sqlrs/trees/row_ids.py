"""A column that names each row of a table by its values: equal rows of a bag share the name."""

from __future__ import annotations

from sqlglot import exp

from sqlrs.catalog import Column, ColumnType, Family, Table
from sqlrs.trees.build import exact_text
from sqlrs.trees.identifiers import column
from sqlrs.trees.naming import free_name

# Nothing is known of its values but that the engine can group by them.
ROW_ID = ColumnType(Family.OTHER, "computed")


def with_row_id(table: Table) -> tuple[Table, str]:
    """The table with the computed column, and its name.

    It is made of the shortest key, or of all columns where there is none, so that only equal rows
    of a bag share it: docs/proofs/clipped_rows.md.
    """
    keys = sorted(table.keys, key=lambda key: (len(key), sorted(key)))
    stored = [one.name for one in table.columns if one.computed is None]
    told = [name for name in stored if not keys or name in keys[0]]
    name = free_name("row_id", {one.name.lower() for one in table.columns})
    texts = [_told(one) for one in told]
    whole = texts[0]
    for text in texts[1:]:
        whole = exp.DPipe(this=whole, expression=text)
    return table.with_computed([Column(name, ROW_ID, nullable=False, computed=whole)]), name


def _told(name: str) -> exp.Expression:
    """A value's text behind the text's length, so that no two lists of values read alike."""
    length = exp.Cast(this=exp.Length(this=exact_text(column(name))), to=exp.DataType.build("TEXT"))
    before = exp.DPipe(this=length, expression=exp.Literal.string(":"))
    text = exp.DPipe(this=before, expression=exact_text(column(name)))
    return exp.Coalesce(this=text, expressions=[exp.Literal.string("null")])
