"""One tree of errors: each has a code, an SQLSTATE, an exit code, a hint and a place in the SQL."""

from __future__ import annotations

from html import escape
from typing import ClassVar

from sqlrs.records import dataclass


@dataclass(frozen=True)
class Span:
    """A half-open range of characters in the analyst's text."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"not a span: {self.start}..{self.end}")

    def line_and_column(self, text: str) -> tuple[int, int]:
        """Where the span starts in ``text``, both counted from 1."""
        before = text[: self.start]
        return before.count("\n") + 1, self.start - (before.rfind("\n") + 1) + 1


class SqlrsError(Exception):
    """Base of every error that sqlrs raises on purpose. Its text is safe to show to an analyst."""

    code: str = "error"
    sqlstate: str = "XX000"
    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        code: str | None = None,
        sqlstate: str | None = None,
        span: Span | None = None,
        text: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or type(self).code
        self.sqlstate = sqlstate or type(self).sqlstate
        self.span = span
        self.text = text

    def __str__(self) -> str:
        # A refusal that nobody catches ends a program: its last lines then say how to go on.
        return self.describe()

    def describe(self) -> str:
        """The whole report: code, message, the offending text underlined, the hint."""
        lines = [f"{self.code}: {self.message}"]
        if self.span is not None and self.text is not None:
            lines += _underlined(self.text, self.span)
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The report as a notebook shows it, the offending text underlined."""
        parts = [f"<b>{escape(self.code)}</b>: {escape(self.message)}"]
        if self.span is not None and self.text is not None:
            before, place, after = (
                escape(self.text[slice(*ends)])
                for ends in (
                    (None, self.span.start),
                    (self.span.start, self.span.end),
                    (self.span.end, None),
                )
            )
            mark = '<u style="text-decoration: underline wavy #cf222e">'
            parts.append(f"<pre>{before}{mark}{place or ' '}</u>{after}</pre>")
        if self.hint:
            parts.append(f"<i>hint: {escape(self.hint)}</i>")
        return f"<div>{'<br>'.join(parts)}</div>"

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback: a refusal says itself what to do."""
        return [self.describe()]


class UsageError(SqlrsError):
    """A parameter, option, file or declaration is wrong; nothing was read or charged."""

    code = "usage"
    sqlstate = "22023"
    exit_code = 2


class QueryRefused(SqlrsError):
    """The SQL is outside the language, or names something unknown; nothing was read or charged."""

    code = "unsupported"
    sqlstate = "0A000"
    exit_code = 3


class BudgetExhausted(SqlrsError):
    """The release would cost more than what is left; nothing was read or charged."""

    code = "budget_exhausted"
    sqlstate = "53400"
    exit_code = 4


class EngineFailed(SqlrsError):
    """The database failed. After a charge it has one text, whatever happened."""

    code = "database_failed"
    sqlstate = "58000"
    exit_code = 5


class NotShown(SqlrsError):
    """What was charged is released and recorded, but does not lead to the answer asked for.

    What a statement does with its numbers failed, or the estimate for a wish says that it costs
    more than allowed.
    """

    code = "not_shown"
    sqlstate = "22000"
    exit_code = 5


class StatementFailed(EngineFailed):
    """The database could not read or evaluate a statement; it is not the database that is ill."""


class Interrupted(SqlrsError):
    """The user stopped the work; a charge made before stays spent."""

    code = "interrupted"
    sqlstate = "57014"
    exit_code = 130


def _underlined(text: str, span: Span) -> list[str]:
    line, column = span.line_and_column(text)
    # Lines as the span counts them; splitlines() would also break at form feeds and the like.
    source = "".join(c if c.isprintable() or c == "\t" else " " for c in text.split("\n")[line - 1])
    width = max(1, min(span.end - span.start, len(source) - column + 1))
    gutter = f"  line {line}, column {column}: "
    # Tabs keep their width so that the marker stands below the text it means.
    lead = "".join("\t" if c == "\t" else " " for c in source[: column - 1])
    return [gutter + source, " " * len(gutter) + lead + "^" * width]
