"""The order of the house: imports point back along the data flow, drivers stay in their files."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "sqlrs"
MODULES = sorted(PACKAGE.rglob("*.py"))

# From what knows nothing to what knows all: a room imports itself and the rooms before it.
ORDER = [
    ("errors", "epsilon", "templates", "answer"),
    ("refusals", "effort"),
    ("arguments",),
    ("catalog",),
    ("values",),
    ("query",),
    ("trees",),
    ("dialects",),
    ("compiler",),
    ("residuals",),
    ("planning",),
    ("sql",),
    ("engines",),
    ("measuring",),
    ("sensitivity",),
    ("noise",),
    ("mechanisms",),
    ("settings",),
    ("compiled",),
    ("ledger",),
    ("release",),
    ("owner",),
    ("database",),
    ("config", "graphs"),
    ("procedures",),
    ("proxy",),
    ("cli",),
    ("__init__", "__main__"),
]
PLACE = {room: place for place, rooms in enumerate(ORDER) for room in rooms}

# Where each driver, and each library that is heavy or optional, may be imported.
DRIVERS = {
    "duckdb": {"engines/duckdb.py", "engines/duckdb_optimizers.py", "engines/files.py"},
    "psycopg": {
        "engines/postgres.py",
        "procedures/install.py",
        "procedures/render.py",
        "procedures/statistics.py",
    },
    "pyspark": set[str](),
    "sqlalchemy": {"ledger/store.py"},
    "z3": {"measuring/solver.py"},
    "matplotlib": set[str](),
    "cryptography": {"proxy/protocol/certificates.py"},
}


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def room_of(module: str) -> str:
    """The first part below the package: a room, or a file at the top level."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imports_of(path: Path) -> Iterator[str]:
    """Every module that a file names in an import, wherever it stands, types included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)} has a relative import"
            assert node.module is not None
            if node.module == "sqlrs":
                # A name with underscores is the package's own, not a module.
                names = (alias.name for alias in node.names)
                yield from (f"sqlrs.{name}" for name in names if not name.startswith("__"))
            else:
                yield node.module


def test_every_file_has_a_place() -> None:
    rooms = {room_of(f"sqlrs.{name_of(p).removesuffix('.py').replace('/', '.')}") for p in MODULES}
    assert rooms <= PLACE.keys()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_back_along_the_data_flow(path: Path) -> None:
    own = name_of(path).split("/")[0].removesuffix(".py")
    for module in imports_of(path):
        if module.partition(".")[0] == "sqlrs":
            room = room_of(module)
            assert PLACE[room] <= PLACE[own], f"{own} imports {room}"


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_driver_is_imported_where_it_belongs(driver: str) -> None:
    found = {
        name_of(path)
        for path in MODULES
        if any(module.partition(".")[0] == driver for module in imports_of(path))
    }
    assert found == DRIVERS[driver]
