"""One running proxy for the tests that only talk to it."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from tests.proxy.double import DoubleBackend
from tests.proxy.harness import RunningProxy, running_proxy


@pytest.fixture(scope="package")
def backend() -> DoubleBackend:
    return DoubleBackend(Decimal(100_000))


@pytest.fixture(scope="package")
def proxy(
    backend: DoubleBackend, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningProxy]:
    folder: Path = tmp_path_factory.mktemp("proxy")
    with running_proxy(backend, folder) as running:
        yield running
