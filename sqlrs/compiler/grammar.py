"""The grammar as a whitelist: every node and every argument is understood, or the query is refused.

An argument that nobody reads (a sample, a hint, a lock) would change the answer without a word, so
what is not listed here is refused, whatever a future parser may add.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from sqlrs.catalog import Catalog
from sqlrs.compiler.function_parameters import is_parameter
from sqlrs.compiler.functions import FUNCTIONS, SPECIAL_FORMS, VOLATILE_NAMES, VOLATILE_NODES
from sqlrs.compiler.hints import instead_of, instead_of_call, instead_of_join
from sqlrs.compiler.literals import is_invalid, is_literal
from sqlrs.compiler.source import Source
from sqlrs.dialects import dialect_named
from sqlrs.errors import QueryRefused

_BINARY = frozenset({"this", "expression"})
_UNARY = frozenset({"this"})
# Nodes of the grammar itself that are written as calls.
_OWN_NAMES = frozenset({"count"})

CONDITIONS: tuple[type[exp.Expr], ...] = (
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.Is,
    exp.In,
    exp.Between,
    exp.Like,
    exp.ILike,
    exp.SimilarTo,
    exp.Escape,
)
"""Nodes that are conditions; dialects disagree on their precedence among each other."""

_NODES: dict[type[exp.Expr], frozenset[str]] = {
    # The shape of a query.
    exp.Select: frozenset({"with_", "expressions", "distinct", "from_", "joins", "where"}),
    exp.Subquery: frozenset({"this", "alias", "joins"}),
    exp.With: frozenset({"expressions"}),
    exp.CTE: frozenset({"this", "alias", "materialized"}),
    exp.From: _UNARY,
    exp.Join: frozenset({"this", "on", "using", "kind", "method"}),
    exp.Where: _UNARY,
    exp.Table: frozenset({"this", "alias", "db", "joins"}),
    exp.TableAlias: frozenset({"this", "columns"}),
    exp.Alias: frozenset({"this", "alias"}),
    exp.Column: frozenset({"this", "table", "db"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Star: frozenset(),
    exp.Distinct: frozenset({"expressions"}),
    exp.Count: frozenset({"this", "big_int"}),
    exp.Exists: _UNARY,
    # Conditions.
    exp.And: _BINARY,
    exp.Or: _BINARY,
    exp.Not: _UNARY,
    exp.Paren: _UNARY,
    exp.EQ: _BINARY,
    exp.NEQ: _BINARY,
    exp.LT: _BINARY,
    exp.LTE: _BINARY,
    exp.GT: _BINARY,
    exp.GTE: _BINARY,
    exp.NullSafeEQ: _BINARY,
    exp.NullSafeNEQ: _BINARY,
    exp.Is: _BINARY | {"negate"},
    exp.In: frozenset({"this", "expressions", "query"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Like: _BINARY | {"negate"},
    exp.ILike: _BINARY | {"negate"},
    exp.SimilarTo: _BINARY | {"negate"},
    exp.Escape: _BINARY,
    exp.Tuple: frozenset({"expressions"}),
    exp.Any: _UNARY,
    exp.Array: frozenset({"expressions", "bracket_notation"}),
    # Values.
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Boolean: _UNARY,
    exp.Null: frozenset(),
    exp.Interval: frozenset({"this", "unit"}),
    exp.Var: _UNARY,
    exp.Neg: _UNARY,
    exp.Add: _BINARY,
    exp.Sub: _BINARY,
    exp.Mul: _BINARY,
    exp.Div: _BINARY | {"typed", "safe"},
    exp.IntDiv: _BINARY,
    exp.Mod: _BINARY,
    exp.DPipe: _BINARY | {"safe"},
    exp.Cast: frozenset({"this", "to"}),
    exp.TryCast: frozenset({"this", "to", "safe", "requires_string"}),
    exp.DataType: frozenset({"this", "expressions"}),
    exp.DataTypeParam: _UNARY,
    exp.AtTimeZone: frozenset({"this", "zone"}),
}
# What any other zone means follows from a list that changes, and engines have one each.
_ZONES = frozenset({"utc", "etc/utc"})
_OUTER = _NODES | {exp.Join: _NODES[exp.Join] | {"side"}}
_UNION = frozenset({"with_", "this", "expression"})
_CAST_TYPES = (
    exp.DataType.INTEGER_TYPES
    | exp.DataType.REAL_TYPES
    | exp.DataType.TEXT_TYPES
    | {
        exp.DataType.Type.BOOLEAN,
        exp.DataType.Type.DATE,
        exp.DataType.Type.TIMESTAMP,
        exp.DataType.Type.TIMESTAMPNTZ,
        exp.DataType.Type.TIMESTAMPTZ,
        exp.DataType.Type.TIME,
        exp.DataType.Type.INTERVAL,
        exp.DataType.Type.UUID,
    }
)
_TYPES_WITH_PARAMETERS = frozenset(
    {
        exp.DataType.Type.DECIMAL,
        exp.DataType.Type.CHAR,
        exp.DataType.Type.BPCHAR,
        exp.DataType.Type.VARCHAR,
        exp.DataType.Type.TIMESTAMP,
        exp.DataType.Type.TIMESTAMPNTZ,
        exp.DataType.Type.TIMESTAMPTZ,
        exp.DataType.Type.TIME,
    }
)

# The refusals of nodes that have a name of their own; the rest is "unsupported".
_REFUSED_NODES: dict[type[exp.Expr], str] = {
    exp.SetOperation: "set_operation",
    exp.Window: "window",
    exp.AggFunc: "aggregate",
    exp.Filter: "aggregate",
    exp.WithinGroup: "aggregate",
    exp.Lateral: "lateral",
    exp.Values: "table_form",
    exp.Unnest: "table_form",
    exp.Pivot: "table_form",
    exp.All: "subquery",
    exp.Placeholder: "parameter",
    exp.Parameter: "parameter",
    exp.SessionParameter: "parameter",
    exp.Dot: "unsupported_name",
    exp.Collate: "unsupported",
    exp.Pow: "unsupported",
}
_REFUSED_ARGUMENTS: dict[tuple[type[exp.Expr], str], str] = {
    (exp.Select, "group"): "group_by",
    (exp.Select, "having"): "having",
    (exp.Select, "order"): "order_by",
    (exp.Select, "limit"): "limit",
    (exp.Select, "offset"): "limit",
    (exp.Select, "qualify"): "window",
    (exp.Select, "windows"): "window",
    (exp.Select, "locks"): "locking",
    (exp.Select, "laterals"): "lateral",
    (exp.Select, "sample"): "table_sample",
    (exp.Select, "pivots"): "table_form",
    (exp.Subquery, "sample"): "table_sample",
    (exp.Subquery, "pivots"): "table_form",
    (exp.Subquery, "order"): "order_by",
    (exp.Subquery, "limit"): "limit",
    (exp.Subquery, "offset"): "limit",
    (exp.Table, "sample"): "table_sample",
    (exp.Table, "pivots"): "table_form",
    (exp.Table, "catalog"): "unsupported_name",
    (exp.Table, "laterals"): "lateral",
    (exp.Join, "side"): "outer_join",
    (exp.Join, "match_condition"): "join_form",
    (exp.With, "recursive"): "recursive",
    (exp.Column, "catalog"): "unsupported_name",
    (exp.Distinct, "on"): "distinct",
    (exp.Count, "expressions"): "aggregate",
}


def check_grammar(
    tree: exp.Expr,
    source: Source,
    catalog: Catalog,
    *,
    sums: bool = False,
    further: Mapping[type[exp.Expr], frozenset[str]] | None = None,
) -> None:
    """Refuse the first node of the tree, in the text's order, that is outside the language.

    ``sums``: what makes a query a sum of counts, outer joins and UNION ALL, is inside.
    ``further``: nodes with their arguments that are inside too.
    """
    nodes = {**(_OUTER if sums else _NODES), **(further or {})}
    for node in tree.walk(bfs=False):
        if sums and isinstance(node, exp.Union):
            _check_union(node, source)
            continue
        if type(node) not in (further or ()):
            _check_node(node, source, catalog)
        _check_arguments(node, source, nodes)
        _check_form(node, source)


def written_name(node: exp.Expr, source: Source) -> str:
    """A function's name as the text has it, in lower case, or "" if it is no call in the text."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    start, end = node.meta.get("start"), node.meta.get("end")
    return "" if start is None or end is None else source.text[start : end + 1].lower()


