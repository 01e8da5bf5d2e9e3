"""Where Spark is -> a session of our own, whose SQL means one thing, and which tells nobody of it.

A session is a set of settings and temporary views over one application. What is given by its owner
is cloned, so that no setting of ours is left behind in it.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import PurePath
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from sqlrs.engines import versions
from sqlrs.errors import EngineFailed, UsageError
from sqlrs.records import dataclass

_LEAST_JAVA = 17
# How long a server of Spark Connect may take to accept a connection, in seconds.
_LISTENING = 20.0
_JAVA_VERSION = re.compile(r'version "(\d+)')
_LOCAL = re.compile(r"local(\[(\d+|\*)(, *\d+)?\])?")
_CLUSTER = re.compile(r"[^/?#]+:\d+")
_REMOTE = re.compile(r"sc://[^/]+(:\d+)?(/.*)?")

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
_ZONE = "spark.sql.session.timeZone"
_UTC = frozenset({"UTC", "Etc/UTC", "Z", "+00:00"})
# How files are read, not what a text means.
_OF_FILES = frozenset(
    name for name in SETTINGS if name.startswith(("spark.sql.files.", "spark.sql.parquet."))
) | {"spark.sql.orc.filterPushdown", "spark.sql.orc.aggregatePushdown"}
# Under these, older versions' meanings come back.
_OF_OLD = ("spark.sql.legacy.", "spark.sql.optimizer.excludedRules", "spark.sql.ansi.")
# Of the application that we start: nothing listens outside of this machine, and nothing is shown
# or kept of the statements, of their values and of the errors, which quote values.
_OWN = {
    "spark.app.name": "sqlrs",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.log.level": "OFF",
    "spark.executor.syncLogLevel.enabled": "true",
    "spark.sql.pyspark.jvmStacktrace.enabled": "false",
    "spark.files.ignoreMissingFiles": "false",
    "spark.files.ignoreCorruptFiles": "false",
}
# A task that does not notice that it was cancelled ends with its executor, which is replaced; one
# that runs in this process ends with the process.
_OWN_CLUSTER = {
    "spark.task.reaper.enabled": "true",
    "spark.task.reaper.killTimeout": "20s",
    # An executor that starts while the driver does would miss what is said to all of them.
    "spark.executor.defaultJavaOptions": "-Dlog4j2.level=OFF",
}
_OWN_LOCAL = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
# pyspark writes the text of every error, and with it values of the data, to stderr.
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark", "py4j")
_STARTING = threading.Lock()
# Where those run that were started here.
_OWN_APPLICATIONS: dict[str, str] = {}


@dataclass(frozen=True)
class OwnSession:
    """A session of our own and how to leave it. ``remote``: behind Spark Connect, without a JVM."""

    session: Any
    remote: bool
    leave: Callable[[], None]

    def own_context(self) -> Any:
        """The application's context; there is none behind Spark Connect."""
        return None if self.remote else self.session.sparkContext


def of_url(url: str, *, memory: str | None = None, spill: str | None = None) -> OwnSession:
    """A session of an application that this call starts, or on a server of Spark Connect."""
    versions.SPARK.require(pyspark.__version__)
    hush()
    if _REMOTE.fullmatch(url):
        if memory or spill:
            raise UsageError("the server of Spark Connect has its own memory and folders")
        return _connected(url)
    place = url.removeprefix("spark://")
    local = _LOCAL.fullmatch(place) is not None
    if not local and not _CLUSTER.fullmatch(place):
        raise UsageError(
            "the Spark URL is malformed",
            hint="spark://local[2] (threads of this machine), spark://host:7077 (a cluster) "
            "or sc://host:15002 (Spark Connect)",
        )
    _require_java()
    settings = {**_OWN, **(_OWN_LOCAL if local else _OWN_CLUSTER)}
    if memory:
        settings["spark.driver.memory"] = _java_size(memory)
    if spill:
        settings["spark.local.dir"] = spill
    return _started(place if local else url, settings, local=local)


def of_session(given: Any) -> OwnSession:
    """A clone of a session of the owner's, with its temporary views; the application stays."""
    versions.SPARK.require(str(given.version))
    hush()
    remote = not isinstance(given, SparkSession)
    with suppress(Exception):
        if remote:
            own = given.cloneSession()
        else:
            own = SparkSession(given.sparkContext, given._jsparkSession.cloneSession())
        return OwnSession(_settled(own), remote, own.stop if remote else _nothing)
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
    # py4j tells of calls that were broken off to the root's log, with a traceback.
    logging.getLogger().addFilter(_not_of_py4j)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in PurePath(record.pathname).parts


