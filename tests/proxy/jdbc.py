"""Java programs with PostgreSQL's JDBC driver; a test is skipped where one of them is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CLIENTS = Path(__file__).parent / "clients"
# Where Debian's libpostgresql-jdbc-java puts it.
_DEBIAN = Path("/usr/share/java/postgresql.jar")


def run_jdbc(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What a program of ``clients`` printed; PGJDBC_JAR names another driver."""
    jar, java = _jar(), shutil.which("java")
    if java is None or shutil.which("javac") is None:
        pytest.skip("no Java compiler: install openjdk-17-jdk-headless")
    if jar is None:
        pytest.skip("no JDBC driver: install libpostgresql-jdbc-java, or name it in PGJDBC_JAR")
    return subprocess.run(
        [java, "-cp", str(jar), str(CLIENTS / f"{program}.java"), *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def _jar() -> Path | None:
    given = os.environ.get("PGJDBC_JAR")
    candidates = [Path(given)] if given else []
    candidates += [_DEBIAN]
    candidates += sorted((Path.home() / ".m2/repository/org/postgresql").glob("postgresql/*/*.jar"))
    return next((path for path in candidates if path.is_file()), None)
