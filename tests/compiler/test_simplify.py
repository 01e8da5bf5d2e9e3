"""Simplification against brute force over every value of small domains."""

from __future__ import annotations

from decimal import Decimal

import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sqlrs.catalog import ColumnType, Family, Table, Value
from sqlrs.compiler.simplify import Contradiction, simplify
from sqlrs.query import Atom, Comparison, Constant, General, Inequality, Query, Term, Variable
from tests.compiler.schema import BIGINT, DECIMAL, TEXT, table
from tests.support import sql_cases
from tests.support.examples import examples

DOUBLE = ColumnType(Family.FLOAT, "DOUBLE")
NUMERIC = ColumnType(Family.DECIMAL, "numeric")
NUMBERS: Table = table("numbers", n=BIGINT)
# Three variables need three values beyond the constants on either side to be told apart.
DOMAIN = [(value,) for value in range(-4, 8)]
X, Y, Z = (Variable(name, BIGINT) for name in "xyz")


def over(*comparisons: Comparison, **parts: object) -> Query:
    atoms = tuple(Atom(v.name, NUMBERS, (("n", v),)) for v in (X, Y, Z))
    return Query(atoms, comparisons=frozenset(comparisons), **parts)  # type: ignore[arg-type]


def terms() -> st.SearchStrategy[Term]:
    constants = st.integers(0, 3).map(lambda value: Constant(value, BIGINT))
    return st.sampled_from([X, Y, Z]) | constants


@st.composite
def comparisons(draw: st.DrawFn) -> Comparison:
    left, right = draw(terms()), draw(terms())
    if left == right or (isinstance(left, Constant) and isinstance(right, Constant)):
        left, right = X, Y
    return Comparison(left, right, draw(st.booleans()))


@given(
    st.lists(comparisons(), max_size=5),
    st.sets(st.sampled_from([(X, Y), (Y, Z), (X, Z)])),
    st.booleans(),
    st.sampled_from([None, frozenset[Variable](), frozenset({X}), frozenset({X, Y})]),
)
@settings(max_examples=examples(60))
def test_the_simplified_query_counts_the_same_and_is_never_missed_when_empty(
    predicates: list[Comparison],
    unequal: set[tuple[Variable, Variable]],
    general: bool,
    distinct: frozenset[Variable] | None,
) -> None:
    placeholders = [exp.Placeholder(this=f"v{i}") for i in range(2)]
    condition = exp.NEQ(this=exp.Add(this=placeholders[0], expression=placeholders[1]),
                        expression=exp.Literal.number(4))  # fmt: skip
    query = over(
        *predicates,
        inequalities=frozenset(Inequality.between(*pair) for pair in unequal),
        generals=(General(condition, (Y, X)),) if general else (),
        distinct=distinct,
    )
    expected = sql_cases.count(query, {NUMBERS.label: DOMAIN})
    simplified = simplify(query)
    if isinstance(simplified, Contradiction):
        assert expected == 0
    else:
        assert sql_cases.count(simplified, {NUMBERS.label: DOMAIN}) == expected
        if not unequal and not general:
            assert expected > 0


def test_a_chain_keeps_what_follows_from_its_other_links() -> None:
    chain = over(Comparison(X, Y, True), Comparison(Y, Z, True), Comparison(X, Z, True))
    assert simplify(chain) == chain


@pytest.mark.parametrize(
    ("low", "high", "kind", "empty"),
    [
        (3, 4, BIGINT, True),
        (3, 5, BIGINT, False),
        (Decimal("3"), Decimal("4"), DECIMAL, False),
        (Decimal("0.1"), Decimal("0.1"), DECIMAL, True),
        (Decimal("0.2"), Decimal("0.1"), DECIMAL, True),
        # How two texts compare depends on the collation; only a text and itself are certain.
        ("b", "a", TEXT, False),
        ("a", "a", TEXT, True),
    ],
)
def test_an_open_interval_is_empty_as_its_type_says(
    low: Value, high: Value, kind: ColumnType, empty: bool
) -> None:
    of = table("t", v=kind)
    v = Variable("v", kind)
    query = Query(
        (Atom("t", of, (("v", v),)),),
        comparisons=frozenset(
            {Comparison(Constant(low, kind), v, True), Comparison(v, Constant(high, kind), True)}
        ),
    )
    assert isinstance(simplify(query), Contradiction) == empty


def test_texts_bounded_by_one_value_become_it() -> None:
    v, w = Variable("v", TEXT), Variable("w", TEXT)
    of = table("t", v=TEXT)
    a = Constant("a", TEXT)
    query = Query(
        (Atom("t", of, (("v", v),)), Atom("s", of, (("v", w),))),
        comparisons=frozenset(
            {Comparison(v, a, False), Comparison(a, v, False), Comparison(v, w, True)}
        ),
    )
    simplified = simplify(query)
    assert isinstance(simplified, Query)
    assert dict(simplified.atoms[0].terms) == {"v": a}
    assert simplified.comparisons == {Comparison(a, w, True)}


@pytest.mark.parametrize(
    ("kind", "general", "merged"),
    [
        (DECIMAL, "ABS(v0 - v1) < 1", True),
        (DECIMAL, "v0 || v1 <> 'x'", True),
        (DOUBLE, "ABS(v0 - v1) < 1", True),
        (DOUBLE, "v0 || v1 <> 'x'", False),
        (NUMERIC, "ABS(v0 - v1) < 1", True),
        (NUMERIC, "v0 || v1 <> 'x'", False),
    ],
)
def test_a_cycle_is_merged_unless_a_condition_can_tell_equal_values_apart(
    kind: ColumnType, general: str, merged: bool
) -> None:
    """-0.0 and 0.0, or 1.0 and 1.00, are equal and have two texts."""
    of = table("t", v=kind)
    w, x, y = (Variable(name, kind) for name in "wxy")
    tree = sqlglot.parse_one(general).transform(
        lambda n: exp.Placeholder(this=n.name) if isinstance(n, exp.Column) else n
    )
    query = Query(
        tuple(Atom(v.name, of, (("v", v),)) for v in (w, x, y)),
        comparisons=frozenset({Comparison(w, x, False), Comparison(x, w, False)}),
        generals=(General(tree, (x, y)),),
    )
    simplified = simplify(query)
    assert isinstance(simplified, Query)
    assert (simplified.comparisons == frozenset()) == merged
