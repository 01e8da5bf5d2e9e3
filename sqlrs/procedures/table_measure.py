"""A statement's numbers of all groups -> one value of PostgreSQL: rows of keys and true numbers.

The value is a JSON array of [[keys as texts], [numbers]], in the order of the groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from sqlglot import exp

from sqlrs.measures import Aggregation, Asked, Measure
from sqlrs.mechanisms.vector_base import Summand
from sqlrs.planning.by_group import by_group
from sqlrs.query import Variable
from sqlrs.sql.grouped import domain_sizes, grouped_totals
from sqlrs.sql.locating import numbered_domain
from sqlrs.trees.build import number
from sqlrs.trees.identifiers import column, identifier

_DIALECT = "postgres"


def measured_rows(
    aggregation: Aggregation,
    found: Mapping[Asked, tuple[Summand, ...]],
    plan: str,
    *,
    with_ordinals: bool = False,
) -> exp.Select:
    """The statement of all true numbers; private. ``with_ordinals``: rows have those of the group.

    The ordinals come third, as an array.
    """
    ordinals = [f"o{place}" for place, _ in enumerate(aggregation.domains)]
    terms = [(m, s) for m in aggregation.measures for s in found[aggregation.domains, m]]
    totals = [_totals(summand, aggregation, plan) for _, summand in terms]
    sums = [_sum(measure, terms) for measure in aggregation.measures]
    parts: list[exp.Expr] = [column("keys", "g"), array_of(sums)]
    if with_ordinals:
        parts.append(array_of([column(name, "g") for name in ordinals]))
    row = array_of(parts)
    order = [exp.Ordered(this=column(name, "g"), nulls_first=False) for name in ordinals]
    listed = exp.Order(this=row, expressions=order) if order else row
    select = exp.Select(expressions=[all_of(listed)])
    select.set("from_", exp.From(this=_named(_groups(aggregation), "g")))
    for place, total in enumerate(totals):
        name = f"t{place}"
        same: list[exp.Expression] = [
            exp.EQ(this=column(o, name), expression=column(o, "g")) for o in ordinals
        ]
        on = reduce(lambda a, b: exp.And(this=a, expression=b), same) if same else exp.true()
        joined = _named(total, name, [*ordinals, "n"])
        select.append("joins", exp.Join(this=joined, side="LEFT", on=on))
    return select


def key_columns(aggregation: Aggregation) -> exp.Select | None:
    """The keys of all groups, each in its own type; None without keys."""
    if not aggregation.domains:
        return None
    select = exp.Select(expressions=[column(f"k{k}", f"d{p}") for k, p in _keys(aggregation)])
    return _over_domains(select, aggregation)


def number_of_groups(aggregation: Aggregation) -> exp.Select:
    """How many groups there are."""
    if not aggregation.domains:
        return exp.select(number(1))
    sizes: list[exp.Expression] = [
        exp.cast(column(f"size_{place}", "s"), "numeric")
        for place, _ in enumerate(aggregation.domains)
    ]
    product = reduce(lambda a, b: exp.Mul(this=a, expression=b), sizes)
    select = exp.Select(expressions=[product])
    select.set("from_", exp.From(this=_named(domain_sizes(aggregation.domains), "s")))
    return select


def _groups(aggregation: Aggregation) -> exp.Select:
    keys = [exp.cast(column(f"k{k}", f"d{p}"), "text") for k, p in _keys(aggregation)]
    select = exp.Select(
        expressions=[
            *(
                exp.alias_(column("ordinal", f"d{place}"), f"o{place}")
                for place, _ in enumerate(aggregation.domains)
            ),
            exp.alias_(array_of(keys), "keys"),
        ]
    )
    return _over_domains(select, aggregation)


def _over_domains(select: exp.Select, aggregation: Aggregation) -> exp.Select:
    for place, domain in enumerate(aggregation.domains):
        rows = _named(numbered_domain(domain), f"d{place}")
        if place == 0:
            select.set("from_", exp.From(this=rows))
        else:
            select.append("joins", exp.Join(this=rows, kind="CROSS"))
    return select


def _keys(aggregation: Aggregation) -> list[tuple[int, int]]:
    """Each key in order, and the place of its domain."""
    return sorted((k, p) for p, domain in enumerate(aggregation.domains) for k in domain.keys)


def _totals(summand: Summand, aggregation: Aggregation, plan: str) -> exp.Select:
    keys = summand.signed.keys
    whole = summand.residuals.of(summand.residuals.query.everything)
    variables = frozenset(key for key in keys if isinstance(key, Variable))
    planned = by_group(whole, variables, None, how=plan)
    return grouped_totals(planned, keys, aggregation.domains, _DIALECT)


def _sum(measure: Measure, terms: Sequence[tuple[Measure, Summand]]) -> exp.Expression:
    parts: list[exp.Expression] = [exp.cast(number(0), "numeric")]
    for place, (other, summand) in enumerate(terms):
        if other == measure:
            value = exp.Coalesce(this=column("n", f"t{place}"), expressions=[number(0)])
            factor = exp.cast(exp.Literal.string(str(summand.signed.coefficient)), "numeric")
            parts.append(exp.Mul(this=factor, expression=value))
    return reduce(lambda a, b: exp.Add(this=a, expression=b), parts)


def all_of(row: exp.Expr) -> exp.Expression:
    """All rows as one array."""
    rows = exp.Anonymous(this="jsonb_agg", expressions=[row])
    nothing = exp.cast(exp.Literal.string("[]"), "jsonb")
    return exp.Coalesce(this=rows, expressions=[nothing])


def array_of(values: Sequence[exp.Expr]) -> exp.Anonymous:
    """Some values as one array."""
    return exp.Anonymous(this="jsonb_build_array", expressions=list(values))


def _named(rows: exp.Select, name: str, columns: Sequence[str] = ()) -> exp.Subquery:
    alias = exp.TableAlias(this=identifier(name), columns=[identifier(c) for c in columns])
    return exp.Subquery(this=rows, alias=alias)
