"""Public groups: the rows of their domains, and what a statement says of all of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from itertools import product
from operator import add

from sqlglot import exp

from sqlrs.engines.base import Row, Snapshot, integer_rows, integers, rows_for_good
from sqlrs.engines.far_days import far_days
from sqlrs.errors import StatementFailed
from sqlrs.measures import KeyDomain, Ordinals
from sqlrs.measuring.evaluate import Evaluator
from sqlrs.planning.by_group import ByGroup, by_group, by_keys_alone
from sqlrs.planning.key_joins import joins_by_keys
from sqlrs.planning.lookups_last import lookups_last
from sqlrs.planning.table_statistics import Statistics
from sqlrs.query import Term, Variable
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Members, Reading, Residual, Residuals
from sqlrs.sql.grouped import (
    domain_rows,
    domain_rows_where,
    domain_sizes,
    grouped_largest,
    grouped_side_by_side,
    grouped_totals,
)
from sqlrs.sql.grouped_beside import largest_beside_totals, totals_beside_largest
from sqlrs.sql.known_groups import Known, as_constants
from sqlrs.sql.locating import domain_columns
from sqlrs.sql.side_by_side import SideBySide
from sqlrs.trees.kept import Kept
from sqlrs.values import behave_alike


def read_domain(
    snapshot: Snapshot, domain: KeyDomain, most: int, kept: Kept | None = None
) -> tuple[Row, ...]:
    """The rows with the ordinals 0, 1, 2, …; more than ``most`` say that there are too many."""
    kept = Kept() if kept is None else kept
    statement = kept.of((domain,), lambda: domain_rows(domain, most + 1), detail=most)
    rows = tuple(snapshot.rows(statement))
    beyond = far_days(domain_columns(domain), rows, "domain")
    if beyond and snapshot.scalar(domain_rows_where(domain, beyond)):
        raise StatementFailed("a day of a group key is beyond what Python has a form for")
    return rows


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


class ReadDomains:
    """The rows of domains as the snapshot has them that is measured, each by the very domain."""

    def __init__(self, read: Iterable[tuple[KeyDomain, tuple[Row, ...]]] = ()) -> None:
        self._rows = {id(domain): (domain, rows) for domain, rows in read}

    def of(self, domains: Sequence[KeyDomain]) -> tuple[tuple[Row, ...], ...] | None:
        """The rows of each; None where some were not read."""
        found = [self._rows.get(id(domain)) for domain in domains]
        return tuple(one[1] for one in found if one is not None) if all(found) else None


@dataclass(frozen=True)
class NumberedGroups:
    """The groups of some keys, each of which belongs to one domain.

    ``rows``: those of each domain, where they are known.
    """

    keys: tuple[Term | None, ...]
    domains: tuple[KeyDomain, ...]
    rows: tuple[tuple[Row, ...], ...] | None = field(default=None, compare=False)

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
        if self.rows is not None:
            return list(product(*(range(len(own)) for own in self.rows)))
        sizes = integers(evaluator.snapshot.rows(domain_sizes(self.domains)))
        return list(product(*map(range, sizes)))

    @property
    def known(self) -> Known | None:
        """The rows of the domains, where constants can stand for them."""
        return None if self.rows is None else as_constants(self.keys, self.domains, self.rows)

    def divide(self, part: Residual) -> bool:
        """Whether the rows of a part belong to one group each."""
        return bool(self.variables) and self.variables <= part.variables

    def totals(self, whole: Residual, evaluator: Evaluator) -> dict[Ordinals, int]:
        """The value of a whole query in each group in which it is not 0."""
        how, statistics, known = evaluator.how, None, self.known
        if not self.variables:
            # A key's variable could stand in the row that a lookup finds.
            whole = evaluator.reduced(whole)
        fixed = rows_for_good(evaluator.snapshot)
        if how == "auto" and fixed is None and joins_by_keys(whole.query.atoms):
            # To read sizes would take as long as any plan of such a join could save.
            how = "plain"
        else:
            statistics = evaluator.statistics

        def written() -> exp.Select:
            plan = self._plan(whole, statistics, how)
            return grouped_totals(plan, self.keys, self.domains, evaluator.dialect, known)

        if statistics is not None and fixed is None:
            # Other sizes may have another plan.
            return _numbers(written(), evaluator, add)
        about = (whole, self.keys, fixed, *self.domains)
        return _numbers(evaluator.kept.of(about, written, detail=(how, known)), evaluator, add)

    def _plan(self, whole: Residual, statistics: Statistics | None, how: str) -> ByGroup:
        plan = None
        if how == "auto" and not self.variables:
            plan = by_keys_alone(whole)
        elif how == "auto" and statistics is not None and joins_by_keys(whole.query.atoms):
            plan = lookups_last(whole, self.variables, statistics, self._sizes())
        return plan or by_group(whole, self.variables, statistics, how=how)

    def _sizes(self) -> dict[Variable, int]:
        """How many values of a key are in its domain, where that is known."""
        return {
            key: len(rows)
            for domain, rows in zip(self.domains, self.rows or (), strict=False)
            for key in (self.keys[place] for place in domain.keys)
            if isinstance(key, Variable)
        }

    def totals_side_by_side(
        self, sides: SideBySide, evaluator: Evaluator
    ) -> list[dict[Ordinals, int]]:
        """The same for each of several queries, by one statement."""

        known = self.known

        def written() -> exp.Select:
            whole = Residuals(sides.query, Reading()).of(sides.query.everything)
            return grouped_side_by_side(
                sides, whole, self.keys, self.domains, evaluator.dialect, known
            )

        statement = evaluator.kept.of((sides, self.keys, *self.domains), written, detail=known)
        rows = integer_rows(evaluator.snapshot.rows(statement))
        size = len(self.domains)
        return [
            _by_group(((*row[:size], row[size + place]) for row in rows), add)
            for place in range(len(sides.weights))
        ]

    def totals_beside_largest(
        self, whole: Residual, part: Residual, evaluator: Evaluator
    ) -> tuple[dict[Ordinals, int], int | None] | None:
        """The totals, and T_E of a part that is a step on the way to the whole; else None.

        Where no group has a result, no row says what the part has.
        """
        known = self.known
        if known is None or evaluator.how != "auto":
            return None
        fixed = rows_for_good(evaluator.snapshot)
        if fixed is None and joins_by_keys(whole.query.atoms):
            # As for totals alone, no sizes are read for such a join.
            return None

        def written() -> exp.Select | None:
            return totals_beside_largest(
                self._plan(whole, evaluator.statistics, evaluator.how),
                by_group(part, (), evaluator.statistics, how=evaluator.how),
                self.keys,
                self.domains,
                evaluator.dialect,
                known,
            )

        about = (whole, part, self.keys, fixed, *self.domains)
        statement = (
            written()
            if fixed is None
            else evaluator.kept.of(about, written, detail=("totals", known))
        )
        if statement is None:
            return None
        rows = integer_rows(evaluator.snapshot.rows(statement))
        return _by_group((row[:-1] for row in rows), add), rows[0][-1] if rows else None

    def largest(self, part: Residual, evaluator: Evaluator) -> dict[Ordinals, int]:
        """T_E of a part on the rows of each group in which it is not 0."""
        plan = by_group(part, self.variables, evaluator.statistics, how=evaluator.how)
        return _numbers(
            grouped_largest(plan, self.keys, self.domains, evaluator.dialect, self.known),
            evaluator,
            max,
        )

    def largest_beside_totals(
        self, part: Residual, whole: Residual, evaluator: Evaluator
    ) -> tuple[dict[Ordinals, int], dict[Ordinals, int]] | None:
        """Both by one statement, where the part is a step on the way to the whole; else None."""
        known = self.known
        if known is None or evaluator.how != "auto" or joins_by_keys(whole.query.atoms):
            return None

        def written() -> exp.Select | None:
            return largest_beside_totals(
                self._plan(whole, evaluator.statistics, evaluator.how),
                by_group(part, self.variables, evaluator.statistics, how=evaluator.how),
                self.keys,
                self.domains,
                evaluator.dialect,
                known,
            )

        fixed = rows_for_good(evaluator.snapshot)
        about = (part, whole, self.keys, fixed, *self.domains)
        statement = (
            written()
            if fixed is None
            else evaluator.kept.of(about, written, detail=("beside", known))
        )
        if statement is None:
            return None
        rows = integer_rows(evaluator.snapshot.rows(statement))
        total = [(*row[:-2], row[-1]) for row in rows if row[-2] == 0]
        largest = [(*row[:-2], row[-1]) for row in rows if row[-2] == 1]
        return _by_group(largest, max), _by_group(total, add)


_Together = Callable[[int, int], int]


def _numbers(
    statement: exp.Select, evaluator: Evaluator, together: _Together
) -> dict[Ordinals, int]:
    return _by_group(integer_rows(evaluator.snapshot.rows(statement)), together)


def _by_group(rows: Iterable[Sequence[int]], together: _Together) -> dict[Ordinals, int]:
    """The numbers that are not 0; ``together`` makes one of two that belong to one group."""
    found: dict[Ordinals, int] = {}
    for *ordinals, number in rows:
        group = tuple(ordinals)
        found[group] = together(found[group], number) if group in found else number
    return {group: number for group, number in found.items() if number != 0}


def _variables(keys: Iterable[Term | None]) -> frozenset[Variable]:
    return frozenset(key for key in keys if isinstance(key, Variable))
