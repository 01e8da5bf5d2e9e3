"""What an installed function takes and returns, and its arguments inside the function.

The texts hold names of our own and types of a fixed list alone, so nothing in them needs quotes.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlrs.records import dataclass

ONE_NUMBER = (("answer", "numeric"), ("cost", "numeric"), ("mechanism", "text"))
"""What a function of one number returns."""

ONE_CLIPPED_NUMBER = (*ONE_NUMBER, ("threshold", "numeric"), ("standard_error", "numeric"))
"""And where it is about units."""


@dataclass(frozen=True)
class Call:
    """The types of the parameters p1, p2, … behind epsilon, and the columns that come back."""

    parameters: tuple[str, ...] = ()
    returned: tuple[tuple[str, str], ...] = ONE_NUMBER

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(f"p{place}" for place, _ in enumerate(self.parameters, 1))

    @property
    def takes(self) -> str:
        """Epsilon and the parameters with their types."""
        own = zip(self.names, self.parameters, strict=True)
        return ", ".join(["epsilon numeric", *(f"{name} {kind}" for name, kind in own)])

    @property
    def all_names(self) -> tuple[str, ...]:
        """The names of all that it takes and returns."""
        return ("epsilon", *self.names, *(name for name, _ in self.returned))

    @property
    def all_types(self) -> tuple[str, ...]:
        """The types of all that it takes and returns."""
        return ("numeric", *self.parameters, *(kind for _, kind in self.returned))

    @property
    def written(self) -> str:
        """What stands behind the text of the query in the journal: every argument, exactly.

        The quotes keep apart what differs: another value is another query.
        """
        words = (" WITH", *["," for _ in self.names[1:]])
        return "".join(
            f" || '{word} ${place} = ' || quote_nullable({name}::text)"
            for place, (word, name) in enumerate(zip(words, self.names, strict=False), 1)
        )

    @property
    def arguments(self) -> str:
        """The arguments for USING, before the last one."""
        return "".join(f"{name}, " for name in self.names)

    @property
    def lengths(self) -> str:
        """How long each argument is in the journal."""
        return ", ".join(f"octet_length({name}::text)" for name in self.names)

    @property
    def after(self) -> str:
        """The place behind the parameters in a statement with USING."""
        return f"${len(self.parameters) + 1}"


def shown_call(function: str, names: Sequence[str]) -> str:
    """How an analyst calls a function."""
    given = ", ".join(f"{name} => …" for name in ("epsilon", *names))
    return f"SELECT * FROM sqlrs.{function}({given})"
