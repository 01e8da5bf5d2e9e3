"""PostgreSQL's SQL."""

from __future__ import annotations

from sqlglot import exp

from sqlrs.dialects.base import COMMON_TYPES, Dialect


class Postgres(Dialect):
    """Quoted names keep their case; an OFFSET keeps joins in their order."""

    name = "postgres"
    title = "PostgreSQL"
    type_words = COMMON_TYPES
    keeps_case = True
    common_columns_first = True
    uses_indexes = True
    symbols = frozenset({"~"})
    try_cast = False
    texts_name_the_moment = True
    converts_each_row = False
    texts_take_on_types = True
    exact_powers = True
    views_have_rights = True
    read_by_clients = True
    holds_functions = True
    names_calls = True
    hashes_large_tables = True
    regroups = True
    whole_columns = 200_000

    def type_of(self, value: exp.Expr) -> exp.Expression:
        """Its own function returns a name that is no text."""
        return exp.cast(exp.Anonymous(this="pg_typeof", expressions=[value.copy()]), "text")

    def whole_number_type(self) -> exp.DataType:
        """As many digits as it takes."""
        return exp.DataType(this=exp.DataType.Type.DECIMAL)

    def keeps_order(self, *, tables_only: bool, values_alike: bool) -> bool:
        """Tables are joined in parallel, which a fixed order prevents: only where steps are."""
        return not tables_only

    def evaluated_first(self, select: exp.Select) -> exp.Select:
        """A subquery with an OFFSET is never merged with the joins outside."""
        select.set("offset", exp.Offset(expression=exp.Literal.number("0")))
        return select
