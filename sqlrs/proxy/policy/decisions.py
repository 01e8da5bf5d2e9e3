"""What may happen to a statement: refused, answered by the shadow, or answered privately."""

from __future__ import annotations

import re
from dataclasses import replace
from enum import Enum

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from sqlrs.compiler.complexity import first_beyond, parse_text
from sqlrs.effort import TooComplex
from sqlrs.errors import QueryRefused, Span
from sqlrs.proxy.backend import ExposedSchema
from sqlrs.proxy.policy.allowlist import (
    FORBIDDEN,
    HIDDEN_PREFIXES,
    HIDDEN_RELATIONS,
    UNSUPPORTED,
)
from sqlrs.proxy.policy.client_functions import FUNCTIONS, NODES, SQL_FUNCTIONS
from sqlrs.proxy.policy.public_reading import has_known_shape
from sqlrs.proxy.policy.utility import UTILITIES, Utility, check_setting, words
from sqlrs.records import dataclass
from sqlrs.refusals import refusal

_READS = frozenset({"select", "with", "values", "table", "("})
_SYSTEM = frozenset({"pg_catalog", "information_schema"})
_OWN_VIEWS = frozenset({"budget", "history"})
# A cast that drivers ask the catalogs with and that the parser does not know. It reads a cast of
# the same length instead; the shadow gets the text as it was sent.
_OID_ARRAY = re.compile(r"(::\s*)oid(\s*\[\s*\])", re.IGNORECASE)
_WRITES = (
    exp.Insert,
    exp.Update,
    exp.Delete,
    exp.Merge,
    exp.Create,
    exp.Drop,
    exp.Into,
    exp.Lock,
    exp.Copy,
    exp.Command,
)


class Route(Enum):
    """Who answers a statement."""

    SHADOW = "shadow"
    PROTECTED = "protected"
    PUBLIC = "public"
    EXPLAINED = "explained"


@dataclass(frozen=True)
class ClientStatement:
    """One statement of the analyst's text, and where it starts there."""

    text: str
    offset: int


@dataclass(frozen=True)
class Tokens:
    """A statement with its tokens, which take three hundred times its memory and are not kept."""

    statement: ClientStatement
    tokens: tuple[Token, ...]


@dataclass(frozen=True)
class Decision:
    """A statement that may go on. ``fresh`` names the sqlrs views and settings it reads.

    ``epsilon``: the price that the statement itself names, in BigQuery's clause.
    """

    route: Route
    statement: ClientStatement
    fresh: frozenset[str] = frozenset()
    deallocates: str | None = None
    deallocates_all: bool = False
    assigns: tuple[str, str] | None = None
    epsilon: str | None = None


def split(sql: str) -> list[Tokens]:
    """The statements of a text, empty ones left out."""
    try:
        tokens = Postgres().tokenize(sql)
    except SqlglotError:
        raise refusal("syntax_error", "the statement cannot be read", hint="") from None
    if first_beyond(tokens) is not None:
        raise refusal("too_complex")
    statements, current = [], list[Token]()
    for token in [*tokens, None]:
        if token is not None and token.token_type is not TokenType.SEMICOLON:
            current.append(token)
            continue
        if current:
            start = current[0].start
            text = sql[start : current[-1].end + 1]
            statements.append(Tokens(ClientStatement(text, start), tuple(current)))
        current = []
    return statements


