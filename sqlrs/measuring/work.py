"""What one measurement is about: its statements, one for each isomorphism class of residuals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sqlrs.residuals.isomorphism import representatives
from sqlrs.residuals.residual import Members, Residual, Residuals

Progress = Callable[[int, int, str], None]
Values = Mapping[Members, int]


class Work:
    """The count, if it is wanted, one residual of each class, and who hears of them."""

    def __init__(
        self,
        residuals: Residuals,
        wanted: Iterable[Members],
        progress: Progress | None,
        *,
        counted: bool = True,
    ) -> None:
        if residuals.query.weighted and residuals.query.distinct is not None:
            raise AssertionError("the weights of distinct outputs are bounded, never measured")
        self.residuals = residuals
        self.wanted = tuple(wanted)
        self.progress = progress
        self.heard = 0
        parts = residuals.undecided(self.wanted)
        self.same = {part: one.members for part, one in representatives(parts).items()}
        everything = residuals.of(residuals.query.everything)
        self.statements = [everything] if counted else []
        self.statements += [p for p in parts if self.same[p.members] == p.members]

    def values(self, measured: Values) -> Values:
        """T_E of every wanted set from the values of the statements."""
        parts = {part: measured[one] for part, one in self.same.items()}
        return self.residuals.assemble(self.wanted, parts)

    def rounds(self) -> list[list[Residual]]:
        """The count with the largest residuals, which matter most, then ever smaller ones."""
        size: dict[Members, int] = {}
        for members in self.wanted:
            for part in self.residuals.parts(members):
                if not part.decided:
                    one = self.same[part.members]
                    size[one] = max(size.get(one, 0), len(members))
        largest = max(size.values(), default=0)
        for part in self.statements:
            size.setdefault(part.members, largest)
        return [
            [part for part in self.statements if size[part.members] == level]
            for level in sorted(set(size.values()), reverse=True)
        ]

    def hear(self, *parts: Residual) -> None:
        """Tell the listener what is next."""
        for part in parts:
            self.heard += 1
            if self.progress is not None:
                self.progress(self.heard, len(self.statements), str(part))
