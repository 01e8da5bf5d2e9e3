"""Write docker/requirements.lock: every package of the image with its version and hashes.

Run by ``make lock`` with pip at hand. The hashes are those of the wheels for the image's Python on
both processors that it is built for; nothing in the file says where they were downloaded from.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
PYTHON = "3.13"
PROCESSORS = ("x86_64", "aarch64")
EXTRAS = ("postgres", "proxy")
_GLIBC = ("manylinux_2_34", "manylinux_2_28", "manylinux_2_24", "manylinux_2_17", "manylinux2014")


def wanted() -> list[str]:
    """What builds sqlrs, and its dependencies with the extras of the image, not sqlrs itself."""
    document = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    project, build = document["project"], document["build-system"]["requires"]
    extras = [d for name in EXTRAS for d in project["optional-dependencies"][name]]
    return [d for d in (*build, *project["dependencies"], *extras) if not d.startswith("sqlrs[")]


def resolved(processor: str) -> dict[str, tuple[str, str]]:
    """Name -> version and hash of what pip would install on that processor."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        platforms = [f"--platform={name}_{processor}" for name in _GLIBC]
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "install", "--quiet", "--dry-run"),
                *("--ignore-installed", "--only-binary=:all:", "--disable-pip-version-check"),
                *(f"--python-version={PYTHON}", *platforms, f"--target={folder}/none"),
                *(f"--report={report}", *wanted()),
            ],
            check=True,
        )
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    return {
        re.sub(r"[-_.]+", "-", item["metadata"]["name"]).lower(): (
            item["metadata"]["version"],
            item["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for item in found
    }


def main() -> None:
    """Resolve for every processor and write the union of the hashes."""
    hashes: dict[str, set[str]] = {}
    for processor in PROCESSORS:
        for name, (version, sha256) in resolved(processor).items():
            hashes.setdefault(f"{name}=={version}", set()).add(sha256)
    names = [pin.partition("==")[0] for pin in hashes]
    if len(names) != len(set(names)):
        sys.exit("the processors would get different versions")
    lines = ["# Made by `make lock` from pyproject.toml: all that docker/Dockerfile installs."]
    for pin in sorted(hashes):
        lines.append(" \\\n    ".join([pin, *(f"--hash=sha256:{h}" for h in sorted(hashes[pin]))]))
    (HERE / "requirements.lock").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
