"""An owner's dry run: all that a release does but its answer, timed; nothing is released.

What it tells, how long a query takes and whether it finishes, depends on the data: it is for the
owner alone. An owner who refuses a query because of it (``refused_queries``) tells that much.
"""

from __future__ import annotations

import json
import time

from sqlrs.catalog import Catalog
from sqlrs.compiled import CompiledStatement, compiled_text
from sqlrs.engines.base import Engine
from sqlrs.errors import EngineFailed
from sqlrs.ledger import MemoryLedger
from sqlrs.measuring.work import Progress
from sqlrs.records import dataclass
from sqlrs.release import release, release_table
from sqlrs.settings import Request, Settings


@dataclass(frozen=True)
class DryRun:
    """How long a query took, and what ended it early, if anything did."""

    sql: str
    seconds: float
    processor_seconds: float
    problem: str | None

    def __str__(self) -> str:
        end = "did not finish" if self.problem else "finished"
        lines = [
            f"{end} after {self.seconds:.2f} s ({self.processor_seconds:.2f} s of the processor); "
            "nothing was released or charged",
        ]
        if self.problem:
            lines.append(self.problem)
            lines.append("to refuse it from now on, before any charge, add to the configuration:")
            lines.append(f"refused_queries = [{json.dumps(self.sql, ensure_ascii=False)}]")
        return "\n".join(lines)


def dry_run(
    request: Request,
    *,
    engine: Engine,
    catalog: Catalog,
    settings: Settings,
    progress: Progress | None = None,
) -> DryRun:
    """Run a query as a release of it would, with a ledger that nobody sees; drop the answer."""
    compiled = compiled_text(request.sql, catalog, settings)
    start, before = time.perf_counter(), time.process_time()
    problem = None
    # One path releases numbers: the same one is walked, so that what is timed is what it takes.
    answer = release_table if isinstance(compiled, CompiledStatement) else release
    try:
        answer(
            request,
            engine=engine,
            catalog=catalog,
            ledger=MemoryLedger(repeats=False),
            settings=settings,
            progress=progress,
        )
    except EngineFailed as error:
        problem = str(error)
    return DryRun(
        request.sql,
        time.perf_counter() - start,
        time.process_time() - before,
        problem,
    )
