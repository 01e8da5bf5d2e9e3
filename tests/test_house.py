"""The order of the house: imports point back along the data flow, drivers stay in their files."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from sqlrs import dialects
from sqlrs.mechanisms import NAMES

PACKAGE = Path(__file__).parents[1] / "sqlrs"
MODULES = sorted(PACKAGE.rglob("*.py"))

# From what knows nothing to what knows all: a room imports itself and the rooms before it.
ORDER = [
    ("records", "errors", "epsilon", "templates", "units", "answer", "table_answer"),
    ("refusals", "effort"),
    ("inputs",),
    ("catalog",),
    ("values",),
    ("row_owners",),
    ("unit_declaration",),
    ("query",),
    ("measures",),
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
    ("work_bound",),
    ("settings",),
    ("compiled", "recent_statements", "table_answer", "releasing"),
    ("ledger",),
    ("charges", "before_charge"),
    ("release",),
    ("wished_steps",),
    ("wished_table",),
    ("wished_release",),
    ("prices", "earlier_errors"),
    ("owner",),
    ("quoting",),
    ("database",),
    ("connecting",),
    ("config", "graphs", "notebook"),
    ("procedures",),
    ("proxy",),
    ("console",),
    ("cli",),
    ("__init__", "__main__"),
]
PLACE = {room: place for place, rooms in enumerate(ORDER) for room in rooms}

# The mathematics has no SQL in it, not even as a tree.
WITHOUT_SQL = (
    "query",
    "measures",
    "residuals",
    "planning",
    "sensitivity",
    "noise",
    "mechanisms",
    "release",
)

# Where each driver, and each library that is heavy or optional, may be imported.
DRIVERS = {
    "_duckdb": {"engines/duckdb_core.py"},
    "duckdb": {
        "engines/duckdb_core.py",
        "engines/frames.py",
        "engines/given_views.py",
        "engines/table_files.py",
        "engines/table_target.py",
    },
    "psycopg": {
        "engines/postgres.py",
        "procedures/install.py",
        "procedures/render.py",
        "procedures/server_statistics.py",
        "procedures/staged_script.py",
        "procedures/table_script.py",
        "procedures/unit_script.py",
    },
    "pyspark": {"engines/spark_jobs.py", "engines/spark_session.py", "engines/spark_start.py"},
    "sqlalchemy": {
        "ledger/budget_rows.py",
        "ledger/granting.py",
        "ledger/ledger_tables.py",
        "ledger/migrations.py",
        "ledger/opened.py",
        "ledger/overview.py",
        "ledger/store.py",
    },
    "z3": {"measuring/solver.py"},
    "highspy": {"mechanisms/packing_solver.py"},
    "numpy": {
        "mechanisms/interior_packing.py",
        "mechanisms/packing_solver.py",
        "sensitivity/packing.py",
    },
    "matplotlib": set[str](),
    "openpyxl": {"engines/staged.py"},
    "IPython": {"notebook.py"},
    "cryptography": {"proxy/protocol/certificates.py"},
    "starlette": {
        "console/analyst_pages.py",
        "console/app.py",
        "console/guard.py",
        "console/login_pages.py",
        "console/owner_pages.py",
        "console/rendering.py",
    },
    "uvicorn": {"console/http_server.py", "console/impatient_http.py"},
    "jinja2": {"console/rendering.py"},
}


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def room_of(module: str) -> str:
    """The first part below the package: a room, or a file at the top level."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file, which is parsed once."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imports_of(path: Path) -> Iterator[str]:
    """Every module that a file names in an import, wherever it stands, types included."""
    for node in nodes_of(path):
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


# Files that answer the same questions, each in its room: a seam, a database, a configuration.
SAME_ROLE = {"base", "config", "duckdb", "postgres", "spark"}


def test_a_name_means_one_thing() -> None:
    """Modules and classes with the same name are taken for each other."""
    places: dict[str, list[str]] = {}
    for path in MODULES:
        if not path.stem.startswith("__"):
            places.setdefault(path.stem, []).append(name_of(path))
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(name_of(path))
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert twice.keys() <= SAME_ROLE, twice


# The name of a dialect is not asked elsewhere: the dialect's object answers what differs.
NAMING = {
    "compiler/functions.py",  # which functions there are, a list for each dialect
    "engines/open.py",  # the registration of engines, by the scheme of a URL and by driver
    "proxy/config.py",  # the maintenance database of a server is called postgres
}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nobody_asks_for_the_name_of_a_dialect(path: Path) -> None:
    if name_of(path) in NAMING:
        return
    for node in nodes_of(path):
        asked: list[ast.expr | None] = []
        if isinstance(node, ast.Compare):
            asked = [node.left, *node.comparators]
        elif isinstance(node, ast.Dict):
            asked = list(node.keys)
        elif isinstance(node, ast.MatchValue):
            asked = [node.value]
        several = [x.elts for x in asked if isinstance(x, ast.Tuple | ast.Set | ast.List)]
        for part in [*asked, *(x for parts in several for x in parts)]:
            known = isinstance(part, ast.Constant) and part.value in dialects.NAMES
            assert not known, f"{name_of(path)}:{part}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_the_mathematics_knows_no_sql(path: Path) -> None:
    if name_of(path).split("/")[0].removesuffix(".py") in WITHOUT_SQL:
        assert not {m for m in imports_of(path) if m.partition(".")[0] == "sqlglot"}


def test_only_the_registry_knows_a_mechanism_by_name() -> None:
    """Each noise has a name; who else writes it down would have to be found for the next one."""
    for path in MODULES:
        words = {
            node.value
            for node in nodes_of(path)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        if not name_of(path).startswith(("mechanisms/", "noise/")):
            assert words.isdisjoint(NAMES), name_of(path)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_driver_is_imported_where_it_belongs(driver: str) -> None:
    found = {
        name_of(path)
        for path in MODULES
        if any(module.partition(".")[0] == driver for module in imports_of(path))
    }
    assert found == DRIVERS[driver]