def _check_node(node: exp.Expr, source: Source, catalog: Catalog) -> None:
    kind = type(node)
    if kind is exp.Parameter and source.parameters and is_parameter(node.parent or node):
        return
    name = _called(node, source)
    if _may_call(name, node, catalog) or (kind in _NODES and (not name or name in _OWN_NAMES)):
        return
    form = SPECIAL_FORMS[source.dialect].get(kind)
    if form is not None and not name and _set_arguments(node) <= form:
        return
    is_call = bool(name) or isinstance(node, exp.Func | exp.Anonymous)
    if is_call and not isinstance(node, tuple(_REFUSED_NODES)):
        raise _refused_call(name, node, source, catalog)
    for refused, code in _REFUSED_NODES.items():
        if isinstance(node, refused):
            raise source.refusal(code, node, hint=instead_of(node))
    raise source.refusal("unsupported", node, hint=instead_of(node))


def _refused_call(name: str, node: exp.Expr, source: Source, catalog: Catalog) -> QueryRefused:
    if isinstance(node, tuple(VOLATILE_NODES)) or name in VOLATILE_NAMES:
        return source.refusal("volatile_function", node)
    listed = name in FUNCTIONS[source.dialect]
    if listed and name in catalog.hidden:
        reason = "is hidden by one of the database's own"
    elif listed or catalog.function(name) is not None:
        reason = "is not known with these arguments"
    else:
        reason = "is not known to be free of side effects"
    shown = f"the function {name}" if name else "the function"
    hint = instead_of_call(name)
    return source.refusal("unknown_function", node, f"{shown} {reason}", hint)


