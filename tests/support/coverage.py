"""The share of sqlrs's lines that the tests have run, at the end of a run: ``make test`` prints it.

``-p tests.support.coverage`` counts in the test processes, all workers together. What runs only in
a process that a test starts (a command, a worker of the proxy) is not counted. The figure is for
reading: nothing asks for a least one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from slipcover import Slipcover
from slipcover.importer import FileMatcher, SlipcoverMetaPathFinder

_SOURCE = Path(__file__).parents[2] / "sqlrs"
_FEWEST = 12

Lines = dict[str, tuple[set[int], set[int]]]
"""Of each file: the lines that ran, and all that could."""


class Counted:
    """The lines of this process, and of the workers that have reported theirs."""

    def __init__(self) -> None:
        assert not any(name.startswith("sqlrs.") for name in sys.modules), "sqlrs is loaded already"
        self._here = Slipcover(source=[str(_SOURCE)])
        matcher = FileMatcher(sources=[str(_SOURCE)])
        sys.meta_path.insert(0, SlipcoverMetaPathFinder(self._here, matcher))
        self._lines: Lines = {}

    def add_here(self) -> None:
        """Add what ran in this process."""
        for name, found in self._here.get_coverage()["files"].items():
            ran, missing = found["executed_lines"], found["missing_lines"]
            self.add({str(Path(name).resolve()): (ran, [*ran, *missing])})

    def add(self, lines: Mapping[str, Any]) -> None:
        """Add the lines of a worker."""
        for name, (ran, possible) in lines.items():
            mine = self._lines.setdefault(name, (set(), set()))
            mine[0].update(ran)
            mine[1].update(possible)

    def sent(self) -> dict[str, tuple[list[int], list[int]]]:
        """What a worker reports."""
        return {name: (sorted(ran), sorted(all_)) for name, (ran, all_) in self._lines.items()}

    def report(self) -> list[str]:
        """The figure, and the files with the most lines that no test process ran."""
        ran = sum(len(r) for r, _ in self._lines.values())
        possible = sum(len(p) for _, p in self._lines.values())
        missed = {name: len(p - r) for name, (r, p) in self._lines.items()}
        worst = sorted(missed, key=lambda name: -missed[name])[:_FEWEST]
        listed = ", ".join(
            f"{Path(name).relative_to(_SOURCE)} {missed[name]}" for name in worst if missed[name]
        )
        return [
            f"{ran / possible:.1%} of {possible:,} lines of sqlrs ran in the test processes "
            "(not counted: what ran only in processes that tests start)",
            f"most lines not run: {listed}",
        ]


_counted = Counted()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    _counted.add_here()
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["coverage"] = _counted.sent()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    _counted.add(getattr(node, "workeroutput", {}).get("coverage", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section("coverage")
    for line in _counted.report():
        terminalreporter.write_line(line)
