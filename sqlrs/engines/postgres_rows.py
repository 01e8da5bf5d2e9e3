"""Whether a snapshot of PostgreSQL sees the very rows that an earlier one saw on its connection.

Every change of rows is made by a transaction with a number. Two snapshots that take the same
transactions for done therefore see the same rows, and what was learned of them is still true:
docs/proofs/plans.md, section 13, which also says what has to be left out.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from weakref import WeakKeyDictionary

from sqlrs.engines.base import Row
from sqlrs.errors import EngineFailed
from sqlrs.records import dataclass
from sqlrs.templates import template

Run = Callable[[str, Mapping[str, object]], list[Row]]
TableName = tuple[str, str]


@dataclass(frozen=True, repr=False)
class Seen:
    """The rows of some snapshots: which transactions they take for done, and what is known of them.

    ``stored``: in which files the tables lie that were read.
    """

    transactions: str
    learned: dict[str, object] = field(default_factory=dict)
    stored: dict[TableName, str] = field(default_factory=dict)


class SeenRows:
    """What the last snapshot of each connection saw, of those that the engine opened itself.

    One snapshot at a time uses a connection, and no later one before it has ended.
    """

    def __init__(self) -> None:
        self._sessions: WeakKeyDictionary[object, str] = WeakKeyDictionary()
        self._last: WeakKeyDictionary[object, Seen] = WeakKeyDictionary()

    def begin_session(
        self, connection: object, run: Callable[[str, Mapping[str, object]], object]
    ) -> None:
        """Mark a session, so that another one that answers in its place is not taken for it."""
        name = secrets.token_hex(16)
        run(template("postgres/mark_session.sql"), {"session": name})
        self._sessions[connection] = name

    def seen(self, connection: object, run: Run) -> tuple[Seen | None, bool]:
        """What a snapshot sees, None where nobody can tell, and whether the last one saw it too."""
        session = self._sessions.get(connection)
        if session is None:
            return None, False
        ((transactions,),) = run(template("postgres/seen_transactions.sql"), {"session": session})
        if transactions is None:
            return None, False
        last = self._last.get(connection)
        if last is not None and last.transactions == transactions:
            return last, True
        return Seen(str(transactions)), False

    def forget(self, connection: object) -> None:
        """Believe nothing of what the last snapshot knew: it may have read tables written anew."""
        self._last.pop(connection, None)

    def keep(self, connection: object, seen: Seen, tables: Collection[TableName], run: Run) -> None:
        """Remember what a snapshot saw that has read these tables and is about to end.

        A table that was emptied or written anew as a whole shows every snapshot its new file, and a
        name means the table that has it now. What was learned before and what was read now would be
        of different rows, which is an error.
        """
        names = {"schemas": [s for s, _ in tables], "tables": [t for _, t in tables]}
        rows = run(template("postgres/stored_tables.sql"), names)
        now = {(str(schema), str(table)): str(place) for schema, table, place in rows}
        if any(seen.stored.get(name, place) != place for name, place in now.items()):
            raise EngineFailed("tables or functions changed during the work")
        seen.stored.update(now)
        self._last[connection] = seen
