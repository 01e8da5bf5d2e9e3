"""The grammar of what stands above the cuts, as a whitelist, and the statement for DuckDB.

It runs over released rows alone, so nothing here protects privacy; it keeps an analyst's text from
files, from the moment, and from values that grow without bound.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from sqlrs.catalog import Catalog
from sqlrs.compiler.above_nodes import CALLS, NODES, REFUSED_ARGUMENTS, REFUSED_NODES, SAID
from sqlrs.compiler.functions import ABOVE, FUNCTIONS, SPECIAL_FORMS, VOLATILE_NAMES, VOLATILE_NODES
from sqlrs.compiler.grammar import CONDITIONS, known_type, written_name
from sqlrs.compiler.growth_of_text import MOST_BYTES, MOST_TIMES, growth
from sqlrs.compiler.literals import is_invalid
from sqlrs.compiler.postgres_above import PostgresAbove
from sqlrs.compiler.source import Source
from sqlrs.dialects import dialect_named
from sqlrs.errors import QueryRefused

_INTEGER = re.compile(r"\d{1,18}", re.ASCII)
_FEW = 1000
_AGGREGATES = (exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max)
_RANKING = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.Lag, exp.Lead)


def check_above(above: exp.Query, source: Source, catalog: Catalog) -> None:
    """Refuse the first node, in the text's order, that may not stand above the cuts."""
    for node in above.walk(bfs=False):
        _check_node(node, source, catalog)
        _check_arguments(node, source)
        _check_form(node, source)
    _check_growth(above, source)


def to_duckdb(
    above: exp.Query, columns: Mapping[str, Mapping[str, str]], source: Source
) -> exp.Query:
    """The statement with the same meaning in DuckDB, or a refusal.

    ``columns``: of each relation, released_0 or public_0 say, the columns and their DuckDB types.
    """
    if dialect_named(source.dialect).runs_above:
        return above.copy()
    return PostgresAbove(columns, source).written(above.copy())


def _refusal(code: str, place: exp.Expr, source: Source) -> QueryRefused:
    return source.refusal(code, place, *SAID.get(code, ()))


def _check_node(node: exp.Expr, source: Source, catalog: Catalog) -> None:
    kind = type(node)
    call = isinstance(node, exp.Func | exp.Anonymous | exp.Binary)
    name = written_name(node, source) if call else ""
    if kind in NODES and (not name or name in CALLS):
        return
    if _on_the_list(name, node, catalog):
        return
    form = SPECIAL_FORMS[source.dialect].get(kind)
    given = {argument for argument, value in node.args.items() if value not in (None, False, [])}
    if form is not None and not name and given <= form:
        return
    if isinstance(node, tuple(VOLATILE_NODES)) or name in VOLATILE_NAMES:
        raise source.refusal("volatile_function", node)
    for refused, code in REFUSED_NODES.items():
        if isinstance(node, refused):
            raise _refusal(code, node, source)
    if call:
        shown = f"the function {name}" if name else "this operation"
        message = f"{shown} is not computed over released rows"
        raise source.refusal("unknown_function", node, message)
    raise source.refusal("unsupported", node)


def _on_the_list(name: str, node: exp.Expr, catalog: Catalog) -> bool:
    """Whether the call is on our list; functions of the owner's are not where released rows are."""
    arguments = FUNCTIONS[catalog.dialect].get(name)
    alike = ABOVE.get(catalog.dialect)
    if arguments is None or name in catalog.hidden or (alike is not None and name not in alike):
        return False
    values = [value for value in node.args.values() if isinstance(value, list | exp.Expr)]
    given = sum(len(value) if isinstance(value, list) else 1 for value in values)
    return arguments[0] <= given <= arguments[1]


def _check_arguments(node: exp.Expr, source: Source) -> None:
    allowed = NODES.get(type(node))
    if allowed is None:
        return
    for name, value in node.args.items():
        if value not in (None, False, []) and name not in allowed:
            code = REFUSED_ARGUMENTS.get((type(node), name), "unsupported")
            part = value[0] if isinstance(value, list) else value
            place = part if isinstance(part, exp.Expr) else node
            raise _refusal(code, place, source)


