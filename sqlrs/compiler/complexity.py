"""Limits on reading a text: its length, its nesting, the parser's steps, and what copies cost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError
from sqlglot.tokenizer_core import Token

from sqlrs.effort import TooComplex, bounded_anew, spend
from sqlrs.errors import Span

MAX_CHARACTERS = 100_000
MAX_TOKENS = 10_000
MAX_NESTING = 40
PARSER_STEPS_PER_TOKEN = 5
"""Honest texts take at most three. The parser's retries double for every level of char(, int[ and
all other words that may be a type or a function."""
_PARSER_STEPS = 500
_SIBLINGS_PER_STEP = 8
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


def spend_on(tree: exp.Expr) -> None:
    """Count the nodes of a tree that is about to be copied."""
    for _ in tree.walk():
        spend()


def swap(old: exp.Expr, new: exp.Expr) -> None:
    """Put ``new`` in the place of ``old``, counting the siblings, which are all looked at."""
    siblings = old.parent.args.get(old.arg_key) if old.parent is not None and old.arg_key else None
    if isinstance(siblings, list):
        spend(len(siblings) // _SIBLINGS_PER_STEP)
    old.replace(new)


def first_beyond(tokens: Sequence[Token]) -> Token | None:
    """The first token past the limits on number and nesting, None if there is none."""
    depth = 0
    for token in tokens[:MAX_TOKENS]:
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        if depth > MAX_NESTING:
            return token
    return tokens[MAX_TOKENS] if len(tokens) > MAX_TOKENS else None


def span_of(token: Token) -> Span:
    """Where a token stands."""
    return Span(token.start, token.end + 1)


class _Stopped(Exception):
    """The parser's steps are used up at this token."""

    def __init__(self, token: Token) -> None:
        super().__init__("the parser was stopped")
        self.token = token


def parse_tokens(tokens: Sequence[Token], text: str, dialect: str) -> list[exp.Expr]:
    """The statements of a tokenised text; TooComplex where the parser's retries do not end."""
    beyond = first_beyond(tokens)
    if beyond is not None:
        raise TooComplex(span_of(beyond))
    try:
        with bounded_anew(_PARSER_STEPS + PARSER_STEPS_PER_TOKEN * len(tokens)):
            parser = _counting(dialect).parser(error_level=ErrorLevel.RAISE, max_errors=1)
            found = parser.parse(list(tokens), text)
    except RecursionError:
        raise TooComplex from None
    except _Stopped as problem:
        # A quoted type name is parsed as a text of its own: its places are not those of this one.
        known = any(token is problem.token for token in tokens)
        raise TooComplex(span_of(problem.token) if known else None) from None
    except TooComplex:
        raise
    except SqlglotError:
        raise
    except Exception as problem:
        # Text on which the parser itself fails is text that it cannot read.
        raise ParseError("the text cannot be read") from problem
    return [tree for tree in found if tree is not None and not isinstance(tree, exp.Semicolon)]


def parse_text(text: str, dialect: str) -> list[exp.Expr]:
    """The statements of a text, read within the limits."""
    return parse_tokens(tokens_of(text, dialect), text, dialect)


def tokens_of(text: str, dialect: str) -> list[Token]:
    """The words of a text that is not too long."""
    if len(text) > MAX_CHARACTERS:
        raise TooComplex
    return Dialect.get_or_raise(dialect).tokenize(text)


@cache
def _counting(dialect: str) -> Dialect:
    """The dialect with a parser that counts its steps, also in the parsers that it starts."""
    found = Dialect.get_or_raise(dialect)
    base: Any = found.parser_class

    class CountingParser(base):  # type: ignore[misc]
        def _advance(self, times: int = 1) -> None:
            try:
                spend()
            except TooComplex:
                raise _Stopped(self._curr or self._prev) from None
            super()._advance(times)

        def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
            # The parser looks through all that stands before a bracket, for every bracket again.
            if this is not None and self._curr and self._curr.text in _OPENING:
                spend_on(this)
            found: exp.Expr | None = super()._parse_bracket(this)
            return found

    # On this instance only: a subclass of the dialect would register itself with the library.
    found.parser_class = CountingParser
    return found
