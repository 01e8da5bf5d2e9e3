"""Which further nodes may stand where all rows belong to one unit, and which aggregates.

Inside one unit nearly all of SQL is answered. What is left out depends on the order of rows, on
chance, or on something that the walk does not follow.
"""

from __future__ import annotations

from sqlglot import exp

from sqlrs.catalog import Catalog, ColumnType, Family
from sqlrs.compiler.grammar import check_grammar
from sqlrs.compiler.growth_of_text import MOST_BYTES, MOST_TIMES, growth
from sqlrs.compiler.source import Source
from sqlrs.compiler.unit_scan import is_whole_value
from sqlrs.effort import spend
from sqlrs.values import values_of

_UNARY = frozenset({"this"})
_SET = frozenset({"with_", "this", "expression", "distinct"})
_RANKS = (exp.Rank, exp.DenseRank)
_QUANTILES = (exp.Median, exp.PercentileCont, exp.PercentileDisc)
AGGREGATES: tuple[type[exp.Expr], ...] = (
    *(exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max),
    *(exp.LogicalAnd, exp.LogicalOr, *_QUANTILES),
)
"""Aggregates whose value does not depend on the order of rows."""
BY_ORDER = (exp.RowNumber, exp.Lag, exp.Lead, exp.FirstValue)
"""Functions of windows whose value depends on the order of all rows."""

NODES: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset(
        {"with_", "expressions", "distinct", "from_", "joins", "where", "group", "having"}
    ),
    exp.Union: _SET,
    exp.Except: _SET,
    exp.Intersect: _SET,
    exp.Join: frozenset({"this", "on", "using", "kind", "method", "side"}),
    exp.Group: frozenset({"expressions"}),
    **dict.fromkeys((exp.GroupingSets, exp.Rollup, exp.Cube), frozenset({"expressions"})),
    exp.Lateral: frozenset({"this", "alias"}),
    exp.Having: _UNARY,
    exp.Filter: frozenset({"this", "expression"}),
    exp.Window: frozenset({"this", "partition_by", "order", "over", "spec"}),
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side"}),
    exp.Order: frozenset({"expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.WithinGroup: frozenset({"this", "expression"}),
    exp.Count: frozenset({"this", "big_int"}),
    **dict.fromkeys(AGGREGATES[1:], frozenset({"this", "expression"})),
    **dict.fromkeys((*_RANKS, exp.RowNumber), frozenset[str]()),
    **dict.fromkeys((exp.Lag, exp.Lead), frozenset({"this", "offset"})),
    exp.FirstValue: _UNARY,
}
_WORDS: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.CountIf: "count_if",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.Median: "median",
    exp.PercentileCont: "percentile_cont",
    exp.PercentileDisc: "percentile_disc",
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
    exp.RowNumber: "row_number",
    exp.Lag: "lag",
    exp.Lead: "lead",
    exp.FirstValue: "first_value",
}
_WHOLE = 2**127
_NODES_PER_STEP = 3
_INEXACT = "the order of the rows decides what this adds up to"
_FORMS = "equal values of this type can look different, so which one is kept is left to chance"


def check_nodes(tree: exp.Expr, source: Source, catalog: Catalog) -> None:
    """Refuse the first node that the walk does not understand."""
    # A query is looked at again for each one around it.
    spend(sum(1 for _ in tree.walk()) // _NODES_PER_STEP)
    check_grammar(tree, source, catalog, further=NODES)
    for node in tree.walk():
        word = _WORDS.get(type(node))
        if word is not None and word in catalog.hidden:
            message = f"the function {word} is hidden by one of the database's own"
            raise source.refusal("unknown_function", node, message)
        match node:
            case exp.Order() if not isinstance(node.parent, exp.Window | exp.WithinGroup):
                raise source.refusal("order_by", node)
            case exp.Window() if node.args.get("over") != "OVER" or not _peers(node.args):
                raise source.refusal("unit_order", node)
            case _ if isinstance(node, (*_RANKS, *BY_ORDER)) and not isinstance(
                node.parent, exp.Window
            ):
                raise source.refusal("window", node, "this function needs OVER (…)")
            case exp.Lag() | exp.Lead() if not _is_number(node.args.get("offset")):
                raise source.refusal("unit_order", node)
            case exp.WithinGroup() if not _is_quantile(node):
                raise source.refusal("unit_order", node)
            case exp.PercentileCont() | exp.PercentileDisc() if not _fraction(node):
                raise source.refusal("unit_order", node)
    _check_growth(tree, source)


def _check_growth(tree: exp.Expr, source: Source) -> None:
    """Bound the texts that are built: one SELECT may build on what another one built."""
    times = 1
    for select in (tree, *tree.find_all(exp.Select)):
        found = growth(select, source)
        times *= max(found.times, 1)
        if times > MOST_TIMES or found.bytes > MOST_BYTES:
            raise source.refusal("text_growth", select)


def check_aggregate(call: exp.Expr, kind: ColumnType | None, source: Source) -> None:
    """Refuse an aggregate whose value may depend on the order of rows, given what it reads."""
    if isinstance(call, exp.Sum | exp.Avg):
        if not is_exact(kind):
            raise source.refusal("unit_order", call, _INEXACT)
        if isinstance(call.this, exp.Distinct) and not is_whole_value(kind):
            raise source.refusal("unit_order", call, _FORMS)
    elif isinstance(call, (exp.Min, exp.Max, exp.WithinGroup, *_QUANTILES)):
        check_kept(kind, call, source)


def check_kept(kind: ColumnType | None, place: exp.Expr, source: Source) -> None:
    """Refuse a value of which one of several equal ones would be shown."""
    if not is_whole_value(kind):
        raise source.refusal("unit_order", place, _FORMS)


def is_exact(kind: ColumnType | None) -> bool:
    """Whether sums of such values lose nothing, in whatever order they are made."""
    if kind is None:
        return False
    if kind.family is Family.INTEGER:
        last = values_of(kind).last
        return last is not None and last < _WHOLE
    return kind.family is Family.DECIMAL


def _peers(window: dict[str, object]) -> bool:
    """Whether the frame holds all rows that are equal in its order, or none of them."""
    spec = window.get("spec")
    if not isinstance(spec, exp.WindowSpec):
        return spec is None
    ends = (spec.args.get("start"), spec.args.get("end"))
    return str(spec.args.get("kind")).upper() == "RANGE" and all(
        end in (None, "UNBOUNDED", "CURRENT ROW") for end in ends
    )


def _is_number(offset: exp.Expr | None) -> bool:
    return offset is None or (isinstance(offset, exp.Literal) and offset.is_int)


def _is_quantile(node: exp.WithinGroup) -> bool:
    order = node.expression
    return (
        isinstance(node.this, exp.PercentileCont | exp.PercentileDisc)
        and isinstance(order, exp.Order)
        and len(order.expressions) == 1
    )


def _fraction(node: exp.Expr) -> bool:
    """Whether the fraction is a number of the text; ordered by itself, it is the only argument."""
    inside = isinstance(node.parent, exp.WithinGroup)
    given = node.this if inside else node.args.get("expression")
    plain = isinstance(given, exp.Literal) and not given.is_string
    return plain and inside == (node.args.get("expression") is None)
