"""The folder that DuckDB spills to: private, locked while used, removed also after a crash."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from os import PathLike
from pathlib import Path

from sqlrs.errors import UsageError

_PREFIX = "sqlrs-spill-"
# A folder can be taken for an abandoned one between its creation and its lock.
_ATTEMPTS = 100


class Spill:
    """A new folder, readable by this user alone, whose lock ends with the process at the latest."""

    def __init__(self, parent: str | PathLike[str] | None = None) -> None:
        home = Path(parent) if parent is not None else Path(tempfile.gettempdir())
        remove_abandoned(home)
        for _ in range(_ATTEMPTS):
            self.path = _new_folder(home)
            if self._is_locked():
                return
        raise UsageError(f"the temp directory {home} cannot be used")

    def _is_locked(self) -> bool:
        """Whether the new folder is still there with our lock on it."""
        with suppress(FileNotFoundError):
            self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            # A file system without locks has no abandoned folders to find either.
            with suppress(OSError):
                fcntl.flock(self._lock, fcntl.LOCK_EX)
            if _is_at(self._lock, self.path):
                return True
            os.close(self._lock)
        return False

    def share(self) -> str:
        """How much may be spilled unless the owner says so: half of what is free on the disk now.

        The other half is for everybody else, and for another process of ours.
        """
        return f"{shutil.disk_usage(self.path).free // 2048}KiB"

    def remove(self) -> None:
        """Remove the folder with everything in it, then end its lock."""
        shutil.rmtree(self.path, ignore_errors=True)
        with suppress(OSError):
            os.close(self._lock)


def _new_folder(home: Path) -> str:
    with suppress(OSError):
        return tempfile.mkdtemp(prefix=_PREFIX, dir=home)
    raise UsageError(f"the temp directory {home} cannot be written to")


def remove_abandoned(home: Path) -> None:
    """Remove this user's spill folders whose process has ended without doing so.

    What is not a folder of this user (a symbolic link, somebody else's) is left alone, and so is
    what another process has locked.
    """
    with suppress(OSError):
        for entry in os.scandir(home):
            if entry.name.startswith(_PREFIX):
                with suppress(OSError):
                    _remove_if_abandoned(entry.path)


def _remove_if_abandoned(path: str) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(folder).st_uid != os.geteuid():
            return
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(folder, path):
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(folder)


def _is_at(folder: int, path: str) -> bool:
    """Whether the open folder is still the one at the path, and a folder of its own."""
    with suppress(FileNotFoundError):
        here, there = os.fstat(folder), os.lstat(path)
        return stat.S_ISDIR(there.st_mode) and os.path.samestat(here, there)
    return False
