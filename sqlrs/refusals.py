"""Every reason for which a query is refused: its code, its SQLSTATE, what it means and a hint.

Nothing else makes a ``QueryRefused``: ``refusal`` looks the code up here, and
``compiler.source.Source.refusal`` adds the place in the text.
"""

from __future__ import annotations

from sqlrs.errors import QueryRefused, Span
from sqlrs.records import dataclass


@dataclass(frozen=True)
class Refusal:
    """One entry of the list that docs/sql-reference.md shows; some have no hint."""

    code: str
    sqlstate: str
    meaning: str
    hint: str = ""


_LANGUAGE = (
    # The text.
    Refusal("empty_query", "42601", "the text holds no statement",
            "write one SELECT count(*) FROM …"),
    Refusal("syntax_error", "42601", "this is not valid SQL",
            "check the text near the marked place"),
    Refusal("several_statements", "42601", "only one statement is answered at a time",
            "send each statement on its own"),
    Refusal("not_a_select", "0A000", "only SELECT is answered",
            "write one SELECT count(*) FROM …"),
    Refusal("too_complex", "54001", "the query is too long or too deeply nested",
            "split the query, or name its parts in views"),
    Refusal("not_understood", "0A000", "this part of the text is not understood",
            "leave it out, or write it in the forms of the SQL reference"),
    # Names.
    Refusal("unknown_table", "42P01", "there is no such table",
            "sqlrs tables lists the tables and views that can be named"),
    Refusal("unknown_column", "42703", "there is no such column",
            "only the columns of the tables in FROM can be named"),
    Refusal("ambiguous_name", "42702", "the name can mean several things",
            "write the table's alias before the column: alias.column"),
    Refusal("duplicate_alias", "42712", "two tables of one FROM have the same name",
            "give each occurrence its own alias: edge AS a JOIN edge AS b"),
    Refusal("unsupported_name", "0A000", "a name of this form is not understood",
            "name a column as column, alias.column or schema.table.column, a table as table or "
            "schema.table"),
    Refusal("wrong_columns", "42P10", "the number of columns does not fit",
            "name as many columns as the query has"),
    # What is counted.
    Refusal("not_a_count", "0A000", "the query must return exactly one count",
            "select count(*), count(column) or count(DISTINCT column), and nothing else"),
    Refusal("aggregate", "0A000", "this aggregate is not answered here",
            "count, sum and avg are answered, at the top of a statement: sqlrs query, or "
            "Database.query in Python"),
    Refusal("group_by", "0A000", "this GROUP BY is not answered here",
            "sqlrs query, or Database.query in Python, answers counts, sums and averages of groups "
            "by columns and expressions of known values"),
    Refusal("having", "0A000", "HAVING is not answered here",
            "ask for the count itself and compare the answer"),
    Refusal("order_by", "0A000", "ORDER BY is not answered here",
            "leave it out; after the one count, ORDER BY 1 is the only order"),
    Refusal("limit", "0A000", "LIMIT, OFFSET and FETCH are not answered here",
            "leave it out: a count is one row"),
    Refusal("distinct", "0A000", "DISTINCT is not answered here",
            "use count(DISTINCT column), or count(*) FROM (SELECT DISTINCT …) and nothing else "
            "in FROM"),
    Refusal("distinct_expression", "0A000", "only columns can be counted distinct",
            "count distinct columns of the tables"),
    Refusal("window", "0A000", "window functions over private rows are not answered",
            "express the condition by joins; over released groups they may stand"),
    Refusal("set_operation", "0A000", "this set operation is not answered here",
            "ask one count for each branch and add the answers"),
    # FROM.
    Refusal("no_table", "0A000", "the query reads no table", "name a table in FROM"),
    Refusal("outer_join", "0A000", "an outer join cannot stand here",
            "count the inner JOIN and add the rows without a partner: all rows of the table less "
            "those WHERE EXISTS (SELECT 1 FROM the other table WHERE the condition of ON)"),
    Refusal("join_form", "0A000", "this kind of join is not answered",
            "use JOIN … ON, JOIN … USING, NATURAL JOIN, CROSS JOIN or a comma"),
    Refusal("table_form", "0A000", "this cannot stand in FROM",
            "name a table, a view, a CTE or (SELECT … FROM … WHERE …) AS alias"),
    Refusal("table_sample", "0A000", "TABLESAMPLE is not answered",
            "count the whole table"),
    Refusal("lateral", "0A000", "LATERAL is not answered",
            "join the tables with a condition in ON or WHERE"),
    Refusal("recursive", "0A000", "recursive queries are not answered",
            "write a join for each step"),
    Refusal("locking", "0A000", "FOR UPDATE and FOR SHARE are not answered", "leave it out"),
    # Conditions.
    Refusal("negated_subquery", "0A000", "NOT EXISTS and NOT IN (SELECT …) cannot stand here",
            "count all rows, less the rows WHERE EXISTS (…)"),
    Refusal("subquery", "0A000", "a subquery cannot stand here",
            "EXISTS (…) and column IN (SELECT …) may stand in WHERE, joined by AND only"),
    Refusal("semi_join_needs_key", "0A000",
            "EXISTS and IN (SELECT …) need a key of every table of the outer query",
            "let the owner declare a key of the table; where the subquery finds at most one row "
            "for each, a JOIN gives the same count"),
    Refusal("type_mismatch", "42804", "the two sides have different types",
            "let the owner store both columns in one type; a cast, in the query or in a view, "
            "does not help"),
    Refusal("bad_literal", "22007", "the literal cannot be read in the column's type",
            "write dates as DATE '2026-01-31', timestamps as TIMESTAMP '2026-01-31 12:00:00'"),
    Refusal("null_safe_equality", "0A000", "NULL-safe equality between tables is not answered",
            "use =, which no NULL satisfies"),
    Refusal("ambiguous_condition", "0A000", "dialects read this condition in different ways",
            "put parentheses around the inner condition"),
    Refusal("unknown_function", "42883", "the function is not known to be free of side effects",
            "docs/sql-reference.md lists the functions that are answered; the owner can declare "
            "further ones of the database"),
    Refusal("volatile_function", "0A000", "the value changes from call to call",
            "write the value itself"),
    Refusal("text_growth", "54000", "the query can build texts far longer than the ones it reads",
            "nest fewer of replace, concat, || and upper, and replace by short texts of your own"),
    Refusal("parameter", "0A000", "parameters are not answered", "write the value itself"),
    Refusal("unsupported", "0A000", "this is outside the language",
            "see the SQL reference for what is answered"),
)  # fmt: skip

