"""One running console, and one browser, for the tests that only use them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.console.harness import Running, demo_console


@pytest.fixture(scope="package")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("console", numbered=True)
    folder.chmod(0o700)
    with demo_console(folder) as running:
        yield running