def _settled(session: Any) -> Any:
    for name in _set_in(session):
        if name.startswith(_OF_OLD):
            session.conf.unset(name)
    for name, value in SETTINGS.items():
        # An older version may not know one that a newer one needs; none of them is left unread.
        session.conf.set(name, value)
    require_settings(session)
    return session


def _set_in(session: Any) -> Mapping[str, str]:
    """What was set in the session or for its application; what is left at its default is not."""
    found: Mapping[str, str] = session.conf.getAll
    return found


def _started(master: str, settings: Mapping[str, str], *, local: bool) -> OwnSession:
    """An application of our own. A process has one at a time, which its later sessions share."""
    with _STARTING:
        context = pyspark.SparkContext._active_spark_context
        if context is not None:
            if _OWN_APPLICATIONS.get(context.applicationId) != master:
                raise UsageError(
                    "this process has a Spark application already",
                    hint="give its session: connect(spark)",
                )
            return OwnSession(_settled(SparkSession(context).newSession()), False, _nothing)
        builder = SparkSession.builder.master(master)
        for name, value in settings.items():
            builder = builder.config(name, value)
        with suppress(Exception), _quietly(), _ctrl_c_as_it_was():
            first = builder.getOrCreate()
            # The setting acts here alone; said again, it reaches the executors, later ones too.
            first.sparkContext.setLogLevel(settings["spark.log.level"])
            _OWN_APPLICATIONS[first.sparkContext.applicationId] = master
            return OwnSession(_settled(first.newSession()), False, first.stop)
        raise EngineFailed(
            "no Spark application could be started"
            + ("" if local else ": the cluster does not answer, or refuses it"),
            code="connection_failed",
            hint="is the address right, and does the cluster run the same version of Spark?"
            if not local
            else "is there memory for it? --memory-limit sets how much it may take",
        )


def _connected(url: str) -> OwnSession:
    try:
        with warnings.catch_warnings():
            # About packages that are not used here.
            warnings.simplefilter("ignore", FutureWarning)
            from pyspark.sql.connect.client import DefaultChannelBuilder
            from pyspark.sql.connect.session import SparkSession as Remote
    except ImportError:
        raise UsageError(
            "Spark Connect needs more than pyspark", hint="pip install 'sqlrs[spark]'"
        ) from None
    with suppress(Exception):
        _require_listener(DefaultChannelBuilder(url))
        session = Remote.builder.remote(url).create()
        versions.SPARK.require(str(session.version))
        return OwnSession(_settled(session), True, session.stop)
    raise EngineFailed(
        "no server of Spark Connect answers",
        code="connection_failed",
        hint="sc://host:15002; sbin/start-connect-server.sh starts one",
    )


def _require_listener(builder: Any) -> None:
    """Fail unless a server listens: a client asks again for minutes, and once more at its end."""
    import grpc

    with builder.toChannel() as channel:
        grpc.channel_ready_future(channel).result(timeout=_LISTENING)


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    found = None
    if java is not None:
        with suppress(OSError, subprocess.SubprocessError):
            said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
            found = _JAVA_VERSION.search(said.stderr)
    if found is None:
        raise UsageError(
            "Spark needs Java, and there is none",
            code="no_java",
            hint=f"install Java {_LEAST_JAVA} or newer (Debian: openjdk-17-jre-headless), "
            "or set JAVA_HOME",
        )
    if int(found[1]) < _LEAST_JAVA:
        raise UsageError(
            f"Spark needs Java {_LEAST_JAVA} or newer, and this is Java {found[1]}",
            code="no_java",
            hint="set JAVA_HOME to a newer one",
        )


def _java_size(size: str) -> str:
    """4GB as Spark reads it: 4g."""
    found = re.fullmatch(r"(\d+)\s*([KMGT])i?B?", size.strip(), re.IGNORECASE)
    if found is None:
        raise UsageError(f"Spark does not read the memory limit {size!r}", hint="write 4GB")
    return f"{found[1]}{found[2].lower()}"


class _quietly:
    """Nothing that the start of a JVM says reaches the terminal: it is not ours to tell."""

    def __enter__(self) -> None:
        self._kept = os.dup(2)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        os.close(nowhere)

    def __exit__(self, *_: object) -> None:
        os.dup2(self._kept, 2)
        os.close(self._kept)


@contextmanager
def _ctrl_c_as_it_was() -> Iterator[None]:
    """pyspark puts a handler of its own in the place of the program's, which ends all jobs."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGINT, before)


def _nothing() -> None:
    """The application is another's."""
