"""A dataset has one unit from its first charge on: promises about different ones do not add up."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from decimal import Decimal

import pytest

from sqlrs.errors import UsageError
from sqlrs.ledger import Ledger, MemoryLedger
from sqlrs.ledger.migrations import newest
from sqlrs.ledger.store import StoreLedger
from tests.ledger.build import charge
from tests.ledger.older import run, version_2

PATIENT = "patient.id"


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def ledger(request: pytest.FixtureRequest) -> Ledger:
    if request.param == "memory":
        return MemoryLedger(Decimal(4))
    names = {"sqlite": "sqlite_url", "postgres": "postgres_db"}
    store = StoreLedger(request.getfixturevalue(names[request.param]))
    request.addfinalizer(store.close)
    store.grant(analyst="ada", epsilon=4)
    for dataset in ("graph", "clinic"):
        store.grant(dataset=dataset, epsilon=4)
    return store


def refuses(call: Callable[[], object], *words: str) -> None:
    with pytest.raises(UsageError) as caught:
        call()
    assert caught.value.code == "other_unit"
    assert all(word in caught.value.message for word in words)
    assert "dataset" in (caught.value.hint or "")


def test_a_charge_without_a_unit_is_of_rows() -> None:
    assert charge() == charge(unit="row")
    assert charge() != charge(unit=PATIENT)
    for unit in ("", "a\0b"):
        with pytest.raises(UsageError, match="unit"):
            charge(unit=unit)


@pytest.mark.parametrize(("first", "then"), [("row", PATIENT), (PATIENT, "row"), (PATIENT, "node")])
def test_the_first_charge_says_the_unit(ledger: Ledger, first: str, then: str) -> None:
    ledger.reserve(charge(unit=first))
    left = ledger.remaining("ada", "graph")
    refuses(lambda: ledger.reserve(charge(unit=then)), "'graph'")
    assert ledger.remaining("ada", "graph") == left
    ledger.reserve(charge(unit=first))
    ledger.reserve(charge(dataset="clinic", unit=then))


def test_a_refused_charge_says_nothing(ledger: Ledger) -> None:
    with pytest.raises(Exception, match="budget"):
        ledger.reserve(charge("5", unit=PATIENT))
    ledger.reserve(charge())


def test_answers_are_repeated_within_a_unit_alone(ledger: Ledger) -> None:
    ledger.settle(ledger.reserve(charge(unit=PATIENT)), "7")
    assert ledger.repeat(charge(unit=PATIENT)) == "7"
    assert ledger.repeat(charge()) is None
    assert ledger.repeat(charge(unit="node")) is None


def test_the_refusal_names_both(ledger: Ledger) -> None:
    ledger.reserve(charge())
    refuses(lambda: ledger.reserve(charge(unit=PATIENT)), "single rows", "units of patient.id")


def test_the_store_shows_and_exports_the_unit(store: StoreLedger) -> None:
    store.grant(analyst="ada", epsilon=1)
    assert store.grant(dataset="graph", epsilon=1).unit is None
    store.reserve(charge(unit=PATIENT))
    assert [budget.unit for budget in store.show()] == [None, PATIENT]
    assert store.grant(dataset="graph", epsilon=2).unit == PATIENT
    assert store.history()[0].charge == charge(unit=PATIENT)
    assert store.newest_of("ada", 1, 99)[0].charge.unit == PATIENT
    assert json.loads(store.export())["unit"] == PATIENT
    (row,) = csv.DictReader(io.StringIO(store.export("csv")))
    assert row["unit"] == PATIENT


def test_a_deleted_budget_does_not_forget_its_unit(store: StoreLedger, store_url: str) -> None:
    store.grant(analyst="ada", epsilon=2)
    store.grant(dataset="graph", epsilon=2)
    store.reserve(charge(unit=PATIENT))
    run(store_url, "DELETE FROM sqlrs_budgets WHERE kind = 'dataset'")
    store.grant(dataset="graph", epsilon=2)
    refuses(lambda: store.reserve(charge()), "units of patient.id")
    store.reserve(charge(unit=PATIENT))


def test_what_was_charged_before_there_were_units_was_about_rows(store_url: str) -> None:
    version_2(store_url)
    store = StoreLedger(store_url)
    assert run(store_url, "SELECT version FROM sqlrs_version") == [(newest(),)]
    assert {line.charge.unit for line in store.history()} == {"row"}
    units = {(budget.kind.value, budget.name): budget.unit for budget in store.show()}
    assert units == {
        ("analyst", "Zoë O'Neill"): None,
        ("analyst", "ada"): None,
        ("dataset", "graph"): "row",
        ("dataset", "untouched"): None,
    }
    assert store.repeat(charge("0.4")) is not None  # the digests of old charges still hold
    zoe = {"analyst": "Zoë O'Neill", "unit": PATIENT}
    refuses(lambda: store.reserve(charge("0.1", **zoe)), "single rows")
    store.reserve(charge("0.1", dataset="untouched", **zoe))
    store.close()


def test_old_lines_that_were_cleared_do_not_free_the_dataset(store_url: str) -> None:
    version_2(store_url)
    run(store_url, "DELETE FROM sqlrs_releases")
    store = StoreLedger(store_url)
    refuses(lambda: store.reserve(charge("0.1", analyst="Zoë O'Neill", unit=PATIENT)), "rows")
    store.close()
