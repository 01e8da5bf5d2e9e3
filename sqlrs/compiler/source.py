"""The analyst's text: where each part of the tree stands, and refusals that point there."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter

import sqlglot
from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from sqlrs.compiler.complexity import MAX_CHARACTERS, first_beyond, span_of
from sqlrs.errors import QueryRefused, Span
from sqlrs.records import dataclass
from sqlrs.refusals import refusal

# A clause that starts with a word of its own is marked from that word on.
_KEYWORDS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Limit: ("LIMIT",),
    exp.Fetch: ("FETCH",),
    exp.Offset: ("OFFSET",),
    exp.Order: ("ORDER BY", "ORDER"),
    exp.Group: ("GROUP BY", "GROUP"),
    exp.Having: ("HAVING",),
    exp.Qualify: ("QUALIFY",),
    exp.Lock: ("FOR",),
    exp.Into: ("INTO",),
    exp.Exists: ("EXISTS",),
    exp.Not: ("NOT",),
    exp.Lateral: ("LATERAL",),
    exp.TableSample: ("TABLESAMPLE", "SAMPLE"),
    exp.Values: ("VALUES",),
    exp.Case: ("CASE",),
    exp.Cast: ("CAST",),
    exp.With: ("WITH",),
    exp.Select: ("SELECT",),
    exp.SetOperation: ("SELECT",),
    exp.Subquery: ("SELECT",),
    exp.Pivot: ("PIVOT", "UNPIVOT"),
    exp.Distinct: ("DISTINCT",),
    exp.CurrentDate: ("CURRENT_DATE",),
    exp.CurrentTime: ("CURRENT_TIME",),
    exp.CurrentTimestamp: ("CURRENT_TIMESTAMP",),
    exp.CurrentUser: ("CURRENT_USER",),
    exp.SessionUser: ("SESSION_USER",),
    exp.Localtime: ("LOCALTIME",),
    exp.Localtimestamp: ("LOCALTIMESTAMP",),
    exp.Placeholder: ("?", "$", ":", "%"),
    exp.Parameter: ("$", "@"),
}
_SIDES = {"LEFT", "RIGHT", "FULL", "OUTER", "INNER", "CROSS"}
_JOIN_WORDS = _SIDES | {"JOIN", "NATURAL", "SEMI", "ANTI", "ASOF", "POSITIONAL", "GLOBAL"}
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
# Set on nodes that have a place in the text but no words of their own there, such as a view's.
STANDS_ALONE = "sqlrs_stands_alone"


@dataclass(frozen=True, eq=False)
class Source:
    """A text, its tokens, the dialect it is written in, and the types of its parameters."""

    text: str
    dialect: str
    tokens: Sequence[Token]
    parameters: tuple[str, ...] = ()

    def span(self, node: exp.Expr) -> Span:
        """The part of the text that holds ``node``, or the nearest node around it that has one."""
        around: exp.Expr | None = node
        while around is not None:
            found = self._own_span(around)
            if found is not None:
                return found
            around = around.parent
        return self.whole()

    def whole(self) -> Span:
        """The whole statement, without the space around it."""
        if not self.tokens:
            return Span(0, 0)
        return Span(self.tokens[0].start, self.tokens[-1].end + 1)

    def token_before(self, position: int) -> Token | None:
        """The last token, other than an opening parenthesis, that ends before ``position``."""
        for token in reversed(self.tokens):
            if token.end < position and token.text != "(":
                return token
        return None

    def refusal(
        self,
        code: str,
        place: exp.Expr | Span | None = None,
        message: str | None = None,
        hint: str | None = None,
    ) -> QueryRefused:
        """The error of this code that marks ``place``."""
        span = self.span(place) if isinstance(place, exp.Expr) else place
        where = span if span is not None else self.whole()
        return refusal(code, message, hint=hint, span=where, text=self.text)

    def _own_span(self, node: exp.Expr) -> Span | None:
        start, end, placed = None, None, False
        for part in node.walk():
            meta = part.meta
            if "start" in meta:
                start = meta["start"] if start is None else min(start, meta["start"])
                end = meta["end"] if end is None else max(end, meta["end"])
                placed = placed or STANDS_ALONE in meta
        if placed and start is not None and end is not None:
            return Span(start, end + 1)
        if isinstance(node, exp.Join) and start is not None:
            start = self._join_start(start)
        for kind, words in _KEYWORDS.items():
            if isinstance(node, kind):
                start, end = self._from_keyword(words, start, end)
        if start is None or end is None:
            return None
        if isinstance(node, exp.Func):
            start, end = self._whole_call(node, start, end)
        return self._balanced(start, end)

    def _from_keyword(
        self, words: tuple[str, ...], start: int | None, end: int | None
    ) -> tuple[int | None, int | None]:
        if start is not None:
            before = [t for t in self.tokens if t.start <= start and t.text.upper() in words]
            return (before[-1].start if before else start), end
        for token in self.tokens:
            if token.text.upper() in words:
                return token.start, token.end
        return start, end

    def _join_start(self, start: int) -> int:
        for token in reversed([t for t in self.tokens if t.end < start]):
            if token.text.upper() in _JOIN_WORDS:
                start = token.start
            elif token.text != "(":
                break
        return start

    def _whole_call(self, call: exp.Func, start: int, end: int) -> tuple[int, int]:
        """Take in the name before the arguments, and the empty parentheses after a name."""
        before = [t for t in self.tokens if t.end < start][-2:]
        names = {name.upper() for name in call.sql_names()}
        if len(before) == 2 and before[1].text == "(" and before[0].text.upper() in names:
            start = before[0].start
        after = [t for t in self.tokens if t.start > end][:2]
        return start, after[1].end if [t.text for t in after] == ["(", ")"] else end

    def _balanced(self, start: int, end: int) -> Span:
        """Take in the brackets that belong to those inside."""
        # By bisection: this is asked for every column of the text.
        first = bisect_left(self.tokens, start, key=attrgetter("start"))
        last = bisect_right(self.tokens, end, key=attrgetter("end"))
        missing = 0  # brackets that close what opened before the start
        depth = 0
        for token in self.tokens[first:last]:
            depth += (token.text in _OPENING) - (token.text in _CLOSING)
            missing = max(missing, -depth)
        before = bisect_left(self.tokens, start, key=attrgetter("end"))
        after = bisect_right(self.tokens, end, key=attrgetter("start"))
        for token in reversed(self.tokens[:before]):
            if missing == 0 or token.text not in _OPENING:
                break
            start, missing, depth = token.start, missing - 1, depth + 1
        for token in self.tokens[after:]:
            if depth <= 0 or token.text not in _CLOSING:
                break
            end, depth = token.end, depth - 1
        return Span(start, end + 1)


def read_source(sql: str, dialect: str, parameters: tuple[str, ...] = ()) -> Source:
    """The words of a text within the limits on its length and nesting, or a refusal.

    ``parameters``: the types of $1, $2, …, which stand in the text of an installed function.
    """
    empty = Source(sql, dialect, ())
    if len(sql) > MAX_CHARACTERS:
        raise Source("", dialect, ()).refusal(
            "too_complex", message=f"the query is longer than {MAX_CHARACTERS} characters"
        )
    if "\0" in sql:
        at = sql.index("\0")
        raise empty.refusal("syntax_error", Span(at, at + 1), "the text holds a NUL character")
    try:
        tokens = sqlglot.tokenize(sql, read=dialect)
    except TokenError as error:
        raise empty.refusal(
            "syntax_error", end_of(sql), "a quote or comment is not closed"
        ) from error
    source = Source(sql, dialect, tokens, parameters)
    if not any(token.text != ";" for token in tokens):
        raise source.refusal("empty_query")
    beyond = first_beyond(tokens)
    if beyond is not None:
        raise source.refusal("too_complex", span_of(beyond))
    return source


def place_of(literals: set[str], sql: str, dialect: str) -> Span | None:
    """The part of a text from the first to the last of these literals, if it has each once."""
    kinds = (TokenType.STRING, TokenType.NUMBER)
    tokens = [t for t in read_source(sql, dialect).tokens if t.token_type in kinds]
    found = [token for token in tokens if token.text in literals]
    if not found or len(found) != len(literals):
        return None
    return Span(found[0].start, found[-1].end + 1)


def end_of(sql: str) -> Span:
    """The last character of a text."""
    return Span(max(0, len(sql.rstrip()) - 1), len(sql.rstrip()))
