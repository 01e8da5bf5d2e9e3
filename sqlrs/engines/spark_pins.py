"""Tables as one release sees them: the files that are there when it first reads them, unchanged.

Spark has no transactions over files. What a table reads is fixed when a snapshot first needs it, as
a temporary view over a list of files; before the snapshot ends, the files must still be those, of
the same sizes and times of change. A table that is not made of files and of values that cannot
change is refused: its rows could be others in the next statement.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import field
from typing import Any
from urllib.parse import unquote

from sqlrs.catalog import Column, Family
from sqlrs.engines.spark_catalog import columns_of
from sqlrs.engines.spark_files import FileTable
from sqlrs.errors import EngineFailed, UsageError
from sqlrs.records import dataclass

# Nodes of a plan that give the same rows for the same files, whatever the order of the tasks.
_FIXED_NODES = frozenset({"SubqueryAlias", "View", "Project", "Filter", "Union"})
_FIXED_LEAVES = frozenset({"LocalRelation", "OneRowRelation", "Range", "EmptyRelation"})
_FILES = "HadoopFsRelation"
_FIXED_RDDS = frozenset({"ParallelCollectionRDD", "ReliableCheckpointRDD"})
# Expressions that Spark takes for constant, and that are other values in each statement.
_MOVING = frozenset(
    {"CurrentDate", "CurrentTime", "CurrentTimestamp", "LocalTimestamp", "Now", "VariableReference"}
)
# Everybody's code: Spark believes that it gives the same each time unless it is told otherwise.
_FOREIGN = frozenset(
    {"ApplyFunctionExpression", "HiveGenericUDF", "HiveSimpleUDF", "PythonUDF", "ScalaUDF"}
)
_FILE_PROVIDERS = frozenset({"parquet", "orc", "csv", "json", "text", "avro"})

# Of each file its size and when it was changed.
States = dict[str, tuple[int, int]]


@dataclass
class Pin:
    """One table in one snapshot: the view's name and the files behind it."""

    view: str
    frame: Any = field(repr=False)
    states: States = field(repr=False)


def require_fixed(frame: Any, label: str, session: Any) -> None:
    """Refuse a table whose rows Spark may compute otherwise the next time it is asked.

    One that shows a row several times is refused too: a change of one would be one of many.
    """
    # A frame of Spark Connect shows no plan: its server says what a table is made of.
    execution = frame._jdf.queryExecution()
    reason = _moving(execution.analyzed())
    if reason is None and _reads_cache(execution.withCachedData()):
        # Its rows may be older than the files, and come from them again where memory was short.
        reason = "it is cached in Spark"
    if reason is None and reads_twice(places_of(frame, session)):
        raise UsageError(
            f"table {label} shows the same rows several times",
            code="not_pinned",
            hint="one row would be protected as many times less: give the rows once",
        )
    if reason is not None:
        raise UsageError(
            f"the rows of table {label} cannot be held still: {reason}",
            code="not_pinned",
            hint="write it to files (Parquet), or give it as files: tables={'name': 'path'}"
            if "cached" not in reason
            else "uncacheTable() or unpersist() it",
        )


def told_apart(frame: Any) -> Any:
    """The same rows by a plan that nobody else has.

    Spark puts what was cached once, by whomever, in the place of every part of a plan that looks
    the same, and two plans over one path do, also where the files have changed between them.
    """
    word = secrets.token_hex(8)
    return frame.where(f"'{word}' = '{word}'")


def is_of_files(provider: str) -> bool:
    """Whether a table of Spark's catalog is made of files that can be compared."""
    return provider.lower() in _FILE_PROVIDERS


def require_columns(frame: Any, known: tuple[Column, ...]) -> None:
    """Fail unless the table still has the columns that the query was compiled for."""
    now = {one.name: one.type for one in columns_of(frame.schema)}
    then = {one.name: one.type for one in known if one.type.family is not Family.OPAQUE}
    if any(now.get(name) != kind for name, kind in then.items()):
        raise EngineFailed("a table has changed since the database was opened")


def states_of(frame: Any, session: Any, *, remote: bool) -> States:
    """The sizes and times of change of the files that a frame reads."""
    failed = False
    try:
        paths = sorted(set(frame.inputFiles()))
        return _listed_by_a_job(session, paths) if remote else _listed(session, paths)
    except Exception:
        # Which file it is stays untold.
        failed = True
    if failed:
        raise EngineFailed("the files of a table cannot be listed", code="file_changed")
    return {}


def require_files(states: States) -> None:
    """Fail where Spark names no file of a table that is given as files."""
    if not states:
        raise EngineFailed(
            "Spark names no file of a table",
            code="file_changed",
            hint="they are gone, or the owner's session has cached them: unpersist() it",
        )


