"""What a listed payout teaches of its row, in the forms that a service may use."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import attrs
import pytest

from payments_async._codec import encode
from payments_async.bulk.protocol.identifiers import PROOF_KEY, Proof
from payments_async.bulk.protocol.outcomes import Outcome
from payments_async.bulk.protocol.payout_status import (
    OTHER_CONTENT,
    OTHER_PAYOUT,
    failure_of,
    mirrored,
    retry_block,
    settled,
    status_finding,
    status_of,
    turn_of,
)
from payments_async.bulk.protocol.records import LedgerRow
from payments_async.bulk.protocol.row_state import RowKnowledge, RowState
from payments_async.bulk.protocol.transitions import recorded
from payments_async.models import Amount, Failure, FailureCode, Method, Payout, PayoutInstrument
from payments_async.models.statuses import PayoutEnd, ending_of

AT = datetime(2026, 1, 1, tzinfo=UTC)


def row(state: RowState = RowState.CREATED, **changes: Any) -> LedgerRow:
    """A row without proof, with a payout of the id `po_1` if it is created."""
    known = RowKnowledge(state, intents=1, payout_id="po_1" if state is RowState.CREATED else "")
    body = b'{"amount":1.01,"currency":"XOF","method":"m","instrument":{"phone_number":"+1"}}'
    fields: dict[str, Any] = {"known": known, "body": body, "body_hash": "", "idempotency_key": "k"}
    fields |= {"number": 1, "line": None, "row_key": "1", "reference": "r", "metadata": None}
    fields |= {"amount": Decimal("1.01"), "currency": "XOF", "method": "m"}
    return LedgerRow(**{**fields, **changes})


def payout(**fields: Any) -> Payout:
    """A payout of the row's id."""
    return Payout(id="po_1", reference="r", **fields)


@pytest.mark.parametrize(
    ("shown", "status", "failure"),
    [
        (payout(status="pending"), "pending", None),
        (payout(status="completed"), "completed", None),
        (payout(status="failed"), "failed", "failed"),
        (payout(status="reversed"), "reversed", "reversed"),
        (payout(completed_at=AT), "completed", None),
        (payout(failed_at=AT), "failed", "failed"),
        (payout(status="bounced", failed_at=AT), "bounced", "bounced"),
        (payout(status="settled", completed_at=AT), "settled", None),
        (payout(status="reversed", completed_at=AT), "reversed", "reversed"),
        (payout(), None, None),
        (payout(status="failed", failure=Failure(code=FailureCode(value="NO_FUNDS"))), "failed", "NO_FUNDS"),
        (payout(status="failed", failure=Failure()), "failed", "failed"),
        (payout(status="failed", failure=Failure(code=FailureCode(value="of +229 90"))), "failed", "failed"),
    ],
)
def test_status_and_failure_are_read_from_statuses_and_timestamps(
    shown: Payout, status: str | None, failure: str | None
) -> None:
    assert (status_of(shown), failure_of(shown)) == (status, failure)
    outcome = mirrored(row(), shown)
    if status is None:
        assert outcome is None
    else:
        assert outcome is not None
        learned = (outcome.service_status, outcome.payout_end, outcome.failure_code)
        assert learned == (status, ending_of(shown), failure)


CONTRADICTORY = [
    payout(status="completed", completed_at=AT, failed_at=AT),
    payout(status="completed", failed_at=AT),
    payout(status="processing", failed_at=AT),
    payout(status="pending", failed_at=AT),
    payout(status="pending", completed_at=AT),
    payout(status="failed", completed_at=AT),
    payout(status="failed", completed_at=AT, failed_at=AT),
    payout(status="cancelled", completed_at=AT),
    payout(status="bounced", completed_at=AT, failed_at=AT),
    payout(completed_at=AT, failed_at=AT),
]
"""What a service must not show: more than one of open, arrived and failed."""


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        (payout(status="pending", completed_at=AT), "pending with completed_at"),
        (payout(status="completed", failed_at=AT), "completed with failed_at"),
        (payout(completed_at=AT, failed_at=AT), "without a status with completed_at and failed_at"),
    ],
)
def test_a_contradiction_names_the_status_and_the_timestamps(shown: Payout, told: str) -> None:
    said = f"row 1: po_1 is {told}: the service contradicts itself"
    assert status_finding(row(), shown) == said