def _check_form(node: exp.Expr, source: Source) -> None:
    match node:
        case exp.Join():
            _check_join(node, source)
        case exp.Table() if not isinstance(node.this, exp.Identifier):
            raise _refusal("table_form", node, source)
        case exp.Limit() | exp.Offset() if not _is_whole(node.expression):
            raise _refusal("limit", node, source)
        case exp.Fetch() if node.args.get("count") and not _is_whole(node.args["count"]):
            raise _refusal("limit", node, source)
        case exp.Window() if node.args.get("over") != "OVER" or not _may_window(node.this):
            raise _refusal("window", node, source)
        case exp.WindowSpec() if not _is_frame(node):
            raise source.refusal("window", node, "this frame is not understood")
        case exp.Filter() if not isinstance(node.this, _AGGREGATES):
            raise _refusal("aggregate", node, source)
        case exp.Lag() | exp.Lead() if not _is_whole(node.args.get("offset"), _FEW):
            raise source.refusal("window", node, "the offset must be a small whole number")
        case exp.RowNumber() | exp.Rank() | exp.DenseRank() | exp.Lag() | exp.Lead() if (
            not isinstance(node.parent, exp.Window)
        ):
            raise source.refusal("window", node, "this function needs OVER (…)")
        case exp.Distinct() if node.expressions and not isinstance(node.parent, _AGGREGATES):
            raise _refusal("distinct", node, source)
        case exp.TryCast() if not dialect_named(source.dialect).try_cast:
            raise source.refusal("unknown_function", node, "there is no TRY_CAST here")
        case exp.Cast() if not known_type(node.to):
            raise source.refusal("unsupported", node, "a cast to this type is not understood")
        case exp.Cast() if is_invalid(node):
            message = f"the text cannot be read as {node.to.sql(source.dialect)}"
            raise source.refusal("bad_literal", node.this, message)
        case exp.Interval() if not isinstance(node.this, exp.Literal) or not node.args.get("unit"):
            raise source.refusal("unsupported", node, "write INTERVAL '1' DAY")
        case exp.Var() if not isinstance(
            node.parent, exp.Interval | exp.Extract | exp.TimestampTrunc | exp.DateDiff
        ):
            raise source.refusal("unsupported", node)
        case exp.Is() if not isinstance(node.expression, exp.Null | exp.Boolean):
            raise source.refusal("unsupported", node)
        case exp.Column() if isinstance(node.this, exp.Star) and not isinstance(
            node.parent, exp.Select
        ):
            raise source.refusal("unsupported", node)
        case exp.Star() if not isinstance(node.parent, exp.Select | exp.Count | exp.Column):
            raise source.refusal("unsupported", node)
    if isinstance(node, CONDITIONS):
        for part in node.iter_expressions():
            if isinstance(part, (*CONDITIONS, exp.Not, exp.And, exp.Or)):
                raise source.refusal("ambiguous_condition", node)


def _check_join(join: exp.Join, source: Source) -> None:
    kind, side = join.args.get("kind") or "", join.args.get("side") or ""
    conditions = sum(map(bool, (join.args.get("on"), join.args.get("using"))))
    known = kind in ("", "INNER", "OUTER", "CROSS") and side in ("", "LEFT", "RIGHT", "FULL")
    fits = conditions == 0 if kind == "CROSS" else conditions == 1 or not (side or kind)
    if not known or not fits or (side and kind == "CROSS"):
        raise _refusal("join_form", join, source)


def _is_whole(value: exp.Expr | None, most: int | None = None) -> bool:
    if value is None:
        return most is not None
    plain = isinstance(value, exp.Literal) and not value.is_string
    whole = plain and _INTEGER.fullmatch(str(value.this)) is not None
    return whole and (most is None or int(str(value.this)) <= most)


def _may_window(function: exp.Expr) -> bool:
    call = function.this if isinstance(function, exp.Filter) else function
    return isinstance(call, (*_AGGREGATES, *_RANKING)) and not isinstance(call.this, exp.Distinct)


def _is_frame(frame: exp.WindowSpec) -> bool:
    by_rows = str(frame.args.get("kind")).upper() == "ROWS"
    if not by_rows and str(frame.args.get("kind")).upper() != "RANGE":
        return False
    for end in ("start", "end"):
        value = frame.args.get(end)
        counted = by_rows and isinstance(value, exp.Expr) and _is_whole(value)
        if value is not None and value not in ("UNBOUNDED", "CURRENT ROW") and not counted:
            return False
    return True


def _check_growth(above: exp.Query, source: Source) -> None:
    """Bound the texts that are built: one SELECT may build on what another one built."""
    times = 1
    for select in above.find_all(exp.Select):
        found = growth(select, source)
        times *= max(found.times, 1)
        if times > MOST_TIMES or found.bytes > MOST_BYTES:
            raise source.refusal("text_growth", select)
