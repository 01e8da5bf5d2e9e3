from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlrs.epsilon import MAX_DIGITS, MAX_EPSILON, MIN_EPSILON, parse_epsilon, shared_evenly
from sqlrs.errors import UsageError


class Loud(float):
    def __repr__(self) -> str:
        return f"Loud({float(self)})"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1", "1"),
        ("1.50", "1.5"),
        (" 0.1 ", "0.1"),
        (".5", "0.5"),
        ("5.", "5"),
        ("1e-3", "0.001"),
        ("1E+2", "100"),
        ("0012.0", "12"),
        (0.1, "0.1"),
        (Loud(0.1), "0.1"),
        (1e-05, "0.00001"),
        (3, "3"),
        (1000, "1000"),
        (Decimal("0.30"), "0.3"),
        (Decimal("1E-6"), "0.000001"),
        (Fraction(1, 8), "0.125"),
        (Fraction(7), "7"),
        ("0.12345678901234567891", "0.12345678901234567891"),
    ],
)
def test_reads_the_number_that_was_written(value: Any, expected: str) -> None:
    parsed = parse_epsilon(value)
    assert isinstance(parsed, Decimal)
    assert str(parsed) == expected


@pytest.mark.parametrize(
    "value",
    [
        True,
        False,
        None,
        b"1",
        1j,
        [1],
        0,
        0.0,
        -0.0,
        "0",
        "0e5",
        "-1",
        -1,
        -0.5,
        Fraction(-1, 2),
        Decimal("-0.1"),
        "",
        "one",
        "1_0",
        "1,5",
        "1 000",
        "١",
        "0x10",
        "1e",
        "+1",
        "inf",
        "nan",
        float("nan"),
        float("inf"),
        float("-inf"),
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("Infinity"),
        "1e99999999999",
        "1e9999",
        "1e-9999",
        Decimal("1e-100000"),
        Decimal("1e100000"),
        5e-324,
        1e308,
        10**5000,
        Fraction(10**5000, 3),
        Fraction(1, 3),
        "1000.0001",
        1001,
        "0.00000099",
        "0.123456789012345678912",
        "1" + "0" * 100,
        Decimal("0." + "1" * 70),
    ],
    ids=lambda value: type(value).__name__,
)
def test_refuses_what_is_not_a_reasonable_positive_decimal(value: Any) -> None:
    with pytest.raises(UsageError) as caught:
        parse_epsilon(value)
    assert caught.value.hint
    assert "epsilon" in caught.value.message


@given(st.integers(1, 10**MAX_DIGITS - 1), st.integers(-26, 3))
def test_every_form_of_a_number_gives_the_same_exact_value(digits: int, exponent: int) -> None:
    exact = Fraction(digits) * Fraction(10) ** exponent
    if not Fraction(MIN_EPSILON) <= exact <= Fraction(MAX_EPSILON):
        with pytest.raises(UsageError):
            parse_epsilon(f"{digits}e{exponent}")
        return
    text = parse_epsilon(f"{digits}e{exponent}")
    assert Fraction(text) == exact
    assert str(parse_epsilon(exact)) == str(text) == str(parse_epsilon(Decimal(f"{text}")))
    assert "E" not in str(text)


@given(st.floats(1e-6, 1000))
def test_a_float_stands_for_its_printed_text(value: float) -> None:
    assert float(parse_epsilon(value)) == value
    assert str(parse_epsilon(value)) == str(parse_epsilon(repr(value)))


def test_the_callers_decimal_context_does_not_matter() -> None:
    with localcontext() as context:
        context.prec = 3
        assert str(parse_epsilon("0.1234567890123")) == "0.1234567890123"
        assert str(parse_epsilon(Decimal("0.1234567890123"))) == "0.1234567890123"


@given(st.integers(1, 100), st.decimals("0.001", "1000", places=3))
def test_parts_of_a_price_are_never_more_than_it(number: int, total: Decimal) -> None:
    part = shared_evenly(total, number)
    assert 0 < part * number <= total
    assert total - part * number <= total / 10**10


def test_parts_that_would_be_too_small_are_refused() -> None:
    with pytest.raises(UsageError, match="3 aggregates"):
        shared_evenly(MIN_EPSILON, 3)
