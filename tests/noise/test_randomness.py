import ast
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sqlrs.noise
from sqlrs.noise import SystemBits
from sqlrs.noise.randomness import EXTENSION_BITS, Uniform, coin, integer_below
from tests.noise.sources import ScriptedBits

FULL = 2**EXTENSION_BITS


@given(st.integers(0, FULL - 1), st.integers(0, 10**30), st.integers(1, 10**30))
def test_a_comparison_agrees_with_the_whole_interval_or_draws_more(
    prefix: int, numerator: int, denominator: int
) -> None:
    bound = Fraction(numerator, denominator)
    low, high = Fraction(prefix, FULL), Fraction(prefix + 1, FULL)
    script = ScriptedBits([(EXTENSION_BITS, prefix)])
    if low < bound < high:
        with pytest.raises(IndexError):
            Uniform(script).below(numerator, denominator)
    else:
        assert Uniform(script).below(numerator, denominator) == (bound >= high)


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.sampled_from([-1, 0, 1]))
def test_an_undecided_comparison_is_decided_by_further_bits(
    part: int, rest: int, offset: int
) -> None:
    """The second word decides when the first one is cut by the bound."""
    bound = Fraction(part, part + rest)
    first, remainder = divmod(bound * FULL, 1)
    if remainder == 0:
        return
    second = min(max(int(remainder * FULL) + offset, 0), FULL - 1)
    script = [(EXTENSION_BITS, int(first)), (EXTENSION_BITS, second), (EXTENSION_BITS, 0)]
    source = ScriptedBits(script)
    drawn = Fraction(int(first), FULL) + Fraction(second, FULL**2)
    assert Uniform(source).below(bound.numerator, bound.denominator) == (drawn < bound)


def test_the_bits_drawn_for_one_comparison_bind_the_next() -> None:
    uniform = Uniform(ScriptedBits([(EXTENSION_BITS, 0), (EXTENSION_BITS, FULL - 1)]))
    assert uniform.below(1, 2 * FULL) is False
    assert uniform.below(1, FULL) is True
    assert uniform.below(FULL - 1, FULL**2) is False


def test_coins_are_exact_at_their_ends() -> None:
    for prefix in (0, 1, FULL - 1):
        assert coin(1, 1, ScriptedBits([(EXTENSION_BITS, prefix)])) is True
        assert coin(0, 1, ScriptedBits([(EXTENSION_BITS, prefix)])) is False
    assert coin(1, 2, ScriptedBits([(EXTENSION_BITS, FULL // 2 - 1)])) is True
    assert coin(1, 2, ScriptedBits([(EXTENSION_BITS, FULL // 2)])) is False


@pytest.mark.parametrize("bound", range(1, 20))
def test_integers_below_a_bound_are_uniform(bound: int) -> None:
    width = (bound - 1).bit_length()
    counts: Counter[int] = Counter()
    for first in range(2**width):
        source = ScriptedBits([(width, first), (width, 0)])
        value = integer_below(bound, source)
        if not source.used_up:
            counts[value] += 1
    assert counts == {value: 1 for value in range(bound)}


def test_the_system_source_gives_the_number_of_bits_asked_for() -> None:
    source = SystemBits()
    assert source.bits(0) == 0
    drawn = [source.bits(16) for _ in range(2000)]
    # Each bit stays at one value with probability 2 ** -1999.
    assert all(0 <= value < 2**16 for value in drawn)
    assert all(0 < sum(value >> place & 1 for value in drawn) < 2000 for place in range(16))


def test_the_package_knows_no_other_source_of_randomness() -> None:
    allowed = {"secrets"}
    for path in Path(sqlrs.noise.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not {"random", "numpy", "numpy.random", "os", "uuid"} & set(names)
            if allowed & set(names):
                assert path.name == "randomness.py"
