"""Every word, number and string of the text is in the tree, or is known to add nothing to it.

The whitelist of sqlrs.grammar sees what the parser kept. This is the other half: a word that the
parser read over would change the meaning without a trace, so it is refused.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from sqlrs.errors import Span
from sqlrs.source import Source

# Words whose meaning is in the kind of the node that they make.
_WORDS = frozenset(
    """
    all and any array as between both case cast ceil ceiling cross date_part distinct else end
    escape exists extract false floor for from if ilike in inner interval is isnull join leading
    like materialized natural not notnull null on or position select similar_to substring substr
    then trailing trim true try_cast unknown using when where with
    """.split()  # noqa: SIM905
)
_VALUES = frozenset({TokenType.STRING, TokenType.NUMBER, TokenType.IDENTIFIER})
# Types of several words: TIMESTAMP WITH TIME ZONE, CHARACTER VARYING, DOUBLE PRECISION.
_TYPE_WORDS = frozenset({"time", "zone", "without", "varying", "precision"})


def check_coverage(tree: exp.Expr, source: Source) -> None:
    """Refuse the first word of the text that no node of the tree accounts for."""
    nodes = list(tree.walk())
    claimed = {node.meta["start"] for node in nodes if "start" in node.meta}
    units = {node.name.lower() for node in nodes if isinstance(node, exp.Var)}
    has_types = any(isinstance(node, exp.DataType) for node in nodes)
    before: Token | None = None
    for token in source.tokens:
        if token.start not in claimed and not _adds_nothing(token, before, units, has_types):
            raise source.refusal("not_understood", Span(token.start, token.end + 1))
        before = token
    stars = [token for token in source.tokens if token.token_type is TokenType.STAR]
    if len(stars) != sum(isinstance(node, exp.Star | exp.Mul) for node in nodes):
        place = Span(stars[-1].start, stars[-1].end + 1) if stars else None
        raise source.refusal("not_understood", place)


def _adds_nothing(token: Token, before: Token | None, units: set[str], has_types: bool) -> bool:
    if token.token_type in _VALUES:
        after = before.text.lower() if before is not None else ""
        return token.text.lower() in units or after in ("interval", ".")
    word = token.text.lower().replace(" ", "_")
    if not word[:1].isalpha():
        return True
    if word in _WORDS or word in units:
        return True
    return has_types and (token.token_type in Parser.TYPE_TOKENS or word in _TYPE_WORDS)
