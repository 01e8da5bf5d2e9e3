"""The documents cannot drift: their commands are run, their links and options exist.

Console and Python blocks of README and of the pages in `RUN` run in one empty directory a page, in
the order of the page; `tests/support/markdown.py` says how an output is compared. A block whose
info string says ``skip`` is not run; one that says ``file=NAME`` is written to that file.
"""

from __future__ import annotations

import gzip
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import duckdb
import psycopg
import pytest

from tests.support import cli_reference
from tests.support.kept import assert_kept
from tests.support.markdown import (
    PAGES,
    ROOT,
    Command,
    anchors,
    blocks,
    commands,
    links,
    matches,
    spans,
)

RUN = [ROOT / "README.md", ROOT / "docs" / "tutorial.md", ROOT / "docs" / "concepts.md"]
CLI_PAGE = ROOT / "docs" / "cli.md"
RESULTS = ROOT / "benchmarks" / "results"
RESULT, RESULT_END = r"<!-- (?!end)(\w+) -->\n\n", "<!-- end -->"
# Options of other programs that the pages name.
FOREIGN = {"--hypothesis-profile", "--require-hashes"}


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _prepare(folder: Path) -> None:
    """The files that README speaks of without making them."""
    edges = [(a, b) for a in range(8) for b in range(8) if a != b and (a + b) % 3]
    with gzip.open(folder / "graph.txt.gz", "wt") as file:
        file.write("# a graph\n" + "".join(f"{a}\t{b}\n" for a, b in edges))
    with duckdb.connect(str(folder / "graph.db")) as graph:
        graph.execute("CREATE TABLE edge (src BIGINT, dst BIGINT)")
        graph.executemany("INSERT INTO edge VALUES (?, ?)", edges)
    with duckdb.connect(str(folder / "clinic.db")) as clinic:
        clinic.execute(
            "CREATE TABLE visit AS SELECT i % 5 AS patient, DATE '2024-01-01' + i::INTEGER AS day, "
            "'h' || i % 3 AS hospital FROM range(30) AS t(i)"
        )
        clinic.execute(f"COPY visit TO '{folder / 'visits.parquet'}' (FORMAT parquet)")


def _clinic_on(url: str) -> str:
    """The table visit in a PostgreSQL database."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE visit (patient integer, day date, hospital text)")
    return url


class Shell:
    """Runs the commands of one page."""

    def __init__(self, folder: Path, server: str) -> None:
        self.folder = folder
        self.server = server
        self.query = ""

    def run(self, command: Command) -> str:
        """What the command prints, messages included. It must succeed."""
        text = self._meant(command.text)
        done = subprocess.run(
            ["bash", "-c", text],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "COLUMNS": "80",
            },
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}"
        return done.stdout

    def _meant(self, text: str) -> str:
        """The command itself: "…" is the query of the one before, a server the tests' server."""
        if '"…"' in text:
            text = text.replace('"…"', shlex.quote(self.query))
        elif found := re.search(r'"(SELECT .*?)"', text, re.S):
            self.query = found[1]
        return re.sub(r"postgresql://[^\s/]*@host/\w+", self.server, text)


@pytest.mark.parametrize("page", RUN, ids=_name)
def test_the_commands_do_what_the_page_shows(page: Path, tmp_path: Path, postgres_db: str) -> None:
    _prepare(tmp_path)
    shell = Shell(tmp_path, _clinic_on(postgres_db))
    ran = 0
    for block in blocks(page):
        if block.info.startswith("file="):
            (tmp_path / block.info.removeprefix("file=")).write_text(block.text, encoding="utf-8")
        elif "skip" in block.info.split():
            continue
        elif block.language == "python":
            program = Command(f"python - <<'END'\n{block.text}END", "", block.line)
            shell.run(program)
            ran += 1
        elif block.language == "console":
            for command in commands(block):
                if command.text.startswith("make "):
                    _check_make(command.text.split()[1])
                    continue
                printed = shell.run(command)
                place = f"{_name(page)}:{command.line}: {command.text}"
                assert matches(command.output, printed), f"{place}\nprinted\n{printed}"
                ran += 1
    assert ran > 2


def _check_make(target: str) -> None:
    """The target exists; the demo is run where nothing needs to be installed for it."""
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    ready = subprocess.run(
        ["make", "--question", ".venv/.installed"], cwd=ROOT, capture_output=True, check=False
    )
    if target == "demo" and ready.returncode == 0:
        done = subprocess.run(
            ["make", "demo"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert "The private answer at epsilon 1:" in done.stdout


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        path, _, fragment = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{_name(page)} links to {link}"
        if fragment:
            assert fragment in anchors(target), f"{_name(page)} links to {link}"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_option_exists(page: Path) -> None:
    known = cli_reference.options()
    everywhere = frozenset[str]().union(*known.values()) | FOREIGN
    texts = spans(page)
    for block in blocks(page):
        if block.language in ("console", "sh", ""):
            texts += block.text.replace("\\\n", " ").splitlines()
    for text in texts:
        plain = re.sub(r"\"[^\"]*\"|'[^']*'", "", text.removeprefix("$ ")).split("#")[0]
        given = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", plain))
        words = plain.split()
        if words[:1] == ["sqlrs"] and len(words) > 1:
            name = next((n for n in known if f"{' '.join(words)} ".startswith(f"{n} ")), None)
            group = any(n.startswith(f"sqlrs {words[1]} ") for n in known)
            assert name or group, f"{_name(page)}: there is no command {' '.join(words[:2])}"
            assert given <= known.get(name or "", everywhere), f"{_name(page)}: {text}"
        elif text in spans(page) and plain.startswith("--"):
            assert given <= everywhere, f"{_name(page)}: {text}"


def test_the_command_line_page_is_what_help_says() -> None:
    assert_kept(CLI_PAGE, cli_reference.reference())


def test_the_figures_are_those_of_the_last_run() -> None:
    """What stands between a result's name and "end" is the file that its benchmark wrote."""
    page = ROOT / "docs" / "benchmarks.md"
    text = page.read_text(encoding="utf-8")
    results = {p.stem: p.read_text(encoding="utf-8").strip() for p in RESULTS.glob("*.md")}
    assert sorted(re.findall(RESULT, text, re.DOTALL)) == sorted(results)
    assert_kept(
        page,
        re.sub(
            f"{RESULT}.*?{RESULT_END}",
            lambda m: f"<!-- {m[1]} -->\n\n{results[m[1]]}\n\n{RESULT_END}",
            text,
            flags=re.DOTALL,
        ),
    )


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("", "anything\n", True),
        ("12", "12\n", True),
        ("12", "13\n", False),
        ("a … c", "a b c\n", True),
        ("a … c", "a b d\n", False),
        ("a … b\nc", "a x\ny b\nc\n", False),
        ("a …\nd", "a b\nc\nd\n", True),
        ("a …\nd", "b\nc\nd\n", False),
        ("a\n…", "a\nb\nc\n", True),
        ("a\n…\nd", "a\nb\nc\nd\n", True),
        ("a\n…\nd", "a\nb\nc\n", False),
        ("a\n\nb", "a\n\nb", True),
        ("a.c", "abc", False),
    ],
)
def test_outputs_are_compared_as_promised(shown: str, printed: str, same: bool) -> None:
    assert matches(shown, printed) == same
