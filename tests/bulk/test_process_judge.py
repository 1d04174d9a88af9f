"""What the proofs by real processes take for a breach: the judge is held to its word."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from payments_async.sandbox import PayoutEntry
from payments_async.sandbox._common import scenario_words
from tests.support.disturbed import HALTING, PASSING, REFUSING, Row
from tests.support.processes import Batch, End, breaches

PAID: tuple[Row, ...] = (("XOF", Decimal("1.07")), ("GHS", Decimal("2.07")), ("XOF", Decimal("3.07")))
BATCH = Batch(frozenset(PAID), Path("rows.csv"), Path("rows.ledger"))


def judged(
    *,
    rows: tuple[Row, ...] = PAID,
    counts: tuple[int, int] = (3, 0),
    created: int = 3,
    sums: tuple[str, str] = ("4.14", "2.07"),
    seen: int = 3,
    clean: bool = True,
    code: int = 0,
    certificate: str | None = "rows.ledger.certificate.json",
    refused: frozenset[Row] = frozenset(),
) -> list[str]:
    """What is said of three rows that were all paid; `created` and `certificate` are the command's words."""
    money = {currency: {"created": sum_} for currency, sum_ in zip(("XOF", "GHS"), sums, strict=True)}
    made = {"rows": dict(zip(("created", "rejected"), counts, strict=True)), "sums": money}
    told = {**made, "rows": {**made["rows"], "created": created}, "certificate": certificate}
    end = End(code, "{}\n" + json.dumps(told), "")
    shown = {**made, "list": {"seen": seen}, "ledger": {}, "clean": clean}
    return breaches(BATCH, map(entry, rows), shown, end, {*refused})


def entry(row: Row) -> PayoutEntry:
    """Its line in the books."""
    currency, amount = row
    return PayoutEntry("po", "ref", amount, currency, "pending", "mtn", "key", None, 0.0)


def test_a_batch_that_ended_well_has_no_breach() -> None:
    assert judged() == []


def test_a_row_that_the_service_refused_may_be_unpaid() -> None:
    facts = {"rows": PAID[:2], "counts": (2, 1), "created": 2, "sums": ("1.07", "2.07"), "seen": 2}
    assert judged(**facts, code=1, refused=frozenset({PAID[2]})) == []  # type: ignore[arg-type] # of each


def test_a_run_that_could_not_read_the_list_for_its_certificate_ends_with_1() -> None:
    assert judged(code=1, certificate=None) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"rows": (*PAID, PAID[0])}, "1 rows were paid twice"),
        ({"rows": PAID[:2]}, "1 rows were lost"),
        ({"sums": ("4.15", "2.07")}, "the certificate's sums differ"),
        ({"counts": (2, 1)}, "the certificate's counts differ"),
        ({"created": 2}, "the last run's report differs"),
        ({"seen": 2}, "the list was not seen whole"),
        ({"clean": False}, "the certificate is not clean"),
        ({"code": 1}, "the last exit code is wrong"),
        ({"certificate": None}, "the last exit code is wrong"),
    ],
)
def test_each_thing_that_is_not_as_the_books_have_it_is_a_breach(change: dict[str, Any], told: str) -> None:
    assert any(problem.startswith(told) for problem in judged(**change))


@pytest.mark.parametrize(
    ("code", "said", "fine"),
    [(0, "", True), (75, "", True), (-9, "", True), (2, "usage", False), (1, "Traceback ...", False)],
)
def test_an_end_that_no_run_may_have_is_a_problem(code: int, said: str, fine: bool) -> None:
    assert (End(code, "", said).problem is None) == fine


def test_every_kind_of_fault_that_the_sandbox_has_is_had() -> None:
    assert {word.partition(":")[0] for word in PASSING + REFUSING + HALTING} == set(scenario_words._FAULTS)
