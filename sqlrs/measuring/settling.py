"""Which values are measured: those that matter most, until the others cannot change the fold."""

from __future__ import annotations

import time
from collections.abc import Iterable
from fractions import Fraction

from sqlrs.catalog import Table
from sqlrs.engines.base import rows_for_good
from sqlrs.measuring.evaluate import Evaluator
from sqlrs.measuring.work import Folding, Gauge, Work
from sqlrs.planning.key_joins import has_condition
from sqlrs.planning.limits import frequency_above
from sqlrs.planning.table_statistics import Columns
from sqlrs.residuals.residual import Members, Residual

Known = dict[Members, int]
# Of what could matter most, residuals that make at least so much are evaluated together.
_SHARE = 8
# A count that is asked so often with the same limits is worth to find out what it can do without.
_ONCE_MORE = 2


def read_before(work: Work, evaluator: Evaluator) -> Known:
    """The values that follow from whole tables and were read on the same rows."""
    statistics = evaluator.statistics
    if statistics is None:
        return {}
    found: Known = {}
    values = evaluator.sampled.values(evaluator.snapshot)
    for part in work.statements:
        one = evaluator.reduced(part)
        columns, tables = evaluator.known_as(one)
        if columns is not None and columns in statistics.frequencies:
            found[part.members] = statistics.frequencies[columns]
        elif (known := values.get(tables)) is not None:
            found[part.members] = known
    return found


def run(work: Work, evaluator: Evaluator, parts: Iterable[Residual], known: Known) -> Known:
    """What is known, and the values of some residuals beside."""
    found = dict(known)
    for batch in evaluator.together([part for part in parts if part.members not in known]):
        work.hear(len(batch.residuals))
        begun = time.perf_counter()
        values = batch.run()
        seconds = (time.perf_counter() - begun) / len(values)
        for part, value in zip(batch.residuals, values, strict=True):
            found[part.members] = value
            _learn(evaluator, evaluator.reduced(part), value)
            work.seconds[part.members] = seconds
    return found


def _learn(evaluator: Evaluator, part: Residual, value: int) -> None:
    """Keep a value that is one of whole tables, whatever else a query asks of them."""
    columns, tables = evaluator.known_as(part)
    if columns is not None:
        evaluator.sampled.learn(evaluator.snapshot, columns, value)
    elif tables is not None:
        evaluator.sampled.learn_value(evaluator.snapshot, tables, value)


def until_settled(
    work: Work, evaluator: Evaluator, folding: Folding, before: Known
) -> tuple[Known, Fraction | None]:
    """The values that matter most, until those that are left cannot change the fold."""
    everything = work.residuals.query.everything
    known = dict(before)
    limits = evaluator.limits(work.statements)
    last_time = evaluator.kept_choices(work.residuals)
    last_time.begin(limits)
    if enough := [part for part in work.statements if part.members in last_time.members]:
        # Most likely these are enough again, and one question less is asked for each round.
        if limited := _limited(evaluator, enough):
            last_time.members -= {part.members for part in limited}
            limits = evaluator.limits(work.statements)
        known = run(work, evaluator, [part for part in enough if part not in limited], known)
    # The only value there is decides the fold; that is not worth two folds to find out.
    alone = len([part for part in work.statements if part.members != everything]) == 1
    while True:
        least, most = work.between(known, limits)
        waiting = [part for part in work.statements if part.members not in known]
        chosen = [part for part in waiting if part.members == everything]
        later: list[Residual] = []
        settled = None
        if open_ := [part for part in waiting if least[part.members] < most[part.members]]:
            if alone:
                chosen = waiting
            else:
                settled = folding.settled(work.values(least), work.values(most))
                if settled is None:
                    chosen += _next(work, folding, least, most, open_)
                    later = [part for part in open_ if part not in chosen]
        if not chosen:
            work.hear(len(work.statements))
            last_time.members |= known.keys() - before.keys()
            now = evaluator.limits(work.statements)
            # What was read on the way may be enough by itself from now on.
            if now != limits or (last_time.times == _ONCE_MORE and last_time.limits == limits):
                last_time.members -= _left_out(work, evaluator, folding, known, now)
            last_time.limits = now
            _note_needless(work, evaluator, folding, most)
            return most, settled
        limited = _limited(evaluator, chosen)
        chosen = [part for part in chosen if part not in limited]
        if later and not limited:
            chosen += evaluator.beside(chosen, later)
        known = run(work, evaluator, chosen, known)
        if limited:
            limits = evaluator.limits(work.statements)


