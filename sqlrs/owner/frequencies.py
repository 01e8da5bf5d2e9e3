"""SQL trees for the data that elastic and smooth sensitivity read: for the owner, without noise."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from sqlrs.catalog import Table
from sqlrs.sensitivity.elastic import Frequency
from sqlrs.sensitivity.exact_smooth import Star, Triangle
from sqlrs.templates import template
from sqlrs.trees.build import rows_of
from sqlrs.trees.identifiers import column, identifier


def maximum_frequency(frequency: Frequency) -> exp.Select:
    """One value: how often the most frequent value of the column occurs, NULL left out."""
    asked = column(frequency.column)
    return _largest_group(
        frequency.table, asked, exp.not_(exp.Is(this=asked, expression=exp.null()))
    )


def maximum_degree(star: Star) -> exp.Select:
    """One value: the greatest number of leaves of one centre, loops left out."""
    centre, leaf = column(star.centre), column(star.leaf)
    return _largest_group(star.table, centre, exp.NEQ(this=centre, expression=leaf))


def irregular_edges(triangle: Triangle) -> exp.Select:
    """One value: the number of rows that are loops or lack the opposite row.

    Where it is not 0 the table is no undirected simple graph, and `triangle_pairs` means nothing.
    """
    source, target = triangle.source, triangle.target
    opposite = (
        exp.select(exp.Literal.number(1))
        .from_(rows_of(triangle.table, (source, target), "back"))
        .where(column(source, "back").eq(column(target, "forth")))
        .where(column(target, "back").eq(column(source, "forth")))
    )
    loop = column(source, "forth").eq(column(target, "forth"))
    return (
        exp.select(_rows())
        .from_(rows_of(triangle.table, (source, target), "forth"))
        .where(exp.or_(loop, exp.not_(exp.Exists(this=opposite))))
    )


def triangle_pairs(triangle: Triangle) -> exp.Select:
    """Rows (common, reach) for `smooth.Pair`: for each number of common neighbours the best reach.

    Pairs without common neighbours are searched among the nodes of highest degree only;
    docs/sensitivities.md says why that is enough.
    """
    link = exp.select(column(triangle.source).as_("a"), column(triangle.target).as_("b")).from_(
        rows_of(triangle.table, (triangle.source, triangle.target))
    )
    tree = sqlglot.parse_one(template("statistics/triangle_pairs.sql"), dialect="duckdb")
    assert isinstance(tree, exp.Select)
    # The template's own names come after `link`, so they cannot shadow the table that it reads.
    definition = exp.CTE(this=link, alias=exp.TableAlias(this=identifier("link")))
    tree.args["with_"].set("expressions", [definition, *tree.args["with_"].expressions])
    return tree


def _largest_group(table: Table, by: exp.Column, where: exp.Expression) -> exp.Select:
    used = {by.name, *(one.name for one in where.find_all(exp.Column))}
    source = rows_of(table, used)
    groups = exp.select(_rows().as_("size")).from_(source).where(where).group_by(by.copy())
    largest = exp.func("coalesce", exp.Max(this=column("size")), exp.Literal.number(0))
    return exp.select(largest.as_("largest")).from_(groups.subquery("sizes"))


def _rows() -> exp.Count:
    return exp.Count(this=exp.Star())
