"""Statements that were compiled lately: a text is often asked again, or described before.

Compiling reads no row: a statement depends on its text, the catalog and the settings alone.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import cast

from sqlrs.catalog import Catalog
from sqlrs.compiled import Compiled, CompiledStatement, compiled_text
from sqlrs.compiler.simplify import Contradiction
from sqlrs.records import dataclass
from sqlrs.settings import Request, Settings

_MOST_ANALYSTS = 64
# Of one analyst: so many texts, of so many characters in all.
_MOST = 64
_MOST_CHARACTERS = 64_000
_LONGEST_TEXT = 10_000

_Text = Compiled | Contradiction | CompiledStatement
# The text, and how it is read: as a statement, or as a count with or without rows.
_Key = tuple[str, str]
_STATEMENT = "statement"


@dataclass(frozen=True, eq=False)
class _Recent:
    """A statement with what it was compiled for, which is compared by identity."""

    catalog: Catalog
    settings: Settings
    compiled: _Text


class _OfAnalyst:
    """What one analyst asked lately, within bounds that nobody else's texts count against."""

    def __init__(self) -> None:
        self._found: OrderedDict[_Key, _Recent] = OrderedDict()
        self._characters = 0

    def known(self, key: _Key, catalog: Catalog, settings: Settings) -> _Text | None:
        known = self._found.get(key)
        if known is None or known.catalog is not catalog or known.settings is not settings:
            return None
        self._found.move_to_end(key)
        return known.compiled

    def keep(self, key: _Key, recent: _Recent) -> None:
        if key not in self._found:
            self._characters += len(key[0])
        self._found[key] = recent
        self._found.move_to_end(key)
        while len(self._found) > _MOST or self._characters > _MOST_CHARACTERS:
            (text, _), _ = self._found.popitem(last=False)
            self._characters -= len(text)


class RecentStatements:
    """Keeps the latest texts of each analyst apart.

    Apart, so that neither the time that a text takes nor what is still kept of one's own tells what
    others ask or how much; only that ``_MOST_ANALYSTS`` others asked something since.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._analysts: OrderedDict[str, _OfAnalyst] = OrderedDict()

    def of(self, request: Request, catalog: Catalog, settings: Settings) -> CompiledStatement:
        """The statement of a request, compiled unless it was lately; or a refusal."""
        key = (request.sql, _STATEMENT)
        known = self._known(request.analyst, key, catalog, settings)
        if known is None:
            known = CompiledStatement.of(request.sql, catalog, settings)
            self._keep(request.analyst, key, _Recent(catalog, settings, known))
        return cast(CompiledStatement, known)

    def count(self, request: Request, catalog: Catalog, settings: Settings) -> _Text:
        """What ``compiled_text`` makes of a request, unless it did lately; or a refusal."""
        key = (request.sql, f"count, rows {request.as_rows}")
        known = self._known(request.analyst, key, catalog, settings)
        if known is None:
            known = compiled_text(request.sql, catalog, settings, as_rows=request.as_rows)
            recent = _Recent(catalog, settings, known)
            self._keep(request.analyst, key, recent)
            if isinstance(known, CompiledStatement):
                # It is about to be asked for as one.
                self._keep(request.analyst, (request.sql, _STATEMENT), recent)
        return known

    def _known(self, analyst: str, key: _Key, catalog: Catalog, settings: Settings) -> _Text | None:
        with self._lock:
            own = self._analysts.get(analyst)
            if own is None:
                return None
            self._analysts.move_to_end(analyst)
            return own.known(key, catalog, settings)

    def _keep(self, analyst: str, key: _Key, recent: _Recent) -> None:
        if len(key[0]) > _LONGEST_TEXT:
            return
        with self._lock:
            self._analysts.setdefault(analyst, _OfAnalyst()).keep(key, recent)
            self._analysts.move_to_end(analyst)
            if len(self._analysts) > _MOST_ANALYSTS:
                self._analysts.popitem(last=False)


RECENT = RecentStatements()
"""Those of this process."""
