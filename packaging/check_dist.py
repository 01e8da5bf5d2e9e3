"""Installs the sdist and the wheel of dist/, each in an empty environment, and uses them there.

Nothing of the checkout is in sight: the environments lie elsewhere, and so does the work.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

DIST = Path(__file__).parents[1] / "dist"
ROWS = "patient,day\n1,2024-01-01\n1,2024-01-02\n2,2024-01-02\n"
PROGRAM = """
import sqlrs
db = sqlrs.connect(tables={"edge": "graph.txt"}, private=["edge"], keys={"edge": ["src", "dst"]})
answer = db.count("SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src", epsilon=1.0)
print(answer.value, answer.epsilon)
"""
# Nothing imports templates and static files: an install without them fails at the first page only.
CONSOLE = Path(__file__).parents[1] / "sqlrs" / "console"
ASSETS = sorted(
    str(path.relative_to(CONSOLE))
    for folder in ("templates", "static")
    for path in (CONSOLE / folder).iterdir()
)
HAS_ASSETS = """
import sys
from importlib.resources import files
for name in sys.argv[1:]:
    assert files("sqlrs").joinpath("console", name).read_bytes(), name
"""
# README's own commands, on files that are made here.
COMMANDS = (
    ("sqlrs", "--version"),
    ("sqlrs", "demo"),
    ("python", "-m", "sqlrs", "--version"),
    ("sqlrs", "graph", "triangle", "graph.txt", "--epsilon", "1"),
    ("sqlrs", "graph", "triangle", "graph.txt", "--undirected", "--epsilon", "1"),
    (
        *("sqlrs", "count", "SELECT count(*) FROM visit a JOIN visit b USING (patient)"),
        *("--table", "visit=visits.csv", "--epsilon", "0.5", "--error-bars", "0.1"),
    ),
    ("sqlrs", "explain", "SELECT count(*) FROM visit", "--table", "visit=visits.csv"),
    (
        *("sqlrs", "sensitivity", "SELECT count(*) FROM visit", "--table", "visit=visits.csv"),
        *("--method", "all"),
    ),
    ("sqlrs", "tables", "--table", "visit=visits.csv"),
    ("python", "-c", PROGRAM),
    ("python", "-c", HAS_ASSETS, *ASSETS),
)


def check(package: Path) -> None:
    """Install one file and run the commands."""
    with tempfile.TemporaryDirectory(prefix="sqlrs-dist-") as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
        binaries = folder / "env" / "bin"
        install: list[str | Path] = [
            binaries / "python",
            "-m",
            "pip",
            "install",
            "--quiet",
            package,
        ]
        subprocess.run(install, check=True, cwd=folder)
        (folder / "visits.csv").write_text(ROWS, encoding="utf-8")
        (folder / "graph.txt").write_text("1\t2\n2\t3\n3\t1\n2\t1\n3\t2\n1\t3\n", encoding="utf-8")
        for program, *arguments in COMMANDS:
            done = subprocess.run(
                [binaries / program, *arguments], cwd=folder, capture_output=True, text=True
            )
            if done.returncode:
                sys.exit(f"{package.name}: {program} {' '.join(arguments)}\n{done.stderr}")
    print(f"{package.name}: {len(COMMANDS)} commands work")


def main() -> None:
    """Check every file of dist/."""
    packages = sorted([*DIST.glob("*.whl"), *DIST.glob("*.tar.gz")])
    if len(packages) != 2:
        sys.exit(f"dist/ holds {len(packages)} packages, not one wheel and one sdist")
    for package in packages:
        check(package)


if __name__ == "__main__":
    main()
