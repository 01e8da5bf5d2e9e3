"""Group keys and their domains as texts, for the ledger and for explanations."""

from __future__ import annotations

from typing import cast

from sqlglot import exp

from sqlrs.measures import KeyDomain
from sqlrs.planning.by_group import by_group
from sqlrs.query import Constant, Query, Term
from sqlrs.residuals.residual import Reading, Residuals
from sqlrs.sql.grouped import grouped_totals
from sqlrs.sql.plain import plain
from sqlrs.trees.constants import literal


def domain_text(domain: KeyDomain, dialect: str) -> str:
    """The statement that a domain is."""
    return f"({cast(exp.Expr, domain.select).sql(dialect=dialect)})"


def key_text(key: Term | None, query: Query, dialect: str) -> str:
    """Where a key stands in its query."""
    if key is None:
        return "NULL"
    if isinstance(key, Constant):
        return literal(key).sql(dialect=dialect)
    for atom in query.atoms:
        for name, term in atom.terms:
            if term == key:
                computed = atom.table.column(name).computed
                shown = cast(exp.Expr, computed).sql(dialect=dialect) if computed else name
                return f"{atom.alias}.{shown}" if not computed else f"{atom.alias}: {shown}"
    raise ValueError(f"no atom holds {key}")


def query_text(query: Query, dialect: str) -> str:
    """The query itself, as one statement."""
    whole = Residuals(query, Reading()).of(query.everything)
    if whole.weighted and whole.output is not None:
        # The plain form of distinct outputs has no weights.
        plan = by_group(whole, (), how="plain")
        return grouped_totals(plan, (), (), dialect).sql(dialect=dialect, copy=False)
    return plain(whole).sql(dialect=dialect, copy=False)
