"""Wrong input on the command line: a message, the right exit code, never a traceback.

Each command runs in a child of a process that has opened no database, so that streams can be closed
and packages be missing; a fork of this process, with its threads, would not live long.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

import sqlrs
from sqlrs.cli.commands import application
from tests.support.cli_child import Call, end_with_code_of

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.support.cli_child"])

COUNT = "SELECT count(*) FROM edge"
GRAPH = ("--table", "edge=graph.txt")
ASK = ("count", COUNT, "--epsilon", "1", *GRAPH)


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graph.txt").write_text("1 2\n2 3\n3 1\n")
    (tmp_path / "folder.txt").mkdir()
    (tmp_path / "noise.csv").write_bytes(bytes(range(256)) * 4)
    (tmp_path / "noise.toml").write_bytes(bytes(range(255, 0, -1)))
    (tmp_path / "deep.toml").write_text("a = " + "[" * 5000)
    (tmp_path / "half.toml").write_text("[data\n")

    def call(
        *arguments: str | bytes,
        stdin: bytes | None = b"",
        stdout: str = "file",
        stderr: str = "file",
        missing: tuple[str, ...] = (),
        environment: dict[str, str] | None = None,
        broken: bool = False,
    ) -> Ended:
        call = Call(arguments, stdin, stdout, stderr, missing, environment, broken)
        child = CONTEXT.Process(target=end_with_code_of, args=(str(tmp_path), call))
        child.start()
        child.join(120)
        assert child.exitcode is not None
        texts = [
            Path(name).read_text(errors="replace") if Path(name).exists() else ""
            for name in ("out", "err")
        ]
        return Ended(child.exitcode, *texts)

    return call


DATA: list[str | bytes] = [
    "edge=nowhere.txt",
    "edge=folder.txt",
    "edge=noise.csv",
    "edge=/dev/null",
    "edge=" + "x" * 5000 + ".txt",
    b"edge=\xff.txt",
]
CONFIGS: list[str | bytes] = [
    "nowhere.toml",
    "folder.txt",
    "noise.toml",
    "deep.toml",
    "half.toml",
    b"\xff.toml",
]
URLS: list[str | bytes] = [
    "",
    "nonsense",
    "http://[",
    "duckdb:///nowhere.db",
    "duckdb:///folder.txt",
    "duckdb:///noise.csv",
    "postgresql://[::1",
    "postgresql://127.0.0.1:1/x",
    "postgresql://127.0.0.1:port/x",
    "postgresql://%zz@host/",
    b"postgresql://\xff@127.0.0.1:1/x",
]
LEDGERS = [
    "nonsense",
    "sqlite:///nowhere/budget.db",
    "sqlite:///folder.txt",
    "sqlite:///noise.csv",
    "postgresql://127.0.0.1:port/x",
    "oracle://x",
]
MISTAKES: list[tuple[str | bytes, ...]] = [
    *(("count", COUNT, "--epsilon", "1", "--table", file) for file in DATA),
    *(("tables", "--table", file) for file in DATA),
    ("query", COUNT, "--epsilon", "-1", *GRAPH),
    ("price", COUNT, "--max-epsilon", "-1", *GRAPH),
    ("dry-run", COUNT, "--epsilon", "-1", *GRAPH),
    *(("from-smartnoise", file) for file in ("nowhere.yaml", "folder.txt", "noise.toml")),
    *(("console", "--config", file) for file in CONFIGS),
    *(("graph", "triangle", file.removeprefix(b"edge="), "--epsilon", "1")
      for file in DATA if isinstance(file, bytes)),
    *(("count", COUNT, "--epsilon", "1", "--config", file) for file in CONFIGS),
    *(("budget", "show", "--config", file) for file in CONFIGS),
    *(("user", "list", "--config", file) for file in CONFIGS),
    *(("user", "list", "--users", file) for file in ("folder.txt", "noise.toml", "deep.toml")),
    *(("check-config", file) for file in CONFIGS),
    *(("tables", "--db", url) for url in URLS),
    *(("installed", "--db", url) for url in URLS),
    *(("hide-statistics", "--db", url) for url in URLS),
    ("uninstall", "--everything", "--db", "nonsense"),
    ("install", COUNT, "--name", "n", "--db", "nonsense"),
    *(("budget", "show", "--ledger", url) for url in LEDGERS),
    *(("budget", "grant", value, "--analyst", "a", "--ledger", "sqlite:///b.db")
      for value in ("", "nan", "-1", b"\xff")),
    (*ASK, "--no-such-option"),
    *(("explain", COUNT, *GRAPH, "--svg", file)
      for file in ("nowhere/x.svg", "folder.txt", "/dev/full", "x" * 5000)),
    ("explain", COUNT, *GRAPH, "--svg", "x.svg", "--residual", "nobody"),
    ("count", b"\xff", "--epsilon", "1", *GRAPH),
    (*ASK, "--analyst", b"\xff"),
    (*ASK, "--memory-limit", "plenty"),
    (*ASK, "--temp-directory", "nowhere"),
    (*ASK, "--timeout", "nan"),
    (*ASK, "--key", "edge=colour"),
    (*ASK, "--key", "edge"),
    ("user", "add", "bob", "--users", "nowhere/users.toml"),
    ("user", "remove", "bob", "--users", "users.toml"),
    ("user", "list"),
    ("serve",),
    ("serve", *GRAPH),
    ("serve", *GRAPH, "--user", "alice", "--port", "99999"),
    ("serve", *GRAPH, "--user", "alice", "--budget", "plenty"),
]  # fmt: skip


@pytest.mark.parametrize("arguments", MISTAKES, ids=lambda a: str(a)[:70])
def test_a_mistake_gets_a_message_and_its_code(run: Run, arguments: tuple[str | bytes]) -> None:
    ended = run(*arguments, stdin=b"a password\n")
    assert ended.code in (2, 5), ended
    assert ended.out == ""
    assert "sqlrs: " in ended.err or "Error: " in ended.err
    assert "Traceback" not in ended.err
    assert "internal" not in ended.err


@pytest.mark.parametrize(
    ("stdin", "code", "message"),
    [
        (b"\xff\xfe", 2, "UTF-8"),
        (None, 2, "closed"),
        (b"", 3, "empty_query"),
        (b"\xef\xbb\xbf" + COUNT.encode(), 0, ""),
    ],
)
def test_standard_input(run: Run, stdin: bytes | None, code: int, message: str) -> None:
    ended = run("count", "-", "--epsilon", "1", *GRAPH, stdin=stdin)
    assert ended.code == code, ended
    assert message in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    "arguments", [ASK, ("explain", COUNT, *GRAPH), ("tables", *GRAPH), ("--version",), ("--help",)]
)
@pytest.mark.parametrize(("stdout", "code"), [("closed", 2), ("pipe", 1), ("full", 2)])
def test_output_that_cannot_be_written(
    run: Run, arguments: tuple[str, ...], stdout: str, code: int
) -> None:
    ended = run(*arguments, stdout=stdout)
    assert ended.code == code, ended
    assert "Traceback" not in ended.err
    assert (ended.err == "") == (stdout == "pipe")


def test_a_closed_output_is_noticed_before_the_charge(run: Run) -> None:
    ledger = ("--ledger", "sqlite:///budget.db")
    for who in (("--analyst", "analyst"), ("--dataset", "data")):
        assert run("budget", "grant", "5", *who, *ledger).code == 0
    assert run(*ASK, *ledger, stdout="closed").code == 2
    assert "reserved" not in run("budget", "history", *ledger).out
    assert "released" not in run("budget", "history", *ledger).out


def test_messages_that_nobody_reads(run: Run) -> None:
    assert run(*ASK, stderr="closed").code == 0
    assert run("count", "nonsense", "--epsilon", "1", *GRAPH, stderr="closed").code == 3


def test_a_terminal_without_greek_letters(run: Run) -> None:
    sql = f"{COUNT} a JOIN edge b ON a.dst = b.src WHERE a.src <> b.dst"
    ended = run("explain", sql, *GRAPH, stdout="ascii")
    assert ended.code == 0, ended
    assert "\\u2260" in ended.out


def test_no_environment_at_all(run: Run) -> None:
    ended = run(*ASK, environment={})
    assert ended.code == 0, ended


@pytest.mark.parametrize(
    ("arguments", "package", "extra"),
    [
        (("tables", "--db", "postgresql://127.0.0.1:1/x"), "psycopg", "postgres"),
        (("installed", "--db", "postgresql://127.0.0.1:1/x"), "psycopg", "postgres"),
        (("budget", "show", "--ledger", "postgresql://127.0.0.1:1/x"), "psycopg", "postgres"),
        (("serve", "--config", "served.toml"), "cryptography", "proxy"),
        (
            (
                *("explain", f"{COUNT} a JOIN edge b ON a.dst = b.src WHERE a.src + b.dst < 9"),
                *(*GRAPH, "--solver"),
            ),
            "z3",
            "smt",
        ),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    run: Run, arguments: tuple[str, ...], package: str, extra: str
) -> None:
    Path("graph.txt").write_text("1\t2\n")
    Path("served.toml").write_text(
        '[data]\nledger = "sqlite:///books.db"\n[data.tables]\nedge = "graph.txt"\n[proxy]\n'
    )
    ended = run(*arguments, missing=(package,))
    assert ended.code == 2, ended
    assert f"sqlrs[{extra}]" in ended.err
    assert "Traceback" not in ended.err


def test_a_mistake_of_sqlrs_itself_shows_no_data(run: Run) -> None:
    ended = run(*ASK, broken=True)
    assert (ended.code, ended.out) == (1, "")
    assert "internal: KeyError" in ended.err
    assert "4815162342" not in ended.err
    assert "Traceback" not in ended.err


def test_every_command_is_tried_here() -> None:
    """A new command does not escape: each has a wrong call above, or one here says why not."""
    tried = {str(arguments[0]) for arguments in MISTAKES} | {"--version"}
    named = {command.name for command in application().registered_commands}
    groups = {group.name for group in application().registered_groups}
    assert named - tried == {"demo", "graph", "sql", "sensitivity"} - tried
    assert groups <= tried


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--table", ("edge=other.txt",)),
        ("--table", ("EDGE=other.txt",)),
        ("--types", ("edge=src INTEGER", "edge=src BIGINT")),
        ("--function", ("f(double) -> double", "F(bigint) -> bigint")),
    ],
)
def test_what_contradicts_itself_is_told(run: Run, option: str, said: tuple[str, ...]) -> None:
    further = [part for one in said for part in (option, one)]
    ended = run(*ASK, *further)
    assert ended.code == 2
    assert f"{option} names" in ended.err
    assert "twice" in ended.err


def test_a_table_may_have_two_keys(run: Run) -> None:
    assert run(*ASK, "--key", "edge=src", "--key", "edge=dst").code == 0


@pytest.mark.parametrize("command", ["show", "history", "export"])
def test_reading_makes_no_ledger(run: Run, tmp_path: Path, command: str) -> None:
    ended = run("budget", command, "--ledger", "sqlite:///typo.db")
    assert ended.code == 2
    assert f"there is no ledger at {tmp_path / 'typo.db'}" in ended.err
    assert "sqlrs budget grant" in ended.err
    assert not (tmp_path / "typo.db").exists()
    (tmp_path / "empty.db").touch(0o600)
    assert run("budget", command, "--ledger", "sqlite:///empty.db").code == 2
    assert (tmp_path / "empty.db").stat().st_size == 0


@pytest.mark.parametrize("command", [("tables",), ("explain", COUNT), ("sql", COUNT)])
def test_reading_a_schema_makes_no_ledger(
    run: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    text = '[data]\nledger = "sqlite:///budget.db"\n[data.tables]\nedge = "graph.txt"\n'
    (tmp_path / "sqlrs.toml").write_text(text)
    assert run(*command).code == 0
    assert not (tmp_path / "budget.db").exists()


def test_the_version(run: Run) -> None:
    ended = run("--version")
    assert (ended.code, ended.out) == (0, f"sqlrs {sqlrs.__version__}\n")


CONFIG = """
[data]
public = ["node"]
ledger = "sqlite:///budget.db"
[data.tables]
edge = "graph.txt"
node = "node.csv"
[data.keys]
node = ["id"]
[proxy]
users = "users.toml"
"""


@pytest.fixture
def configured(run: Run, tmp_path: Path) -> Run:
    (tmp_path / "sqlrs.toml").write_text(CONFIG)
    (tmp_path / "node.csv").write_text("id,name\n1,a\n2,b\n3,c\n")
    return run


def test_tables_lists_what_is_private(configured: Run) -> None:
    ended = configured("tables")
    assert ended.code == 0, ended
    assert ended.err.startswith("sqlrs: reading ./sqlrs.toml\n")
    assert ended.out.splitlines() == [
        "main.edge  [private, key (src, dst)]",
        "  src  BIGINT, never null",
        "  dst  BIGINT, never null",
        "main.node  [public, key (id)]",
        "  id    BIGINT, never null",
        "  name  VARCHAR",
    ]


def test_tables_as_json(configured: Run) -> None:
    import json

    listed = json.loads(configured("tables", "--json").out)
    assert listed["views"] == []
    assert [(t["name"], t["private"], t["keys"]) for t in listed["tables"]] == [
        ("main.edge", True, [["src", "dst"]]),
        ("main.node", False, [["id"]]),
    ]
    assert listed["tables"][1]["columns"][1] == {
        "name": "name",
        "type": "VARCHAR",
        "nullable": True,
        "domain": None,
        "bounds": None,
    }


def test_views_are_listed(run: Run) -> None:
    with duckdb.connect("graph.db") as connection:
        connection.execute("CREATE TABLE edge (src BIGINT, dst BIGINT)")
        connection.execute("CREATE VIEW loop AS SELECT src FROM edge WHERE src = dst")
    assert "main.loop  [view]" in run("tables", "--db", "duckdb:///graph.db").out


def test_a_configuration_in_this_directory_is_found(configured: Run) -> None:
    for who in (("--analyst", "analyst"), ("--dataset", "data")):
        assert configured("budget", "grant", "5", *who).code == 0
    ended = configured("count", COUNT, "--epsilon", "1")
    assert ended.code == 0, ended
    assert "reading ./sqlrs.toml" in ended.err
    assert configured("budget", "show").out.count(" 4 ") == 2
    assert configured("count", "SELECT count(*) FROM node", "--epsilon", "1").out == "3\n"
    assert configured("budget", "show").out.count(" 4 ") == 2


def test_a_found_configuration_says_nothing_about_other_data(configured: Run) -> None:
    """What it declares public must not become public in data that the command line names."""
    Path("other.csv").write_text("id,name\n1,a\n")
    ended = configured("tables", "--table", "node=other.csv")
    assert "sqlrs.toml" not in ended.err
    assert "main.node  [private, no key]" in ended.out
    with duckdb.connect("node.db") as connection:
        connection.execute("CREATE TABLE node (id BIGINT)")
    assert "[private, no key]" in configured("tables", "--db", "duckdb:///node.db").out
    named = configured("tables", "--config", "sqlrs.toml", "--table", "node=other.csv")
    assert "main.node  [public, key (id)]" in named.out


def test_no_option_of_serve_is_passed_over(configured: Run) -> None:
    ended = configured("serve", *GRAPH)
    assert ended.code == 2, ended
    assert "nothing to serve" in ended.err
    ended = configured("serve", "--memory-limit", "plenty")
    assert ended.code == 2, ended
    assert "memory_limit must be a size" in ended.err
    ended = configured("serve", "--port", "99999")
    assert ended.code == 2, ended
    assert "proxy.port must be a whole number, 65535 or less" in ended.err


def test_users_are_listed(configured: Run) -> None:
    ended = configured("user", "list")
    assert (ended.code, ended.out) == (0, "")
    assert "users.toml names no user" in ended.err
    for name in ("bob", "alice"):
        assert configured("user", "add", name, stdin=b"a password\n").code == 0
    assert configured("user", "list").out == "alice\nbob\n"
    assert configured("user", "remove", "bob").code == 0
    assert configured("user", "list", "--users", "users.toml").out == "alice\n"


def test_the_real_program_with_a_broken_pipe(run: Run) -> None:
    """Once as users run it: the messages of Python's own shutdown count too."""
    command = f"{sys.executable} -m sqlrs explain '{COUNT}' --table edge=graph.txt | true"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, env=environment
    )
    assert done.stderr == ""
