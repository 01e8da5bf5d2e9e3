"""Every word, number and string of the text is in the tree, or is known to add nothing to it.

The whitelist of sqlrs.compiler.grammar sees what the parser kept. This is the other half: a word
that the parser read over would change the meaning without a trace, so it is refused.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from sqlrs.compiler.above_nodes import WORDS
from sqlrs.compiler.complexity import span_of
from sqlrs.compiler.functions import FORM_WORDS
from sqlrs.compiler.source import Source
from sqlrs.dialects import dialect_named

# Words whose meaning is in the kind of the node that they make.
_WORDS = frozenset(
    """
    all and any array as between both case cross distinct else end escape exists false for from
    ilike in inner interval is isnull join leading like materialized natural not notnull null on or
    select similar_to then trailing true unknown using when where with
    """.split()  # noqa: SIM905
)
# Those of a statement around its counts; the last two are refused with a name of their own.
_STATEMENT_WORDS = WORDS | {"except", "intersect"}
# Words that stand for a node each.
_NODE_WORDS: dict[str, type[exp.Expr]] = {
    "lateral": exp.Lateral,
    "grouping_sets": exp.GroupingSets,
    "rollup": exp.Rollup,
    "cube": exp.Cube,
}
_VALUES = frozenset({TokenType.STRING, TokenType.NUMBER, TokenType.IDENTIFIER})
# Further words of types: TIMESTAMP WITH TIME ZONE.
_TYPE_WORDS = frozenset({"time", "zone", "without"})
_ZONE_WORDS = frozenset({"at", "time", "zone", "at_time_zone"})
_SYMBOLS = frozenset("( ) [ ] , . ; * + - / % = <> != < > <= >= || :: ~~".split())  # noqa: SIM905


def check_coverage(
    tree: exp.Expr, source: Source, end: int | None = None, *, statement: bool = False
) -> None:
    """Refuse the first word of the text, up to ``end``, that no node of the tree accounts for.

    In a ``statement`` stand groups, orders and windows too.
    """
    tokens = [token for token in source.tokens if end is None or token.start < end]
    nodes = list(tree.walk())
    words = _WORDS
    if statement:
        words |= _STATEMENT_WORDS | _calls(nodes) | _nodes_of_words(tokens, nodes)
    if any(isinstance(node, exp.AtTimeZone) for node in nodes):
        # The grammar refuses it by its name.
        words |= _ZONE_WORDS
    claimed = {node.meta["start"] for node in nodes if "start" in node.meta}
    units = {node.name.lower() for node in nodes if isinstance(node, exp.Var)}
    has_types = any(isinstance(node, exp.DataType) for node in nodes)
    before: Token | None = None
    for token in tokens:
        known = (
            token.start in claimed
            or _word_of(token) in words
            or _adds_nothing(token, before, units, has_types, source)
            # The number behind it is in the tree, and so is the parameter.
            or (token.token_type is TokenType.PARAMETER and bool(source.parameters))
        )
        if not known or _is_glued(token, before):
            raise source.refusal("not_understood", span_of(token))
        before = token
    stars = [token for token in tokens if token.token_type is TokenType.STAR]
    if len(stars) != sum(isinstance(node, exp.Star | exp.Mul) for node in nodes):
        place = span_of(stars[-1]) if stars else None
        raise source.refusal("not_understood", place)


def _calls(nodes: list[exp.Expr]) -> frozenset[str]:
    """The names of the functions in the tree; those of aggregates have no place of their own."""
    functions = (node for node in nodes if isinstance(node, exp.AggFunc))
    return frozenset(name.lower() for one in functions for name in one.sql_names())


def _nodes_of_words(tokens: list[Token], nodes: list[exp.Expr]) -> frozenset[str]:
    """Those of the words for a node each that are there as often as their nodes."""
    words = [_word_of(token) for token in tokens]
    return frozenset(
        word
        for word, kind in _NODE_WORDS.items()
        if words.count(word) == sum(isinstance(node, kind) for node in nodes)
    )


def _word_of(token: Token) -> str | None:
    """A keyword in lower case; None for a value, or a name in quotes."""
    return None if token.token_type in _VALUES else token.text.lower().replace(" ", "_")


def _adds_nothing(
    token: Token, before: Token | None, units: set[str], has_types: bool, source: Source
) -> bool:
    if token.token_type in _VALUES:
        after = before.text.lower() if before is not None else ""
        return token.text.lower() in units or after in ("interval", ".")
    word = token.text.lower().replace(" ", "_")
    if not word[:1].isalpha():
        return _is_known_symbol(token, source)
    dialect = dialect_named(source.dialect)
    if word in units or word in FORM_WORDS[source.dialect]:
        return True
    is_type = token.token_type in Parser.TYPE_TOKENS and word in dialect.type_words
    return has_types and (is_type or word in _TYPE_WORDS)


def _is_known_symbol(token: Token, source: Source) -> bool:
    own = dialect_named(source.dialect).symbols
    if token.text == "!":
        # Only as the first half of !~ and !~~.
        rest = source.text[token.end + 1 : token.end + 3]
        return rest == "~~" or (rest[:1] == "~" and "~" in own)
    return token.text in _SYMBOLS or token.text in own


def _is_glued(token: Token, before: Token | None) -> bool:
    """Whether a word follows a number without a space: 0x1F and 1_000 are numbers elsewhere."""
    return (
        before is not None
        and before.token_type is TokenType.NUMBER
        and before.end + 1 == token.start
        and (token.text[:1].isalpha() or token.text[:1] == "_")
    )
