"""Small tables of a database elsewhere -> the same residuals over their rows here."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from sqlglot import exp

from sqlrs.dialects import dialect_named
from sqlrs.engines.base import Fetching, Measurable, Opened
from sqlrs.planning.fetched import FetchedQuery, FetchedTable, fetched_query
from sqlrs.records import dataclass
from sqlrs.residuals.residual import Residuals
from sqlrs.sql.fetched_rows import fetched_rows
from sqlrs.trees.kept import Kept

# Of a number, a date or a truth, as they are kept while they are joined.
_BYTES = 8
# What joins them may take so many times the limit of what is fetched, and so much in any case.
_ROOM = 4
_LEAST_ROOM = 2**28


@dataclass(frozen=True)
class _Wanted:
    """The residuals over fetched tables, and the statement that reads each of these."""

    tables: tuple[FetchedTable, ...]
    statements: Mapping[str, exp.Select]
    residuals: Residuals


@dataclass(frozen=True)
class Here:
    """Where residuals are measured in place of others, with the same values."""

    source: Measurable
    residuals: Residuals


def fetched(residuals: Residuals, source: Opened, most: int, kept: Kept) -> Here | None:
    """The residuals over rows that were fetched, where these are no more than so many bytes."""
    wanted = _small(residuals, source, most, kept)
    if wanted is None or not isinstance(source.opened, Fetching):
        return None
    here = source.opened.fetched(wanted.statements, max(_ROOM * most, _LEAST_ROOM))
    return Here(here, wanted.residuals)


def is_fetched(residuals: Residuals, source: Opened, most: int, kept: Kept) -> bool:
    """Whether they would be measured here; no row is fetched for it."""
    return _small(residuals, source, most, kept) is not None


def forget(source: Opened) -> None:
    """Give the memory of what was fetched back."""
    if isinstance(source.opened, Fetching):
        source.opened.forget_fetched()


def _small(residuals: Residuals, source: Opened, most: int, kept: Kept) -> _Wanted | None:
    snapshot = source.opened
    if most <= 0 or not isinstance(snapshot, Fetching) or not snapshot.keeps_rows_unseen:
        return None
    wanted = kept.of((residuals,), lambda: _wanted(residuals, source.dialect), detail="fetched")
    if wanted is None or sum(_size(one, snapshot) for one in wanted.tables) > most:
        return None
    return wanted


def _wanted(residuals: Residuals, dialect: str) -> _Wanted | None:
    statements = {}

    def name(table: FetchedTable) -> str:
        statement = fetched_rows(table)
        # Equal statements of one snapshot have the same rows.
        digest = sha256(dialect_named(dialect).written(statement).encode()).hexdigest()
        statements[f"fetched_{digest}"] = statement
        return f"fetched_{digest}"

    found: FetchedQuery | None = fetched_query(residuals.query, name)
    if found is None:
        return None
    return _Wanted(found.tables, statements, Residuals(found.query, residuals.reading))


def _size(wanted: FetchedTable, snapshot: Fetching) -> int:
    """What the whole table would take; what conditions leave of it is less."""
    rows, texts = snapshot.size(wanted.source.table, wanted.texts)
    return rows * _BYTES * len(wanted.table.columns) + texts
