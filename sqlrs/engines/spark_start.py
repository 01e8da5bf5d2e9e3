"""Where Spark is -> an application that is started, or a server that is asked, and its session.

What keeps it from starting is told in plain words: Java, the address, the version.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from sqlrs.engines import versions
from sqlrs.engines.spark_session import OwnSession, hush, nothing, settled_or_left
from sqlrs.errors import EngineFailed, UsageError

_LOG = logging.getLogger("sqlrs.spark")

_LEAST_JAVA = 17
# How long a master or a server of Spark Connect may take to accept a connection, in seconds.
_LISTENING = 20.0
# How long jobs may wait for the first executor until the owner is told.
_FIRST_EXECUTOR = 15.0
_JAVA_VERSION = re.compile(r'version "(\d+)')
_LOCAL = re.compile(r"local(\[(\d+|\*)(, *\d+)?\])?")
_CLUSTER = re.compile(r"[^/?#]+:\d+")
_REMOTE = re.compile(r"sc://[^/]+(:\d+)?(/.*)?")

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
_STARTING = threading.Lock()
# Where those run that were started here.
_OWN_APPLICATIONS: dict[str, str] = {}


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
    if not local:
        _require_master(url)
    settings = {**_OWN, **(_OWN_LOCAL if local else _OWN_CLUSTER)}
    if memory:
        settings["spark.driver.memory"] = _java_size(memory)
    if spill:
        settings["spark.local.dir"] = spill
    return _started(place if local else url, settings, local=local)


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
            later = None
            with suppress(Exception):
                later = settled_or_left(SparkSession(context).newSession(), False, nothing)
            if later is not None:
                return later
            raise EngineFailed(
                "the Spark application of this process has ended", code="connection_failed"
            )
        builder = SparkSession.builder.master(master)
        for name, value in settings.items():
            builder = builder.config(name, value)
        first = None
        with suppress(Exception), _quietly(), _ctrl_c_as_it_was():
            started = builder.getOrCreate()
            # The setting acts here alone; said again, it reaches the executors, later ones too.
            started.sparkContext.setLogLevel(settings["spark.log.level"])
            first = started.newSession()
        own = None if first is None else settled_or_left(first, False, started.stop)
        if own is not None:
            context = own.session.sparkContext
            _OWN_APPLICATIONS[context.applicationId] = master
            if not local:
                threading.Thread(target=_tell_of_no_executor, args=[context], daemon=True).start()
            return own
        raise EngineFailed(
            "no Spark application could be started"
            + ("" if local else ": the cluster does not answer, or refuses it"),
            code="connection_failed",
            hint="is the address right, and does the cluster run the same version of Spark?"
            if not local
            else "is there memory for it? --memory-limit sets how much it may take",
        )


def _tell_of_no_executor(context: Any) -> None:
    """Say once that jobs wait for a cluster that gives nothing: Spark's own warning is silenced."""
    waited = False
    with suppress(Exception):
        while True:
            time.sleep(_FIRST_EXECUTOR)
            if context._jsc is None or context._jsc.sc().getExecutorMemoryStatus().size() > 1:
                return
            waits = bool(context.statusTracker().getActiveJobsIds())
            if waits and waited:
                _LOG.warning(
                    "sqlrs: the cluster has given no executor yet; does it have workers "
                    "with a free core and enough memory? Ctrl-C stops the waiting"
                )
                return
            waited = waits


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
    session = None
    with suppress(Exception):
        _require_listener(DefaultChannelBuilder(url))
        session = Remote.builder.remote(url).create()
    own = None if session is None else settled_or_left(session, True, nothing)
    if own is not None:
        return own
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


def _require_master(url: str) -> None:
    """Fail unless one of the masters listens: Spark itself asks again for a minute."""
    for place in url.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        with suppress(OSError, OverflowError), _connection(host.strip("[]"), int(port)):
            return
    raise EngineFailed(
        "no Spark master listens there",
        code="connection_failed",
        hint="is the address the one that the master shows as its URL (spark://host:7077)?",
    )


def _connection(host: str, port: int) -> socket.socket:
    return socket.create_connection((host, port), timeout=_LISTENING)


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