_GROUPS = (
    Refusal("not_grouped", "42803", "this is neither grouped by nor inside an aggregate",
            "name it in GROUP BY, or aggregate it"),
    Refusal("unknown_domain", "0A000",
            "the groups cannot be told without a look at the private rows",
            "group by a column of a public table, or say in WHERE which values there are: key IN "
            "(…), key BETWEEN … AND … for whole numbers and dates; CASE with constants has known "
            "values too; the owner can declare those of a column under [domain]"),
    Refusal("too_many_groups", "54000", "there are more groups than are answered at once",
            "narrow the keys with IN (…) or BETWEEN in WHERE, or group by fewer of them; the owner "
            "can raise max_groups"),
)  # fmt: skip

_SUMS = (
    Refusal("unknown_bounds", "0A000", "nothing says between what the summed values lie",
            "sum least(greatest(column, low), high) with two numbers; or the owner declares "
            "[bounds] of the column, or a CHECK of the table says it"),
)  # fmt: skip

_UNITS = (
    Refusal("no_owner", "0A000", "nothing says which unit owns the rows of this private table",
            "the owner of the data declares for each private table which columns hold the unit's "
            "id, or declares the table public"),
    Refusal("unit_lost", "0A000",
            "what is counted once may come from rows of several units, and does not tell which",
            "count or select the unit's id too: count(DISTINCT (unit, column)); inside EXISTS and "
            "IN, compare the unit's id with that of the outer row"),
    Refusal("several_owners", "0A000", "results here belong to more than one unit",
            "such results are counted, or summed if never negative, without GROUP BY; or join the "
            "tables on the unit's id, so that each result belongs to one"),
    Refusal("unit_order", "0A000", "inside a unit this depends on the order of its rows",
            "count, min, max, bool_and, bool_or, sums and averages of whole numbers and decimals, "
            "quantiles, rank and dense_rank do not"),
    Refusal("unit_shared", "0A000", "several units may share what is counted once here",
            "count distinct values together with the unit's id, or count rows"),
    Refusal("unit_sum", "0A000", "this sum is not made of whole numbers or decimals",
            "cast what is summed to a decimal type with fixed places: CAST(x AS DECIMAL(18, 2))"),
)  # fmt: skip

