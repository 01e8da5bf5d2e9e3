"""How large an error will be, by what an analyst's earlier answers to the same query have released.

Those are public to the analyst, so nothing is spent. Noises of different laws are compared as if
their sensitivities were one: where the weights fall more slowly than before it may be larger.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Protocol, runtime_checkable

from sqlrs.answer import Answer
from sqlrs.errors import UsageError
from sqlrs.ledger import Charge, JournalLine, Ledger
from sqlrs.ledger.base import RELEASED
from sqlrs.ledger.overview import Wanted
from sqlrs.noise import PolyLaplace
from sqlrs.noise.error_bars import DEFAULT_COVERAGE
from sqlrs.noise.published_scale import SHAPES, law_quantile, published_scale
from sqlrs.records import dataclass
from sqlrs.wished_steps import index_of

# Written by the laws' own describe(); what is read is believed only if it is written the same.
_LAW = re.compile(r"polylaplace noise of shape (\d{1,2}), epsilon ([\d.E-]{1,64}): ")
_SCALE = re.compile(r"scale of .* at epsilon ([\d.]{1,64}) times .*, epsilon ([\d.]{1,64})(?:, |$)")
_MOST_LINES = 20


@runtime_checkable
class _Searchable(Protocol):
    def lines(self, wanted: Wanted) -> tuple[JournalLine, ...]: ...


@dataclass(frozen=True)
class EarlierError:
    """About how near to the truth 95 % of the answers lie, and the release that told it.

    ``told``: half the width that was released then, for noise of the price ``epsilon``.
    """

    half_width: int
    told: int
    epsilon: Decimal
    at: datetime


def earlier_error(charge: Charge, ledger: Ledger) -> EarlierError | None:
    """From what the ledger has recorded for this analyst about this query; None if nothing."""
    if not isinstance(ledger, _Searchable):
        return None
    wanted = Wanted(
        analyst=charge.analyst,
        dataset=charge.dataset,
        query=charge.query,
        outcome=RELEASED,
        most=_MOST_LINES,
        characters=max(len(charge.query), Wanted.characters),
    )
    return told_by(charge, ledger.lines(wanted))


def told_by(charge: Charge, lines: Iterable[JournalLine]) -> EarlierError | None:
    """From lines, newest first; those of other analysts, datasets and queries are passed over."""
    law = _law(charge.mechanism)
    if law is None:
        return None
    known = [
        (line, earlier, told)
        for line in lines
        if line.outcome == RELEASED and _about(line.charge) == _about(charge)
        for earlier, told in _released(line)
    ]
    if not known:
        return None
    # The nearer the weights of the two laws, the nearer their sensitivities.
    line, earlier, told = min(known, key=lambda one: abs(one[1].ratio - law.ratio))
    half_width = math.ceil(told * _reach(law) / _reach(earlier))
    return EarlierError(half_width, told, earlier.epsilon, line.at)


def _about(charge: Charge) -> tuple[str, str, str, str]:
    return charge.analyst, charge.dataset, charge.query, charge.unit


def _released(line: JournalLine) -> Iterator[tuple[PolyLaplace, int]]:
    """The law and half the width that a line tells, if it does."""
    with suppress(ArithmeticError, ValueError, KeyError, TypeError, UsageError):
        if (found := _SCALE.match(line.charge.mechanism)) is not None:
            step, price = map(Decimal, found.groups())
            scale = published_scale(step * SHAPES[-1] + price)
            if line.charge.mechanism.startswith(scale.describe()):
                index, shape = index_of(line.answer or ""), SHAPES[0]
                yield scale.of_number(shape), scale.half_width(index, shape)
        elif (law := _law(line.charge.mechanism)) is not None:
            bars = Answer.from_json(line.answer or "").error_bars
            if bars is not None and bars.coverage == DEFAULT_COVERAGE:
                yield law, (bars.high - bars.low) // 2


def _law(mechanism: str) -> PolyLaplace | None:
    found = _LAW.match(mechanism)
    if found is None:
        return None
    with suppress(ArithmeticError, UsageError):
        law = PolyLaplace(Decimal(found[2]), int(found[1]))
        if mechanism.startswith(law.describe()):
            return law
    return None


def _reach(law: PolyLaplace) -> Fraction:
    """How far 95 % of the noise strays, as a multiple of the sensitivity."""
    return law_quantile(law, 1 - DEFAULT_COVERAGE) * law.scale(Fraction(1))
