"""Charges are exact and canonical; what is absurd never becomes one."""

from __future__ import annotations

import decimal
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlrs.errors import BudgetExhausted, UsageError
from sqlrs.ledger.base import (
    Kind,
    PrivacyBudget,
    add,
    check_answer,
    check_outcome,
    parse_cap,
    subtract,
)
from tests.ledger.build import charge

ABSURD = ["0", "-1", "-0", "NaN", "sNaN", "Infinity", "-Infinity", "1001", "1e9999", "1e-9999"]
EXACT = st.decimals(0, 1_000_000, places=26, allow_nan=False)


@pytest.mark.parametrize("epsilon", [*ABSURD, "1e-7", "0." + "1" * 30])
def test_absurd_epsilons_are_no_charge(epsilon: str) -> None:
    with pytest.raises(UsageError, match="epsilon"):
        charge(epsilon)


@pytest.mark.parametrize(
    "name", ["", " ", "a\0b", "a\nb", "a\x1b[31m", " a", "a ", "\ud800", "x" * 201]
)
def test_names_that_cannot_be_kept(name: str) -> None:
    with pytest.raises(UsageError, match="analyst"):
        charge(analyst=name)
    with pytest.raises(UsageError, match="dataset"):
        charge(dataset=name)


@pytest.mark.parametrize("text", ["", "a\0b", "\ud800"])
def test_texts_that_cannot_be_kept(text: str) -> None:
    with pytest.raises(UsageError, match="query"):
        charge(query=text)
    with pytest.raises(UsageError, match="mechanism"):
        charge(mechanism=text)


def test_equal_values_make_equal_charges() -> None:
    assert charge("1") == charge("1.000") == charge("10e-1")
    assert {str(charge(text).epsilon) for text in ("10", "10.0", "1e1")} == {"10"}
    assert charge("1") != charge("1.00001")


@pytest.mark.parametrize(
    "value",
    ["-1", "NaN", "sNaN", "Infinity", "1000000.1", "1e999999", "1e-31", "x", "", "1" * 5000, 0.5],
)
def test_caps_that_are_none(value: str) -> None:
    with pytest.raises(UsageError, match="budget"):
        parse_cap(value)


@pytest.mark.parametrize(
    "value",
    [pytest.param(10**5000, id="huge"), Decimal("1e999999"), Decimal("0." + "1" * 31)],
)
def test_caps_that_are_none_as_numbers(value: Decimal | int) -> None:
    with pytest.raises(UsageError, match="budget"):
        parse_cap(value)


@pytest.mark.parametrize(
    ("value", "text"), [("0", "0"), ("-0", "0"), ("1e1", "10"), (7, "7"), ("0.50", "0.5")]
)
def test_caps_have_one_form(value: str | int, text: str) -> None:
    assert str(parse_cap(value)) == text


def test_ten_tenths_are_one() -> None:
    budget = PrivacyBudget(Kind.ANALYST, "ada", Decimal(1), Decimal(0))
    for _ in range(10):
        budget = budget.after(charge("0.1"))
    assert budget.spent == 1
    assert budget.remaining == 0
    with pytest.raises(BudgetExhausted):
        budget.after(charge("0.000001"))


@given(EXACT, EXACT)
def test_sums_are_exact_whatever_the_context(left: Decimal, right: Decimal) -> None:
    with decimal.localcontext(prec=3):
        total, difference = add(left, right), subtract(left, right)
        assert Fraction(total) == Fraction(left) + Fraction(right)
        assert Fraction(difference) == Fraction(left) - Fraction(right)
    assert str(total) == str(Decimal(f"{total:f}"))
    assert "." not in f"{total:f}" or not f"{total:f}".endswith("0")


def test_remaining_is_never_negative() -> None:
    assert PrivacyBudget(Kind.DATASET, "graph", Decimal(1), Decimal(3)).remaining == 0


def test_the_refusal_says_who_and_how_much() -> None:
    budget = PrivacyBudget(Kind.DATASET, "graph", Decimal(10), Decimal("9.75"))
    with pytest.raises(BudgetExhausted) as refusal:
        budget.after(charge("0.5"))
    assert "costs epsilon 0.5" in str(refusal.value)
    assert "dataset 'graph' has 0.25 left" in str(refusal.value)
    assert "sqlrs budget grant E --dataset graph" in (refusal.value.hint or "")


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "-1", "sNaN"])
def test_a_budget_is_made_of_numbers(value: str) -> None:
    with pytest.raises(ValueError, match="finite"):
        PrivacyBudget(Kind.ANALYST, "ada", Decimal(value), Decimal(0))
    with pytest.raises(ValueError, match="finite"):
        PrivacyBudget(Kind.ANALYST, "ada", Decimal(1), Decimal(value))


@pytest.mark.parametrize("answer", ["", "{", "forty-two thousand", "NaN,", '{"a": 41}, 42'])
def test_an_answer_is_json_and_never_quoted(answer: str) -> None:
    with pytest.raises(ValueError, match="not JSON text") as error:
        check_answer(answer)
    assert error.value.__cause__ is None
    assert "4" not in str(error.value)


@pytest.mark.parametrize(
    "outcome", ["", "failed after 17 rows", "t_17", "reserved", "released", "A"]
)
def test_an_outcome_is_a_code_of_letters(outcome: str) -> None:
    with pytest.raises(ValueError, match="letters") as error:
        check_outcome(outcome)
    assert "17" not in str(error.value)


def test_charges_do_not_change() -> None:
    with pytest.raises(AttributeError):
        charge().epsilon = Decimal(0)  # type: ignore[misc]
    with pytest.raises(UsageError):
        replace(charge(), epsilon=Decimal(-1))


def test_importing_the_ledger_loads_no_driver() -> None:
    code = "import sys, sqlrs.ledger; print({'sqlalchemy', 'psycopg'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
