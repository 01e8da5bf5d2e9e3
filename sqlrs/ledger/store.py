"""The ledger that lasts: budgets and the journal of releases in SQLite or PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from sqlalchemy import Row, Select, or_, select

from sqlrs.errors import EngineFailed, UsageError
from sqlrs.ledger import granting
from sqlrs.ledger.base import (
    RELEASED,
    RESERVED,
    Charge,
    JournalLine,
    Kind,
    PrivacyBudget,
    check_answer,
    check_name,
    check_outcome,
    not_open,
    parse_cap,
)
from sqlrs.ledger.budget_rows import (
    budget_of,
    fingerprint,
    is_budget,
    journaled_unit,
    line_of,
    nothing,
    readable,
    whose,
)
from sqlrs.ledger.export import answers_csv, csv_text, json_lines
from sqlrs.ledger.granting import Act, BudgetRequest, GrantTerms
from sqlrs.ledger.ledger_tables import ACTS, BUDGETS, RELEASES, REQUESTS
from sqlrs.ledger.migrations import check_version
from sqlrs.ledger.opened import FAILED, READ, OpenedStore, clock
from sqlrs.ledger.overview import Activity, Wanted, activities, wanted_lines

OWNER = "owner"
"""Who an act of nobody in particular is by."""


class StoreLedger(OpenedStore):
    """Budgets that every process and every run shares. Who has none granted has 0.

    ``url`` is ``sqlite:///file`` or ``postgresql://user@host:port/database``. ``repeats`` says
    whether an identical query gets its recorded answer for free. A missing ledger is made, unless
    ``create`` is False: whoever only reads has the wrong name.
    """

    def __init__(self, url: str, *, repeats: bool = True, create: bool = True) -> None:
        super().__init__(url, create)
        self._repeats = repeats

    def repeat(self, charge: Charge) -> str | None:
        """The first recorded public answer of an identical released charge, or None."""
        if not self._repeats:
            return None
        found = self._read(
            select(RELEASES.c.answer)
            .where(
                RELEASES.c.fingerprint == fingerprint(charge),
                RELEASES.c.outcome == RELEASED,
                RELEASES.c.answer.is_not(None),
            )
            .order_by(RELEASES.c.ticket)
            .limit(1)
        )
        return None if not found else str(found[0].answer)

    def reserve(self, charge: Charge) -> int:
        """Spend the charge of both budgets, or raise BudgetExhausted and spend nothing."""
        with self._writing() as connection:
            # Always the analyst's row before the dataset's: two reservations cannot deadlock.
            rows = connection.execute(
                select(BUDGETS)
                .where(
                    or_(
                        is_budget(Kind.ANALYST, charge.analyst),
                        is_budget(Kind.DATASET, charge.dataset),
                    )
                )
                .order_by(BUDGETS.c.kind)
                .with_for_update()
            )
            with readable():
                found = rows.all()
            # After the locks are taken: one moment decides the window, and stands in the journal.
            now = clock(connection)
            granted = {budget.kind: budget for budget in (budget_of(row, now) for row in found)}
            for kind, name in ((Kind.ANALYST, charge.analyst), (Kind.DATASET, charge.dataset)):
                before = granted.get(kind, nothing(kind, name))
                if before.unit is None and kind is Kind.DATASET:
                    before = replace(before, unit=journaled_unit(connection, name))
                after = before.after(charge)
                kept = connection.execute(
                    BUDGETS.update()
                    .where(is_budget(kind, name))
                    .values(
                        spent=after.spent,
                        unit=after.unit,
                        window_start=after.window,
                        window_spent=after.window_spent,
                    )
                    .returning(
                        BUDGETS.c.spent,
                        BUDGETS.c.unit,
                        BUDGETS.c.window_start,
                        BUDGETS.c.window_spent,
                    )
                )
                meant = (after.spent, after.unit, after.window, after.window_spent)
                if [tuple(row) for row in kept] != [meant]:
                    raise EngineFailed("the budget ledger did not keep a charge")
            inserted = connection.execute(
                RELEASES.insert()
                .values(
                    at=now,
                    analyst=charge.analyst,
                    dataset=charge.dataset,
                    query=charge.query,
                    mechanism=charge.mechanism,
                    epsilon=charge.epsilon,
                    outcome=RESERVED,
                    fingerprint=fingerprint(charge),
                    unit=charge.unit,
                )
                .returning(RELEASES.c.ticket)
            )
            return int(inserted.scalar_one())

    def settle(self, ticket: int, answer: str) -> None:
        """Record the public answer, as JSON text; only then may it be shown."""
        check_answer(answer)
        self._close(ticket, RELEASED, answer)

    def fail(self, ticket: int, outcome: str) -> None:
        """Record that no answer came; the charge stays spent."""
        check_outcome(outcome)
        self._close(ticket, outcome, None)

    def remaining(self, analyst: str, dataset: str) -> Decimal:
        """What this analyst may still spend on this dataset: the smaller of the two budgets."""
        budgets = (self.budget(analyst=analyst), self.budget(dataset=dataset))
        return min(budget.remaining for budget in budgets)

    def grant(
        self,
        *,
        epsilon: Decimal | int | str,
        analyst: str | None = None,
        dataset: str | None = None,
        note: str | None = None,
        expires: datetime | str | None = None,
        renew: str | None = None,
        by: str = OWNER,
    ) -> PrivacyBudget:
        """Set the cap of one analyst or one dataset: the total over all time, spent or not.

        ``renew`` (daily, weekly, monthly, yearly) makes it the cap of each such window, by UTC.
        ``expires``: a day or a moment from which on nothing is left. What is not given stays as it
        was; ``"never"`` ends an expiry or a renewal. ``note`` says why, ``by`` who grants.
        """
        kind, name = whose(analyst, dataset)
        cap, terms = parse_cap(epsilon), GrantTerms(note, expires, renew)
        with self._writing() as connection:
            # As for a charge: the moment that decides the window comes after the lock.
            granting.hold(connection, kind, name)
            now = clock(connection)
            budget = granting.set_budget(connection, now, kind, name, cap, terms)
            granting.record(connection, now, "grant", budget, by, note or "")
            return budget

    def revoke(
        self, *, why: str, analyst: str | None = None, dataset: str | None = None, by: str = OWNER
    ) -> PrivacyBudget:
        """Close a budget with a cap of 0; answers that were released can still be repeated."""
        kind, name = whose(analyst, dataset)
        with self._writing() as connection:
            return granting.revoke(connection, clock(connection), kind, name, by, why)

    def ask(self, *, analyst: str, dataset: str, epsilon: Decimal | int | str, why: str) -> int:
        """Ask the owner for so much more epsilon; the request's number."""
        with self._writing() as connection:
            now = clock(connection)
            return granting.ask(connection, now, analyst, dataset, epsilon, why)

    def approve(
        self,
        request: int,
        *,
        by: str = OWNER,
        why: str = "",
        epsilon: Decimal | int | str | None = None,
        expires: datetime | str | None = None,
    ) -> PrivacyBudget:
        """Raise the analyst's cap by what was asked for, or by ``epsilon``; once."""
        with self._writing() as connection:
            return granting.decide(
                connection,
                clock(connection),
                request,
                by,
                why,
                granted=True,
                epsilon=epsilon,
                expires=expires,
            )

    def decline(self, request: int, *, by: str = OWNER, why: str) -> PrivacyBudget:
        """Turn a request down; the reason is shown to the analyst."""
        reason = granting.words("a reason", why, needed=True)
        with self._writing() as connection:
            now = clock(connection)
            return granting.decide(connection, now, request, by, reason, granted=False)

    def requests(
        self, analyst: str | None = None, *, state: str | None = None, lines: int = 1000
    ) -> tuple[BudgetRequest, ...]:
        """The newest requests, newest first, of everybody or of one analyst."""
        query = select(REQUESTS).order_by(REQUESTS.c.number.desc()).limit(lines)
        if analyst is not None:
            query = query.where(REQUESTS.c.analyst == analyst)
        if state is not None:
            query = query.where(REQUESTS.c.state == state)
        rows = self._read(query)
        numbers = [row.number for row in rows]
        decided = {
            row.request: granting.act_of(row)
            for row in self._read(select(ACTS).where(ACTS.c.request.in_(numbers)))
        }
        return tuple(granting.request_of(row, decided.get(row.number)) for row in rows)

    def acts(self, lines: int = 1000) -> tuple[Act, ...]:
        """What owners did to budgets, newest first."""
        query = select(ACTS).order_by(ACTS.c.number.desc()).limit(lines)
        return tuple(map(granting.act_of, self._read(query)))

    def budget(self, *, analyst: str | None = None, dataset: str | None = None) -> PrivacyBudget:
        """The budget of one analyst or one dataset; a cap of 0 where none was granted."""
        kind, name = whose(analyst, dataset)
        found = self._budgets(select(BUDGETS).where(is_budget(kind, name)))
        return found[0] if found else nothing(kind, name)

    def show(self) -> tuple[PrivacyBudget, ...]:
        """Every granted budget, analysts first, by name."""
        return self._budgets(select(BUDGETS).order_by(BUDGETS.c.kind, BUDGETS.c.name))

    def activity(self, kind: Kind, days: int) -> dict[str, Activity]:
        """How each budget of a kind was used of late, by its name."""
        with self._transaction(READ) as connection:
            check_version(connection)
            return activities(connection, kind, clock(connection), days)

    def lines(self, wanted: Wanted) -> tuple[JournalLine, ...]:
        """The newest lines of the journal that fit, newest first."""
        return tuple(map(line_of, self._read(wanted_lines(wanted))))

    def history(self, analyst: str | None = None) -> tuple[JournalLine, ...]:
        """The journal, oldest first, of everybody or of one analyst: for the data owner."""
        query = select(RELEASES).order_by(RELEASES.c.ticket)
        if analyst is not None:
            query = query.where(RELEASES.c.analyst == analyst)
        return tuple(map(line_of, self._read(query)))

    def newest_of(self, analyst: str, lines: int, characters: int) -> tuple[JournalLine, ...]:
        """The newest lines of one analyst, newest first, with so many characters of each text."""
        check_name(Kind.ANALYST, analyst)
        return self.lines(Wanted(analyst=analyst, most=lines, characters=characters))

    def export(self, form: Literal["jsonl", "csv", "answers"] = "jsonl") -> str:
        """The whole journal for the data owner: as JSON lines, as CSV, or its answers as CSV."""
        write = {"jsonl": json_lines, "csv": csv_text, "answers": answers_csv}[form]
        return write(self.history())

    def _close(self, ticket: int, outcome: str, answer: str | None) -> None:
        try:
            with self._writing() as connection:
                closed = connection.execute(
                    RELEASES.update()
                    .where(RELEASES.c.ticket == ticket, RELEASES.c.outcome == RESERVED)
                    .values(outcome=outcome, answer=answer)
                )
                if closed.rowcount != 1:
                    raise not_open(ticket)
        except UsageError as error:
            # The charge is spent and the data was read: that is no refusal any more.
            raise EngineFailed(FAILED) from error

    def _budgets(self, query: Select[Any]) -> tuple[PrivacyBudget, ...]:
        with self._transaction(READ) as connection, readable():
            check_version(connection)
            rows: Sequence[Row[Any]] = connection.execute(query).all()
            now = clock(connection)
            return tuple(budget_of(row, now) for row in rows)