_SIZE = (
    Refusal("refused_by_owner", "54000", "the data owner refuses this query: it takes too long",
            "ask for less: fewer tables, or a condition that leaves fewer rows"),
    Refusal("too_large_join", "54000",
            "with the declared sizes the query needs a larger join than the data owner allows",
            "join on keys, or on fewer tables; or let the data owner raise max_intermediate_rows"),
    Refusal("too_many_tables", "54001", "the query joins too many tables to be analysed",
            "count over a smaller join; the owner can store a join of public tables as one table"),
)  # fmt: skip

_WISHES = (
    Refusal("wish_not_met", "22023", "the wished error cannot be had for the maximal epsilon",
            "wish a larger error, or allow more epsilon"),
    Refusal("wish_unsupported", "0A000",
            "an error cannot be wished for this statement",
            "it can for one count over joins, and for counts or sums of one kind, in groups or "
            "not, whose noise has a public width; else give epsilon, with error bars"),
)  # fmt: skip

_CLIPPED_ROWS = (
    Refusal("clipping_needs_one_row", "0A000",
            "clipping protects a row where each result has one private row",
            "leave the mechanism out; it may be named where one private table stands in FROM, and "
            "once"),
)  # fmt: skip

_BOUNDED_ROWS = (
    Refusal("needs_bounded_rows", "0A000",
            "this noise needs a bound of the rows that one unit has in each private table",
            "leave the mechanism out; or the owner declares max_rows of each private table, whose "
            "rows have one owner each"),
    Refusal("too_many_rows_per_unit", "54001",
            "one unit has too many rows for this noise to be computed",
            "leave the mechanism out, give a larger epsilon, or let the owner declare smaller "
            "max_rows"),
)  # fmt: skip

_PROXY = (
    Refusal("not_permitted", "42501", "an analyst may not do this"),
    Refusal("not_supported", "0A000", "the proxy does not carry out this statement"),
    Refusal("fixed", "0A000", "the setting has one value here"),
    Refusal("dialect", "0A000",
            "PostgreSQL and the database that holds the data read this query differently",
            "avoid / and functions whose meaning differs between the two"),
    Refusal("public_reading", "0A000", "this is no plain SELECT over public tables",
            "columns, conditions, simple aggregates, GROUP BY, ORDER BY and LIMIT over public "
            "tables are read; private ones are counted with SELECT count(*)"),
    Refusal("unknown_parameter", "42P02", "there is no such parameter"),
    Refusal("parameter_type", "0A000", "the parameter has a type that is not supported",
            "use integers, decimals, floats, booleans, text, dates, timestamps, uuids, or arrays "
            "of them in = ANY"),
    Refusal("unknown_statement", "26000", "the prepared statement does not exist"),
    Refusal("unknown_portal", "34000", "the portal does not exist"),
    Refusal("duplicate_portal", "42P03", "the cursor already exists"),
    Refusal("too_much", "54000", "a session keeps or reads no more than this",
            "close those that are not used"),
)  # fmt: skip

_OWNER = (
    Refusal("elastic_unsupported", "0A000", "elastic sensitivity cannot join the tables",
            "list the tables so that each one is joined by an equality to an earlier one"),
    Refusal("smooth_unsupported", "0A000",
            "exact smooth sensitivity is known for triangles and stars only",
            "the pattern must be edge(a,b), edge(b,c), edge(c,a) or edge(a,b1), …, edge(a,bt) on "
            "one private table whose key is its two columns, with all variables pairwise "
            "different"),
    Refusal("single_rows_only", "0A000", "this sensitivity is that of single rows",
            "use refined, residual or local"),
)  # fmt: skip

CHAPTERS: dict[str, tuple[Refusal, ...]] = {
    "the language": _LANGUAGE,
    "groups": _GROUPS,
    "sums": _SUMS,
    "units": _UNITS,
    "the size of the query": _SIZE,
    "bounded rows of units": _BOUNDED_ROWS,
    "clipped rows": _CLIPPED_ROWS,
    "wished errors": _WISHES,
    "the proxy": _PROXY,
    "the owner's comparison of sensitivities": _OWNER,
}
"""All refusals, by what they are about."""

REFUSALS: dict[str, Refusal] = {
    entry.code: entry for entries in CHAPTERS.values() for entry in entries
}
"""Every refusal by its code."""


def refusal(
    code: str,
    message: str | None = None,
    *,
    hint: str | None = None,
    span: Span | None = None,
    text: str | None = None,
) -> QueryRefused:
    """The error of this code. Message and hint are the entry's where none are given."""
    entry = REFUSALS[code]
    return QueryRefused(
        message or entry.meaning,
        hint=(entry.hint if hint is None else hint) or None,
        code=code,
        sqlstate=entry.sqlstate,
        span=span,
        text=text,
    )
