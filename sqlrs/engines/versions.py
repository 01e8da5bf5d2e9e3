"""Which versions of the parts that count were tested; any other is refused before it counts.

A number is only as right as the engine that computes it and the parser that reads the query: both
have changed what a statement means, or counted wrongly, from one release to the next.
``make versions`` runs the tests at the lower ends; pyproject.toml names the same ranges.
"""

from __future__ import annotations

import re

from sqlrs.errors import UsageError
from sqlrs.records import dataclass

_NUMBERS = re.compile(r"\d+(?:\.\d+)*")


@dataclass(frozen=True)
class Tested:
    """The versions from ``first`` up to but not including ``end``."""

    name: str
    first: tuple[int, ...]
    end: tuple[int, ...]
    remedy: str

    def require(self, version: str) -> None:
        """Refuse a version outside the range, or one that cannot be read."""
        found = _NUMBERS.match(version)
        numbers = tuple(map(int, found.group().split("."))) if found else ()
        if not self.first <= numbers < self.end:
            raise UsageError(
                f"{self.name} {version} is not supported: sqlrs was tested with "
                f"{_text(self.first)} or newer, below {_text(self.end)}",
                code="untested_version",
                hint=self.remedy,
            )

    @property
    def specifier(self) -> str:
        """The range as pyproject.toml writes it."""
        return f">={_text(self.first)},<{_text(self.end)}"


# 1.5 counts DISTINCT texts of a case-insensitive collation by their bytes, and groups them by it.
DUCKDB = Tested("DuckDB", (2, 0), (2, 1), "pip install 'duckdb>=2.0,<2.1'")
SQLGLOT = Tested("sqlglot", (30, 20), (30, 31), "pip install 'sqlglot>=30.20,<30.31'")
POSTGRES = Tested("PostgreSQL", (15,), (19,), "move the data to a server of a supported version")
SPARK = Tested("Spark", (4, 3), (4, 4), "pip install 'pyspark>=4.3,<4.4'")


def require_source(parser: str) -> None:
    """Refuse the compiled form of sqlglot: its parser cannot be told to count its steps."""
    if not parser.endswith(".py"):
        raise UsageError(
            "the compiled form of sqlglot is not supported",
            code="untested_version",
            hint="pip uninstall sqlglotc",
        )


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
