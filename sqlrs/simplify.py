"""Query -> an equal query without redundant predicates, or the proof that it is always empty."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sqlrs.query import Query


@dataclass(frozen=True)
class Contradiction:
    """A query that no data can satisfy: its count is 0 on every database."""

    query: Query
    reason: str


def simplify(query: Query) -> Query | Contradiction:
    """The simplest equal query that the predicates show."""
    if any(f.condition == exp.false() for atom in query.atoms for f in atom.filters):
        return Contradiction(query, "a condition is never true")
    return query
