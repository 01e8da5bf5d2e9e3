"""Public groups: the rows of their domains, and what a statement says of all of them at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from sqlglot import exp

from sqlrs.engines.base import Row, Snapshot, integer_rows, integers
from sqlrs.measures import KeyDomain, Ordinals
from sqlrs.measuring.evaluate import Evaluator
from sqlrs.planning.by_group import by_group
from sqlrs.planning.key_joins import joins_by_keys
from sqlrs.query import Term, Variable
from sqlrs.residuals.residual import Members, Reading, Residual, Residuals
from sqlrs.sql.grouped import (
    domain_rows,
    domain_sizes,
    grouped_largest,
    grouped_side_by_side,
    grouped_totals,
)
from sqlrs.sql.side_by_side import SideBySide
from sqlrs.trees.kept import Kept
from sqlrs.values import behave_alike


def read_domain(
    snapshot: Snapshot, domain: KeyDomain, most: int, kept: Kept | None = None
) -> tuple[Row, ...]:
    """The rows with the ordinals 0, 1, 2, …; more than ``most`` say that there are too many."""
    kept = Kept() if kept is None else kept
    statement = kept.of((domain,), lambda: domain_rows(domain, most + 1), detail=most)
    return tuple(snapshot.rows(statement))


def can_measure_by_group(
    residuals: Residuals, wanted: Iterable[Members], keys: Sequence[Term | None] = ()
) -> bool:
    """Whether every T_E can be measured on the rows of each group; the query alone decides.

    Not where a part that only data can tell ranges over external variables. With ``keys``, also
    not where such a part has a private atom and lacks one of their variables, and not where an
    engine may group equal values of a key apart.
    """
    variables = _variables(keys)
    if keys and not variables:
        return False
    return all(behave_alike([v.type]) for v in variables) and all(
        not part.external
        and (variables <= part.variables or part.members.isdisjoint(residuals.query.private))
        for part in residuals.undecided(wanted)
    )


@dataclass(frozen=True)
class NumberedGroups:
    """The groups of some keys, each of which belongs to one domain."""

    keys: tuple[Term | None, ...]
    domains: tuple[KeyDomain, ...]

    def __post_init__(self) -> None:
        if sorted(k for domain in self.domains for k in domain.keys) != [*range(len(self.keys))]:
            raise ValueError("each key belongs to one domain")

    @property
    def variables(self) -> frozenset[Variable]:
        """The variables of the keys."""
        return _variables(self.keys)

    def all(self, evaluator: Evaluator) -> list[Ordinals]:
        """Every group there is, with rows in it or without."""
        if not self.domains:
            return [()]
        sizes = integers(evaluator.snapshot.rows(domain_sizes(self.domains)))
        return list(product(*map(range, sizes)))

    def divide(self, part: Residual) -> bool:
        """Whether the rows of a part belong to one group each."""
        return bool(self.variables) and self.variables <= part.variables

    def totals(self, whole: Residual, evaluator: Evaluator) -> dict[Ordinals, int]:
        """The value of a whole query in each group in which it is not 0."""
        how, statistics = evaluator.how, None
        if how == "auto" and joins_by_keys(whole.query.atoms):
            # An engine's own plan of such a join is as good as any.
            how = "plain"
        else:
            statistics = evaluator.statistics

        def written() -> exp.Select:
            plan = by_group(whole, self.variables, statistics, how=how)
            return grouped_totals(plan, self.keys, self.domains, evaluator.dialect)

        if statistics is not None:
            # Other sizes may have another plan.
            return _numbers(written(), evaluator)
        about = (whole, self.keys, *self.domains)
        return _numbers(evaluator.kept.of(about, written, detail=how), evaluator)

    def totals_side_by_side(
        self, sides: SideBySide, evaluator: Evaluator
    ) -> list[dict[Ordinals, int]]:
        """The same for each of several queries, by one statement."""

        def written() -> exp.Select:
            whole = Residuals(sides.query, Reading()).of(sides.query.everything)
            return grouped_side_by_side(sides, whole, self.keys, self.domains, evaluator.dialect)

        statement = evaluator.kept.of((sides, self.keys, *self.domains), written)
        rows = integer_rows(evaluator.snapshot.rows(statement))
        size = len(self.domains)
        return [
            {tuple(row[:size]): row[size + place] for row in rows if row[size + place] != 0}
            for place in range(len(sides.weights))
        ]

    def largest(self, part: Residual, evaluator: Evaluator) -> dict[Ordinals, int]:
        """T_E of a part on the rows of each group in which it is not 0."""
        plan = by_group(part, self.variables, evaluator.statistics, how=evaluator.how)
        return _numbers(
            grouped_largest(plan, self.keys, self.domains, evaluator.dialect), evaluator
        )


def _numbers(statement: exp.Select, evaluator: Evaluator) -> dict[Ordinals, int]:
    rows = integer_rows(evaluator.snapshot.rows(statement))
    return {tuple(ordinals): number for *ordinals, number in rows if number != 0}


def _variables(keys: Iterable[Term | None]) -> frozenset[Variable]:
    return frozenset(key for key in keys if isinstance(key, Variable))
