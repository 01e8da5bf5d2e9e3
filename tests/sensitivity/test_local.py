from __future__ import annotations

from fractions import Fraction

import pytest

from sqlrs.residuals.residual import Residuals, subsets
from sqlrs.sensitivity.bound import Bound
from sqlrs.sensitivity.local import local_bound
from tests.support import brute
from tests.support.builders import atom, pattern, query, table

R, S = table("r", "x"), table("s", "x", "y")


def test_sum_over_the_sets_of_atoms_of_one_table() -> None:
    q = query(atom(R, "x"), atom(S, "x", "y"), atom(R, "y"))
    residuals = Residuals(q)
    values = {
        members: 10 ** len(members) + min(members, default=0) for members in residuals.required
    }
    expected = max(
        sum(values[q.everything - changed] for changed in subsets(d) if changed)
        for d in q.private_tables
    )
    assert local_bound(residuals, values) == Bound(Fraction(expected), 0)


def test_bounds_the_triangle_on_a_real_instance() -> None:
    q = pattern("ab bc ca")
    rows = [(a, b) for a in range(4) for b in range(4) if a != b]
    database = {"edge": rows[:9]}
    residuals = Residuals(q)
    values = brute.residual_values(residuals, residuals.required, database)
    exact = brute.local_sensitivity(q, database, {"edge": rows})
    assert exact <= local_bound(residuals, values).value


def test_absent_values_raise_and_public_queries_have_none() -> None:
    with pytest.raises(KeyError):
        local_bound(Residuals(pattern("ab bc")), {})
    public = query(atom(table("p", "x", private=False), "x"))
    assert local_bound(Residuals(public), {}) == Bound()
