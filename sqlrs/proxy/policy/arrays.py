"""Array parameters: wire values to their elements, and ``= ANY`` of them to a list of literals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from sqlglot import exp

from sqlrs.errors import UsageError
from sqlrs.proxy.protocol.codec import ProtocolViolation, Reader
from sqlrs.refusals import refusal

# The type of the elements of each array type.
ELEMENTS = {
    1000: 16,
    1005: 21,
    1007: 23,
    1009: 25,
    1014: 1042,
    1015: 1043,
    1016: 20,
    1021: 700,
    1022: 701,
    1115: 1114,
    1182: 1082,
    1185: 1184,
    1231: 1700,
    2951: 2950,
}
_MOST_ELEMENTS = 1000


def elements(value: bytes, element_type: int, binary: bool) -> list[bytes | None]:
    """The elements of an array of one dimension, in their own wire format."""
    found = _binary(value, element_type) if binary else _text(value.decode("utf-8"))
    read = list(islice(found, _MOST_ELEMENTS + 1))
    if len(read) > _MOST_ELEMENTS:
        raise UsageError(
            f"an array parameter has at most {_MOST_ELEMENTS} elements", sqlstate="54000"
        )
    return read


def write_membership(parameter: exp.Parameter, values: Sequence[exp.Expression] | None) -> None:
    """Replace ``x = ANY($1)`` by ``x IN (…)`` and ``x <> ALL($1)`` by its negation.

    NULLs mean the same in both. ``values`` is None for an array that is NULL itself.
    """
    node: exp.Expression = parameter
    while isinstance(node.parent, exp.Paren | exp.Cast):
        # A cast to the array's own type: the shadow took the parameter's type from it.
        node = node.parent
    comparison = node.parent and node.parent.parent
    if _is_quantifier(node.parent, "any", "some") and isinstance(comparison, exp.EQ):
        negated = False
    elif _is_quantifier(node.parent, "all") and isinstance(comparison, exp.NEQ):
        negated = True
    else:
        comparison = None
    if comparison is None or comparison.expression is not node.parent:
        raise refusal(
            "parameter_type",
            "an array parameter is understood in = ANY ($1) and <> ALL ($1) only",
            hint="write the values one by one: column IN ($1, $2)",
        )
    if values is None:
        written: exp.Expression = exp.null()
    elif not values:
        # Nothing is in an empty list, whatever it is compared with.
        written = exp.Boolean(this=negated)
    else:
        member = exp.In(this=comparison.this, expressions=[value.copy() for value in values])
        written = exp.Not(this=member) if negated else member
    comparison.replace(exp.paren(written))


def _is_quantifier(node: exp.Expr | None, *names: str) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in names and len(node.expressions) == 1
    return (isinstance(node, exp.Any) and "any" in names) or (
        isinstance(node, exp.All) and "all" in names
    )


def _text(text: str) -> Iterator[bytes | None]:
    """The elements of ``{1,NULL,"a,b"}``; further dimensions and own bounds are refused."""
    body = text.strip()
    if len(body) < 2 or body[0] != "{" or body[-1] != "}":
        raise ValueError
    at, end = 1, len(body) - 1
    if not body[1:end].strip():
        return
    while True:
        element, at = _element(body, at, end)
        yield element
        if at == end:
            return
        if body[at] != ",":
            raise ValueError
        at += 1


def _element(body: str, at: int, end: int) -> tuple[bytes | None, int]:
    while at < end and body[at].isspace():
        at += 1
    quoted = body[at] == '"'
    at += quoted
    letters: list[str] = []
    while at < end and (body[at] != '"' if quoted else body[at] not in ",{}"):
        if body[at] == '"':
            raise ValueError
        at += body[at] == "\\"
        if at >= end:
            raise ValueError
        letters.append(body[at])
        at += 1
    if quoted:
        if at >= end:
            raise ValueError
        at += 1
        while at < end and body[at].isspace():
            at += 1
        return "".join(letters).encode(), at
    word = "".join(letters).rstrip()
    if not word or (at < end and body[at] != ","):
        raise ValueError
    return (None if word.upper() == "NULL" else word.encode()), at


def _binary(value: bytes, element_type: int) -> Iterator[bytes | None]:
    reader = Reader(value)
    try:
        dimensions, _, declared = reader.int32(), reader.int32(), reader.uint32()
        if dimensions not in (0, 1) or declared != element_type:
            raise ValueError
        if dimensions:
            count, _ = reader.int32(), reader.int32()
            for _ in range(count):
                yield reader.value()
        reader.end()
    except ProtocolViolation:
        raise ValueError from None
