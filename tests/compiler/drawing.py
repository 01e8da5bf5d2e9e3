"""A compiled query as one line of text, for the fixtures."""

from __future__ import annotations

from sqlglot import exp

from sqlrs.compiler.simplify import Contradiction
from sqlrs.query import Query


def drawn(query: Query | Contradiction, dialect: str) -> str:
    """The atoms with their filters, then the predicates, then the output."""
    if isinstance(query, Contradiction):
        return f"never: {query.reason}"
    parts = []
    for atom in query.atoms:
        terms = ", ".join(f"{column}: {term}" for column, term in atom.terms)
        filters = "".join(f" [{_sql(f.condition, dialect)}]" for f in atom.filters)
        parts.append(f"{atom.alias} = {atom.table.label}({terms}){filters}")
    text = " ⋈ ".join(parts)
    predicates = [str(p) for p in (*query.inequalities, *query.comparisons)]
    for general in query.generals:
        named = ", ".join(f"v{i}: {v}" for i, v in enumerate(general.arguments))
        predicates.append(f"{_sql(general.condition, dialect)} ({named})")
    text += "".join(f" ∧ {p}" for p in sorted(predicates))
    if query.distinct is not None:
        text += f" → {{{', '.join(sorted(map(str, query.distinct)))}}}"
    return text


def _sql(condition: object, dialect: str) -> str:
    assert isinstance(condition, exp.Expr)
    return condition.sql(dialect)
