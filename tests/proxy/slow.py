"""A checker that misbehaves as texts tell it to, for the tests of the workers."""

from __future__ import annotations

import os

from sqlrs.errors import QueryRefused, Span
from sqlrs.quoting import Sketch


class SlowChecker:
    """Reads one text for ever, takes all memory for another, and dies of a third."""

    def sketch(self, sql: str) -> Sketch:
        raise QueryRefused("there is no console here")

    def check(self, sql: str) -> None:
        match sql:
            case "for ever":
                while True:
                    pass
            case "memory":
                held = [bytes(1 << 20) for _ in range(1 << 20)]
                assert held
            case "death":
                os._exit(1)
            case "refused":
                raise QueryRefused("no", hint="try", code="unsupported", span=Span(1, 2), text=sql)
