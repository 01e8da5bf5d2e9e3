"""A data server that can be killed and started again on the same directory and port."""

from __future__ import annotations

import os
import signal
import subprocess
import time

from tests.support.postgres_server import PostgresServer


class MortalServer(PostgresServer):
    """Its postmaster dies at once; its backends follow when they notice."""

    def kill(self) -> None:
        """kill -9 of the postmaster."""
        lock = self._directory / "data" / "postmaster.pid"
        os.kill(int(lock.read_text().split()[0]), signal.SIGKILL)

    def start_again(self) -> None:
        """Start on what the killed server left; it refuses while one of its backends lives."""
        options = ["-D", "data", "-l", "log", "-o", f"-p {self._port}", "-w", "start"]
        deadline = time.monotonic() + 30
        while True:
            started = self._popen(
                [self._binaries / "pg_ctl", *options],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            if started.wait(60) == 0:
                return
            assert time.monotonic() < deadline, (self._directory / "log").read_text()[-2000:]
            time.sleep(0.1)
