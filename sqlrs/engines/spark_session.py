"""A session of Spark's -> one of our own, whose SQL means one thing, and which tells nobody of it.

A session is a set of settings and temporary views over one application. What is given by its owner
is cloned, so that no setting of ours is left behind in it.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import PurePath
from typing import Any

from pyspark.sql import SparkSession

from sqlrs.engines import versions
from sqlrs.errors import EngineFailed, SqlrsError, UsageError
from sqlrs.records import dataclass

# Without ANSI mode a sum of 64 bits goes round and one of decimals becomes NULL: T_E would be 0.
# What a file says of its least and greatest values leaves NaN out, so no filter may rely on it.
SETTINGS: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.hive.verifyPartitionPath": "false",
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.aggregatePushdown": "false",
    "spark.sql.orc.filterPushdown": "false",
    "spark.sql.orc.aggregatePushdown": "false",
    "spark.sql.optimizer.metadataOnly": "false",
    "spark.sql.csv.parser.columnPruning.enabled": "false",
    "spark.sql.readSideCharPadding": "true",
    "spark.sql.bindJoinToInequalityEquivalence": "false",
}
# What is parsed once and kept (edge lists) has as many parts as its size asks for, not as many as
# an exchange may have: of 3,000 edges each of the 200 parts was a task in every stage.
_OF_PARTS = {"spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true"}
_ZONE = "spark.sql.session.timeZone"
_UTC = frozenset({"UTC", "Etc/UTC", "Z", "+00:00"})
# How files are read, not what a text means.
_OF_FILES = frozenset(
    name for name in SETTINGS if name.startswith(("spark.sql.files.", "spark.sql.parquet."))
) | {"spark.sql.orc.filterPushdown", "spark.sql.orc.aggregatePushdown"}
# Under these, older versions' meanings come back.
_OF_OLD = ("spark.sql.legacy.", "spark.sql.optimizer.excludedRules", "spark.sql.ansi.")
_HERE = ("localhost", "127.0.0.1", "[::1]")
# pyspark writes the text of every error, and with it values of the data, to stderr.
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark", "py4j")


@dataclass(frozen=True)
class OwnSession:
    """A session of our own and how to leave it. ``remote``: behind Spark Connect, without a JVM."""

    session: Any
    remote: bool
    leave: Callable[[], None]

    @property
    def keeps_rows_unseen(self) -> bool:
        """Whether rows that are fetched pass no network in the open on their way from a server.

        Within a cluster they pass what Spark's own exchanges pass.
        """
        if not self.remote:
            return True
        channel = getattr(getattr(self.session, "client", None), "_builder", None)
        return getattr(channel, "secure", False) is True or getattr(channel, "host", None) in _HERE

    def own_context(self) -> Any:
        """The application's context; there is none behind Spark Connect."""
        return None if self.remote else self.session.sparkContext


def of_session(given: Any) -> OwnSession:
    """A clone of a session of the owner's, with its temporary views; the application stays."""
    hush()
    remote = not isinstance(given, SparkSession)
    own = None
    with suppress(Exception):
        if remote:
            own = given.cloneSession()
        else:
            own = SparkSession(given.sparkContext, given._jsparkSession.cloneSession())
    found = None if own is None else settled_or_left(own, remote, nothing)
    if found is not None:
        return found
    raise UsageError(
        "the Spark session does not answer", hint="it may be stopped: give one that works"
    )


def require_settings(session: Any) -> None:
    """Fail unless every setting is what the statements were written for."""
    now = _set_in(session)
    if any(str(now.get(name)).lower() != value.lower() for name, value in SETTINGS.items()):
        raise EngineFailed("the settings of the Spark session are not those that sqlrs made")


def reads_alike(settings: Mapping[str, str]) -> bool:
    """Whether SQL under these settings, the others at their defaults, means what it does here."""
    for name, value in settings.items():
        if name == _ZONE:
            if value not in _UTC:
                return False
        elif name in SETTINGS:
            if value.lower() != SETTINGS[name].lower() and name not in _OF_FILES:
                return False
        elif name.startswith(_OF_OLD):
            return False
    return True


def hush() -> None:
    """Keep the drivers' own logs from telling values of the data."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers[:] = [logging.NullHandler()]
        logger.propagate = False
        logger.disabled = True
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")
    # py4j tells of calls that were broken off to the root's log, with a traceback.
    logging.getLogger().addFilter(_not_of_py4j)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in PurePath(record.pathname).parts


def settled(session: Any) -> Any:
    """The same session with our settings."""
    with warnings.catch_warnings():
        # A server tells its clients which settings it will give up one day.
        warnings.simplefilter("ignore")
        for name in _set_in(session):
            if name.startswith(_OF_OLD):
                session.conf.unset(name)
        for name, value in {**SETTINGS, **_OF_PARTS}.items():
            # An older version may not know one that a newer one needs; none of them is left unread.
            session.conf.set(name, value)
    require_settings(session)
    return session


def _set_in(session: Any) -> Mapping[str, str]:
    """What was set in the session or for its application; what is left at its default is not."""
    found: Mapping[str, str] = session.conf.getAll
    return found


def settled_or_left(session: Any, remote: bool, leave: Callable[[], None]) -> OwnSession | None:
    """A session with our settings, if it is of a version that was tested; None if it is ill."""
    problem: SqlrsError | None = None
    if remote:
        leave = partial(_stop_at_once, session)
    try:
        if remote:
            _let_ask_for_half_a_minute(session)
        # SPARK_HOME may lead to another Spark than pyspark's, and a server has its own.
        versions.SPARK.require(str(session.version))
        return OwnSession(settled(session), remote, leave)
    except SqlrsError as error:
        problem = error
    except Exception:
        pass
    with suppress(Exception):
        leave()
    if problem is not None:
        raise problem
    return None


def _let_ask_for_half_a_minute(session: Any) -> None:
    """A client of Spark Connect would ask a server that has died again for ten."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(max_retries=8, max_backoff=5000)])


def _stop_at_once(session: Any) -> None:
    session.client.set_retry_policies([])
    session.stop()


def nothing() -> None:
    """The application is another's."""
