"""``make bench``: every benchmark in turn; each writes Markdown and JSON to benchmarks/results."""

from __future__ import annotations

import runpy
import sys

BENCHMARKS = {
    "start": [],
    "shape": [],
    "compile": [],
    "noise": [],
    "table1": ["--figure"],
    "speed": [],
    "shapes": [],
    "comparisons": [],
    "groups": [],
    "persons": [],
    "relational": [],
    "scale": [],
    "spark": [],
    "peers": [],
}


def main() -> None:
    for name, options in BENCHMARKS.items():
        print(f"\n## {name}\n", flush=True)
        sys.argv = [name, *options]
        runpy.run_module(f"benchmarks.{name}", run_name="__main__")


if __name__ == "__main__":
    main()