@pytest.mark.parametrize("shown", CONTRADICTORY)
@pytest.mark.parametrize(
    "known", [row(), row(service_status="failed", payout_end=PayoutEnd.FAILED, failure_code="failed")]
)
def test_a_payout_that_contradicts_itself_is_no_reason_to_pay_again(known: LedgerRow, shown: Payout) -> None:
    assert ending_of(shown) is PayoutEnd.UNCLEAR
    assert "contradicts itself" in str(retry_block(known, shown))


@pytest.mark.parametrize("shown", CONTRADICTORY)
def test_a_payout_that_contradicts_itself_is_a_finding_and_counts_as_not_final(shown: Payout) -> None:
    assert "contradicts itself" in str(status_finding(row(), shown))
    assert failure_of(shown) is None
    ended = row(service_status="failed", payout_end=PayoutEnd.FAILED, failure_code="failed")
    for known in (row(), ended):
        seen = mirrored(known, shown)
        assert seen is not None
        after = recorded(known, seen, 2)
        assert after is not None
        assert (after.outcome, after.is_awaited, after.failure_code) == (Outcome.NOT_FINAL, False, None)
        assert mirrored(after, shown) is None
    amount, method = Amount(value=Decimal("1.01"), currency="XOF"), Method(value="m")
    full = attrs.evolve(
        shown, amount=amount, method=method, instrument=PayoutInstrument(type="phone", phone_number="+1")
    )
    outcome = settled(row(RowState.IN_DOUBT), full)
    assert outcome is not None
    assert (outcome.known.state, outcome.payout_end) == (RowState.CREATED, PayoutEnd.UNCLEAR)
    assert outcome.failure_code is None


def test_what_had_arrived_is_paid_again_only_after_its_return_was_recorded() -> None:
    amount, method = Amount(value=Decimal("1.01"), currency="XOF"), Method(value="m")
    where = PayoutInstrument(type="phone", phone_number="+1")
    arrived = row(service_status="completed", payout_end=PayoutEnd.ARRIVED, had_arrived=True)
    shown = payout(amount=amount, method=method, instrument=where)
    for status in ("reversed", "failed", "cancelled"):
        back = attrs.evolve(shown, status=status, completed_at=AT)
        assert f"had ended as completed, and the list shows {status}" in str(retry_block(arrived, back))
        outcome = mirrored(arrived, back)
        assert outcome is not None
        returned = recorded(arrived, outcome, 2)
        assert returned is not None
        assert retry_block(returned, back) is None


def test_nothing_new_is_no_outcome() -> None:
    known = row(service_status="failed", payout_end=PayoutEnd.FAILED, failure_code="failed")
    assert mirrored(known, payout(status="failed")) is None
    assert mirrored(row(service_status="pending"), payout(status="pending")) is None
    assert mirrored(row(RowState.IN_FLIGHT), payout(status="pending")) is None
    assert mirrored(row(), Payout(id="po_2", reference="r", status="completed")) is None


def test_a_failure_that_was_recorded_without_its_reason_gets_it() -> None:
    told = row(service_status="bounced", payout_end=PayoutEnd.FAILED)
    outcome = mirrored(told, payout(status="bounced", failed_at=AT))
    assert outcome is not None
    assert outcome.failure_code == "bounced"


def test_another_end_is_told_and_counts_from_then_on() -> None:
    ended = row(service_status="completed", payout_end=PayoutEnd.ARRIVED, had_arrived=True)
    assert turn_of(ended, payout(status="completed")) is None
    assert turn_of(row(), payout(status="completed")) is None
    assert turn_of(ended, Payout(id="po_2", status="failed")) is None
    for status in ("pending", "reversed", "failed"):
        assert f"the list shows {status}" in str(turn_of(ended, payout(status=status)))
        turned = mirrored(ended, payout(status=status))
        assert turned is not None
        assert (turned.service_status, turned.latest) == (status, True)


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_the_time_of_an_arrival_that_was_seen_does_not_contradict_a_failure(status: str) -> None:
    arrived = row(service_status="completed", payout_end=PayoutEnd.ARRIVED, had_arrived=True)
    shown = payout(status=status, completed_at=AT, failed_at=AT)
    assert turn_of(arrived, shown) == f"row 1: po_1 had ended as completed, and the list shows {status}"
    outcome = mirrored(arrived, shown)
    assert outcome is not None
    assert (outcome.payout_end, outcome.failure_code) == (PayoutEnd.FAILED, status)
    returned = recorded(arrived, outcome, 2)
    assert returned is not None
    assert returned.outcome is Outcome.RETURNED
    assert turn_of(returned, shown) is None
    assert status_finding(returned, shown) is None


