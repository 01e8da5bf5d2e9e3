"""Static SQL text: reads the files of sql_templates, installed or in a source checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parent
# A wheel carries the folder inside the package; a checkout has it beside the package.
_FOLDERS = (_PACKAGE / "sql_templates", _PACKAGE.parent / "sql_templates")


@cache
def template(name: str) -> str:
    """The text of one template, named by its path below sql_templates, such as ``a/b.sql``."""
    for folder in _FOLDERS:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise ValueError(f"not a template name: {name!r}")
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise FileNotFoundError(f"no SQL template is named {name!r}")
