"""The tables that are files: whether each is still the one that was opened, and its loading."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from sqlglot import exp

from sqlrs.engines.base import Row
from sqlrs.errors import EngineFailed, SqlrsError
from sqlrs.records import dataclass

Keys = dict[str, frozenset[frozenset[str]]]
Run = Callable[[str], list[Row]]
Columns = tuple[tuple[str, str], ...]
FindUnfit = Callable[[Run], str | None]


@dataclass(frozen=True)
class FileState:
    """What tells one state of a file from another without reading it.

    A program that writes can set the time of the last writing back, as copies that keep times do;
    nobody sets ``changed``, the time at which anything about the file was last changed.
    """

    device: int
    inode: int
    size: int
    modified: int
    changed: int

    @classmethod
    def of(cls, path: Path) -> FileState | None:
        """The state of a file, None where there is none."""
        try:
            found = os.stat(path)
        except OSError:
            return None
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


States = tuple[tuple[Path, FileState | None], ...]


def states_of(paths: tuple[Path, ...]) -> States:
    """How the files are now."""
    return tuple((path.absolute(), FileState.of(path)) for path in paths)


@dataclass(frozen=True)
class Filling:
    """The statement that loads a table, and who finds the place where its rows do not fit."""

    insert: exp.Insert
    find_unfit: FindUnfit | None = None
    remedy: str | None = None
    # A copy of the rows in the spill folder, which goes once they are loaded.
    staged: Path | None = None
    write_staged: Callable[[], None] | None = None


@dataclass
class _TableOfFiles:
    """One table: its files as they were when they were opened, and how it is filled."""

    named: Path
    states: States
    filling: Filling | None
    loaded: bool = False

    def require_unchanged(self) -> None:
        for path, state in self.states:
            if state is None or FileState.of(path) != state:
                raise EngineFailed(
                    f"{path} has changed since it was opened",
                    code="file_changed",
                    hint="open the data again",
                )


@dataclass
class Files:
    """The tables that are files, by their names in lower case.

    ``scanned`` holds the columns of those that are read where they are, ``copied`` the names of a
    given connection's views that were copied. ``only_scanned``: no table was made of anything else;
    ``extended``: an extension of DuckDB's was loaded, which may have brought functions.
    ``database``: the file of the database itself, as it was when it was opened. Its lock binds
    programs that ask for it; one that copies over the file does not.
    """

    keys: Keys = field(default_factory=dict)
    rows_per_unit: dict[str, int] = field(default_factory=dict)
    scanned: dict[str, Columns] = field(default_factory=dict)
    copied: frozenset[str] = frozenset()
    only_scanned: bool = False
    extended: bool = False
    database: States = ()
    _files: dict[str, _TableOfFiles] = field(default_factory=dict)
    _unfit: dict[str, EngineFailed] = field(default_factory=dict)
    _loading: threading.Lock = field(default_factory=threading.Lock)

    def add(self, name: str, named: Path, states: States, filling: Filling | None) -> None:
        """A table that is scanned where it is, or filled by a statement at its first use."""
        self._files[name.lower()] = _TableOfFiles(named, states, filling)

    def read_by(self, statement: exp.Expression) -> frozenset[str]:
        """The files that a statement reads."""
        if not self._files:
            return frozenset()
        return _tables_of(statement) & self._files.keys()

    def loaded_first(self, names: frozenset[str]) -> frozenset[str]:
        """Those of the files that are loaded before they are read."""
        return frozenset(name for name in names if self._files[name].filling is not None)

    @property
    def loaded(self) -> frozenset[str]:
        """Those that whoever begins a transaction now finds loaded."""
        return frozenset(name for name, table in self._files.items() if table.loaded)

    def require_unchanged(self, names: frozenset[str]) -> None:
        """Fail if a file that is scanned is not the one that was opened."""
        for name in names:
            if self._files[name].filling is None:
                self._files[name].require_unchanged()

    @property
    def database_changed(self) -> bool:
        """Whether the file of the database is not the one that was opened."""
        return any(state is None or FileState.of(path) != state for path, state in self.database)

    def load(self, names: frozenset[str], run: Run) -> None:
        """Load those that are not yet; ``run`` must be outside a transaction."""
        with self._loading:
            for name in sorted(names):
                if name in self._unfit:
                    raise _copy(self._unfit[name])
                table = self._files[name]
                if table.filling is not None and not table.loaded:
                    self._load(name, table, table.filling, run)

    def _load(self, name: str, table: _TableOfFiles, filling: Filling, run: Run) -> None:
        table.require_unchanged()
        if filling.write_staged is not None:
            filling.write_staged()
        run(exp.Transaction().sql(dialect="duckdb"))
        unfit = False
        try:
            run(filling.insert.sql(dialect="duckdb", comments=False))
            table.require_unchanged()
        except EngineFailed as error:
            with suppress(SqlrsError):
                run(exp.Rollback().sql(dialect="duckdb"))
            unfit = error.code == EngineFailed.code
            if not unfit:
                raise
        if unfit:
            # For ever: a key that could not be checked on it must not be believed later.
            self._unfit[name] = _unfit(table.named, filling, run)
            raise _copy(self._unfit[name])
        run(exp.Commit().sql(dialect="duckdb"))
        table.loaded = True
        if filling.staged is not None:
            with suppress(OSError):
                filling.staged.unlink()


def _tables_of(statement: exp.Expression) -> frozenset[str]:
    """The names of all tables in a statement. Most of its nodes are columns, which hold none."""
    names: set[str] = set()
    waiting: list[object] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, exp.Expr) and not isinstance(node, exp.Column | exp.Identifier):
            if isinstance(node, exp.Table):
                names.add(node.name.lower())
            waiting += node.args.values()
    return frozenset(names)


def _unfit(named: Path, filling: Filling, run: Run) -> EngineFailed:
    """For the owner: the place and the kind of what is there, never the text itself."""
    place = None
    if filling.find_unfit is not None:
        with suppress(SqlrsError):
            place = filling.find_unfit(run)
    return EngineFailed(
        f"{named} does not fit its schema{f': {place}' if place else ''}",
        code="file_unfit",
        hint=filling.remedy,
    )


def _copy(error: EngineFailed) -> EngineFailed:
    return EngineFailed(error.message, code=error.code, hint=error.hint)
