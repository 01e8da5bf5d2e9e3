"""The file of a ledger: whoever may write to it may refill budgets, so only its owner may."""

from __future__ import annotations

import os
import stat

from sqlrs.errors import UsageError


def claim_file(path: str, create: bool) -> None:
    """Refuse a file that others may change; one that is missing is made for its owner alone."""
    if not create and not os.path.exists(path):
        raise no_ledger(os.path.abspath(path))
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        file = os.stat(path)
        folders = {os.path.dirname(os.path.abspath(path)), os.path.dirname(os.path.realpath(path))}
        open_to_all = any(os.stat(folder).st_mode & stat.S_IWOTH for folder in folders)
    except OSError as error:
        raise UsageError(f"the ledger's file cannot be opened: {error.strerror}") from None
    if os.name != "posix":
        return
    if file.st_uid != os.geteuid():
        raise UsageError(
            "the ledger's file belongs to another user",
            hint="use the ledger as the user who owns it, or give it to this one",
        )
    if file.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UsageError(
            "others may write to the ledger's file, and so refill budgets",
            hint="chmod 600 the file",
        )
    # Beside the file SQLite looks for a journal and takes over what stands in it.
    if open_to_all:
        raise UsageError(
            "everybody may create files in the ledger's folder, and so change the ledger",
            hint="keep it in a folder of its own (mkdir -m 700)",
        )


def no_ledger(place: str) -> UsageError:
    """Where a ledger should be read there is none."""
    return UsageError(
        f"there is no ledger at {place}",
        hint="is it the right name? sqlrs budget grant E --analyst NAME --ledger URL makes a new "
        "one there",
    )
