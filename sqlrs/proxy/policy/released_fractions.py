"""Quotients that PostgreSQL and DuckDB read alike: of released numbers, one of them a fraction.

Whole numbers are divided to whole ones by PostgreSQL alone. Where a row of data is divided nothing
is taken for alike: there an error and a NULL are not the same.
"""

from __future__ import annotations

from sqlglot import exp

# There a number by group may be data still, that of one person.
_BELOW = (exp.Where, exp.Join, exp.Group, exp.AggFunc, exp.Filter)
_CARRYING = (exp.Mul, exp.Div, exp.Add, exp.Sub, exp.Paren, exp.Neg, exp.Round, exp.Nullif)


def divides_released_fractions(quotient: exp.Div) -> bool:
    """Whether both sides are made of released numbers, and one is a fraction by its form."""
    place = quotient.parent
    while place is not None and not isinstance(place, exp.Select):
        if isinstance(place, _BELOW) and not isinstance(place.parent, exp.Window):
            return False
        place = place.parent
    if place is None or not any(map(_is_fraction, (quotient.this, quotient.expression))):
        return False
    # A quotient without an aggregate may be what rows are grouped by, under its alias or position.
    return _aggregates(quotient, place) or _reads_released(place)


def _is_fraction(tree: exp.Expr) -> bool:
    if isinstance(tree, exp.Literal):
        return not tree.is_string and "." in tree.this
    if isinstance(tree, exp.Cast):
        return tree.to.this in exp.DataType.REAL_TYPES
    return isinstance(tree, _CARRYING) and any(map(_is_fraction, tree.iter_expressions()))


def _aggregates(tree: exp.Expr, select: exp.Select) -> bool:
    found = tree.find_all(exp.AggFunc)
    return any(one.find_ancestor(exp.Select) is select for one in found)


def _reads_released(select: exp.Select) -> bool:
    """Whether all that stands in its FROM is made of aggregates."""
    items = [select.args.get("from_"), *(select.args.get("joins") or ())]
    return all(item is not None and _is_aggregated(item.this) for item in items)


def _is_aggregated(source: exp.Expr) -> bool:
    found = _common_table(source) if isinstance(source, exp.Table) else source
    inner = found.this if isinstance(found, (exp.Subquery, exp.CTE)) else None
    if not isinstance(inner, exp.Select):
        return False
    grouped = inner.args.get("group") or any(_aggregates(one, inner) for one in inner.selects)
    return bool(grouped) or _reads_released(inner)


def _common_table(table: exp.Table) -> exp.CTE | None:
    """The common table expression that a name means: of the nearest WITH, and not its own."""
    place, own = table.parent, table.find_ancestor(exp.CTE)
    while place is not None:
        for one in place.ctes if isinstance(place, exp.Query) else ():
            if one.alias == table.name and not table.db and one is not own:
                return one
        place = place.parent
    return None
