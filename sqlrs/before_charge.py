"""All that a statement needs before its charge: groups, mechanisms, what stands above, a price.

Public rows alone are read, and whatever can be refused is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from functools import partial
from math import prod
from typing import cast

from sqlglot import exp

from sqlrs.catalog import Catalog
from sqlrs.compiled import CompiledStatement
from sqlrs.compiler.functions import is_declared
from sqlrs.compiler.statement import domain_tables
from sqlrs.dialects import dialect_named
from sqlrs.engines.base import Engine, Row, Snapshot, rows_for_good
from sqlrs.engines.picked_columns import only_picks
from sqlrs.engines.released import ReleasedRelation, get_ready
from sqlrs.epsilon import shared_evenly
from sqlrs.errors import StatementFailed
from sqlrs.ledger.base import add
from sqlrs.measures import Aggregation, Asked, KeyDomain, Ordinals
from sqlrs.measuring.drift import unchanged
from sqlrs.measuring.groups import ReadDomains, read_domain
from sqlrs.mechanisms import CLIPPED, DEFAULT
from sqlrs.mechanisms.clipped_rows import clipped_rows_mechanism
from sqlrs.mechanisms.unit_choice import unit_mechanism
from sqlrs.mechanisms.vector import vector_mechanism
from sqlrs.mechanisms.vector_base import Summand, VectorMechanism
from sqlrs.recent_statements import RECENT
from sqlrs.records import dataclass
from sqlrs.refusals import refusal
from sqlrs.releasing import AfterRelease, groups_of, relation_of
from sqlrs.settings import STRICT, Request, Settings
from sqlrs.trees.kept import Kept


@dataclass(frozen=True, eq=False)
class Ready:
    """A statement that nothing is refused of any more but its work, its constants, its price."""

    compiled: CompiledStatement
    snapshot: Snapshot
    groups: Groups
    mechanisms: Mapping[Asked, VectorMechanism]
    relation: Callable[..., ReleasedRelation]
    above: AfterRelease
    price: Decimal


@contextmanager
def dry_run(
    request: Request, engine: Engine, catalog: Catalog, settings: Settings
) -> Iterator[Ready]:
    """All that comes before the charge and needs no private row; the snapshot stays open."""
    epsilon, bars = request.prices(of_units=catalog.unit is not None)
    compiled = RECENT.of(request, catalog, settings)
    statement = compiled.statement
    if not only_picks(statement.above):
        get_ready()
    compiled.refuse_beforehand(catalog, settings)
    same = partial(compiled.same, sql=request.sql, settings=settings)
    with unchanged(compiled.tables(catalog), engine, catalog, same) as snapshot:
        fixed = dialect_named(engine.dialect).keeps_settings
        groups = Groups.read(
            statement.aggregations,
            snapshot,
            settings,
            compiled.kept,
            fixed=fixed,
            text=request.sql,
        )
        mechanisms = mechanisms_of(compiled, groups, epsilon, bars, settings, request.mechanism)
        relation = partial(relation_of, error_bars=bars is not None)
        empty = [relation(one, groups.rows[one.name], None) for one in statement.aggregations]
        above = AfterRelease.of(
            statement, catalog, snapshot, empty, compiled.kept, error_bars=bars is not None
        )
        # Error bars of noise whose width is public tell nothing: they are free.
        paid = bars is not None and any(len(one.prices) > 1 for one in mechanisms.values())
        price = add(epsilon, bars) if bars is not None and paid else epsilon
        yield Ready(compiled, snapshot, groups, mechanisms, relation, above, price)


@dataclass(frozen=True)
class Groups:
    """The rows of every domain, which are public, by the name of the relation."""

    rows: Mapping[str, tuple[tuple[Row, ...], ...]]
    of: Mapping[Asked, tuple[Ordinals, ...]]

    @classmethod
    def read(
        cls,
        aggregations: Sequence[Aggregation],
        snapshot: Snapshot,
        settings: Settings,
        kept: Kept | None = None,
        *,
        fixed: bool = False,
        text: str | None = None,
    ) -> Groups:
        """Read them; too many groups are refused.

        ``fixed``: no setting of a snapshot changes what a statement gives. ``text``: what a refusal
        shows the place in.
        """
        kept = kept or Kept()
        most = settings.max_groups
        rows: dict[str, tuple[tuple[Row, ...], ...]] = {}
        groups: dict[Asked, tuple[Ordinals, ...]] = {}
        for one in aggregations:
            found = _domain_rows(one, snapshot, most, kept, fixed=fixed)
            if prod(len(values) for values in found) > most:
                raise refusal(
                    "too_many_groups",
                    f"there are more than {most} groups",
                    hint="narrow the keys with IN (…) or BETWEEN in WHERE, group by fewer of "
                    "them, or let the data owner raise max_groups",
                    span=None if text is None else one.place,
                    text=text,
                )
            rows[one.name] = found
            groups |= dict.fromkeys(one.asked, tuple(groups_of(found)))
        return cls(rows, groups)

    def domains(self, aggregations: Iterable[Aggregation]) -> ReadDomains:
        """The rows by their domains."""
        return ReadDomains(
            found
            for one in aggregations
            for found in zip(one.domains, self.rows[one.name], strict=True)
        )


def _calls_nothing(domain: KeyDomain) -> bool:
    """Whether a domain is made of tables, constants and built-in functions alone."""
    # In FROM stand tables and what the compiler writes there, never a function of the owner's.
    nodes = (one for one in cast(exp.Expr, domain.select).walk() if is_declared(one))
    return all(isinstance(one.parent, exp.Table) for one in nodes)


def _same_for(domain: KeyDomain, snapshot: Snapshot, kept: Kept) -> object | None:
    """What a domain has the same rows for: every snapshot, those of the same rows, or none."""
    if not kept.of((domain,), lambda: _calls_nothing(domain), detail="calls nothing"):
        return None
    if kept.of((domain,), lambda: bool(domain_tables(domain)), detail="reads a table"):
        return rows_for_good(snapshot, cast(exp.Expression, domain.select))
    return domain


def _domain_rows(
    aggregation: Aggregation, snapshot: Snapshot, most: int, kept: Kept, *, fixed: bool
) -> tuple[tuple[Row, ...], ...]:
    """The rows of each domain; what the database cannot compute of public values is refused."""

    def rows(domain: KeyDomain) -> tuple[Row, ...]:
        def read() -> tuple[Row, ...]:
            return read_domain(snapshot, domain, most, kept)

        unchanged_by = _same_for(domain, snapshot, kept) if fixed else None
        if unchanged_by is None:
            return read()
        return kept.of((domain, unchanged_by), read, detail=("rows", most))

    with suppress(StatementFailed):
        return tuple(map(rows, aggregation.domains))
    raise refusal(
        "unknown_domain",
        "the values of the group keys cannot be computed",
        hint="a cast, a division or an overflow fails on some of the public values that the keys "
        "or the conditions on public tables are made of; or one of them is an infinite date, or "
        "one outside the years 1 to 9999, which no answer can hold: leave it out with a condition "
        "such as day < '9999-12-31'",
    )


def mechanisms_of(
    compiled: CompiledStatement,
    groups: Groups,
    epsilon: Decimal,
    bars: Decimal | None,
    settings: Settings,
    wanted: str = DEFAULT,
) -> dict[Asked, VectorMechanism]:
    """The mechanism of each measure; those that need noise share the price evenly.

    ``wanted`` is the name of the one that is asked for.
    """
    number = sum(
        asked[1].per_unit is not None or any(one.private for one in terms)
        for asked, terms in compiled.asked.items()
    )
    price = shared_evenly(epsilon, max(1, number))
    paid_bars = None if bars is None else shared_evenly(bars, max(1, number))
    strict = settings.neighbours == STRICT

    def chosen(asked: Asked, terms: tuple[Summand, ...]) -> VectorMechanism:
        domains, measure = asked
        size = len(groups.of[asked])
        if compiled.unit is not None:
            return unit_mechanism(
                measure,
                terms,
                size,
                grouped=bool(domains),
                epsilon=price,
                strict=strict,
                error_bars=bars is not None,
                wanted=wanted,
                paid_bars=paid_bars,
                max_contribution=settings.max_contribution,
                max_owned_results=settings.max_owned_results,
                packing_seconds=settings.packing_seconds,
            )
        if wanted == CLIPPED:
            return clipped_rows_mechanism(
                measure,
                terms,
                size,
                epsilon=price,
                strict=strict,
                error_bars=bars is not None,
                max_contribution=settings.max_contribution,
            )
        return vector_mechanism(
            terms,
            size,
            grouped=bool(domains),
            epsilon=price,
            strict=strict,
            error_bars=paid_bars,
        )

    return {asked: chosen(asked, terms) for asked, terms in compiled.asked.items()}
