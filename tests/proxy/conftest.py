"""One running proxy for the tests that only talk to it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from sqlrs.proxy.shadow.cluster import Shadow
from tests.proxy.double import DoubleBackend
from tests.proxy.harness import RunningProxy, running_proxy


@pytest.fixture(scope="session", autouse=True)
def _clusters_are_copied() -> Iterator[None]:
    """The first shadow of each kind of server is made as ever, later ones from a copy of it.

    initdb takes most of a second of work, and every proxy has a shadow.
    """
    create = Shadow._create_data
    made: dict[Path, Path] = {}

    def copied(self: Shadow, data: Path) -> None:
        binaries = self._binaries
        if binaries not in made:
            create(self, data)
            kept = Path(tempfile.mkdtemp(prefix="sqlrs-test-cluster-")) / "data"
            subprocess.run(["cp", "-a", data, kept], check=True)
            made[binaries] = kept
        else:
            subprocess.run(["cp", "-a", made[binaries], data], check=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Shadow, "_create_data", copied)
        yield
    for kept in made.values():
        shutil.rmtree(kept.parent, ignore_errors=True)


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
