"""Every shape over all instances of a tiny domain, and random queries on random instances."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.sensitivity.exhaustive import Shape, check
from tests.sensitivity.random_queries import Case, cases
from tests.sensitivity.shapes import shapes
from tests.support.examples import examples


@pytest.mark.parametrize("shape", shapes(), ids=lambda shape: shape.name)
def test_no_pair_of_neighbours_breaks_a_bound(shape: Shape) -> None:
    report = check(shape)
    assert report.pairs >= 50
    assert not report.failed, report.example


@settings(max_examples=examples(60), deadline=None)
@given(cases())
def test_no_random_query_breaks_a_bound(case: Case) -> None:
    report = check(case.shape, databases=[case.database])
    assert not report.failed, (case.shape.query, report.example)
