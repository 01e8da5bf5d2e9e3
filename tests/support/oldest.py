"""The lower end of every dependency's range as pip constraints: ``make versions`` installs them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

# The tools that run the tests are not what is tested.
_TOOLS = frozenset(
    {"check-jsonschema", "hypothesis", "mypy", "pandas", "pytest", "pytest-xdist", "ruamel.yaml"}
    | {"ruff", "slipcover", "tpchgen-cli", "asyncpg", "pg8000", "psycopg2-binary"}
)
_RANGE = re.compile(r"([A-Za-z0-9._-]+)(?:\[\w+\])?>=([\d.]+)")


def lower_ends() -> list[str]:
    """One pin for each dependency, e.g. duckdb==2.0.0."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(d for name in extras for d in extras[name])]
    pins = []
    for found in filter(None, map(_RANGE.match, wanted)):
        name, version = found.groups()
        if name not in _TOOLS and name != "pyspark":
            version += ".0" * (2 - version.count("."))
            pins.append(f"{name}=={version}")
            if name == "psycopg":
                pins.append(f"psycopg-binary=={version}")
    return pins


if __name__ == "__main__":
    print("\n".join(lower_ends()))
