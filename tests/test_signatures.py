"""What an owner writes about a function: types in parentheses, an arrow, a type."""

from __future__ import annotations

import pytest

from sqlrs.errors import UsageError
from sqlrs.inputs.signatures import Signature, call, signature


@pytest.mark.parametrize(
    ("text", "takes", "returns"),
    [
        ("() -> integer", (), "integer"),
        ("( Double ,double )->BOOLEAN", ("double", "double"), "boolean"),
        (
            "(decimal(10, 2), timestamp  with time zone) -> varchar(3)",
            ("decimal(10, 2)", "timestamp with time zone"),
            "varchar(3)",
        ),
    ],
)
def test_signatures(text: str, takes: tuple[str, ...], returns: str) -> None:
    assert signature("f", text) == Signature(takes, returns)
    assert call("--function", f" f {text}") == ("f", Signature(takes, returns))
    assert signature("f", str(Signature(takes, returns))) == Signature(takes, returns)


@pytest.mark.parametrize(
    "text",
    [
        *("", "->", "()", "() ->", "int -> int", "(int, ) -> int", "(,) -> int", "(int[]) -> int"),
        *("(int) -> int; drop", "(int) -> 'x'", "(int -> int", "int) -> int", "(a) -> b -> c"),
        *("(" + "a ," * 50_000 + ")", "(a" + " " * 100_000, "((int)) -> int", "(int(x)) -> int"),
    ],
)
def test_what_is_no_signature_is_refused_at_once(text: str) -> None:
    with pytest.raises(UsageError, match="not the signature"):
        signature("f", text)
    for wrong in ("f", "1f() -> a", "a.f() -> a", f"f{text}"):
        with pytest.raises(UsageError):
            call("--function", wrong)
