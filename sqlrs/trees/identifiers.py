"""Names as SQL identifiers: quoted only where the database would read them otherwise."""

from __future__ import annotations

import re

from sqlglot import exp

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")

# Every keyword of DuckDB 2.0 and PostgreSQL 15 to 18 that is not free to be any kind of name.
_RESERVED = frozenset(
    """
    all analyse analyze and anti any array as asc asof asymmetric at authorization between
    bigint binary bit boolean both by case cast char character check coalesce collate collation
    column columns concurrently constraint create cross current_catalog current_date
    current_role current_schema current_time current_timestamp current_user dec decimal default
    deferrable desc describe distinct do else end except exists extract false fetch float for
    foreign freeze from full generated glob grant greatest group grouping grouping_id having
    ilike in initially inner inout int integer intersect interval into is isnull join json
    json_array json_arrayagg json_exists json_object json_objectagg json_query json_scalar
    json_serialize json_table json_value lambda lateral leading least left like limit localtime
    localtimestamp map merge_action national natural nchar none normalize not notnull null
    nullif numeric offset on only or order out outer overlaps overlay pivot pivot_longer
    pivot_wider placing position positional precision primary qualify real references returning
    right row select semi session_user setof show similar smallint some struct substring
    summarize symmetric system_user table tablesample then time timestamp to trailing treat trim
    true try_cast tuple union unique unpack unpivot user using values varchar variadic verbose
    when where window with xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces
    xmlparse xmlpi xmlroot xmlserialize xmltable
    """.split()  # noqa: SIM905 - so many words are best read as text
)


def identifier(name: str) -> exp.Identifier:
    """The identifier that means exactly ``name`` in every dialect."""
    return exp.Identifier(this=name, quoted=not _PLAIN.fullmatch(name) or name in _RESERVED)


def column(name: str, table: str | None = None) -> exp.Column:
    """A column, of the table or alias called ``table`` if one is given."""
    return exp.Column(this=identifier(name), table=identifier(table) if table else None)


def again(tree: exp.Expression) -> exp.Expression:
    """The tree once more, for a second place; columns, which are most of all, without a search."""
    if type(tree) is not exp.Column or len(tree.args) > 2:
        return tree.copy()
    parts = {
        name: exp.Identifier(this=part.this, quoted=part.args.get("quoted"))
        for name, part in tree.args.items()
        if part is not None
    }
    return exp.Column(**parts)