def _called(node: exp.Expr, source: Source) -> str:
    """The name of a call; "" for an operator, a form with a syntax of its own, or no call."""
    call = isinstance(node, exp.Func | exp.Anonymous | exp.Binary)
    return written_name(node, source) if call else ""


def _may_call(name: str, node: exp.Expr, catalog: Catalog) -> bool:
    """Whether the call is on our list, or the owner's and stands in the tree as it was written."""
    declared = catalog.function(name)
    if declared is not None:
        return (
            isinstance(node, exp.Anonymous)
            and isinstance(node.this, str)
            and len(node.expressions) == len(declared.takes)
            and not any(isinstance(one, exp.Distinct | exp.Star) for one in node.expressions)
        )
    arguments = FUNCTIONS[catalog.dialect].get(name)
    if arguments is None or name in catalog.hidden:
        return False
    values = [value for value in node.args.values() if isinstance(value, list | exp.Expr)]
    given = sum(len(value) if isinstance(value, list) else 1 for value in values)
    return arguments[0] <= given <= arguments[1]


def _set_arguments(node: exp.Expr) -> set[str]:
    return {name for name, value in node.args.items() if value not in (None, False, [])}


def _check_union(node: exp.Union, source: Source) -> None:
    if node.args.get("distinct") or _set_arguments(node) - _UNION:
        raise source.refusal("set_operation", node, hint=instead_of(node))


def _check_arguments(
    node: exp.Expr, source: Source, nodes: Mapping[type[exp.Expr], frozenset[str]]
) -> None:
    allowed = nodes.get(type(node))
    if allowed is None:
        return
    for name, value in node.args.items():
        if value is None or value is False or value == [] or name in allowed:
            continue
        code = _REFUSED_ARGUMENTS.get((type(node), name), "unsupported")
        part = value[0] if isinstance(value, list) else value
        hint = instead_of_join(node) if isinstance(node, exp.Join) else None
        raise source.refusal(code, part if isinstance(part, exp.Expr) else node, hint=hint)


