"""Statements that were compiled lately: a text is often asked again, or described before.

Compiling reads no row: a statement depends on its text, the catalog and the settings alone.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from sqlrs.catalog import Catalog
from sqlrs.compiled import CompiledStatement
from sqlrs.settings import Request, Settings

_MOST = 64
_LONGEST_TEXT = 10_000


@dataclass(frozen=True, eq=False)
class _Recent:
    """A statement with what it was compiled for, which is compared by identity."""

    catalog: Catalog
    settings: Settings
    compiled: CompiledStatement


class RecentStatements:
    """The last statements of all analysts, each found by its own analyst alone.

    Otherwise the time that an answer takes would tell what others ask for.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[tuple[str, str], _Recent] = OrderedDict()

    def of(self, request: Request, catalog: Catalog, settings: Settings) -> CompiledStatement:
        """The statement of a request, compiled unless it was lately; or a refusal."""
        key = (request.analyst, request.sql)
        with self._lock:
            known = self._found.get(key)
            if known is not None and known.catalog is catalog and known.settings is settings:
                self._found.move_to_end(key)
                return known.compiled
        compiled = CompiledStatement.of(request.sql, catalog, settings)
        if len(request.sql) <= _LONGEST_TEXT:
            with self._lock:
                self._found[key] = _Recent(catalog, settings, compiled)
                self._found.move_to_end(key)
                if len(self._found) > _MOST:
                    self._found.popitem(last=False)
        return compiled
