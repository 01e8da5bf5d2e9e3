"""How long a release may still take, from the statements that have ended; for the terminal alone.

It rests on the clock and on how many residuals the query has, which whoever watches the terminal
knows as well; nothing that was read of the data goes into it.
"""

from __future__ import annotations

from sqlrs.records import dataclass

# Two residuals that are told so shortly after each other are of one statement.
_TOGETHER = 0.05


@dataclass
class Pace:
    """Residuals that have ended and the seconds that they took."""

    begun: float | None = None
    told: float = 0.0
    ended: int = 0
    total: int = 0
    each: float | None = None

    def hear(self, position: int, total: int, now: float) -> None:
        """The statement with this residual begins; those of the statement before it have ended."""
        if self.begun is None or total != self.total or position <= self.ended:
            self.begun, self.ended, self.each = now, position - 1, None
        elif now - self.told > _TOGETHER:
            self.ended = position - 1
            self.each = (now - self.begun) / self.ended if self.ended else None
        self.told, self.total = now, total

    def left(self, now: float) -> float | None:
        """Seconds until the end as it looks, or None where nothing has ended yet.

        What takes longer than those before it may take as long again.
        """
        if self.each is None:
            return None
        running = now - self.told
        return max(self.each * (self.total - self.ended) - running, running)


def in_words(seconds: float | None) -> str:
    """About how long, in few digits; nothing where nobody knows."""
    if seconds is None:
        return ""
    if seconds < 100:
        return f"about {max(round(seconds), 1)} s left"
    if seconds < 6000:
        return f"about {round(seconds / 60)} min left"
    return f"about {round(seconds / 3600)} h left"
