"""The estimate of what is left comes from the clock, and only once something has ended."""

from __future__ import annotations

import pytest

from sqlrs.cli.pace import Pace, in_words


def test_what_ended_says_how_long_the_rest_takes() -> None:
    pace = Pace()
    # Three residuals in one statement, told at once: nothing has ended.
    for position in (1, 2, 3):
        pace.hear(position, 7, 100.0)
    assert pace.left(130.0) is None
    # The next statement begins after 30 s: three took 10 s each, four are left.
    pace.hear(4, 7, 130.0)
    assert pace.left(130.0) == pytest.approx(40.0)
    assert pace.left(145.0) == pytest.approx(25.0)
    # It takes far longer than the others: nobody is told that it will end at once.
    assert pace.left(190.0) == pytest.approx(60.0)
    # Told together with it, and no statement of its own.
    pace.hear(5, 7, 130.0)
    assert pace.left(130.0) == pytest.approx(40.0)


def test_another_measurement_begins_anew() -> None:
    pace = Pace()
    pace.hear(1, 2, 0.0)
    pace.hear(2, 2, 9.0)
    assert pace.left(9.0) == pytest.approx(9.0)
    pace.hear(1, 5, 20.0)
    assert pace.left(21.0) is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""),
        (0.2, "about 1 s left"),
        (41.7, "about 42 s left"),
        (150.0, "about 2 min left"),
        (9000.0, "about 2 h left"),
    ],
)
def test_estimates_are_told_in_few_digits(seconds: float | None, words: str) -> None:
    assert in_words(seconds) == words
