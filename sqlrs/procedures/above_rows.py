"""What stands above the cut of an installed statement: PostgreSQL's own SQL over released rows.

HAVING, ORDER BY, LIMIT, averages and arithmetic read the released rows and nothing else, so they
are free: docs/proofs/groups.md. The compiler has looked at every node of them.
"""

from __future__ import annotations

from sqlglot import exp

from sqlrs.compiler.function_parameters import has_parameter
from sqlrs.measures import Aggregation
from sqlrs.procedures.shown_columns import Shown, check_names, more_than_columns, shown_measure
from sqlrs.records import dataclass
from sqlrs.refusals import refusal
from sqlrs.trees.build import number, select_from
from sqlrs.trees.identifiers import column, identifier

_RELEASED = "released_0"


@dataclass(frozen=True, eq=False)
class AboveRows:
    """A statement over the relation of released rows, the relation's columns, its own columns."""

    query: exp.Query
    columns: tuple[tuple[str, Shown], ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, above: exp.Query, aggregation: Aggregation) -> AboveRows:
        """What stands above one GROUP BY; a refusal where a function cannot do it."""
        if not isinstance(above, exp.Select) or above.args.get("with_") or above.is_star:
            raise more_than_columns()
        if has_parameter([above]):
            raise refusal(
                "parameter",
                "a parameter of a function stands in conditions of a join, not in what is done "
                "with the aggregates",
            )
        names = tuple(one.output_name for one in above.expressions)
        check_names(names)
        keys = [(f"k{key}", Shown(f"k{key}", key)) for key in range(aggregation.keys)]
        measures = [
            (f"a{place}", shown_measure(f"a{place}", place, aggregation))
            for place, _ in enumerate(aggregation.columns)
        ]
        return cls(_never_dividing_by_zero(above), (*keys, *measures), names)

    def over_no_rows(self, keys: exp.Select | None) -> exp.Query:
        """The statement over a relation of the same types, from which PostgreSQL reads its own."""
        columns = [
            exp.alias_(
                column(name, "keys")
                if one.is_key
                else exp.cast(exp.Null(), "bigint" if one.counts else "numeric"),
                name,
            )
            for name, one in self.columns
        ]
        rows = exp.Select(expressions=columns)
        if keys is not None:
            rows.set("from_", exp.From(this=_inner(keys, "keys")))
        return self.query.with_(_RELEASED, as_=rows, copy=True)


def types_of(keys: exp.Select | None) -> exp.Select:
    """One row: the names of the types of all keys, as an array."""
    names = [] if keys is None else [one.output_name for one in keys.expressions]
    kinds: list[exp.Expr] = [
        exp.cast(exp.Anonymous(this="pg_typeof", expressions=[column(name, "keys")]), "text")
        for name in names
    ]
    array = exp.cast(exp.Array(expressions=kinds), "text[]", dialect="postgres")
    if keys is None:
        return exp.Select(expressions=[array])
    none = keys.copy()
    none.set("limit", exp.Limit(expression=number(0)))
    one = exp.Select(expressions=[exp.alias_(number(1), "one")])
    select = select_from(_inner(one, "one"), array)
    select.append("joins", exp.Join(this=_inner(none, "keys"), side="LEFT", on=exp.true()))
    return select


def _inner(rows: exp.Select, name: str) -> exp.Subquery:
    return exp.Subquery(this=rows.copy(), alias=exp.TableAlias(this=identifier(name)))


def _never_dividing_by_zero(above: exp.Query) -> exp.Query:
    """A noisy count may be 0: one such group must not take the whole answer away."""

    found = above.copy()
    for node in list(found.find_all(exp.Div, exp.IntDiv, exp.Mod)):
        divisor = exp.Nullif(this=node.expression.unnest().copy(), expression=number(0))
        node.set("expression", divisor)
    return found
