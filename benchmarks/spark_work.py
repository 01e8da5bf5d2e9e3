"""What Spark's own books say of a piece of work: tasks, their times, and what they exchanged."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any


@dataclass(frozen=True)
class SparkWork:
    """One piece of work. CPU seconds and bytes are those of the tasks, all together.

    ``process_seconds`` is the processor's time of the whole application: its tasks, what the driver
    plans, what Java compiles for it, and what is joined in Python's process; 0 where it is unknown.
    ``ended``: it came to its end, and was not cut off.
    ``largest_task`` is the CPU time of the largest task as a multiple of the median one, in that
    stage of several tasks whose largest task took longest.
    """

    seconds: float
    cpu_seconds: float
    stages: int
    tasks: int
    shuffle_bytes: int
    spilled_bytes: int
    largest_seconds: float
    largest_task: float
    process_seconds: float = 0.0
    ended: bool = True


class SparkBooks:
    """The status store of an application, which is kept without a user interface as well."""

    def __init__(self, session: Any) -> None:
        self._context = session.sparkContext
        self._seen: set[tuple[int, int]] = set()

    def observed(
        self,
        work: Callable[[], object],
        run: Callable[[Callable[[], object]], bool],
    ) -> SparkWork:
        """Run it, and sum up the stages that ran meanwhile. ``run`` says whether it ended."""
        self._new_stages()
        start, used = time.perf_counter(), self._process_seconds()
        ended = run(work)
        seconds, used = time.perf_counter() - start, self._process_seconds() - used
        # The listener that keeps the books runs behind.
        self._context._jsc.sc().listenerBus().waitUntilEmpty()
        stages = self._new_stages()
        skewed = [self._tasks(one) for one in stages if one.numTasks() > 1]
        longest = max((times for times in skewed if times), key=max, default=[0.0])
        return SparkWork(
            seconds,
            sum(one.executorCpuTime() for one in stages) / 1e9,
            len(stages),
            sum(int(one.numTasks()) for one in stages),
            sum(int(one.shuffleWriteBytes()) for one in stages),
            sum(int(one.diskBytesSpilled()) for one in stages),
            max(longest),
            max(longest) / max(median(longest), 1e-3),
            used,
            ended,
        )

    def _process_seconds(self) -> float:
        """What this process and that of Java have used so far; Linux's table has the latter."""
        path = Path(f"/proc/{self._context._gateway.proc.pid}/stat")
        if not path.exists():
            return 0.0
        # The fields behind the name, which may hold anything.
        fields = path.read_text(encoding="utf-8").rpartition(")")[2].split()
        java = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return java + time.process_time()

    def _new_stages(self) -> list[Any]:
        found = self._store().stageList(None, False, False, self._no_quantiles(), None)
        stages = [found.apply(i) for i in range(found.size())]
        stages = [one for one in stages if str(one.status()) == "COMPLETE"]
        new = [one for one in stages if (one.stageId(), one.attemptId()) not in self._seen]
        self._seen |= {(one.stageId(), one.attemptId()) for one in new}
        return new

    def _tasks(self, stage: Any) -> list[float]:
        found = self._store().taskList(stage.stageId(), stage.attemptId(), 10_000)
        metrics = [found.apply(i).taskMetrics() for i in range(found.size())]
        return [one.get().executorCpuTime() / 1e9 for one in metrics if one.isDefined()]

    def _store(self) -> Any:
        return self._context._jsc.sc().statusStore()

    def _no_quantiles(self) -> Any:
        gateway = self._context._gateway
        return gateway.new_array(gateway.jvm.double, 0)