def test_what_had_arrived_once_was_returned_whatever_was_shown_between() -> None:
    now = row()
    for status in ("completed", "pending", "failed"):
        outcome = mirrored(now, payout(status=status))
        assert outcome is not None
        now = recorded(now, outcome, 2) or now
    assert now.outcome is Outcome.RETURNED


def test_a_payout_that_is_first_seen_as_reversed_had_arrived() -> None:
    outcome = mirrored(row(), payout(status="reversed"))
    assert outcome is not None
    now = recorded(row(), outcome, 2)
    assert now is not None
    assert now.outcome is Outcome.RETURNED


def test_only_doubt_is_settled_and_not_by_a_payout_without_an_id() -> None:
    assert settled(row(), payout()) is None
    assert settled(row(RowState.NEW), payout()) is None
    assert settled(row(RowState.IN_DOUBT), Payout(reference="r")) is None
    assert settled(row(RowState.IN_DOUBT), payout()) is None  # too little is shown to tell


def test_another_amount_under_the_reference_is_a_contradiction_of_the_row() -> None:
    other = payout(amount=Amount(value=Decimal("2"), currency="XOF"), method=Method(value="m"))
    outcome = settled(row(RowState.IN_DOUBT), other)
    assert outcome is not None
    assert outcome.known.state is RowState.CONFLICT
    assert outcome.failure_code == OTHER_CONTENT
    assert outcome.failure_message == "the list shows po_1, XOF 2"


PROOF = Proof("a" * 20, "b" * 20, "c" * 20, 0)
MADE = Amount(value=Decimal("11.0000000000000000000001"), currency="XOF")


@pytest.mark.parametrize(
    ("proof", "code"),
    [
        (attrs.evolve(PROOF, body="d" * 20), OTHER_CONTENT),
        (attrs.evolve(PROOF, row="d" * 20), OTHER_PAYOUT),
        (None, OTHER_PAYOUT),
    ],
)
def test_a_conflict_says_whose_payout_has_the_reference_and_what_it_paid(
    proof: Proof | None, code: str
) -> None:
    body = encode.encode_json({"metadata": {PROOF_KEY: PROOF.text}})
    metadata = {} if proof is None else {PROOF_KEY: proof.text}
    shown = payout(amount=MADE, status="completed", metadata=metadata)
    outcome = settled(row(RowState.IN_DOUBT, body=body), shown)
    assert outcome is not None
    assert (outcome.known.state, outcome.failure_code) == (RowState.CONFLICT, code)
    assert outcome.failure_message == "the list shows po_1, XOF 11.0000000000000000000001, completed"


def test_a_conflict_shows_no_word_of_the_service_that_may_be_an_account() -> None:
    other = Amount(value=Decimal("2"), currency="+22990112233 ")
    shown = Payout(id="of Ama Mensah", reference="r", amount=other, status="sent to +229 90", failed_at=AT)
    outcome = settled(row(RowState.IN_DOUBT), shown)
    assert outcome is not None
    assert outcome.failure_message == "the list shows a payout, 2"
    bare = settled(row(RowState.IN_DOUBT), Payout(id="po_1", method=Method(value="other")))
    assert bare is not None
    assert bare.failure_message == "the list shows po_1"


def test_a_row_that_is_recorded_otherwise_than_the_list_shows_it_is_a_finding() -> None:
    kept = row(service_status="pending")
    told = "row 1: po_1 is completed on the list, and pending in the ledger"
    assert status_finding(kept, payout(status="completed")) == told
    assert status_finding(kept, payout(status="pending")) is None
    assert status_finding(kept, payout()) is None
    assert status_finding(kept, Payout(id="po_2", status="failed")) is None
