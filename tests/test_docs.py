"""The documents cannot drift: their commands are run, their links and options exist.

Console and Python blocks of README and of the pages in `RUN` run in one empty directory a page, in
the order of the page; `tests/support/markdown.py` says how an output is compared. A block whose
info string says ``skip`` is not run; one with a ``title="NAME"`` is written to that file; in one
that says ``varies=TEXT`` this text stands for anything, so that a page can show an answer with its
noise. After the comment ``numbers vary`` any number may stand for any other, so that a page can
show a whole table of them.
"""

from __future__ import annotations

import gzip
import math
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import duckdb
import psycopg
import pytest

from tests.support import cli_reference, overview
from tests.support.kept import assert_kept
from tests.support.markdown import (
    ANYTHING,
    PAGES,
    ROOT,
    Block,
    Command,
    anchors,
    blocks,
    commands,
    links,
    matches,
    shape,
    spans,
)

DOCS = ROOT / "docs"
RUN = [
    ROOT / "README.md",
    DOCS / "tutorial.md",
    DOCS / "tutorial-questions.md",
    DOCS / "tutorial-persons.md",
    DOCS / "concepts.md",
    DOCS / "python.md",
]
BIN = Path(sys.executable).parent
GENERATOR = "tpchgen-cli"  # makes the data of a page that calls it
CLI_PAGE = ROOT / "docs" / "cli.md"
RESULTS = ROOT / "benchmarks" / "results"
RESULT, RESULT_END = r"<!-- (?!end)(\w+) -->\n\n", "<!-- end -->"
TITLE = re.compile(r'title="([^"]+)"')
# Options of other programs that the pages name.
FOREIGN = {
    "--data",
    "--explain",
    "--hypothesis-profile",
    "--into",
    "--keep",
    "--postgres",
    "--require-hashes",
    "--scales",
    "--schemas",
    "--tasks",
}


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
                "PATH": f"{BIN}:{os.environ['PATH']}",
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
    if GENERATOR in page.read_text(encoding="utf-8") and not (BIN / GENERATOR).exists():
        pytest.skip(f"{GENERATOR} is not installed beside Python")
    _prepare(tmp_path)
    shell = Shell(tmp_path, _clinic_on(postgres_db))
    ran = 0
    for block in blocks(page):
        if title := TITLE.fullmatch(block.info):
            (tmp_path / title[1]).write_text(block.text, encoding="utf-8")
        elif "skip" in block.info.split():
            continue
        elif block.language == "python":
            program = Command(f"python - <<'END'\n{block.text}END", "", block.line)
            shell.run(program)
            ran += 1
        elif block.language == "console":
            for command in map(partial(_varying, block), commands(block)):
                made = command.text.startswith("make ")
                printed = _made(shell, command) if made else shell.run(command)
                place = f"{_name(page)}:{command.line}: {command.text}"
                shown = command.output
                if block.numbers_vary and printed is not None:
                    shown, printed = shape(shown), shape(printed)
                assert printed is None or matches(shown, printed), f"{place}\n{printed}"
                ran += 1
    assert ran > 2


def _varying(block: Block, command: Command) -> Command:
    """The command, with … for what the block says will be another text each time."""
    shown = re.match(r"varies=(\S+)", block.info)
    if shown is None:
        return command
    assert shown[1] in command.output
    return replace(command, output=command.output.replace(shown[1], ANYTHING))


def _made(shell: Shell, command: Command) -> str | None:
    """What make prints for the demo, by its recipe where make would install first.

    Of every other target: that it exists.
    """
    target = command.text.split()[1]
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    ready = subprocess.run(
        ["make", "--question", ".venv/.installed"], cwd=ROOT, capture_output=True, check=False
    )
    if target != "demo":
        return None
    if ready.returncode == 0:
        # A make of its own: one inside another, as here, tells which folder it is in.
        own = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL")}
        done = subprocess.run(
            ["make", target], cwd=ROOT, stdout=subprocess.PIPE, check=True, env=own
        )
        return done.stdout.decode()
    assert "\n\t$(BIN)/sqlrs demo\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
    return shell.run(replace(command, text="sqlrs demo"))


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=_name)
def test_the_site_shows_every_block_as_one(page: Path) -> None:
    """After the language it knows a title; with anything else it shows the fence as text."""
    for block in blocks(page):
        assert not block.info or TITLE.fullmatch(block.info), f"{_name(page)}:{block.line}"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        path, _, fragment = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{_name(page)} links to {link}"
        if fragment:
            assert fragment in anchors(target), f"{_name(page)} links to {link}"


def test_the_architecture_is_that_of_the_house() -> None:
    """Every file and room that the page names exists, and it names every room and top file."""
    page = ROOT / "docs" / "architecture.md"
    # File names in a sentence about a room stand without it.
    rooms = [ROOT, *(ROOT / "sqlrs" / room for room in ("", "compiler", "proxy"))]
    named = {text for text in spans(page) if re.fullmatch(r"[\w/]+(\.\w+|/)", text)}
    missing = [n for n in named if "NAME" not in n and not any((r / n).exists() for r in rooms)]
    assert missing == []
    text = page.read_text(encoding="utf-8")
    for path in (ROOT / "sqlrs").iterdir():
        if path.suffix == ".py" and not path.name.startswith("_"):
            assert path.name in text
        elif (path / "__init__.py").exists():
            assert f"{path.name}/" in text


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


def test_the_pictures_of_readme_are_generated() -> None:
    told = overview.story()
    for name, theme in overview.THEMES.items():
        drawn = overview.picture(told, theme)
        assert_kept(ROOT / "docs" / f"overview-{name}.svg", drawn)
        for page in (ROOT / "README.md", ROOT / "docs" / "index.md"):
            assert f"overview-{name}.svg" in page.read_text(encoding="utf-8")
    # What the picture says of the curves holds for every answer that it shows, and is not idle.
    with_row, without = told.laws
    ratios = [with_row[x] / without[x] for x in with_row.keys() & without.keys()]
    assert 1.5 < max(ratios) < math.e
    assert 1 / math.e < min(ratios) < 1 / 1.5


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


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("F  7304\n──", "F  -12.5\n─────", True),
        ("NULL  3", "NULL  x", False),
        ("k1  3", "k2  3", False),
        ("a  3\nb  4", "a  3", False),
        ("ε = 1, laplace", "ε = 0.5, lomax", False),
    ],
)
def test_a_shape_keeps_all_but_the_numbers(shown: str, printed: str, same: bool) -> None:
    assert matches(shape(shown), shape(printed)) == same


def test_the_tests_that_the_review_names_exist() -> None:
    review = (ROOT / "docs" / "security-review.md").read_text()
    sources = {path.relative_to(ROOT).as_posix(): path for path in (ROOT / "tests").rglob("*.py")}
    assert set(re.findall(r"\btests/[\w/]+\.py\b", review)) <= set(sources)
    written = "\n".join(path.read_text() for path in sources.values())
    # A name may be cut short by "…".
    named = set(re.findall(r"::((?:test_|Test)\w+)", review))
    assert len(named) > 100
    assert not [name for name in sorted(named) if not re.search(rf"(def|class) {name}", written)]
