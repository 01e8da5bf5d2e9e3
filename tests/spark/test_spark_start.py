"""Where no Spark can be had: no Java, an old one, no cluster, another version; told at once."""

from __future__ import annotations

import os
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.connect.client.core import DefaultChannelBuilder

from sqlrs.engines import spark_session, spark_start, versions
from sqlrs.engines.open import open_engine
from sqlrs.engines.spark_jobs import told
from sqlrs.engines.spark_session import OwnSession
from sqlrs.errors import EngineFailed, UsageError


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Nobody listens there, and nobody else can begin to."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield int(bound.getsockname()[1])


def test_a_server_that_is_not_there_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, closed_port: int
) -> None:
    """A client of Spark Connect would ask again for minutes."""
    monkeypatch.setattr(spark_start, "_LISTENING", 0.2)
    with pytest.raises(EngineFailed, match="no server") as failed:
        open_engine(f"sc://127.0.0.1:{closed_port}")
    assert failed.value.code == "connection_failed"


def test_a_master_that_is_not_there_is_not_waited_for(closed_port: int) -> None:
    """Spark would ask again for a minute."""
    start = time.monotonic()
    with pytest.raises(EngineFailed, match="no Spark master") as failed:
        open_engine(f"spark://127.0.0.1:{closed_port}")
    assert failed.value.code == "connection_failed"
    assert time.monotonic() - start < 15


def test_java_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", os.devnull)
    with pytest.raises(UsageError, match="there is none") as refused:
        open_engine("spark://local[1]")
    assert refused.value.code == "no_java"
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        "#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n", encoding="utf-8"
    )
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(UsageError, match="this is Java 11") as refused:
        open_engine("spark://local[1]")
    assert refused.value.code == "no_java"


def test_one_application_and_what_is_none(spark: Any) -> None:
    with pytest.raises(UsageError, match="already"):
        open_engine("spark://local[7]")
    with pytest.raises(UsageError, match="malformed"):
        open_engine("spark://local[x]")


def test_another_version_is_refused_and_left(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an application that was started, and of a server, only the session tells."""
    monkeypatch.setattr(versions, "SPARK", versions.Tested("Spark", (5,), (6,), "use 5"))
    left: list[bool] = []
    with pytest.raises(UsageError, match="not supported") as refused:
        spark_session.settled_or_left(spark.newSession(), False, lambda: left.append(True))
    assert refused.value.code == "untested_version" and left == [True]


def test_too_large_a_result_is_want_of_memory() -> None:
    """What was fetched here is joined there then; Spark names its setting, and no class."""
    said = "Total size of serialized results of 1 tasks is bigger than spark.driver.maxResultSize"
    assert told(RuntimeError(f"Job aborted due to stage failure: {said}")).code == "out_of_memory"
    assert told(RuntimeError("Job aborted due to stage failure")).code != "out_of_memory"


@pytest.mark.parametrize(
    ("url", "unseen"),
    [
        ("sc://localhost:15002", True),
        ("sc://127.0.0.1", True),
        ("sc://[::1]:15002", True),
        ("sc://spark.example:15002", False),
        ("sc://spark.example:15002/;use_ssl=true", True),
        ("sc://spark.example:15002/;use_ssl=false", False),
        ("sc://localhost.spark.example", False),
    ],
)
def test_rows_are_fetched_where_nobody_sees_them_on_the_way(url: str, unseen: bool) -> None:
    channel = DefaultChannelBuilder(url)
    session = SimpleNamespace(client=SimpleNamespace(_builder=channel))
    assert OwnSession(session, True, lambda: None).keeps_rows_unseen is unseen
    # Of a channel of the owner's own making nothing is known.
    session.client._builder = object()
    assert not OwnSession(session, True, lambda: None).keeps_rows_unseen
    assert OwnSession(session, False, lambda: None).keeps_rows_unseen
