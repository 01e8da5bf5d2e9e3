"""Which nodes of a tree may stand above the cuts, their arguments, and what is said of others."""

from __future__ import annotations

from sqlglot import exp

_BINARY = frozenset({"this", "expression"})
_UNARY = frozenset({"this"})
NODES: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset(
        [
            "with_",
            "expressions",
            "distinct",
            "from_",
            "joins",
            "where",
            "group",
            "having",
            "order",
            "limit",
            "offset",
        ]
    ),
    exp.Union: frozenset(["with_", "this", "expression", "distinct", "order", "limit", "offset"]),
    exp.Subquery: frozenset({"this", "alias"}),
    exp.With: frozenset({"expressions"}),
    exp.CTE: frozenset({"this", "alias", "materialized"}),
    exp.From: _UNARY,
    exp.Join: frozenset({"this", "on", "using", "kind", "side"}),
    exp.Where: _UNARY,
    exp.Group: frozenset({"expressions"}),
    exp.Having: _UNARY,
    exp.Order: frozenset({"expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Limit: frozenset({"expression"}),
    exp.Offset: frozenset({"expression"}),
    exp.Fetch: frozenset({"direction", "count", "limit_options"}),
    exp.LimitOptions: frozenset({"rows"}),
    exp.Table: frozenset({"this", "alias"}),
    exp.TableAlias: frozenset({"this", "columns"}),
    exp.Alias: frozenset({"this", "alias"}),
    exp.Column: frozenset({"this", "table"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Star: frozenset(),
    exp.Distinct: frozenset({"expressions"}),
    exp.Exists: _UNARY,
    # Aggregates and window functions over released rows.
    exp.Count: frozenset({"this", "big_int"}),
    exp.CountIf: _UNARY,
    exp.Sum: _UNARY,
    exp.Avg: _UNARY,
    exp.Min: _UNARY,
    exp.Max: _UNARY,
    exp.Filter: _BINARY,
    exp.Window: frozenset({"this", "partition_by", "order", "over", "spec"}),
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side"}),
    exp.RowNumber: frozenset(),
    exp.Rank: frozenset(),
    exp.DenseRank: frozenset(),
    exp.Lag: frozenset({"this", "offset", "default"}),
    exp.Lead: frozenset({"this", "offset", "default"}),
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
    exp.DataType: frozenset({"this", "expressions", "nested"}),
    exp.DataTypeParam: _UNARY,
}
# Nodes of the list above that are written as calls.
CALLS = frozenset(
    """
    count count_if countif sum avg mean min max row_number rank dense_rank lag lead
    """.split()  # noqa: SIM905
)
WORDS = frozenset(
    """
    asc between by current current_row desc fetch filter first following full group group_by having
    last left limit next nulls offset only order order_by outer over partition partition_by
    preceding range right row rows unbounded union
    """.split()  # noqa: SIM905
)
"""Words of the clauses above the cuts whose meaning is in the kind of the node that they make."""
REFUSED_NODES: dict[type[exp.Expr], str] = {
    exp.SetOperation: "set_operation",
    exp.AggFunc: "aggregate",
    exp.WithinGroup: "aggregate",
    exp.Rollup: "group_by",
    exp.Cube: "group_by",
    exp.GroupingSets: "group_by",
    exp.Lateral: "lateral",
    exp.Values: "table_form",
    exp.Unnest: "table_form",
    exp.Pivot: "table_form",
    exp.Placeholder: "parameter",
    exp.Parameter: "parameter",
    exp.SessionParameter: "parameter",
    exp.Dot: "unsupported_name",
}
REFUSED_ARGUMENTS: dict[tuple[type[exp.Expr], str], str] = {
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
    (exp.Table, "laterals"): "lateral",
    (exp.Group, "rollup"): "group_by",
    (exp.Group, "cube"): "group_by",
    (exp.Group, "grouping_sets"): "group_by",
    (exp.Join, "method"): "join_form",
    (exp.With, "recursive"): "recursive",
    (exp.Distinct, "on"): "distinct",
    (exp.Union, "by_name"): "set_operation",
    (exp.Limit, "expressions"): "limit",
    (exp.LimitOptions, "with_ties"): "limit",
    (exp.LimitOptions, "percent"): "limit",
}
_FORM = "is not computed over released rows"
# What is said of a form that stands above the cuts, where most of its like are answered.
SAID: dict[str, tuple[str, str]] = {
    "window": (
        f"this window {_FORM}",
        "rank, dense_rank, row_number, lag, lead, sum, avg, min, max and count may have an OVER "
        "(…) of their own; filter by them in a query around this one",
    ),
    "aggregate": (
        f"this aggregate {_FORM}",
        "over released rows count, sum, avg, min and max are computed",
    ),
    "group_by": (
        f"this grouping {_FORM}",
        "group by expressions; join several groupings by UNION ALL",
    ),
    "set_operation": (f"this set operation {_FORM}", "use UNION or UNION ALL"),
    "limit": ("the number of rows must be a whole number", "write LIMIT 10 OFFSET 20"),
    "order_by": (
        "this order is not understood",
        "put ORDER BY, LIMIT and OFFSET inside the parentheses or at the end",
    ),
    "join_form": (
        f"this kind of join {_FORM}",
        "use JOIN, LEFT JOIN, RIGHT JOIN or FULL JOIN with ON or USING, CROSS JOIN or a comma",
    ),
    "distinct": (
        f"this form of DISTINCT {_FORM}",
        "use SELECT DISTINCT, or an aggregate of DISTINCT values",
    ),
    "table_form": (
        f"what stands here {_FORM}",
        "name a table, a CTE or (SELECT …) AS alias",
    ),
}
