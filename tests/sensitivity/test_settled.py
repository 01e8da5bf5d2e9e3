"""What a sensitivity is known to be before all values are: no values in between have another."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import event, given, settings
from hypothesis import strategies as st

from sqlrs.residuals.residual import Residuals
from sqlrs.sensitivity.refined import reached, released_sensitivity, settled_sensitivity
from sqlrs.sensitivity.weights import Weights
from tests.sensitivity.random_queries import Case, cases
from tests.support.examples import examples

WEIGHTS = (Weights(Fraction(2, 3)), Weights(Fraction(9, 10)))


@settings(max_examples=examples(60))
@given(case=cases(), data=st.data())
def test_a_settled_sensitivity_is_that_of_all_values_between(
    case: Case, data: st.DataObject
) -> None:
    residuals = Residuals(case.shape.query)
    weights = data.draw(st.sampled_from(WEIGHTS))
    numbers = st.one_of(st.integers(0, 4), st.sampled_from([0, 50, 10**6]))
    least, between, most = {}, {}, {}
    close = data.draw(st.sampled_from([0, 1, 10**6]))
    for members in reached(residuals):
        value = data.draw(numbers)
        # Of most residuals little is known, as a rule, and the larger ones are read.
        unknown = data.draw(st.integers(0, 2)) == 0
        least[members] = data.draw(st.integers(0, value)) if unknown else value
        most[members] = value + (data.draw(st.integers(0, close)) if unknown else 0)
        between[members] = data.draw(st.integers(least[members], most[members]))
    settled = settled_sensitivity(residuals, least, most, weights)
    event(f"settled: {settled is not None}")
    if settled is not None:
        for values in (least, between, most):
            assert released_sensitivity(residuals, values, weights).value == settled
    exact = settled_sensitivity(residuals, between, between, weights)
    assert exact in (None, released_sensitivity(residuals, between, weights).value)
