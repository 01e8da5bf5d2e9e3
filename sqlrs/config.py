"""sqlrs.toml -> where the data is, what is private, which keys hold, which limits apply."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from sqlrs.database import Database, connect
from sqlrs.engines.file_schema import Declared
from sqlrs.errors import UsageError
from sqlrs.ledger import Ledger
from sqlrs.settings import Settings

KeyColumns = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Config:
    """Everything that opening the data needs; the command line overrides the file."""

    db: str | None = None
    tables: Mapping[str, str] = field(default_factory=dict)
    private: tuple[str, ...] = ()
    public: tuple[str, ...] = ()
    keys: Mapping[str, KeyColumns] = field(default_factory=dict)
    types: Mapping[str, Declared] = field(default_factory=dict)
    graphs: Mapping[str, str] = field(default_factory=dict)
    rows_per_unit: Mapping[str, int] = field(default_factory=dict)
    dataset: str = "data"
    analyst: str = "analyst"
    ledger: str | None = None
    repeats: bool = True
    memory_limit: str | None = None
    temp_directory: str | None = None
    timeout: float | None = None
    max_external: int = Settings.max_external
    plan: str = Settings.plan
    solver: bool = Settings.solver
    solver_seconds: float = Settings.solver_seconds

    @classmethod
    def read(cls, path: Path) -> Config:
        """The [data] section of the file; an unknown key, or one of the wrong kind, is an error."""
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UsageError(f"{path} is not TOML: {error}") from None
        section = document.get("data", {})
        if not isinstance(section, dict):
            raise UsageError(f"{path}: data must be a section", hint="write [data]")
        known = {f.name for f in fields(cls)}
        for name in sorted(set(section) - known):
            raise UsageError(
                f"{path}: [data] has no key {name!r}",
                hint=f"the keys are {', '.join(sorted(known))}",
            )
        checked: dict[str, Any] = {n: _checked(path, n, v) for n, v in section.items()}
        return cls(**checked)

    def open(self, ledger: Ledger | None = None, *, schema_only: bool = False) -> Database:
        """Connect as configured, with the configured ledger unless one is given."""
        if self.db is None and not self.tables:
            raise UsageError(
                "no data was named", hint="give --db URL, --table NAME=FILE, or --config FILE"
            )
        if self.db is not None and self.tables:
            raise UsageError("--db and --table exclude each other", hint="give one of them")
        return connect(
            self.db or "duckdb://",
            tables=self.tables,
            private=self.private,
            public=self.public,
            keys=self.keys,
            types=self.types,
            graphs=self.graphs,
            rows_per_unit=self.rows_per_unit,
            schema_only=schema_only,
            ledger=ledger or self.open_ledger(),
            analyst=self.analyst,
            dataset=self.dataset,
            settings=Settings(
                max_external=self.max_external,
                plan=self.plan,
                solver=self.solver,
                solver_seconds=self.solver_seconds,
            ),
            memory_limit=self.memory_limit,
            temp_directory=self.temp_directory,
            timeout=self.timeout,
        )

    def open_ledger(self) -> Ledger | None:
        """The configured store of budgets, or None."""
        if self.ledger is None:
            return None
        from sqlrs.ledger.store import StoreLedger

        return StoreLedger(self.ledger, repeats=self.repeats)

    def override(self, **given: object) -> Config:
        """The configuration with every value that was given, not None and not empty, replaced."""
        changes: dict[str, Any] = {name: value for name, value in given.items() if value}
        return replace(self, **changes)


def _checked(path: Path, name: str, value: object) -> object:
    """A value of the kind that its key holds, lists as tuples."""
    if name in ("private", "public"):
        return tuple(_texts(path, name, value))
    if name == "tables":
        if not isinstance(value, dict):
            raise UsageError(f"{path}: tables maps names to files")
        folder = path.parent
        return {k: str(folder / _text(path, f"tables.{k}", v)) for k, v in value.items()}
    if name == "keys":
        if not isinstance(value, dict):
            raise UsageError(f"{path}: keys maps tables to columns")
        return {k: _key_columns(path, f"keys.{k}", v) for k, v in value.items()}
    if name == "types":
        return {k: _types(path, f"types.{k}", v) for k, v in _of(path, name, value, dict).items()}
    if name in ("graphs", "rows_per_unit"):
        kind = str if name == "graphs" else int
        found = _of(path, name, value, dict)
        return {k: _of(path, f"{name}.{k}", v, kind) for k, v in found.items()}
    if name in ("repeats", "solver"):
        return _of(path, name, value, bool)
    if name == "max_external":
        return _of(path, name, value, int)
    if name in ("timeout", "solver_seconds"):
        return float(_of(path, name, value, int | float))
    return _text(path, name, value)


def _of(path: Path, name: str, value: object, kind: Any) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise UsageError(f"{path}: {name} has a value of the wrong kind")
    return value


def _text(path: Path, name: str, value: object) -> str:
    return str(_of(path, name, value, str))


def _texts(path: Path, name: str, value: object) -> list[str]:
    return [_text(path, name, item) for item in _of(path, name, value, list)]


def _types(path: Path, name: str, value: object) -> Declared:
    if isinstance(value, dict):
        return {column: _text(path, f"{name}.{column}", kind) for column, kind in value.items()}
    return _text(path, name, value)


def _key_columns(path: Path, name: str, value: object) -> KeyColumns:
    items = _of(path, name, value, list)
    if items and all(isinstance(item, str) for item in items):
        return (tuple(items),)
    return tuple(tuple(_texts(path, name, item)) for item in items)
