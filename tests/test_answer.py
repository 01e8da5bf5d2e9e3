"""An answer as the ledger records it and gives it back, and what it says of units in words."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction

import pytest

from sqlrs.answer import Answer, Clipping, Interval, unit_notes
from sqlrs.errors import QueryRefused, Span

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
    assert unit_notes("row", []) == ()
    assert unit_notes("row", [CUT]) == ("rows above 48 were cut to 48; standard error 85.2",)
    protected, told = unit_notes("patient.id", [CUT])
    assert "patient.id" in protected
    assert told == "units above 48 were cut to 48; standard error 85.2"
    assert unit_notes("patient.id", [WHOLE])[1:] == ("standard error 1.41",)
    assert unit_notes("node", [CUT, WHOLE])[2] == "aggregate 2: standard error 1.41"


def test_an_answer_is_a_number_where_one_is_wanted() -> None:
    answer = Answer(-104783, Decimal("1.5"), "polylaplace", Interval(-9, 20, Fraction(19, 20)))
    assert (int(answer), float(answer), str(answer)) == (-104783, -104783.0, "-104783")
    assert (
        f"{answer} {answer:,} {answer:>12,d} {answer:.1e}"
        == "-104783 -104,783     -104,783 -1.0e+05"
    )
    with pytest.raises(ValueError, match="format"):
        format(answer, "nonsense")
    html = answer._repr_html_()
    assert "<b>-104,783</b>" in html
    assert "between -9 and 20 with probability 95%" in html
    assert "ε = 1.5" in html


def test_what_a_notebook_shows_is_escaped() -> None:
    text = "SELECT <b> FROM t"
    error = QueryRefused("no <i>", code="syntax", span=Span(7, 10), text=text, hint="try & see")
    html = error._repr_html_()
    assert ">&lt;b&gt;</u> FROM t" in html
    assert "no &lt;i&gt;" in html
    assert "try &amp; see" in html
    assert "<i>hint" in html
    assert error._render_traceback_() == [error.describe()]
    noted = Answer(1, Decimal(1), "<m>", protects="<script>")
    assert "<script>" not in noted._repr_html_()
