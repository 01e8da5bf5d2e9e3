"""An answer as the ledger records it and gives it back, and what it says of units in words."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction

import pytest

from sqlrs.answer import Answer, Clipping, Interval, unit_notes

CUT = Clipping(Fraction(4801, 100), 85.25)
WHOLE = Clipping(Fraction(1), 1.41, cut=False)


@pytest.mark.parametrize("clipping", [None, CUT, WHOLE])
@pytest.mark.parametrize("bars", [None, Interval(-3, 20, Fraction(19, 20))])
def test_what_is_recorded_comes_back(clipping: Clipping | None, bars: Interval | None) -> None:
    answer = Answer(7, Decimal("0.5"), "clipped", bars, protects="patient.id", clipping=clipping)
    assert Answer.from_json(answer.to_json()) == answer


def test_what_was_recorded_before_units_is_about_a_row() -> None:
    record = json.loads(Answer(7, Decimal(1), "laplace").to_json())
    del record["protects"], record["clipping"]
    assert Answer.from_json(json.dumps(record)) == Answer(7, Decimal(1), "laplace")


def test_a_cut_is_told_only_where_one_could_be() -> None:
    assert unit_notes("row", [CUT]) == ()
    protected, told = unit_notes("patient.id", [CUT])
    assert "patient.id" in protected
    assert told == "units above 48 were cut to 48; standard error 85.2"
    assert unit_notes("patient.id", [WHOLE])[1:] == ("standard error 1.41",)
    assert unit_notes("node", [CUT, WHOLE])[2] == "aggregate 2: standard error 1.41"
