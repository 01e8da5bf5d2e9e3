"""Reads the project's Markdown for tests: fenced blocks, links, headings, the words of commands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = tuple(
    sorted(
        p
        for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("sql_templates/*.md")]
    )
)
_FENCE = re.compile(
    r"^(<!-- numbers vary -->\n)?```(\S*)[ \t]*([^\n]*)\n(.*?)^```[ \t]*$", re.S | re.M
)
_LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")
ANYTHING = "…"


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the rest of its first line, its text and its line number.

    ``numbers_vary``: a comment before it says that its numbers are those of one run.
    """

    language: str
    info: str
    text: str
    line: int
    numbers_vary: bool = False


@dataclass(frozen=True)
class Command:
    """One command of a console block and the output that the page shows for it, if any."""

    text: str
    output: str
    line: int


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(m[2], m[3].strip(), m[4], text.count("\n", 0, m.start(2)) + 1, m[1] is not None)
        for m in _FENCE.finditer(text)
    ]


def commands(block: Block) -> list[Command]:
    """The commands of a console block: lines after ``$ ``, continued by a backslash."""
    found: list[Command] = []
    lines = block.text.splitlines()
    at = 0
    while at < len(lines):
        assert lines[at].startswith("$ "), f"line {block.line + 1 + at} is no command"
        start, parts = at, [lines[at][2:]]
        while parts[-1].endswith("\\"):
            at += 1
            parts.append(lines[at])
        at += 1
        first = at
        while at < len(lines) and not lines[at].startswith("$ "):
            at += 1
        found.append(Command("\n".join(parts), "\n".join(lines[first:at]), block.line + 1 + start))
    return found


def matches(shown: str, printed: str) -> bool:
    """Whether an output is what the page shows, where … stands for anything.

    At the end of a line … may run over any number of lines, elsewhere it stays in its line. A page
    that shows nothing promises nothing.
    """
    if not shown.strip():
        return True
    pattern = ""
    for line in shown.rstrip().splitlines():
        text = line.rstrip()
        open_end = text.endswith(ANYTHING)
        parts = text.removesuffix(ANYTHING).split(ANYTHING)
        if open_end and not text.removesuffix(ANYTHING).strip():
            pattern += r"(?:[^\n]*\n)*?"
            continue
        pattern += r"[^\n]*".join(map(re.escape, parts))
        pattern += r"[^\n]*\n(?:[^\n]*\n)*?" if open_end else r"[ \t]*\n"
    return re.fullmatch(pattern, printed.rstrip() + "\n") is not None


def shape(text: str) -> str:
    """The text with # for every number, and one space or rule for many: what noise leaves alone."""
    text = re.sub(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])", "#", text)
    text = re.sub("─+", "─", re.sub(r"[ \t]+", " ", text))
    return "\n".join(line.strip() for line in text.splitlines())


def links(page: Path) -> list[str]:
    """The targets of the page's links that stay inside the project."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    text = re.sub(r"`[^`\n]*`", "", text)
    return [target for target in _LINK.findall(text) if "://" not in target]


def anchors(page: Path) -> set[str]:
    """The fragments that headings can be linked by."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", t.lower()).strip().replace(" ", "-") for t in titles}


def spans(page: Path) -> list[str]:
    """The inline code of a page."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    return re.findall(r"`([^`\n]+)`", text)
