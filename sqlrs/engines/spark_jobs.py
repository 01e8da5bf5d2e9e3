"""The jobs of one call of Spark's: a group that can be cancelled, its rows, kinds of errors."""

from __future__ import annotations

import itertools
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.types import TimestampType

from sqlrs.engines.base import Row
from sqlrs.engines.spark_session import OwnSession
from sqlrs.errors import EngineFailed, SqlrsError, StatementFailed

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERS = itertools.count(1)
# The class of an error that says that a statement cannot be read or evaluated; no value is in it.
_OF_THE_STATEMENT = ("22", "42", "0A", "21")
_GONE = ("FILE_NOT_EXIST", "FileNotFound", "PATH_NOT_FOUND")
_MEMORY = ("OutOfMemory", "UNABLE_TO_ACQUIRE_MEMORY", "MaxResultSize", "maxResultSize")


class JobGroup:
    """All jobs of one call, under a name of its own that says nothing of the data."""

    def __init__(self, own: OwnSession) -> None:
        self._own = own
        self._name = f"sqlrs-{next(_NUMBERS)}"
        self._asking: threading.Thread | None = None

    def enter(self) -> None:
        """Let all jobs that this thread starts from now on belong to the group."""
        context = self._own.own_context()
        if context is None:
            self._own.session.clearTags()
            self._own.session.addTag(self._name)
        else:
            # The threads of tasks are interrupted, which those notice that wait for something.
            context.setJobGroup(self._name, "sqlrs", interruptOnCancel=True)

    def cancel(self) -> None:
        """Stop the jobs of the group, and those that are still to come while Spark is planning."""
        context = self._own.own_context()
        if context is not None:
            with suppress(Exception):
                context._jsc.sc().cancelJobGroupAndFutureJobs(self._name)
        elif self._asking is None or not self._asking.is_alive():
            # A server that has died would not answer this either.
            self._asking = threading.Thread(target=self._interrupt_remote, daemon=True)
            self._asking.start()

    def _interrupt_remote(self) -> None:
        with suppress(Exception):
            self._own.session.interruptTag(self._name)

    def tasks(self) -> tuple[int, int]:
        """How many tasks of the group's running jobs have ended, and how many there are."""
        context = self._own.own_context()
        if context is None:
            return 0, 0
        tracker, ended, known = context.statusTracker(), 0, 0
        with suppress(Exception):
            for number in tracker.getJobIdsForGroup(self._name):
                job = tracker.getJobInfo(number)
                stages = [] if job is None or job.status != "RUNNING" else job.stageIds
                for stage in map(tracker.getStageInfo, stages):
                    if stage is not None:
                        ended += stage.numCompletedTasks
                        known += stage.numTasks
        return ended, known


def fetched(frame: Any) -> list[Row]:
    """All rows. Moments come as numbers: the driver would show them in this machine's zone."""
    moments = [
        i for i, f in enumerate(frame.schema.fields) if isinstance(f.dataType, TimestampType)
    ]
    if moments:
        names = [f"c{i}" for i, _ in enumerate(frame.columns)]
        frame = frame.toDF(*names).selectExpr(
            *(f"unix_micros({n})" if i in moments else n for i, n in enumerate(names))
        )
    rows = [tuple(row) for row in frame.collect()]
    if not moments:
        return rows
    return [tuple(_moment(v) if i in moments else v for i, v in enumerate(row)) for row in rows]


def _moment(micros: Any) -> datetime | None:
    return None if micros is None else _EPOCH + timedelta(microseconds=micros)


def told(error: BaseException | None) -> SqlrsError:
    """The kind of an error of Spark's, by its class and code."""
    kind, condition, state = type(error).__name__, "", ""
    if isinstance(error, PySparkException):
        with suppress(Exception):
            condition, state = str(error.getCondition() or ""), str(error.getSqlState() or "")
    text = f"{kind} {condition} {error}" if error is not None else kind
    if any(word in text for word in _MEMORY):
        return EngineFailed("a statement needs more memory than Spark has", code="out_of_memory")
    if any(word in text for word in _GONE):
        return EngineFailed("a file of a table is gone", code="file_changed")
    shown = f"SQLSTATE {state}" if state else kind
    failed = StatementFailed if state.startswith(_OF_THE_STATEMENT) else EngineFailed
    return failed(f"Spark could not run a statement ({shown})")
