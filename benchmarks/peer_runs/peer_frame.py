"""The frame of a peer's run: what is asked of it, how an answer is timed, what is printed.

Nothing but the standard library: it runs in every peer's own environment.
"""

import json
import math
import os
import sys
import time
from pathlib import Path

given = json.loads(sys.argv[1])
folder = given["tables"]
graph = given["graph"]
epsilon = given["epsilon"]
# What a person may contribute at most, by how it became known: guessed, or read off the data.
bounds = given["bounds"]
# One answer and the end, as in a script of a user: the whole process is timed from outside.
whole = given.get("whole", False)
# Processes that work for this one and that it did not start.
servers = set()

# So long a tool may answer open data again and again.
OPEN_SECONDS = 10
STATUSES = ("F", "O", "P")
SEGMENT = "BUILDING"


def laplace(scale):
    """The standard deviation of Laplace noise."""
    return math.sqrt(2) * scale


def discrete_laplace(scale):
    """The standard deviation of Laplace noise on the integers: P(k) ~ exp(-|k| / scale)."""
    ratio = math.exp(-1 / scale)
    return math.sqrt(2 * ratio) / (1 - ratio)


class Memory:
    """Frames that are read once and kept, while ``on``."""

    def __init__(self):
        self.on, self.used, self.frames = False, False, {}

    def __call__(self, read):
        """The reader of a tool, which gives what it has read before."""

        def kept(name, columns):
            self.used = True
            place = (name, *columns)
            if not self.on:
                return read(name, columns)
            if place not in self.frames:
                self.frames[place] = read(name, columns)
            return self.frames[place].copy(deep=False)

        return kept


memory = Memory()


def opened_seconds(answer):
    """The least processor time of an answer whose data are open or in memory already."""
    memory.on, least = True, math.inf
    begun = time.monotonic()
    answer()
    for _ in range(2 + 3 * given["runs"]):
        start = time.process_time()
        answer()
        least = min(least, time.process_time() - start)
        if time.monotonic() > begun + OPEN_SECONDS:
            break
    memory.on = False
    return least


def ask(task, answer, supplied, noise=None, bound=None, wrong=None, runs=None, opened=None):
    """Run ``answer`` some times; it opens the files and returns the numbers.

    ``noise`` is the standard deviation of a number where the tool's law is known, ``wrong`` what is
    wrong with the answer although the tool does not say so. ``opened`` makes what answers from
    data that are in memory already; a tool that reads through ``memory`` needs none.
    """
    if task not in given["tasks"]:
        return
    said = {"task": task, "supplied": supplied, "noise": noise, "bound": bound, "wrong": wrong}
    try:
        for _ in range(1 if whole else runs or given["runs"]):
            start, cores = time.perf_counter(), core_seconds()
            numbers = [float(one) for one in answer()]
            seconds, cores = time.perf_counter() - start, core_seconds() - cores
            _print({**said, "answer": numbers, "seconds": seconds, "core_seconds": cores})
        if not whole and (opened or memory.used):
            least = opened_seconds(opened() if opened else answer)
            _print({**said, "answer": numbers, "open_core_seconds": least})
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        refuse(task, f"{type(error).__name__}: {error}", bound)


def refuse(task, why, bound=None):
    """The tool does not answer this one."""
    if task in given["tasks"]:
        _print({"task": task, "refused": " ".join(why.split())[:200], "bound": bound})


def core_seconds():
    """What this process and those that it started have taken of all cores."""
    ticks, parents = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            # Its own, and of those that it started and that have ended.
            ticks[int(entry.name)] = sum(map(int, fields[11:15]))
    own = {os.getpid(), *servers}
    spent = sum(used for one, used in ticks.items() if own & set(_ancestry(one, parents)))
    return spent / os.sysconf("SC_CLK_TCK")


def _ancestry(process, parents):
    while process:
        yield process
        process = parents.get(process, 0)


def _print(line):
    print(json.dumps(line), flush=True)
