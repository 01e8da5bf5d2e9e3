"""Notebooks: docs/notebook.ipynb runs and shows HTML; the magic, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pandas as pd  # type: ignore[import-untyped]
import pytest
from IPython.core.interactiveshell import InteractiveShell

import sqlrs

NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebook.ipynb"
SQL = "SELECT count(*) AS n FROM visit WHERE age > 20"


def test_the_notebook_of_the_documents_runs(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=120, resources=resources).execute()
    shown = [
        output["data"].get("text/html", "")
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "data" in output
    ]
    assert any("between" in html and "probability" in html for html in shown)
    assert any("<svg" in html for html in shown)
    assert any("median" in html and "<u" in html for html in shown)
    assert sum("<table" in html for html in shown) == 2


@pytest.fixture
def shell() -> Iterator[Any]:
    made = InteractiveShell()
    made.run_cell("%load_ext sqlrs.notebook")
    frame = pd.DataFrame({"patient": [1, 2, 3], "age": [30, 41, 7]})
    with sqlrs.connect(tables={"visit": frame}) as database:
        made.user_ns["db"] = database
        yield made


def test_the_magic_asks_and_keeps(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    done = shell.run_cell(f"%%sqlrs --epsilon 1000 --into kept\n{SQL}")
    assert done.success
    assert done.result.rows == ((2,),)
    assert shell.user_ns["kept"] is done.result
    capsys.readouterr()
    explained = shell.run_cell(f"%%sqlrs db --explain\n{SQL}").result
    assert "<svg" in explained._repr_html_() or "<pre" in explained._repr_html_()


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (f"%%sqlrs\n{SQL}", "price"),
        (f"%%sqlrs other --epsilon 1\n{SQL}", "other is no database"),
        (f"%%sqlrs --epsilon 1 --nonsense\n{SQL}", "no option --nonsense"),
        ("%%sqlrs --epsilon 1\nSELECT median(age) FROM visit", "median"),
    ],
)
def test_what_the_magic_refuses_is_shown_and_ends_the_cell(
    shell: Any, capsys: pytest.CaptureFixture[str], cell: str, words: str
) -> None:
    done = shell.run_cell(cell)
    printed = capsys.readouterr()
    assert not done.success
    assert words in printed.out
    assert "Traceback" not in printed.out + printed.err