class Policy:
    """The whitelist, for one set of exposed tables and views."""

    def __init__(self, schema: ExposedSchema) -> None:
        self._exposed = frozenset((one.schema, one.name) for one in schema.relations)
        self._names = frozenset(name for _, name in self._exposed)
        self._public = frozenset((one.schema, one.name) for one in schema.tables if one.public)

    def plan(self, written: Tokens) -> Decision:
        """Decide about one statement; whatever is not known to be harmless is refused."""
        statement, tokens = written.statement, written.tokens
        first = tokens[0].text.lower()
        if first in _READS:
            return self._read(statement)
        if first == "explain" and (explained := self._explained(statement)) is not None:
            return explained
        if first in UTILITIES:
            return _utility(statement, UTILITIES[first](words(tokens)))
        span = Span(0, len(tokens[0].text))
        if first in FORBIDDEN:
            raise refusal("not_permitted", f"{first.upper()} is not permitted", span=span)
        hint = UNSUPPORTED.get(first, "only SELECT count(*) over the exposed tables is answered")
        raise refusal("not_supported", f"{first.upper()} is not supported", span=span, hint=hint)

    def _read(self, statement: ClientStatement) -> Decision:
        try:
            (tree,) = parse_text(_OID_ARRAY.sub(r"\1int\2", statement.text), "postgres")
        except ParseError as problem:
            raise _syntax_error(statement.text, problem) from None
        except TooComplex:
            raise refusal("too_complex") from None
        except (SqlglotError, ValueError):
            raise refusal("syntax_error", "the statement cannot be read", hint="") from None
        for node in tree.find_all(*_WRITES):
            raise refusal(
                "not_permitted", f"{_name_of(node)} is not permitted in a query", span=_span(node)
            )
        local = {cte.alias for cte in tree.find_all(exp.CTE)}
        relations = [table for table in tree.find_all(exp.Table) if table.name]
        if any(self._is_exposed(table) for table in relations):
            public = has_known_shape(tree) and all(map(self._is_public, relations))
            return Decision(Route.PUBLIC if public else Route.PROTECTED, statement)
        fresh = frozenset(
            name for table in relations if (name := _system_relation(table, local)) is not None
        )
        for function in tree.find_all(exp.Func):
            _check_function(function)
        return Decision(Route.SHADOW, statement, fresh)

    def _explained(self, statement: ClientStatement) -> Decision | None:
        """What EXPLAIN is asked of, without options: a statement that is answered privately."""
        start = len("explain")
        inner = split(statement.text[start:])
        if len(inner) != 1 or inner[0].tokens[0].text.lower() not in ("select", "with"):
            return None
        found = inner[0].statement
        offset = statement.offset + start + found.offset
        decision = self._read(ClientStatement(found.text, offset))
        return (
            replace(decision, route=Route.EXPLAINED) if decision.route is Route.PROTECTED else None
        )

    def _is_exposed(self, table: exp.Table) -> bool:
        schema, name = _folded(table.args.get("db")), _folded(table.this)
        if schema:
            return (schema, name) in self._exposed
        return name in self._names

    def _is_public(self, table: exp.Table) -> bool:
        """Whether the name can mean a public table and nothing else."""
        schema, name = _folded(table.args.get("db")), _folded(table.this)
        meant = {(home, known) for home, known in self._exposed if known == name}
        if schema:
            meant = {entry for entry in meant if entry[0] == schema}
        return bool(meant) and meant <= self._public


def _utility(statement: ClientStatement, utility: Utility) -> Decision:
    return Decision(
        Route.SHADOW,
        statement,
        utility.fresh,
        utility.deallocates,
        utility.deallocates_all,
        utility.assigns,
    )


def _system_relation(table: exp.Table, local: set[str]) -> str | None:
    """Refuse a relation that is neither of the system nor local; name the sqlrs view it is."""
    schema, name = _folded(table.args.get("db")), _folded(table.this)
    if isinstance(table.this, exp.Func) or (not schema and name in local):
        return None
    if schema == "sqlrs" and name in _OWN_VIEWS:
        return name
    if schema in _SYSTEM or (not schema and name.startswith("pg_")):
        if name in HIDDEN_RELATIONS or name.startswith(HIDDEN_PREFIXES):
            raise refusal("not_permitted", f"permission denied for {name}", span=_span(table.this))
        return None
    label = f"{schema}.{name}" if schema else name
    raise refusal(
        "unknown_table", f'relation "{label}" does not exist', hint="", span=_span(table.this)
    )


def _check_function(function: exp.Func) -> None:
    if isinstance(function, exp.Anonymous):
        # A function behind its schema's name arrives here even if the parser knows it.
        name = function.name.lower()
        if name not in FUNCTIONS and name not in SQL_FUNCTIONS:
            raise _no_function(name, function)
        if name == "set_config":
            _check_set_config(function)
    elif type(function).__name__ not in NODES:
        raise _no_function(function.sql_names()[0].lower(), function)


def _check_set_config(function: exp.Anonymous) -> None:
    target = function.expressions[0] if function.expressions else None
    value = function.expressions[1] if len(function.expressions) > 1 else None
    if not isinstance(target, exp.Literal) or not target.is_string:
        raise _no_function("set_config", function)
    literal = value.name if isinstance(value, exp.Literal) else None
    check_setting(target.name.lower(), literal, _span(function))


def _no_function(name: str, node: exp.Func) -> QueryRefused:
    return refusal("not_permitted", f"permission denied for function {name}", span=_span(node))


def _folded(identifier: exp.Expression | None) -> str:
    """An identifier as PostgreSQL reads it: in lower case unless quoted."""
    if not isinstance(identifier, exp.Identifier):
        return ""
    return identifier.name if identifier.args.get("quoted") else identifier.name.lower()


def _span(node: exp.Expr | None) -> Span | None:
    meta = node.meta if node is not None else {}
    return Span(meta["start"], meta["end"] + 1) if "start" in meta and "end" in meta else None


def _name_of(node: exp.Expression) -> str:
    if isinstance(node, exp.Lock):
        return "FOR UPDATE"
    return str(node.key).upper()


def _syntax_error(text: str, problem: ParseError) -> QueryRefused:
    details = problem.errors[0] if problem.errors else {}
    before = details.get("start_context")
    span = None
    highlight = details.get("highlight")
    if before is not None and highlight:
        at = text.find(before + highlight)
        if at >= 0:
            span = Span(at + len(before), at + len(before) + len(highlight))
    near = f' at or near "{highlight}"' if highlight else ""
    return refusal("syntax_error", f"syntax error{near}", hint="", span=span)