def _check_form(node: exp.Expr, source: Source) -> None:
    match node:
        case exp.Join():
            _check_join(node, source)
        case exp.Table() if not isinstance(node.this, exp.Identifier):
            raise source.refusal("table_form", node)
        case exp.TryCast() if not dialect_named(source.dialect).try_cast:
            title = dialect_named(source.dialect).title
            raise source.refusal("unknown_function", node, f"there is no TRY_CAST in {title}")
        case exp.Cast() if not known_type(node.to):
            raise source.refusal("unsupported", node, "a cast to this type is not understood")
        case exp.Cast() if is_invalid(node):
            message = f"the text cannot be read as {node.to.sql(source.dialect)}"
            raise source.refusal("bad_literal", node.this, message)
        case exp.TimestampTrunc() | exp.DateDiff() if node.args.get("unit") and not (
            _names_its_unit(node, source)
        ):
            raise source.refusal("unsupported", node, "the unit must be written as a text")
        case exp.AtTimeZone() if not _is_utc(node.args.get("zone"), source):
            raise source.refusal("unsupported", node, hint=instead_of(node))
        case exp.In() if not (node.expressions or node.args.get("query")):
            raise source.refusal("syntax_error", node)
        case exp.Tuple() if not node.expressions:
            raise source.refusal("syntax_error", node)
        case exp.Any() if not _is_literal_array(node.this.unnest()):
            raise source.refusal("subquery", node, hint=instead_of(node))
        case exp.Array() if not isinstance(node.parent, exp.Any | exp.Paren):
            raise source.refusal("unsupported", node)
        case exp.Is() if not isinstance(node.expression, (exp.Null, exp.Boolean)):
            raise source.refusal("unsupported", node)
        case exp.Var() if not isinstance(
            node.parent,
            (exp.Interval, exp.Extract, exp.TimestampTrunc, exp.DateDiff),
        ):
            raise source.refusal("unsupported", node)
    if isinstance(node, CONDITIONS):
        _check_condition(node, source)


def _is_utc(zone: exp.Expr | None, source: Source) -> bool:
    known = dialect_named(source.dialect).has_moments_of_tools
    text = zone.this.lower() if isinstance(zone, exp.Literal) and zone.is_string else ""
    return known and text in _ZONES


def _check_condition(node: exp.Expr, source: Source) -> None:
    """Refuse sides of different widths, and a condition as a side, whose end dialects differ on."""
    rows = [part.unnest() for part in node.iter_expressions()]
    widths = {len(row.expressions) if isinstance(row, exp.Tuple) else 1 for row in rows}
    if len(widths) > 1 and not node.args.get("query"):
        raise source.refusal("wrong_columns", node)
    for part in node.iter_expressions():
        kinds = (type(node), type(part))
        escapes = exp.Escape in kinds and (exp.Like in kinds or exp.ILike in kinds)
        if not escapes and isinstance(part, (*CONDITIONS, exp.Not, exp.And, exp.Or)):
            raise source.refusal("ambiguous_condition", node)


def known_type(target: exp.DataType) -> bool:
    """Whether a cast may name this type."""
    return target.this in _CAST_TYPES and (
        not target.expressions or target.this in _TYPES_WITH_PARAMETERS
    )


def _names_its_unit(node: exp.Expr, source: Source) -> bool:
    """Whether the first argument is a text: the tree takes a column of that name for the unit."""
    end = node.meta.get("end")
    after = [token for token in source.tokens if end is not None and token.start > end]
    return len(after) > 1 and after[1].token_type is TokenType.STRING


def _is_literal_array(node: exp.Expr) -> bool:
    """Whether it is ARRAY[1, 2]: PostgreSQL prints IN (1, 2) as = ANY (ARRAY[1, 2]) in views."""
    return isinstance(node, exp.Array) and all(map(is_literal, node.expressions))


def _check_join(join: exp.Join, source: Source) -> None:
    kind, method = join.args.get("kind"), join.args.get("method")
    side = join.args.get("side")
    if kind == "OUTER" and not side:
        raise source.refusal("outer_join", join)
    if side in ("LEFT", "RIGHT", "FULL") and kind in (None, "", "OUTER"):
        kind = "INNER"
    elif side:
        raise source.refusal("join_form", join, hint=instead_of_join(join))
    if kind not in (None, "", "INNER", "CROSS") or method not in (None, "", "NATURAL"):
        raise source.refusal("join_form", join, hint=instead_of_join(join))
    conditions = sum(map(bool, (join.args.get("on"), join.args.get("using"), method)))
    if conditions > 1 or (kind == "CROSS" and conditions):
        raise source.refusal("join_form", join, "a join has one condition: ON, USING or NATURAL")
    if conditions == 0 and kind != "CROSS":
        before = source.token_before(source.span(join.this).start)
        if kind == "INNER" or (before is not None and before.text.upper() == "JOIN"):
            raise source.refusal(
                "join_form", join, "the join has no condition", "write ON …, or CROSS JOIN"
            )