def require_unchanged(pin: Pin, session: Any, *, remote: bool) -> None:
    """Fail if a file is gone or is not what it was."""
    if states_of(pin.frame, session, remote=remote) != pin.states:
        raise EngineFailed(
            "the files of a table changed during the work",
            code="file_changed",
            hint="ask again when nobody writes to them",
        )


def _listed(session: Any, paths: list[str]) -> States:
    jvm = session.sparkContext._jvm
    configuration = session._jsparkSession.sessionState().newHadoopConf()
    found: States = {}
    for text in paths:
        # Blanks and the like are written as in an address.
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(text))
        status = path.getFileSystem(configuration).getFileStatus(path)
        if status.isDirectory():
            raise ValueError("a folder has no size")
        found[text] = (int(status.getLen()), int(status.getModificationTime()))
    return found


def _listed_by_a_job(session: Any, paths: list[str]) -> States:
    if not paths:
        return {}
    frame = session.read.format("binaryFile").load([unquote(path) for path in paths])
    rows = frame.selectExpr("path", "length", "unix_micros(modificationTime)").collect()
    if len(rows) != len(paths):
        raise ValueError("a file is missing")
    return {str(path): (int(size), int(changed)) for path, size, changed in rows}


def _moving(plan: Any) -> str | None:
    """Why the rows of a plan may change, or None."""
    pending = [plan]
    while pending:
        node = pending.pop()
        name = str(node.nodeName())
        if not node.deterministic():
            return "it is computed by chance"
        if (reason := _moving_values(node)) is not None:
            return reason
        children = _all(node.children())
        if children and name in _FIXED_NODES and not _all(node.subqueries()):
            pending += children
        elif name == "LogicalRDD":
            if not _is_constant(node.rdd()):
                return "it is computed from something else than files"
        elif name == "LogicalRelation" or "Relation " in name:
            relation = node.relation() if hasattr(node, "relation") else None
            kind = str(relation.getClass().getSimpleName()) if relation is not None else name
            if kind != _FILES:
                return "it is not made of files"
        elif children or name not in _FIXED_LEAVES:
            return f"Spark's {name} may give other rows the next time"
    return None


def _moving_values(node: Any) -> str | None:
    """Why what a node computes may change, or None."""
    pending = _all(node.expressions())
    while pending:
        one = pending.pop()
        kind = str(one.getClass().getSimpleName())
        if kind in _MOVING:
            return "what it asks for changes with time"
        if kind in _FOREIGN:
            return "it calls a function of its own, which may give other values the next time"
        if kind != "AttributeReference":
            pending += _all(one.children())
    return None


def places_of(frame: Any, session: Any) -> tuple[str, ...]:
    """Where the rows of a table come from: folders and files, or values that were handed over."""
    found: list[str] = []
    for leaf in _all(frame._jdf.queryExecution().analyzed().collectLeaves()):
        name = str(leaf.nodeName())
        if name == "LogicalRDD":
            found += (f"rdd {number}" for number in _origins(leaf.rdd()))
        elif name == "LocalRelation":
            identity = session.sparkContext._jvm.System.identityHashCode(leaf.data())
            found += [f"values {identity}"] if not leaf.data().isEmpty() else []
        elif name not in _FIXED_LEAVES:
            found += map(str, _all(leaf.relation().location().rootPaths()))
    return tuple(found)


def overlap(some: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Whether two tables read something in common: the same place, or one inside the other."""
    return any(
        f"{a}/".startswith(f"{b}/") or f"{b}/".startswith(f"{a}/") for a in some for b in others
    )


def reads_twice(places: tuple[str, ...]) -> bool:
    """Whether one row may stand in a table several times."""
    return any(overlap((one,), places[i + 1 :]) for i, one in enumerate(places))


def _origins(rdd: Any) -> list[int]:
    """What an RDD is computed from in the end."""
    parents = [dependency.rdd() for dependency in _all(rdd.dependencies())]
    return [n for one in parents for n in _origins(one)] or [int(rdd.id())]


def _reads_cache(plan: Any) -> bool:
    pending = [plan]
    while pending:
        node = pending.pop()
        if str(node.getClass().getSimpleName()) == "InMemoryRelation":
            return True
        pending += _all(node.children())
    return False


def _is_constant(rdd: Any) -> bool:
    """Whether all that an RDD is computed from was handed over as values, or is kept on disk."""
    pending = [rdd]
    while pending:
        one = pending.pop()
        parents = [dependency.rdd() for dependency in _all(one.dependencies())]
        if not parents and str(one.getClass().getSimpleName()) not in _FIXED_RDDS:
            return False
        pending += parents
    return True


def _all(sequence: Any) -> list[Any]:
    return [sequence.apply(i) for i in range(sequence.size())]


def drop(session: Any, pins: Iterator[Pin]) -> None:
    """Forget the views of a snapshot."""
    for pin in pins:
        with suppress(Exception):
            session.catalog.dropTempView(pin.view)


SparkSource = FileTable | str
"""What a table is read from: files, or its name in Spark's catalog."""
