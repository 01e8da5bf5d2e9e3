"""Spark for tests: whether it can run here, one application, and tables that hold given rows.

The application serves Spark Connect as well, so that this takes no second one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlrs.catalog import Table

Row = tuple[object, ...]
# To compile a statement, and to look at its stages in between, takes longer than few rows do.
FOR_FEW_ROWS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
}
# DuckDB's words for types in Spark's.
_WORDS = {"VARCHAR": "STRING", "TIMESTAMP": "TIMESTAMP_NTZ", "HUGEINT": "DECIMAL(38,0)"}


@cache
def why_not() -> str | None:
    """Why no Spark can be started here, or None."""
    if find_spec("pyspark") is None:
        return "pyspark is not installed: pip install 'sqlrs[spark]'"
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None:
        return "there is no Java: Debian's openjdk-17-jre-headless serves"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60).stderr
    found = re.search(r'version "(\d+)', said)
    if found is None or int(found[1]) < 17:
        return "Java is older than 17"
    return None


@contextmanager
def started(folder: Path) -> Iterator[Any]:
    """A session of the owner's, on an application with two threads."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        # To compile well what runs once takes longer than to run it.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.default.parallelism": "1",
        # A view that is made in another zone is not read.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        **FOR_FEW_ROWS,
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    running = SparkSession.getActiveSession() is not None
    session = builder.getOrCreate()
    yield session
    if not running:
        session.stop()


def connect_url(session: Any) -> str:
    """Where the application of `started` serves Spark Connect."""
    service = getattr(session._jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
    return f"sc://127.0.0.1:{getattr(service, 'MODULE$').localPort()}"


def load(
    session: Any,
    tables: Iterable[Table],
    rows: Mapping[str, Sequence[Row]],
    *,
    stored: bool = False,
) -> None:
    """Replace all that the session has; tables with a schema are stored as files.

    ``stored``: so are all others. Other sessions see them, and behind Spark Connect nothing else is
    looked at.
    """
    for _, name, temporary in session.sql("SHOW TABLES").collect():
        session.sql(f"DROP {'VIEW' if temporary else 'TABLE'} `{name}`")
    for (space,) in session.sql("SHOW DATABASES").collect():
        if space != "default":
            session.sql(f"DROP DATABASE `{space}` CASCADE")
    for table in tables:
        columns = ", ".join(f"`{c.name}` {_type(c.type.name)}" for c in table.columns)
        frame = session.createDataFrame([tuple(r) for r in rows.get(table.label, ())], columns)
        if table.schema is None and not stored:
            frame.createOrReplaceTempView(f"`{table.name}`")
        else:
            schema = table.schema or "default"
            session.sql(f"CREATE DATABASE IF NOT EXISTS {schema}")
            frame.write.mode("overwrite").saveAsTable(f"{schema}.`{table.name}`")


def _type(name: str) -> str:
    return _WORDS.get(name.upper(), name)
