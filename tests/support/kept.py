"""Texts that are kept beside the code and compared with what it makes: golden SQL, generated pages.

`make golden` sets the variable and writes all of them anew; the difference is read and committed.
"""

from __future__ import annotations

import os
from pathlib import Path

WRITE = "SQLRS_WRITE_GOLDEN"


def assert_kept(path: Path, made: str) -> None:
    """The file holds exactly the text that was made, or is written where that is asked for."""
    if os.environ.get(WRITE):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made, encoding="utf-8")
    assert path.is_file(), f"{path.name} is missing; `make golden` writes it"
    assert path.read_text(encoding="utf-8") == made, f"`make golden` writes {path.name} anew"
