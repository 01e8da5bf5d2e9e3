"""A gap of an engine must show, by the error that was named, until its marker goes."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

CONFTEST = """
import pytest
from tests.support import gaps

@pytest.fixture(autouse=True)
def expected(request):
    gaps.expect_gaps(request)
"""
TEST = """
import pytest
from tests.support.gaps import notyet

@notyet({engine!r}, "no reason", raises=NotImplementedError)
@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_it(engine):
    if engine == "spark":
        {body}
"""


@pytest.mark.parametrize(
    ("engine", "body", "outcomes"),
    [
        ("spark", "raise NotImplementedError", {"passed": 1, "xfailed": 1}),
        ("spark", "raise ValueError", {"passed": 1, "failed": 1}),
        ("spark", "pass", {"passed": 1, "failed": 1}),
        ("duckdb", "raise NotImplementedError", {"failed": 2}),
        ("duckdb<2", "pass", {"passed": 2}),
        ("duckdb<99", "raise NotImplementedError", {"failed": 1, "xfailed": 1}),
    ],
)
def test_a_gap_is_strict(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    engine: str,
    body: str,
    outcomes: dict[str, int],
) -> None:
    monkeypatch.setattr("duckdb.__version__", "2.0.0")
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TEST.format(engine=engine, body=body))
    found = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
    assert found.parseoutcomes().items() >= outcomes.items()
