"""Statements about the session (SET, SHOW, BEGIN, DEALLOCATE, …), read strictly word by word."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from sqlrs.errors import Span
from sqlrs.proxy.policy.allowlist import BUDGET, FIXED, RELEASE_SETTINGS, SETTABLE, SHOWN
from sqlrs.records import dataclass
from sqlrs.refusals import refusal

_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER)
_TRANSACTION_WORDS = frozenset(
    [
        "abort",
        "and",
        "begin",
        "chain",
        "commit",
        "committed",
        "deferrable",
        "end",
        "isolation",
        "level",
        "no",
        "not",
        "only",
        "read",
        "repeatable",
        "rollback",
        "serializable",
        "start",
        "transaction",
        "uncommitted",
        "work",
        "write",
        ",",
    ]
)


@dataclass(frozen=True)
class Utility:
    """A harmless statement about the session and what the proxy must know of it."""

    fresh: frozenset[str] = frozenset()
    deallocates: str | None = None
    deallocates_all: bool = False
    assigns: tuple[str, str] | None = None


@dataclass(frozen=True)
class Word:
    """One token: ``key`` is folded for comparison, quoted ones have none."""

    text: str
    key: str


def words(tokens: Sequence[Token]) -> list[Word]:
    """The tokens of a statement as words; ``a.b`` and ``-1`` are one word."""
    found: list[Word] = []
    glue = False
    for token in tokens:
        quoted = token.token_type in _QUOTED
        word = Word(token.text, "" if quoted else token.text.lower())
        if token.token_type is TokenType.DOT and found:
            glue = True
            found[-1] = _joined(found[-1], word)
        elif glue or (found and found[-1].key == "-"):
            glue = False
            found[-1] = _joined(found[-1], word)
        else:
            found.append(word)
    return found


def check_setting(name: str, value: str | None, span: Span | None = None) -> None:
    """Refuse to set what is not known to be harmless."""
    if name not in SETTABLE:
        raise refusal("not_permitted", f'permission denied to set parameter "{name}"', span=span)
    if name in FIXED and (value is None or value.strip("'").lower() not in FIXED[name]):
        raise refusal("fixed", f'parameter "{name}" has one value here', span=span)


def _joined(left: Word, right: Word) -> Word:
    return Word(left.text + right.text, (left.key or left.text) + (right.key or right.text))


def _set(line: list[Word]) -> Utility:
    rest = line[1:]
    keys = [word.key for word in rest]
    if keys[:2] == ["time", "zone"]:
        return _assign("timezone", rest[2:])
    if keys[:1] == ["names"]:
        return _assign("client_encoding", rest[1:])
    if keys[:4] == ["session", "characteristics", "as", "transaction"]:
        return _transaction(rest[3:])
    if keys[:1] == ["transaction"]:
        return _transaction(rest)
    if keys[:1] in (["session"], ["local"]):
        rest, keys = rest[1:], keys[1:]
        if keys[:2] == ["time", "zone"]:
            return _assign("timezone", rest[2:])
    if len(rest) < 3 or keys[1] not in ("=", "to"):
        # SET ROLE and SET SESSION AUTHORIZATION end here too.
        raise refusal("not_permitted", "this SET is not permitted")
    return _assign((keys[0] or rest[0].text).lower(), rest[2:])


def _assign(name: str, values: list[Word]) -> Utility:
    if not values or any(word.key in ("(", ")", "$") for word in values):
        raise refusal("not_permitted", "this SET is not permitted")
    value = values[0].text if len(values) == 1 else None
    check_setting(name, value)
    if name not in RELEASE_SETTINGS or values[0].key == "default":
        return Utility()
    return Utility(assigns=(name, value or ""))


def _show(line: list[Word]) -> Utility:
    keys = [word.key or word.text.lower() for word in line[1:]]
    name = {"time zone": "timezone", "transaction isolation level": "transaction_isolation"}.get(
        " ".join(keys), keys[0] if len(keys) == 1 else ""
    )
    if name not in SHOWN:
        raise refusal("not_permitted", "this SHOW is not permitted")
    return Utility(frozenset({"budget"}) if name == BUDGET else frozenset())


def _reset(line: list[Word]) -> Utility:
    keys = [word.key or word.text.lower() for word in line[1:]]
    if keys in (["all"], ["time", "zone"]) or (len(keys) == 1 and keys[0] in SETTABLE):
        return Utility()
    raise refusal("not_permitted", "this RESET is not permitted")


def _transaction(line: list[Word]) -> Utility:
    if any(word.key not in _TRANSACTION_WORDS for word in line):
        raise refusal("not_supported", "this transaction command is not supported")
    return Utility()


def _rollback(line: list[Word]) -> Utility:
    keys = [word.key for word in line if word.key not in ("work", "transaction")]
    if keys[1:2] == ["to"]:
        return _savepoint([line[0], line[-1]])
    return _transaction(line)


def _savepoint(line: list[Word]) -> Utility:
    rest = [word for word in line[1:] if word.key != "savepoint"]
    if len(rest) != 1:
        raise refusal("not_supported", "this savepoint command is not supported")
    return Utility()


def _discard(line: list[Word]) -> Utility:
    keys = [word.key for word in line[1:]]
    if keys not in (["all"], ["plans"], ["sequences"], ["temp"], ["temporary"]):
        raise refusal("not_supported", "this DISCARD is not supported")
    return Utility(deallocates_all=keys == ["all"])


def _deallocate(line: list[Word]) -> Utility:
    rest = line[2:] if line[1:2] and line[1].key == "prepare" and len(line) > 2 else line[1:]
    if len(rest) != 1:
        raise refusal("not_supported", "this DEALLOCATE is not supported")
    if rest[0].key == "all":
        return Utility(deallocates_all=True)
    return Utility(deallocates=rest[0].key or rest[0].text)


def _only(word: str) -> Callable[[list[Word]], Utility]:
    def check(line: list[Word]) -> Utility:
        if [entry.key for entry in line[1:]] != [word]:
            name = line[0].key.upper()
            raise refusal("not_supported", f"{name} is supported for {word.upper()} only")
        return Utility()

    return check


UTILITIES: dict[str, Callable[[list[Word]], Utility]] = {
    "set": _set,
    "show": _show,
    "reset": _reset,
    "begin": _transaction,
    "start": _transaction,
    "commit": _transaction,
    "end": _transaction,
    "abort": _transaction,
    "rollback": _rollback,
    "savepoint": _savepoint,
    "release": _savepoint,
    "discard": _discard,
    "deallocate": _deallocate,
    "close": _only("all"),
    "unlisten": _only("*"),
}
