"""What all engines do with their snapshots: keep those that are open, stop them, ask in one."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Generic, TypeVar

from sqlrs.catalog import Catalog
from sqlrs.engines.base import Snapshot, verify_keys
from sqlrs.engines.watch import ctrl_c_interrupts
from sqlrs.errors import UsageError

Own = TypeVar("Own", bound=Snapshot)


class OfSnapshots(ABC, Generic[Own]):
    """An engine by its snapshots, of which several may be open."""

    def __init__(self) -> None:
        self._closed = False
        self._lock = threading.Lock()
        self._open: set[Own] = set()

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[Own]:
        """Begin a snapshot; it ends with the context."""

    def catalog(self) -> Catalog:
        """Tables, views, types and keys, all tables private until declared otherwise."""
        with self.snapshot() as snapshot:
            return snapshot.catalog()

    def check_keys(self, catalog: Catalog, keys: Mapping[str, Sequence[Sequence[str]]]) -> None:
        """Verify declared keys on the data; a violation is a UsageError."""
        with self.snapshot() as snapshot:
            verify_keys(snapshot, catalog, keys)

    def interrupt(self) -> None:
        """Stop every open snapshot, from any thread."""
        with self._lock:
            snapshots = tuple(self._open)
        for snapshot in snapshots:
            snapshot.interrupt()

    @contextmanager
    def _kept(self, snapshot: Own) -> Iterator[None]:
        """Within the block the snapshot can be stopped; Ctrl-C in it is an interruption."""
        with self._lock:
            self._open.add(snapshot)
        try:
            with ctrl_c_interrupts():
                yield
        finally:
            with self._lock:
                self._open.discard(snapshot)

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError("the database is closed", hint="connect again")
