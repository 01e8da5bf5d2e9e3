"""One aggregate of the text -> the counts and sums that are released for it, and what they make.

Counts and sums have a bounded sensitivity; an average is made of both above the cut.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sqlrs.compiler.source import Source
from sqlrs.records import dataclass
from sqlrs.trees.copies import copied

_NESTED = "an aggregate cannot stand inside another one"
_FORM = "this form of the aggregate is not answered"
_DISTINCT = "sums and averages of distinct values are not answered"
_DISTINCT_HINT = "leave DISTINCT out, or use count(DISTINCT column)"
_UNBOUNDED = (
    "min, max, median, stddev, string_agg and their like are not answered with differential "
    "privacy here: one row can change them by any amount"
)
_UNBOUNDED_HINT = "use count, sum or avg; count the rows above a threshold in place of max"
# What a parser keeps as a call of any function: aggregates all the same, and no key.
_NAMES = frozenset(
    """
    arbitrary arg_max_null arg_min_null array_agg bit_and bit_or bit_xor bitstring_agg bool_and
    bool_or every favg first fsum geomean geometric_mean histogram json_agg json_object_agg
    jsonb_agg jsonb_object_agg kahan_sum kurtosis kurtosis_pop last list mad max_by min_by mode
    percentile_cont percentile_disc product quantile_cont quantile_disc range_agg regr_avgx
    regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
    reservoir_quantile sem skewness sumkahan xmlagg
    """.split()  # noqa: SIM905
)
_CONDITIONS = (exp.Predicate, exp.And, exp.Or, exp.Not)


@dataclass(frozen=True, eq=False)
class Split:
    """The aggregates to release: count(…) or sum(…), perhaps with FILTER.

    One stands for itself; two are the sum and the count of an average.
    """

    released: tuple[exp.Expr, ...]

    def above(self, columns: Sequence[exp.Expr]) -> exp.Expr:
        """What the aggregate is above the cut; ``columns`` hold what was released."""
        if len(columns) == 1:
            return copied(columns[0])
        return average(columns[0], columns[1])


def average(total: exp.Expr, number: exp.Expr) -> exp.Expr:
    """The average from a noisy sum and count: NULL unless the count is positive."""
    quotient = exp.Div(this=exp.cast(total.copy(), "double"), expression=number.copy())
    positive = exp.GT(this=number.copy(), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=positive, true=quotient)])


def averaged(tree: exp.Expr) -> tuple[exp.Column, exp.Column] | None:
    """The sum and the count of a tree that ``average`` made of columns, else None."""
    if isinstance(tree, exp.Case) and len(tree.args["ifs"]) == 1:
        quotient = tree.args["ifs"][0].args["true"]
        if isinstance(quotient, exp.Div) and isinstance(quotient.this, exp.Cast):
            total, number = quotient.this.this, quotient.expression
            if isinstance(total, exp.Column) and isinstance(number, exp.Column):
                return (total, number) if tree == average(total, number) else None
    return None


def is_aggregate(node: exp.Expr) -> bool:
    """Whether the node is an aggregate with all that belongs to it, answered or not."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in _NAMES
    kinds = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls, exp.AggFunc)
    return isinstance(node, kinds)


def split_aggregate(tree: exp.Expr, source: Source) -> Split:
    """The parts of one aggregate, or a refusal."""
    call, where = tree, None
    if isinstance(tree, exp.Filter):
        call, condition = tree.this, tree.expression
        where = condition.this if isinstance(condition, exp.Where) else condition
    if not isinstance(call, exp.Count | exp.CountIf | exp.Sum | exp.Avg):
        raise source.refusal("aggregate", tree, _UNBOUNDED, _UNBOUNDED_HINT)
    inside = [part for part in (call.this, where) if part is not None]
    if any(is_aggregate(node) for part in inside for node in part.walk()):
        raise source.refusal("aggregate", tree, _NESTED)
    value = call.this
    further = {name for name, arg in call.args.items() if arg} - {"this", "big_int"}
    if value is None or further or isinstance(value, exp.Order | exp.Limit):
        raise source.refusal("aggregate", tree, _FORM)
    if isinstance(value, exp.Distinct):
        if isinstance(call, exp.Count):
            return Split((_filtered(copied(call), where),))
        raise source.refusal("aggregate", tree, _DISTINCT, _DISTINCT_HINT)
    match call:
        case exp.Count():
            return Split((_count(value, where),))
        case exp.CountIf():
            return Split((_filtered(_rows(), where, value),))
        case exp.Sum():
            return Split((_sum(value, where),))
    return Split((_sum(value, where), _count(value, where)))


def _count(value: exp.Expr, where: exp.Expr | None) -> exp.Expr:
    """count(value), as a count of rows where only a condition decides what is counted."""
    if isinstance(value, exp.Star) or _never_null(value):
        return _filtered(_rows(), where)
    chosen = _chosen(value)
    if chosen is not None:
        condition, one, other = chosen
        if _never_null(one) and _never_null(other):
            return _filtered(_rows(), where)
        if _never_null(one) and isinstance(other, exp.Null):
            return _filtered(_rows(), where, condition)
    return _filtered(exp.Count(this=value.copy(), big_int=True), where)


def _sum(value: exp.Expr, where: exp.Expr | None) -> exp.Expr:
    """sum(value), as a count where it adds up ones."""
    if _is_number(value, "1"):
        return _filtered(_rows(), where)
    value = value.unnest()
    if isinstance(value, exp.Cast) and value.to.this in exp.DataType.INTEGER_TYPES:
        condition = value.this.unnest()
        if isinstance(condition, _CONDITIONS) and not isinstance(value, exp.TryCast):
            return _filtered(_rows(), where, condition)
    chosen = _chosen(value)
    if chosen is not None:
        condition, one, other = chosen
        if _is_number(one, "1") and (_is_number(other, "0") or isinstance(other, exp.Null)):
            return _filtered(_rows(), where, condition)
    return _filtered(exp.Sum(this=value.copy()), where)


def _chosen(value: exp.Expr) -> tuple[exp.Expr, exp.Expr, exp.Expr] | None:
    """The condition and both values of a CASE with one WHEN, or of an IF."""
    value = value.unnest()
    if isinstance(value, exp.Case) and len(value.args["ifs"]) == 1:
        [branch], compared = value.args["ifs"], value.this
        other = value.args.get("default")
        condition = branch.this
        if compared is not None:
            condition = exp.EQ(this=exp.paren(compared.copy()), expression=exp.paren(condition))
    elif isinstance(value, exp.If):
        branch, other, condition = value, value.args.get("false"), value.this
    else:
        return None
    found = other.unnest() if other is not None else exp.Null()
    return condition, branch.args["true"].unnest(), found


def _filtered(call: exp.Expr, *conditions: exp.Expr | None) -> exp.Expr:
    """The aggregate over the rows that satisfy all conditions."""
    given = [condition for condition in conditions if condition is not None]
    if not given:
        return call
    whole = exp.and_(*given, copy=True) if len(given) > 1 else given[0].copy()
    return exp.Filter(this=call, expression=exp.Where(this=whole))


def _rows() -> exp.Expr:
    return exp.Count(this=exp.Star(), big_int=True)


def _never_null(value: exp.Expr) -> bool:
    return isinstance(value.unnest(), exp.Literal | exp.Boolean)


def _is_number(value: exp.Expr, number: str) -> bool:
    value = value.unnest()
    return isinstance(value, exp.Literal) and not value.is_string and value.this == number
