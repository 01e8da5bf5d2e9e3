"""Spark's SQL."""

from __future__ import annotations

from sqlglot import exp

from sqlrs.dialects.base import Dialect
from sqlrs.dialects.spark_text import WRITTEN, spark_text, spark_tree

_OF_DATES = (exp.Year, exp.Month, exp.Day, exp.DayOfWeek, exp.DayOfYear, exp.DateDiff)


class Spark(Dialect):
    """Names differ by letters only; no word tells it to evaluate an expression once.

    All of it holds in ANSI mode, under the settings that engines/spark_session.py fixes.
    """

    name = "spark"
    title = "Spark"
    # Not CHAR and VARCHAR: the parser drops their lengths. Not TIMESTAMP_LTZ: it says TIMESTAMP.
    type_words = frozenset(
        """
        tinyint byte smallint short int integer bigint long float real double decimal dec numeric
        string boolean date timestamp timestamp_ntz
        """.split()  # noqa: SIM905
    )
    symbols = frozenset({"==", "<=>"})
    common_columns_first = True
    materialised = False
    texts_name_the_moment = True
    nulls_equal_in_rows = True
    # Its to_char has words of its own.
    has_moments_of_tools = False
    judges_conditions = True
    runs_above = True
    # Every exchange takes its time, however few rows it has, and bounds need dozens: an estimate.
    quick_rows = 50_000_000.0
    # Equal steps are exchanged once, and what begins from them reads no table.
    most_chained = 16

    def as_read(self, tree: exp.Expr) -> exp.Expr:
        """In ANSI mode CAST fails where TRY_CAST gives NULL; the parser takes both for the latter.

        It marks the word TRY_CAST as safe. It also wraps what functions of dates are called with.
        """
        for wrapped in list(tree.find_all(exp.TsOrDsToDate)):
            if isinstance(wrapped.parent, _OF_DATES) and "start" not in wrapped.meta:
                wrapped.replace(wrapped.this)
        for node in list(tree.find_all(exp.TryCast)):
            given = {name for name, value in node.args.items() if value is not None}
            if given == {"this", "to"}:
                node.replace(_moved(node, exp.Cast(this=node.this, to=node.args["to"])))
        for total in tree.find_all(exp.Sum):
            total.meta[WRITTEN] = True
        return tree

    def written(self, tree: exp.Expr, *, pretty: bool = False) -> str:
        """The text, with what Spark writes in another way."""
        return spark_text(spark_tree(tree), pretty=pretty)


def _moved(old: exp.Expr, new: exp.Expr) -> exp.Expr:
    new.meta.update(old.meta)
    return new
