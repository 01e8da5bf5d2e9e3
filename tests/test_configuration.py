"""sqlrs.toml: every key is read, told where it is wrong, documented, and has its other names."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import fields
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

import sqlrs
from sqlrs.cli.options import CHOICES
from sqlrs.config import Config, UnitSection
from sqlrs.errors import UsageError
from sqlrs.inputs.said_owners import SaidOwner
from sqlrs.inputs.said_values import SaidBounds, SaidDomain
from sqlrs.inputs.sections import keys_of
from sqlrs.proxy.config import ProxyConfig
from tests.support import cli_reference, configuration_reference
from tests.support.kept import assert_kept
from tests.support.markdown import ROOT

PAGE = ROOT / "docs" / "configuration.md"
COUNT = "SELECT count(*) FROM visit"


def read(folder: Path, text: str) -> Config:
    (folder / "sqlrs.toml").write_text(text, encoding="utf-8")
    return Config.read(folder / "sqlrs.toml")


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sqlrs", *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_configuration_page_is_what_is_read() -> None:
    assert_kept(PAGE, configuration_reference.reference())


def test_every_key_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name, _, section in configuration_reference.described():
        assert f"## [{name}]" in page
        for key in keys_of(section).values():
            wanted = f"## [{key.name}]" if key.section else f"| `{key.name}` |"
            assert key.inner is not None or wanted in page


def test_the_other_names_of_a_key_exist_and_none_is_missing() -> None:
    options = cli_reference.options()
    arguments = set(inspect.signature(sqlrs.connect).parameters)
    keys = keys_of(Config) | keys_of(UnitSection)
    # Of the settings, what is protected has a name of its own too.
    known = arguments - {"schema_only", "neighbours"}
    assert {k.argument for k in keys.values() if k.argument} == known
    settings = {name for name, key in keys.items() if key.argument == "settings"}
    assert settings == {f.name for f in fields(sqlrs.Settings)} >= {"neighbours"}
    named = {k.option for k in keys.values() if k.option}
    for command in ("sqlrs count", "sqlrs serve"):
        gathered = options[command] & named
        chosen = {f"--{name.replace('_', '-')}" for name in CHOICES}
        assert named - gathered <= {"--analyst", *chosen}
    for key in keys_of(ProxyConfig).values():
        assert key.option is None or any(key.option in found for found in options.values())


def test_all_keys_are_read(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        """
        [data]
        db = "duckdb:///clinic.db"
        private = ["visit"]
        public = ["region"]
        keys = { visit = ["patient", "day"], region = [["id"], ["name"]] }
        types = { visit = "id BIGINT", region = { id = "BIGINT" } }
        graphs = { edge = "undirected" }
        rows_per_unit = { visit = 3 }
        dataset = "clinic"
        analyst = "alice"
        ledger = "sqlite:///budget.db"
        repeats = false
        memory_limit = "1.5 GiB"
        temp_directory = "spill"
        max_temp_directory_size = "10GB"
        threads = 2
        timeout = 5
        max_external = 1
        plan = "pruned"
        solver = true
        solver_seconds = 0.5
        neighbours = "add-remove"
        fetch_limit = 1000000
        max_groups = 100
        max_contribution = 500
        max_owned_results = 1000
        packing_seconds = 60
        max_intermediate_rows = 1000000
        refused_queries = ["SELECT count(*) FROM visit"]
        [data.tables]
        visit = "visits.csv"
        [declared_rows]
        main.visit = 5000
        [declared_degrees]
        visit.patient = 20
        [unit]
        id = "patient.id"
        max_rows = { visit = 20, main.stay = 3 }
        [unit.owners]
        visit = "patient"
        edge = ["src", "dst"]
        main.lineitem = "l_orderkey -> orders"
        "bill" = "a, b -> stay(x, y)"
        [domain]
        "visit.ward" = ["A", "B"]
        visit.age = { from = 0, to = 120 }
        "visit.region" = "region.name"
        [bounds]
        "main.visit.weight" = [0, 300.0, 0.1]
        visit.cost = [-1, 5000.123456789012345678901]
        [functions]
        bmi = "(double,  Double Precision) -> DECIMAL(10, 2)"
        """,
    )
    assert {
        f.name for f in fields(Config) if getattr(config, f.name) == getattr(Config(), f.name)
    } == (set())
    assert config.tables == {"visit": str(tmp_path / "visits.csv")}
    assert config.temp_directory == tmp_path / "spill"
    assert config.keys == {"visit": (("patient", "day"),), "region": (("id",), ("name",))}
    assert str(config.functions["bmi"]) == "(double, double precision) -> decimal(10, 2)"
    assert config.timeout == 5.0
    assert config.domain == {
        "visit.ward": SaidDomain(values=("A", "B")),
        "visit.age": SaidDomain(ends=(0, 120)),
        "visit.region": SaidDomain(column="region.name"),
    }
    assert config.unit.id == "patient.id"
    assert config.unit.max_rows == {"visit": 20, "main.stay": 3}
    assert config.unit.owners == {
        "visit": (SaidOwner(("patient",)),),
        "edge": (SaidOwner(("src",)), SaidOwner(("dst",))),
        "main.lineitem": (SaidOwner(("l_orderkey",), "orders"),),
        "bill": (SaidOwner(("a", "b"), "stay", ("x", "y")),),
    }
    # The digits that were written, not those of a float.
    assert config.bounds == {
        "main.visit.weight": SaidBounds(Decimal(0), Decimal(300), Decimal("0.1")),
        "visit.cost": SaidBounds(Decimal(-1), Decimal("5000.123456789012345678901")),
    }


@pytest.mark.parametrize(
    ("text", "told", "hint"),
    [
        ("[data]\n\nmemory_limits = 1", "line 3: [data] has no key 'memory_l", "memory_limit?"),
        ("[dats]", "line 1: there is no section 'dats'", "did you mean data? there are bounds, "),
        ("data = 3", "line 1: data must be a section", "write [data]"),
        ("[data]\nprivate = 'visit'", "line 2: data.private must be a list of names", None),
        ("[data]\nprivate = ['a', 1]", "line 2: each name of data.private must be a text", None),
        ("[data]\ntables = 3", "line 2: data.tables must be a section", "write [data.tables]"),
        ("[data.tables]\nx = 1\n", "line 2: data.tables.x must be a text", None),
        ("data.tables.x = 1\n", "line 1: data.tables.x must be a text", None),
        ("[data]\ntables = {x = 1}", "line 2: data.tables.x must be a text", None),
        ("[data.keys]\nx = 'id'", "line 2: data.keys.x: a key is a list of columns", None),
        ("[data.keys]\nx = []", "line 2: data.keys.x: a key is a list of columns", None),
        ("[data.types]\nx = {id = 3}", "line 2: data.types.x.id must be a text", None),
        ("[data.graphs]\nx = 'mixed'", "line 2: data.graphs.x must be one of directed, und", None),
        ("[data.rows_per_unit]\nx = 0", "line 2: data.rows_per_unit.x must be a whole", None),
        ("[data]\nthreads = 0", "line 2: data.threads must be a whole number, 1 or more", None),
        ("[data]\nthreads = 10000", "line 2: data.threads must be a whole number, 1024", None),
        ("[data]\nthreads = true", "data.threads must be a whole number, not a value", None),
        ("[data]\nmemory_limit = '4'", "line 2: data.memory_limit must be a size above 0", "4GB"),
        ("[data]\nmemory_limit = '0GB'", "line 2: data.memory_limit must be a size above", "4GB"),
        ("[data]\nmemory_limit = '-1GB'", "line 2: data.memory_limit must be a size", "4GB"),
        ("[data]\nmax_temp_directory_size = 4", "max_temp_directory_size must be a text", None),
        ("[data]\ntimeout = 0", "line 2: data.timeout must be a number of seconds above 0", None),
        ("[data]\ntimeout = nan", "line 2: data.timeout is a finite number of seconds", None),
        ("[data]\nplan = 'best'", "line 2: data.plan must be one of ", None),
        ("[data]\nrepeats = 1", "line 2: data.repeats must be True or False", None),
        ("[functions]\nf = 'double'", "line 2: functions.f is not the signature", "(double, doub"),
        ("[functions]\nf = '(a; b) -> c'", "line 2: functions.f is not the signature", None),
        ("[data]\nneighbours = 'loose'", "data.neighbours must be one of strict, add-remove", None),
        ("[data]\nmax_groups = 0", "line 2: data.max_groups must be a whole number, 1 or", None),
        ("[data]\nmax_groups = 1000001", "max_groups must be a whole number, 1000000 or l", None),
        ("[data]\nmax_contribution = 0", "line 2: data.max_contribution must be a whole", None),
        ("[data]\nmax_owned_results = 1.5", "data.max_owned_results must be a whole", None),
        ("[data]\nunit = 'patient.id'", "line 2: [data] has no key 'unit'", None),
        ("unit = 'patient.id'", "line 1: unit must be a section", "write [unit]"),
        ("[unit]\nid = ['a.id', 'b.id']", "line 2: unit.id: there is one unit", "patient.id"),
        ("[unit]\nid = ' '", "line 2: unit.id is empty", "patient.id"),
        ("[unit]\nof = 'a.id'", "line 2: [unit] has no key 'of'", "there are id, max_rows, owne"),
        ("[unit]\nowners = 'x'", "line 2: unit.owners must be a mapping", None),
        ("[unit.owners]\nv = 3", "line 2: unit.owners.v must be a text", None),
        ("[unit.owners]\nv = []", "line 2: unit.owners.v names no owner", "l_orderkey -> orders"),
        ("[unit.owners]\nv = 'a,'", "line 2: unit.owners.v: a column has no name", None),
        ("[unit.owners]\nv = ['a', 'a']", "unit.owners.v names an owner twice", None),
        ("[unit.owners]\nv = 'a -> b -> c'", "'a -> b -> c' does not say who owns a row", None),
        ("[unit.owners]\nv = 'a -> '", "does not say who owns a row", None),
        ("[unit.owners]\nv = 'a -> b(c, d)'", "another number of columns on each side", None),
        ("[unit.max_rows]\nv = 0", "line 2: unit.max_rows.v must be a whole number, 1", None),
        ("domain = 3", "line 1: domain must be a mapping", None),
        ("[domain]\n'v.w' = 3", "line 2: domain.v.w is not a domain", "ward.name"),
        ("[domain]\n'v.w' = []", "line 2: domain.v.w lists no value", "[\"A\""),
        ("[domain]\nv.w = {from = 3}", "line 2: domain.v.w is not a range", "to = 120"),
        ("[bounds]\nv.w = {low = 3}", "line 2: bounds.v.w.low are not bounds", "[0, 5000]"),
        ("[bounds]\n'v.w' = [1]", "line 2: bounds.v.w are not bounds", "[0, 5000]"),
        ("[bounds]\n'v.w' = ['0', '1']", "each of bounds.v.w must be a number", None),
        ("[bounds]\n'v.w' = [true, 1]", "each of bounds.v.w must be a number", None),
        ("[bounds]\n'v.w' = [0, inf]", "each of bounds.v.w must be a finite number", None),
        ("[bounds]\n'v.w' = [0, nan]", "each of bounds.v.w must be a finite number", None),
        ("[bounds]\n'v.w' = [1, 0]", "line 2: bounds.v.w: the lower bound is above", None),
        ("[bounds]\n'v.w' = [0, 1, 0]", "line 2: bounds.v.w: the step is a number above", None),
        ("functions = ['f']", "line 1: functions must be a section", "write [functions]"),
        ("x = [", "sqlrs.toml is not TOML", None),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_line(
    tmp_path: Path, text: str, told: str, hint: str | None
) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    assert told in caught.value.message
    assert "sqlrs.toml" in caught.value.message
    assert hint is None or hint in str(caught.value.hint)


def test_a_password_is_not_told_with_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, '[data]\ndbb = "postgresql://me:secret@host/clinic"\n')
    assert "secret" not in str(caught.value)
    assert "line 2" in caught.value.message


def settings_of(db: sqlrs.Database) -> dict[str, str]:
    connection: duckdb.DuckDBPyConnection = db.engine._connection  # type: ignore[attr-defined]
    names = ("threads", "memory_limit", "max_temp_directory_size", "temp_directory")
    return {
        n: str(connection.execute(f"SELECT current_setting('{n}')").fetchall()[0][0]) for n in names
    }


def test_limits_reach_duckdb_from_python_and_from_the_file(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("id,day\n1,2024-01-02\n")
    (tmp_path / "spill").mkdir()
    config = read(
        tmp_path,
        '[data]\nthreads = 1\nmemory_limit = "1GiB"\nmax_temp_directory_size = "2GiB"\n'
        'temp_directory = "spill"\ntables = { visit = "visits.csv" }\n',
    )
    wanted = {"threads": "1", "memory_limit": "1.0 GiB", "max_temp_directory_size": "2.0 GiB"}
    with config.open() as db:
        found = settings_of(db)
        assert Path(found.pop("temp_directory")).parent == tmp_path / "spill"
        assert found == wanted
    with sqlrs.connect(
        tables={"visit": tmp_path / "visits.csv"},
        threads=1,
        memory_limit="1GiB",
        max_temp_directory_size="2GiB",
    ) as db:
        found = settings_of(db)
        del found["temp_directory"]
        assert found == wanted


@pytest.mark.parametrize(
    "limit",
    [
        {"threads": 0}, {"threads": "2"}, {"threads": True}, {"threads": 2.0}, {"threads": 2**40},
        {"memory_limit": 4}, {"memory_limit": "4"}, {"memory_limit": "lots"}, {"memory_limit": ""},
        {"max_temp_directory_size": "90%"}, {"max_temp_directory_size": "0B"},
        {"temp_directory": "a\0b"}, {"temp_directory": 3}, {"timeout": 0}, {"timeout": "5"},
    ],
)  # fmt: skip
def test_sizes_and_numbers_are_checked_before_anything_is_opened(limit: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"must|limit|holds"):
        sqlrs.connect("duckdb:///nowhere.db", **limit)  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", ["threads", "memory_limit", "max_temp_directory_size"])
def test_limits_are_refused_where_they_have_no_effect(limit: str) -> None:
    value = 2 if limit == "threads" else "2GB"
    for target in (duckdb.connect(), "postgresql://nobody@127.0.0.1:1/none"):
        with pytest.raises(UsageError, match="can only be given with a DuckDB URL"):
            sqlrs.connect(target, **{limit: value})  # type: ignore[arg-type]


def test_the_command_line_has_the_limits(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("id,day\n1,2024-01-02\n")
    data = ("count", COUNT, "--epsilon", "1", "--table", "visit=visits.csv")
    asked = run(tmp_path, *data, "--threads", "1", "--max-temp-directory-size", "1GB")
    assert asked.returncode == 0, asked.stderr
    for option, told in [
        (("--threads", "0"), "threads must be a whole number, 1 or more"),
        (("--max-temp-directory-size", "much"), "max_temp_directory_size must be a size above 0"),
        (("--memory-limit", "4"), "memory_limit must be a size above 0"),
        (("--timeout", "0"), "the time limit must be above 0"),
    ]:
        refused = run(tmp_path, *data, *option)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert told in refused.stderr
    server = run(
        tmp_path, "count", COUNT, "--epsilon", "1", "--db", "postgresql://x", "--threads", "2"
    )
    assert server.returncode == 2
    assert "a number of threads can only be given with a DuckDB URL" in server.stderr
    graph = run(tmp_path, "graph", "triangle", "none.txt", "--epsilon", "1", "--threads", "-1")
    assert "threads must be a whole number" in graph.stderr
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[data]\nthread = 2\n")
    misread = run(tmp_path, "tables", "--config", "wrong.toml")
    assert misread.returncode == 2
    assert misread.stderr.splitlines()[0].endswith("wrong.toml, line 2: [data] has no key 'thread'")
    assert "did you mean threads?" in misread.stderr
