"""Static SQL is found in a checkout and in an installed wheel, and nowhere else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sqlrs.templates import template

ROOT = Path(__file__).parents[1]
READ = "from sqlrs.templates import template; print(template('README.md'), end='')"


def test_checkout() -> None:
    assert template("README.md") == (ROOT / "sql_templates" / "README.md").read_text("utf-8")


def test_unknown_name() -> None:
    with pytest.raises(FileNotFoundError, match="nothing"):
        template("nothing.sql")


@pytest.mark.parametrize("name", ["../pyproject.toml", "/etc/passwd", "a/../../LICENSE"])
def test_names_stay_inside_the_folder(name: str) -> None:
    with pytest.raises(ValueError, match="not a template name"):
        template(name)


@pytest.mark.slow
def test_the_wheel_carries_the_templates(tmp_path: Path) -> None:
    source, site = tmp_path / "source", tmp_path / "site"
    source.mkdir()
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, source / name)
    for name in ("sqlrs", "sql_templates"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", tmp_path, source], check=True)
    (wheel,) = tmp_path.glob("sqlrs-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", site, wheel], check=True)
    run = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(site)!r}); {READ}"],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert run.stdout == (ROOT / "sql_templates" / "README.md").read_text("utf-8")
