"""What one private answer costs: settings within the analyst's limits, and the notice."""

from __future__ import annotations

from decimal import Decimal

from sqlrs.epsilon import parse_epsilon, parse_error
from sqlrs.errors import SqlrsError, UsageError
from sqlrs.ledger.base import add
from sqlrs.proxy.backend import CountOutcome, TableOutcome
from sqlrs.proxy.policy.allowlist import EPSILON, ERROR, ERROR_BARS, ERROR_COLUMNS
from sqlrs.proxy.protocol.replies import Report
from sqlrs.records import dataclass

_OFF = frozenset({"", "off", "none", "0"})
_SWITCH = {"on": True, "true": True, "1": True, "yes": True, "no": False, "false": False}


@dataclass(frozen=True)
class Terms:
    """What an answer costs under the settings of a session, and how it is shown.

    ``error``: wished instead of a price, which ``epsilon`` is then the most of. ``columns``: the
    ends of intervals are columns, whether they are known or not.
    """

    epsilon: Decimal
    error_bars: Decimal | None = None
    error: Decimal | None = None
    columns: bool = False


@dataclass(frozen=True)
class AnalystLimits:
    """An analyst's epsilon: where nothing was set, and at most, error bars included."""

    default_epsilon: Decimal
    max_epsilon: Decimal
    default_error_bars: Decimal | None = None

    def settings(self) -> dict[str, str]:
        """The settings that a session starts with."""
        bars = self.default_error_bars
        return {
            EPSILON: f"{self.default_epsilon:f}",
            ERROR_BARS: "off" if bars is None else f"{bars:f}",
            ERROR: "off",
            ERROR_COLUMNS: "off",
        }

    def validate(self, name: str, text: str) -> Decimal | None:
        """The value of one of the settings that a release depends on; None is off.

        ``sqlrs.error_columns`` has no value of its own: one that is on is 1.
        """
        word = text.strip().lower()
        if name != EPSILON and word in _OFF:
            return None
        if name == ERROR_COLUMNS:
            if word not in _SWITCH:
                raise _invalid(name, "it is on or off", None)
            return Decimal(1) if _SWITCH[word] else None
        if name == ERROR:
            try:
                return parse_error(text)
            except SqlrsError as problem:
                raise _invalid(name, problem.message, problem.hint) from None
        try:
            value = parse_epsilon(text)
        except SqlrsError as problem:
            raise _invalid(name, problem.message, problem.hint) from None
        if value > self.max_epsilon:
            limit = f"{self.max_epsilon:f}"
            raise _invalid(name, f"{name} is at most {limit} here", "ask the data's owner for more")
        return value

    def terms(self, *settings: str | None) -> Terms:
        """What a statement costs, by the settings: epsilon, error bars, wished error, columns."""
        epsilon, error_bars, error, columns = settings
        wished = self.validate(ERROR, error or "off")
        # A wish brings its own interval, which the price of error bars is not for.
        bars = error_bars if wished is None else "off"
        shown = self.validate(ERROR_COLUMNS, columns or "off") is not None
        return Terms(*self.price(epsilon, bars), wished, shown)

    def price(self, epsilon: str | None, error_bars: str | None) -> tuple[Decimal, Decimal | None]:
        """What a statement costs under these settings."""
        value = self.validate(EPSILON, epsilon or f"{self.default_epsilon:f}")
        if value is None:
            raise _invalid(EPSILON, "sqlrs.epsilon is not set", None)
        bars = self.validate(ERROR_BARS, error_bars or "off")
        if bars is not None and add(value, bars) > self.max_epsilon:
            limit = f"{self.max_epsilon:f}"
            raise _invalid(
                EPSILON,
                f"{EPSILON} and {ERROR_BARS} together are at most {limit} here",
                f"SET {EPSILON} or {ERROR_BARS} to less, or ask the data's owner for more",
            )
        return value, bars


def notice(outcome: CountOutcome | TableOutcome, remaining: Decimal | None) -> Report:
    """What the analyst is told with an answer."""
    parts = [f"epsilon {outcome.epsilon:f} charged"]
    if outcome.repeated:
        parts = ["answered from the record, nothing charged"]
    parts.append("no limit" if remaining is None else f"{remaining:f} remains")
    if isinstance(outcome, CountOutcome) and outcome.interval is not None:
        low, high = outcome.interval
        parts.append(f"error bars {low} to {high}")
    parts += outcome.notes
    return Report("NOTICE", "00000", "sqlrs: " + ", ".join(parts))


def _invalid(name: str, message: str, hint: str | None) -> UsageError:
    return UsageError(
        f'invalid value for parameter "{name}": {message}', hint=hint, sqlstate="22023"
    )
