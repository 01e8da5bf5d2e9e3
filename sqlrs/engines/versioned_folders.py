"""Folders that keep versions of a table (Delta, Iceberg, Hudi): not every row in them is one of it.

A row that was changed stands in an old file and in a new one, one that was deleted in an old one.
Read as plain files, one row would be several, and be protected as one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from pathlib import PurePosixPath

from sqlrs.errors import UsageError
from sqlrs.records import dataclass

_PARTITION = re.compile(r"[^/=]+=[^/]*")


@dataclass(frozen=True)
class Mark:
    """A folder that says so: where it is there, with a file of such a name if one is asked for."""

    folder: str
    format: str = field(compare=False)
    file: str = field(default="*", compare=False)


def marks(files: Iterable[str], given: str) -> tuple[Mark, ...]:
    """What to look for beside the files of a folder, or of a pattern, that was given.

    A table is at any folder on the way to a file, or above what was given by a part of it alone.
    """
    found: dict[Mark, None] = {}
    for place in dict.fromkeys(root for file in files for root in _roots(file, given)):
        found[Mark(f"{place}/_delta_log", "Delta")] = None
        found[Mark(f"{place}/.hoodie", "Hudi")] = None
        if place.rpartition("/")[2] == "data":
            above = place.rpartition("/")[0]
            found[Mark(f"{above}/metadata", "Iceberg", "*.metadata.json")] = None
    return tuple(found)


def _roots(file: str, given: str) -> Iterator[str]:
    inside, place = given.rstrip("/"), file.rpartition("/")[0]
    while place and place != "/":
        partition = _PARTITION.fullmatch(place.rpartition("/")[2]) is not None
        if not partition:
            yield place
            if not place.startswith(f"{inside}/"):
                return
        place = place.rpartition("/")[0]


def plain_part(pattern: str) -> str:
    """The folders of a pattern before its first wildcard."""
    parts = []
    for part in PurePosixPath(pattern).parts:
        if any(sign in part for sign in "*?[{"):
            break
        parts.append(part)
    return str(PurePosixPath(*parts))


def refusal_of(named: object, mark: Mark) -> UsageError:
    """The error about a table that is kept in versions."""
    return UsageError(
        f"{named} is a table of {mark.format}, whose files hold rows of its past too",
        code="versioned_folder",
        hint="write the rows of one version to Parquet files of their own, and give these",
    )
