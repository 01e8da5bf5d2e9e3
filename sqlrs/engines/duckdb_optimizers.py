"""DuckDB's optimizers that miscount: switched off in every database that sqlrs counts in.

``common_subplan`` takes two parts of a self-join for the same one although they differ in the
columns that they keep, and counts wrongly (seen in 1.5.0 to 2.0.0; tests/engines/test_optimizers.py
notices when it no longer does). The setting is one for a whole database instance, all of whose
connections share it, so a connection of the user's gets it back when the last engine on it closes.
"""

from __future__ import annotations

import threading
from contextlib import suppress

from sqlglot import exp

from sqlrs.engines.duckdb_core import duckdb
from sqlrs.errors import UsageError
from sqlrs.templates import template

MISCOUNTING = frozenset({"common_subplan"})
SETTING = "disabled_optimizers"
# Any other optimizer: two connections that see it go off together belong to one instance.
_SIGNS = frozenset({"regex_range", "sampling_pushdown"})

_lock = threading.Lock()
_holders: list[SwitchedOff] = []


class SwitchedOff:
    """Keeps the miscounting optimizers off for the instance of a connection until ``release``."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        with _lock:
            self._found = _disabled(connection)
            self._given_back = False
            self._require()
            _holders.append(self)

    def require(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Switch them off again where somebody has switched them on; where that fails, refuse."""
        if not _disabled(connection) >= MISCOUNTING:
            with _lock:
                self._require()

    def release(self) -> None:
        """Give the setting back, unless another engine counts in the same instance."""
        with _lock:
            if self._given_back:
                return
            self._given_back = True
            _holders.remove(self)
            with suppress(duckdb.Error, UsageError):
                now = _disabled(self._connection)
                heirs = [other for other in _holders if self._shares_instance(other, now)]
                for heir in heirs:
                    heir._found &= self._found
                _set(self._connection, now if heirs else now - (MISCOUNTING - self._found))

    def _require(self) -> None:
        now = _disabled(self._connection)
        if now >= MISCOUNTING:
            return
        with suppress(duckdb.Error):
            _set(self._connection, now | MISCOUNTING)
            return
        names = ",".join(sorted(now | MISCOUNTING))
        raise UsageError(
            "the DuckDB connection is locked with an optimizer on that counts self-joins wrongly",
            hint=f"SET {SETTING} = '{names}' before SET lock_configuration = true",
        )

    def _shares_instance(self, other: SwitchedOff, now: frozenset[str]) -> bool:
        with suppress(duckdb.Error, UsageError):
            _set(self._connection, now - _SIGNS)
            one = _disabled(other._connection)
            _set(self._connection, now | _SIGNS)
            return not one & _SIGNS and _disabled(other._connection) >= _SIGNS
        return False


def _disabled(connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
    with suppress(duckdb.Error):
        [(names,)] = connection.execute(template("duckdb/disabled_optimizers.sql")).fetchall()
        return frozenset(name for name in str(names).split(",") if name)
    raise UsageError("the DuckDB connection does not answer", hint="roll back, or connect again")


def _set(connection: duckdb.DuckDBPyConnection, names: frozenset[str]) -> None:
    value = exp.Literal.string(",".join(sorted(names)))
    setting = exp.EQ(this=exp.column(SETTING), expression=value)
    statement = exp.Set(expressions=[exp.SetItem(this=setting)])
    connection.execute(statement.sql(dialect="duckdb"))