def _left_out(
    work: Work, evaluator: Evaluator, folding: Folding, known: Known, limits: Known
) -> set[Members]:
    """Residuals without which the fold would have been settled, those that cost most first."""
    whole = work.residuals.query.everything
    parts = [p for p in work.statements if p.members in known and p.members != whole]
    found = set[Members]()
    for part in sorted(parts, key=evaluator.expected_cost, reverse=True):
        rest = {m: value for m, value in known.items() if m not in found | {part.members}}
        least, most = work.between(rest, limits)
        if folding.settled(work.values(least), work.values(most)) is not None:
            found.add(part.members)
    return found


def _note_needless(work: Work, evaluator: Evaluator, folding: Folding, values: Known) -> None:
    """Tell which values took long that a limit from whole tables could have made needless.

    No such limit is below the value itself.
    """
    for part in work.took_long():
        if (whole := evaluator.whole(part)) is not None:
            least = {**values, part.members: 0}
            if folding.settled(work.values(least), work.values(values)) is not None:
                evaluator.note(whole, work.seconds[part.members])


def _limited(evaluator: Evaluator, chosen: list[Residual]) -> list[Residual]:
    """The residuals for which a frequency is read first, and kept for later queries.

    Where nothing is kept, a residual that costs no more than the frequency is evaluated at once.
    """
    known = evaluator.sampled.frequencies(evaluator.snapshot)
    kept = rows_for_good(evaluator.snapshot) is not None
    wanted: dict[Columns, tuple[Table, frozenset[str]]] = {}
    found = []
    for part in chosen:
        one = evaluator.reduced(part)
        own, _ = evaluator.known_as(one)
        above = None if own else frequency_above(one)
        if above is not None and not kept and _is_cheap(one, *above):
            continue
        if above is not None and (columns := (above[0].identity, above[1])) not in known:
            wanted[columns] = above
            found.append(part)
    if wanted:
        evaluator.sampled.read_frequencies(evaluator.snapshot, list(wanted.values()))
    return found + [part for part in chosen if part not in found and _whole_read(evaluator, part)]


def _whole_read(evaluator: Evaluator, part: Residual) -> bool:
    """Whether a limit from whole tables was read now: as much was spent without it."""
    whole = evaluator.whole(part)
    if whole is None or part.members == evaluator.query.everything:
        return False
    columns, tables = evaluator.known_as(whole)
    if columns is not None:
        known = columns in evaluator.sampled.frequencies(evaluator.snapshot)
    else:
        known = tables in evaluator.sampled.values(evaluator.snapshot)
    if known or not evaluator.pays(whole):
        return False
    _learn(evaluator, whole, evaluator(whole).value)
    return True


def _is_cheap(residual: Residual, table: Table, names: frozenset[str]) -> bool:
    """Whether a condition thins a residual out, or an index has the rows of its table in order."""
    thinned = residual.predicates or any(map(has_condition, residual.atoms))
    return bool(thinned or names & table.index_leads)


def _next(
    work: Work, folding: Folding, least: Known, most: Known, parts: list[Residual]
) -> list[Residual]:
    """The residuals that may matter most; without a gauge the largest, as they mostly do."""
    parts = [part for part in parts if part.members != work.residuals.query.everything]
    if folding.gauge is None:
        rounds = ([part for part in size if part in parts] for size in work.rounds())
        return next((size for size in rounds if size), [])
    gauge = folding.gauge(work.values(most))
    whole, nothing = gauge(work.values(most)), gauge(work.values(least))
    shares = _shares(work, gauge, whole, least, most, parts)
    # What cannot be above the least that is there already needs no look, if anything else does.
    places = [i for i, number in enumerate(whole) if _SHARE * number >= max(whole)]
    for among in ([i for i in places if whole[i] > max(nothing)], places, range(len(whole))):
        chosen = set[Members]()
        for i in among:
            largest = max((share[i] for share in shares.values()), default=0)
            chosen |= {
                m for m, share in shares.items() if share[i] and _SHARE * share[i] >= largest
            }
        if chosen:
            return [part for part in parts if part.members in chosen]
    return parts


def _shares(
    work: Work,
    gauge: Gauge,
    whole: tuple[int, ...],
    least: Known,
    most: Known,
    parts: list[Residual],
) -> dict[Members, list[int]]:
    """How much each value can still take away, also through the sets that it is a factor of.

    Where one such set takes as much away itself, its factor is not worth a look.
    """

    def taken(values: Known) -> list[int]:
        return [a - b for a, b in zip(whole, gauge(work.values(values)), strict=True)]

    lower = {part.members: {**most, part.members: least[part.members]} for part in parts}
    shares = {members: taken(values) for members, values in lower.items()}
    found = dict(shares)
    for members, values in lower.items():
        spread = work.at_most(values)
        moved = [m for m in shares if spread[m] < values[m]]
        if moved:
            found[members] = [
                most_ if most_ > max(shares[m][i] for m in moved) else own
                for i, (own, most_) in enumerate(zip(shares[members], taken(spread), strict=True))
            ]
    return found
