"""Released tables as their readers meet them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from uuid import UUID

import pytest

from sqlrs.errors import UsageError
from sqlrs.table_answer import TableAnswer

ANSWER = TableAnswer(
    columns=(("ward", "VARCHAR"), ("n", "BIGINT"), ("mean", "DOUBLE")),
    rows=(("A", 12, 3.5), ("long\nname", -1, None), (None, 1234, float("nan"))),
    epsilon=Decimal("1.50"),
    mechanism="polylaplace",
)


def test_it_is_a_sequence_of_rows() -> None:
    assert len(ANSWER) == 3
    assert ANSWER[0] == ("A", 12, 3.5)
    assert [row[1] for row in ANSWER] == [12, -1, 1234]
    assert ANSWER.names == ("ward", "n", "mean")


def test_the_text_is_aligned_and_says_the_price() -> None:
    assert repr(ANSWER).splitlines() == [
        "ward           n  mean",
        "──────────────────────",
        "A             12   3.5",
        "long\\nname    -1  NULL",
        "NULL        1234   nan",
        "ε = 1.50, polylaplace",
    ]
    again = replace(ANSWER, repeated=True, notes=("rows of other wards are in no group",))
    assert repr(again).splitlines()[-2:] == [
        "ε = 1.50, polylaplace, repeated",
        "rows of other wards are in no group",
    ]


def test_a_long_table_is_cut_short_in_a_session_only() -> None:
    long = replace(ANSWER, columns=(("n", "BIGINT"),), rows=tuple((i,) for i in range(25)))
    assert repr(long).splitlines()[-2] == "… 5 more rows"
    assert "19" in repr(long) and "20" not in repr(long)
    assert len(long.to_text().splitlines()) == 2 + 25 + 1
    assert "… 5 more rows" in long._repr_html_()
    one_more = replace(long, rows=long.rows[:21])
    assert repr(one_more).splitlines()[-2] == "… 1 more row"


def test_a_table_without_rows_or_columns_is_shown() -> None:
    assert repr(replace(ANSWER, rows=())).splitlines()[0] == "ward  n  mean"
    assert repr(replace(ANSWER, rows=(), columns=())).splitlines()[-1] == "ε = 1.50, polylaplace"


def test_html_is_escaped() -> None:
    evil = replace(
        ANSWER,
        columns=(("<script>", "VARCHAR"),),
        rows=(("<b>&",), (None,)),
        mechanism="<m>",
        notes=("<note>",),
    )
    shown = evil._repr_html_()
    for text in ("<script>", "<b>", "<m>", "<note>"):
        assert text not in shown
    assert "&lt;b&gt;&amp;" in shown
    assert "<i>NULL</i>" in shown


def test_json_has_a_form_for_every_value() -> None:
    answer = replace(
        ANSWER,
        columns=tuple((f"c{i}", "VARCHAR") for i in range(7)),
        rows=((2**70, Decimal("1.10"), date(2024, 2, 29), UUID(int=1), True, None, float("inf")),),
    )
    record = json.loads(answer.to_json())
    assert record["rows"] == [
        [2**70, "1.10", "2024-02-29", "00000000-0000-0000-0000-000000000001", True, None, "inf"]
    ]
    assert (record["epsilon"], record["repeated"]) == ("1.50", False)
    assert record["columns"] == [f"c{i}" for i in range(7)]


def test_json_has_the_ends_of_each_aggregate() -> None:
    kinds = ["ward", "n", "n_low", "n_high", "mean", "mean_low", "mean_high"]
    answer = replace(
        ANSWER,
        columns=tuple((name, "BIGINT") for name in kinds),
        rows=(("a", 5, 3, 7, Decimal("1.5"), None, Decimal(2)), ("b", 6, 4, 8, None, None, None)),
    )
    assert answer.error_bars is None and json.loads(answer.to_json())["error_bars"] is None
    shown = replace(answer, intervals=True)
    assert shown.error_bars == (((3, 7), (None, Decimal(2))), ((4, 8), (None, None)))
    assert json.loads(shown.to_json())["error_bars"] == [
        [[3, 7], [None, "2"]],
        [[4, 8], [None, None]],
    ]
    assert json.loads(replace(shown, rows=()).to_json())["error_bars"] == []


def test_pandas_takes_the_rows() -> None:
    pandas = pytest.importorskip("pandas")
    frame = ANSWER.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == ["ward", "n", "mean"]
    assert frame["n"].sum() == 1245
    assert list(replace(ANSWER, rows=()).to_pandas().columns) == ["ward", "n", "mean"]


def test_arrow_takes_the_rows() -> None:
    pytest.importorskip("pyarrow")
    assert ANSWER.to_arrow().num_rows == 3
    assert replace(ANSWER, rows=()).to_arrow().column_names == ["ward", "n", "mean"]


@pytest.mark.parametrize("package", ["pandas", "pyarrow"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr("sqlrs.table_answer.import_module", absent)
    with pytest.raises(UsageError) as raised:
        ANSWER.to_pandas() if package == "pandas" else ANSWER.to_arrow()
    assert raised.value.hint == f"pip install {package}"


def test_polars_and_arrow_take_it() -> None:
    import polars
    import pyarrow

    frame = ANSWER.to_polars()
    assert frame.columns == ["ward", "n", "mean"]
    assert repr(frame.rows()) == repr(list(ANSWER.rows))
    assert replace(ANSWER, rows=()).to_polars().columns == ["ward", "n", "mean"]
    assert pyarrow.table(ANSWER).num_rows == len(ANSWER)
    assert polars.DataFrame(ANSWER).columns == ["ward", "n", "mean"]
