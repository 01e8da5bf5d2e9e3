"""Who may connect: a TOML file of SCRAM verifiers, replaced as a whole when a user is added."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

from sqlrs.errors import UsageError
from sqlrs.proxy.protocol.scram import ScramServer, Verifier

_NAME = re.compile(r"[a-z_][a-z0-9_.@-]{0,62}", re.ASCII)
_RESERVED = ("pg_", "sqlrs_")


class Users:
    """The verifiers of a users file; ``reload`` reads it again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._verifiers: Mapping[str, Verifier] = read_users(path)
        # The same after a restart: a salt that changes then would be that of no user.
        known = "\n".join(f"{n} {v.text()}" for n, v in sorted(self._verifiers.items()))
        self._secret = hashlib.sha256(known.encode("utf-8")).digest()

    def reload(self) -> None:
        """Take the file as it is now; a broken file leaves everything as it was."""
        self._verifiers = read_users(self._path)

    def names(self) -> list[str]:
        """All users."""
        return sorted(self._verifiers)

    def fits(self, user: str, password: str) -> bool:
        """Whether this is the user's password; an unknown user takes as long, and has none."""
        known = self._verifiers.get(user)
        verifier = known or Verifier.decoy(self._secret, user)
        return verifier.fits(password) and known is not None

    def mark(self, user: str) -> bytes | None:
        """Changes with the password, and ends with the user."""
        known = self._verifiers.get(user)
        return None if known is None else hashlib.sha256(known.text().encode()).digest()

    def exchange(
        self, user: str, end_point: bytes | None, admit: Callable[[], None] = lambda: None
    ) -> ScramServer:
        """An authentication exchange; for an unknown user one that looks alike and fails.

        ``admit`` is asked before the proof is looked at, and raises if it must not be.
        """
        known = self._verifiers.get(user)
        decoy = Verifier.decoy(self._secret, user)
        return ScramServer(known or decoy, known is not None, end_point, admit=admit)


def read_users(path: Path) -> dict[str, Verifier]:
    """The verifiers in the file, by user name."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        raise UsageError(f"{path} is not TOML") from None
    section = document.get("users", {})
    if set(document) - {"users"} or not isinstance(section, dict):
        raise UsageError(f"{path} holds one section, [users]")
    verifiers = {}
    for name, text in section.items():
        check_name(name)
        try:
            verifiers[name] = Verifier.parse(text if isinstance(text, str) else "")
        except ValueError:
            raise UsageError(f"{path}: user {name} has no SCRAM-SHA-256 verifier") from None
    return verifiers


def add_user(path: Path, name: str, password: str) -> None:
    """Add a user or change a password. The file then holds the verifier, never the password."""
    check_name(name)
    if len(password) < 8:
        raise UsageError("a password has at least 8 characters")
    _write(path, read_users(path) | {name: Verifier.of_password(password)})


def remove_user(path: Path, name: str) -> None:
    """Remove a user; sessions that are open go on until the users are reloaded."""
    users = read_users(path)
    if name not in users:
        raise UsageError(f"there is no user {name}")
    del users[name]
    _write(path, users)


def check_name(name: str) -> None:
    """Refuse a name that PostgreSQL would fold, reserve or cut."""
    if not _NAME.fullmatch(name) or name.startswith(_RESERVED) or name in ("public", "none"):
        raise UsageError(
            f"{name!r} cannot be a user name",
            hint="use up to 63 lower-case letters, digits, _, ., @ and -, a letter first",
        )


def _write(path: Path, users: Mapping[str, Verifier]) -> None:
    lines = [
        "[users]",
        *(f"{json.dumps(n)} = {json.dumps(users[n].text())}" for n in sorted(users)),
    ]
    # Written beside and renamed: a reader sees the old file or the new one.
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        os.fchmod(handle, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
