"""One running console, and one browser, for the tests that only use them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.console.harness import Running, demo_console


@pytest.fixture(scope="package")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("console", numbered=True)
    folder.chmod(0o700)
    with demo_console(folder) as running:
        yield running


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Debian's Chromium; playwright brings none that could be downloaded everywhere."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("there is no chromium on this machine: apt-get install chromium")
    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=options)
        yield opened
        opened.close()
