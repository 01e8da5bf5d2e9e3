"""Statements that were compiled lately: a text is often asked again, or described before.

Compiling reads no row: a statement depends on its text, the catalog and the settings alone.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import cast

from sqlrs.catalog import Catalog
from sqlrs.compiled import Compiled, CompiledStatement, compiled_text
from sqlrs.compiler.simplify import Contradiction
from sqlrs.settings import Request, Settings

_MOST = 64
_LONGEST_TEXT = 10_000

_Text = Compiled | Contradiction | CompiledStatement
# The analyst, the text, and how it is read: as a statement, or as a count with or without rows.
_Key = tuple[str, str, str]
_STATEMENT = "statement"


@dataclass(frozen=True, eq=False)
class _Recent:
    """A statement with what it was compiled for, which is compared by identity."""

    catalog: Catalog
    settings: Settings
    compiled: _Text


class RecentStatements:
    """The last statements of all analysts, each found by its own analyst alone.

    Otherwise the time that an answer takes would tell what others ask for.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[_Key, _Recent] = OrderedDict()

    def of(self, request: Request, catalog: Catalog, settings: Settings) -> CompiledStatement:
        """The statement of a request, compiled unless it was lately; or a refusal."""
        key = (request.analyst, request.sql, _STATEMENT)
        known = self._known(key, catalog, settings)
        if known is None:
            known = CompiledStatement.of(request.sql, catalog, settings)
            self._keep(key, catalog, settings, known)
        return cast(CompiledStatement, known)

    def count(self, request: Request, catalog: Catalog, settings: Settings) -> _Text:
        """What ``compiled_text`` makes of a request, unless it did lately; or a refusal."""
        key = (request.analyst, request.sql, f"count, rows {request.as_rows}")
        known = self._known(key, catalog, settings)
        if known is None:
            known = compiled_text(request.sql, catalog, settings, as_rows=request.as_rows)
            self._keep(key, catalog, settings, known)
            if isinstance(known, CompiledStatement):
                # It is about to be asked for as one.
                self._keep((*key[:2], _STATEMENT), catalog, settings, known)
        return known

    def _known(self, key: _Key, catalog: Catalog, settings: Settings) -> _Text | None:
        with self._lock:
            known = self._found.get(key)
            if known is None or known.catalog is not catalog or known.settings is not settings:
                return None
            self._found.move_to_end(key)
            return known.compiled

    def _keep(self, key: _Key, catalog: Catalog, settings: Settings, compiled: _Text) -> None:
        if len(key[1]) > _LONGEST_TEXT:
            return
        with self._lock:
            self._found[key] = _Recent(catalog, settings, compiled)
            self._found.move_to_end(key)
            if len(self._found) > _MOST:
                self._found.popitem(last=False)


RECENT = RecentStatements()
"""Those of this process."""
