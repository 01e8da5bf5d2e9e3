"""The words of a text -> one SELECT, or a refusal."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import TokenType

from sqlrs.compiler.complexity import parse_tokens, span_of
from sqlrs.compiler.function_parameters import with_types
from sqlrs.compiler.hints import instead_of
from sqlrs.compiler.source import Source, end_of
from sqlrs.compiler.tool_forms import with_known_forms
from sqlrs.dialects import dialect_named
from sqlrs.effort import TOO_MANY_STEPS, TooComplex
from sqlrs.errors import Span

MAX_DEPTH = 300
_FIRST_WORDS = (TokenType.SELECT, TokenType.WITH, TokenType.FROM)


def parse(source: Source) -> exp.Select:
    """The one SELECT of a text; raise QueryRefused for anything else.

    Names stay as written: they mean something only in the place where they stand, so
    sqlrs.compiler.inline resolves them while it takes the derived tables apart.
    """
    _check_first_word(source)
    return _select(_statement(source), source)


def parse_query(source: Source) -> exp.Query:
    """The one SELECT of a text, or the set operation of several."""
    _check_first_word(source)
    tree = _unwrapped(_statement(source))
    if not isinstance(tree, exp.Select | exp.SetOperation):
        raise source.refusal("not_a_select", span_of(source.tokens[0]))
    if _depth(tree) > MAX_DEPTH:
        raise source.refusal("too_complex")
    return tree


def _check_first_word(source: Source) -> None:
    # Anything else is another statement; the parser would keep some of them as opaque text.
    words = [token for token in source.tokens if token.text not in ("(", ";")]
    first = words[0] if words else source.tokens[0]
    if first.token_type not in _FIRST_WORDS:
        raise source.refusal("not_a_select", span_of(first))


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
    tree = dialect_named(source.dialect).as_read(
        with_known_forms(found[0], source.tokens, source.dialect)
    )
    with_types(tree, source)
    return tree


def _unwrapped(tree: exp.Expr) -> exp.Expr:
    while isinstance(tree, exp.Subquery) and set(_set_args(tree)) == {"this"}:
        tree = tree.this
    return tree


def _select(tree: exp.Expr, source: Source) -> exp.Select:
    tree = _unwrapped(tree)
    if isinstance(tree, exp.SetOperation):
        raise source.refusal("set_operation", tree, hint=instead_of(tree))
    if not isinstance(tree, exp.Select):
        raise source.refusal("not_a_select", span_of(source.tokens[0]))
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


def _second_statement(source: Source) -> Span:
    ended = False
    for token in source.tokens:
        if token.text == ";":
            ended = True
        elif ended:
            return span_of(token)
    return source.whole()


def _error_span(error: ParseError, source: Source) -> Span:
    details = error.errors[0] if error.errors else {}
    line, column = details.get("line"), details.get("col")
    for token in source.tokens:
        if (token.line, token.col) == (line, column):
            return span_of(token)
    return end_of(source.text)
