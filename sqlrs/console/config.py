"""The [console] part of sqlrs.toml: every key with its default and its meaning."""

from __future__ import annotations

from pathlib import Path

from sqlrs.config import Config
from sqlrs.errors import UsageError
from sqlrs.inputs.sections import (
    NAMES,
    TEXT,
    TRUTH,
    key,
    one_of,
    read_file,
    sections_of,
    whole,
)
from sqlrs.proxy.config import PORT
from sqlrs.records import dataclass

LOCAL = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class ConsoleConfig:
    """[console]: where to listen and who is an owner; users and limits are the proxy's."""

    enabled: bool = key(
        TRUTH, True, "Whether `sqlrs serve` serves it too, where there is this section."
    )
    listen: str = key(TEXT, "127.0.0.1", "The address to listen on.")
    port: int = key(PORT, 8432, "The port; 0 takes a free one.", "--port")
    tls: str = key(
        one_of("require", "off"),
        "require",
        "With the proxy's certificate; `off` only on this machine's own address.",
    )
    owners: tuple[str, ...] = key(
        NAMES, (), "Users who see the owner's pages and decide about budgets; all others ask."
    )
    session_minutes: int = key(
        whole(1, 24 * 60), 30, "After so long without a request one must log in again."
    )

    @classmethod
    def read(cls, path: Path) -> ConsoleConfig:
        """The [console] section of the file, checked."""
        config = read_file(path, "console", cls, "proxy", *sections_of("data", Config))
        config.check()
        return config

    def check(self) -> None:
        """Refuse passwords in clear on an address that others reach, and wrong ports."""
        PORT.read("console.port", self.port)
        if self.tls == "off" and self.listen not in LOCAL:
            raise UsageError(
                "without TLS the console listens on this machine only",
                hint='set console.listen = "127.0.0.1" or console.tls = "require"',
            )
