"""SQL text -> one SELECT whose every node is understood, or a refusal."""

from __future__ import annotations

from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from sqlrs.catalog import Catalog
from sqlrs.compiler.afterwards import Afterwards, detach, read, start_of
from sqlrs.compiler.complexity import (
    MAX_CHARACTERS,
    first_beyond,
    parse_tokens,
)
from sqlrs.compiler.coverage import check_coverage
from sqlrs.compiler.grammar import check_grammar
from sqlrs.compiler.hints import instead_of
from sqlrs.compiler.source import Source
from sqlrs.effort import TOO_MANY_STEPS, TooComplex
from sqlrs.errors import Span

MAX_DEPTH = 300
_FIRST_WORDS = (TokenType.SELECT, TokenType.WITH, TokenType.FROM)


@dataclass(frozen=True, eq=False)
class ParsedSelect:
    """One SELECT inside the language's grammar, the text it came from, what follows its count."""

    tree: exp.Select
    source: Source
    after: Afterwards = field(default_factory=Afterwards)


def parse(sql: str, catalog: Catalog, *, inner: bool = False) -> ParsedSelect:
    """Read one SELECT of the catalog's dialect; raise QueryRefused for anything else.

    An ``inner`` one, a view's, may not have ORDER BY, LIMIT, OFFSET or HAVING.

    Names stay as written: they mean something only in the place where they stand, so
    sqlrs.compiler.inline resolves them while it takes the derived tables apart.
    """
    source = _tokenize(sql, catalog.dialect)
    _check_first_word(source)
    tree = _select(_statement(source), source)
    clauses = {} if inner else detach(tree)
    check_grammar(tree, source, catalog)
    after = read(clauses, tree, source)
    check_coverage(tree, source, end=start_of(clauses, source))
    return ParsedSelect(tree, source, after)


def _tokenize(sql: str, dialect: str) -> Source:
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
            "syntax_error", _end_of(sql), "a quote or comment is not closed"
        ) from error
    source = Source(sql, dialect, tokens)
    if not any(token.text != ";" for token in tokens):
        raise source.refusal("empty_query")
    beyond = first_beyond(tokens)
    if beyond is not None:
        raise source.refusal("too_complex", _token_span(beyond))
    return source


def _check_first_word(source: Source) -> None:
    # Anything else is another statement; the parser would keep some of them as opaque text.
    words = [token for token in source.tokens if token.text not in ("(", ";")]
    first = words[0] if words else source.tokens[0]
    if first.token_type not in _FIRST_WORDS:
        raise source.refusal("not_a_select", _token_span(first))


def _statement(source: Source) -> exp.Expr:
    try:
        found = parse_tokens(source.tokens, source.text, source.dialect)
    except ParseError as error:
        raise source.refusal("syntax_error", _error_span(error, source)) from error
    except TooComplex as problem:
        raise source.refusal("too_complex", problem.place, TOO_MANY_STEPS) from None
    if len(found) > 1:
        raise source.refusal("several_statements", _second_statement(source))
    if not found:
        raise source.refusal("empty_query")
    return found[0]


def _select(tree: exp.Expr, source: Source) -> exp.Select:
    while isinstance(tree, exp.Subquery) and set(_set_args(tree)) == {"this"}:
        tree = tree.this
    if isinstance(tree, exp.SetOperation):
        raise source.refusal("set_operation", tree, hint=instead_of(tree))
    if not isinstance(tree, exp.Select):
        raise source.refusal("not_a_select", _token_span(source.tokens[0]))
    if _depth(tree) > MAX_DEPTH:
        raise source.refusal("too_complex")
    return tree


def _set_args(node: exp.Expr) -> list[str]:
    return [name for name, value in node.args.items() if value not in (None, False, [])]


def _depth(tree: exp.Expr) -> int:
    deepest, pending = 0, [(tree, 1)]
    while pending:
        node, depth = pending.pop()
        deepest = max(deepest, depth)
        pending += [(child, depth + 1) for child in node.iter_expressions()]
    return deepest


def _token_span(token: Token) -> Span:
    return Span(token.start, token.end + 1)


def _end_of(sql: str) -> Span:
    return Span(max(0, len(sql.rstrip()) - 1), len(sql.rstrip()))


def _second_statement(source: Source) -> Span:
    ended = False
    for token in source.tokens:
        if token.text == ";":
            ended = True
        elif ended:
            return _token_span(token)
    return source.whole()


def _error_span(error: ParseError, source: Source) -> Span:
    details = error.errors[0] if error.errors else {}
    line, column = details.get("line"), details.get("col")
    for token in source.tokens:
        if (token.line, token.col) == (line, column):
            return _token_span(token)
    return _end_of(source.text)
