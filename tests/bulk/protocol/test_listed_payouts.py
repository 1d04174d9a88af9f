"""What the list says of a row, by all its payouts."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import attrs
import pytest

from payments_async._codec import decode
from payments_async.bulk._protocol.identifiers import Identity, body_at
from payments_async.bulk._protocol.listed_payouts import (
    OTHER_CONTENT,
    OTHER_PAYOUT,
    UNSEEN,
    UNSEEN_EARLIER,
    Judgement,
    judge,
    may_be_sent,
    next_generation,
)
from payments_async.bulk._protocol.matching import Match, RowPayout
from payments_async.bulk._protocol.outcomes import UNFINISHED, ExtraPayout, Outcome, RowState
from payments_async.bulk._protocol.records import LedgerRow
from payments_async.models import Amount, Failure, FailureCode, Method, Payout
from payments_async.models.statuses import PayoutEnd
from tests.support.rows import BINDING, ledger_row

S, W = RowState, Outcome
AT = datetime(2026, 1, 1, tzinfo=UTC)
IN_EXCESS, IN_CONFLICT = ExtraPayout.IN_EXCESS, ExtraPayout.MOVED_IN_CONFLICT


def row(state: RowState, generation: int = 0, **facts: Any) -> LedgerRow:
    """A row with a proof; created, its payout is `po_` and its generation."""
    payout_id = f"po_{generation}" if state is S.CREATED else None
    made = attrs.evolve(ledger_row(), state=state, generation=generation, payout_id=payout_id)
    return attrs.evolve(made, **facts)


def payout(generation: int = 0, status: str | None = "pending", **changes: Any) -> Payout:
    """The payout of that generation that the row asks for, as the list shows it."""
    asked = json.loads(body_at(ledger_row(), BINDING, generation))
    fields: dict[str, Any] = {
        "id": f"po_{generation}",
        "reference": row(S.NEW, generation).reference,
        "amount": Amount(value=Decimal("10.10"), currency="XCD"),
        "status": status,
        "metadata": {"payments_sdk": asked["metadata"]["payments_sdk"]},
    }
    return Payout(**{**fields, **changes})


def other(generation: int = 0, status: str = "pending", **changes: Any) -> Payout:
    return payout(generation, status, amount=Amount(value=Decimal(77), currency="XCD"), **changes)


def listed(of: LedgerRow, *payouts: Payout) -> list[RowPayout]:
    return [RowPayout.of(of, each, BINDING) for each in payouts]


def judged(of: LedgerRow, *payouts: Payout, absent: bool = False) -> Judgement:
    return judge(of, listed(of, *payouts), absent=absent)


def after(of: LedgerRow, *payouts: Payout, absent: bool = False) -> LedgerRow:
    facts = judged(of, *payouts, absent=absent).facts
    return of if facts is None else attrs.evolve(of, **attrs.asdict(facts))


def extra(of: LedgerRow, *payouts: Payout) -> dict[str | None, ExtraPayout]:
    """{id: what it is} of the payouts beside the one that stands for the row."""
    return {each.payout.id: word for word, each in judged(of, *payouts).extra}


FAILED_0 = {"service_status": "failed", "payout_end": PayoutEnd.FAILED, "failure_code": "failed"}
ARRIVED_0 = {"service_status": "completed", "payout_end": PayoutEnd.ARRIVED, "had_arrived": True}


@pytest.mark.parametrize(
    ("before", "payouts", "outcome", "standing", "beside"),
    [
        (row(S.CREATED), [payout(0, "completed")], W.ARRIVED, "po_0", {}),
        (row(S.CREATED), [payout(0, "failed")], W.FAILED, "po_0", {}),
        (row(S.CREATED), [payout(0, "reversed")], W.RETURNED, "po_0", {}),
        (row(S.CREATED, **ARRIVED_0), [payout(0, "failed")], W.RETURNED, "po_0", {}),
        (row(S.CREATED, **ARRIVED_0), [payout(0)], W.NOT_FINAL, "po_0", {}),
        (row(S.CREATED, 1, **FAILED_0), [payout(1, "failed"), payout(0, "completed")], W.ARRIVED, "po_0", {}),
        (
            row(S.CREATED, 1, **ARRIVED_0),
            [payout(1, "completed"), payout(0, "completed")],
            W.ARRIVED,
            "po_1",
            {"po_0": IN_EXCESS},
        ),
        (row(S.CREATED, 1), [payout(1), payout(0, "completed")], W.ARRIVED, "po_0", {"po_1": IN_EXCESS}),
        (row(S.CREATED, 1, **ARRIVED_0), [payout(0, "completed")], W.ARRIVED, "po_1", {"po_0": IN_EXCESS}),
        (row(S.CREATED, 1, **FAILED_0), [payout(1, "failed"), payout(0, "reversed")], W.RETURNED, "po_0", {}),
        (
            row(S.CREATED, 1, **FAILED_0, earlier_arrived=True),
            [payout(1, "failed"), payout(0, "failed")],
            W.RETURNED,
            "po_1",
            {},
        ),
        (
            row(S.CREATED, 1, **ARRIVED_0),
            [payout(1, "completed"), other(0, "completed")],
            W.ARRIVED,
            "po_1",
            {"po_0": IN_EXCESS},
        ),
        (
            row(S.CREATED, **ARRIVED_0),
            [payout(0, "completed"), payout(0, id="po_9")],
            W.ARRIVED,
            "po_0",
            {"po_9": IN_EXCESS},
        ),
        (
            row(S.CREATED),
            [payout(0), payout(2, metadata={}), other(3)],
            W.NOT_FINAL,
            "po_0",
            {"po_3": IN_EXCESS},
        ),
    ],
)
def test_one_payout_stands_for_a_created_row(
    before: LedgerRow, payouts: list[Payout], outcome: Outcome, standing: str, beside: dict[str, ExtraPayout]
) -> None:
    row = after(before, *payouts)
    assert (row.outcome, row.payout_id) == (outcome, standing)
    assert extra(before, *payouts) == beside
    assert judged(row, *payouts).facts is None
    assert extra(row, *payouts) == beside


@pytest.mark.parametrize(
    ("before", "payouts", "state", "standing", "beside"),
    [
        *((row(state), [payout(0)], S.CREATED, "po_0", {}) for state in S if state is not S.CREATED),
        *(
            (row(state), [other(0)], S.CONFLICT, None, {"po_0": IN_CONFLICT})
            for state in (S.NEW, *UNFINISHED, S.CONFLICT)
        ),
        *((row(state), [other(0)], state, None, {"po_0": IN_EXCESS}) for state in (S.REJECTED, S.CANCELLED)),
        *((row(state), [payout(0, metadata={})], state, None, {}) for state in (S.REJECTED, S.CANCELLED)),
        *((row(state, 1), [payout(0)], S.CREATED, "po_0", {}) for state in (S.NEW, S.REJECTED, S.CANCELLED)),
        *(
            (row(state, 1), [other(0)], S.CONFLICT, None, {"po_0": IN_CONFLICT})
            for state in (S.NEW, S.REJECTED, S.CANCELLED)
        ),
        *(
            (row(state, 1), [payout(0, "failed")], state, None, {})
            for state in (S.NEW, S.REJECTED, S.CANCELLED, *UNFINISHED)
        ),
        *((row(state, 1), [payout(0)], state, None, {"po_0": IN_EXCESS}) for state in UNFINISHED),
        (row(S.IN_DOUBT, 1), [payout(1), payout(0, "completed")], S.CREATED, "po_0", {"po_1": IN_EXCESS}),
        (row(S.IN_DOUBT, 1), [payout(1, "completed"), payout(0)], S.CREATED, "po_1", {"po_0": IN_EXCESS}),
        (
            row(S.IN_DOUBT, 1),
            [other(1), payout(0)],
            S.CONFLICT,
            None,
            {"po_0": IN_CONFLICT, "po_1": IN_CONFLICT},
        ),
        (row(S.IN_DOUBT), [payout(0, metadata={"payments_sdk": "2.later"})], S.IN_DOUBT, None, {}),
        (row(S.IN_DOUBT), [payout(0, id=None)], S.IN_DOUBT, None, {}),
        (row(S.IN_DOUBT), [payout(0, metadata={})], S.CONFLICT, None, {}),
        (row(S.NEW, 1), [payout(0, metadata={})], S.NEW, None, {}),
    ],
)
def test_the_list_decides_other_rows(
    before: LedgerRow,
    payouts: list[Payout],
    state: RowState,
    standing: str | None,
    beside: dict[str, ExtraPayout],
) -> None:
    row = after(before, *payouts)
    assert (row.state, row.payout_id) == (state, standing)
    assert row.generation == before.generation
    assert extra(before, *payouts) == beside
    assert after(row, *payouts) == row


@pytest.mark.parametrize("state", UNFINISHED)
def test_a_row_whose_own_payout_cannot_appear_any_more_gets_the_earlier_one(state: RowState) -> None:
    assert after(row(state, 1), payout(0, "completed"), absent=True).payout_id == "po_0"
    assert after(row(state, 1), payout(0, "failed"), absent=True).state is state
    assert after(row(state, 1), other(0), absent=True).state is state
    assert after(row(state, 1), payout(0, id=None), absent=True).state is state


@pytest.mark.parametrize(
    ("status", "completed", "failed", "outcome"),
    [
        ("completed", True, True, W.NOT_FINAL),
        ("completed", False, True, W.NOT_FINAL),
        ("pending", False, True, W.NOT_FINAL),
        ("pending", True, False, W.NOT_FINAL),
        ("failed", True, False, W.NOT_FINAL),
        ("cancelled", True, True, W.NOT_FINAL),
        (None, True, True, W.NOT_FINAL),
        (None, True, False, W.ARRIVED),
        (None, False, True, W.FAILED),
        ("bounced", False, True, W.FAILED),
        ("settled", True, False, W.ARRIVED),
        ("reversed", True, True, W.RETURNED),
        ("unheard-of", False, False, W.NOT_FINAL),
    ],
)
def test_timestamps_count_beside_the_status(
    status: str | None, completed: bool, failed: bool, outcome: Outcome
) -> None:
    shown = payout(0, status, completed_at=AT if completed else None, failed_at=AT if failed else None)
    is_unclear = outcome is W.NOT_FINAL and (completed or failed)
    for before in (row(S.CREATED), row(S.CREATED, **FAILED_0), row(S.IN_DOUBT)):
        now = after(before, shown)
        assert (now.outcome, now.is_final) == (outcome, outcome is not W.NOT_FINAL)
        assert (now.failure_code is None) is (outcome not in (W.FAILED, W.RETURNED))
        findings = judged(before, shown).findings
        assert [finding.endswith("the service contradicts itself") for finding in findings] == (
            [True] * is_unclear
        )
        if is_unclear:
            assert findings == (f"row 7: po_0 is {now.failure_message}",)
            assert str(now.failure_message).startswith(f"{status or 'without a status'} with ")
            assert judged(now, shown).facts is None
            assert "contradicts itself" in str(blocked(now, shown))


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_the_time_of_an_arrival_that_was_seen_does_not_contradict_a_failure(status: str) -> None:
    back = payout(0, status, completed_at=AT, failed_at=AT)
    arrived = row(S.CREATED, **ARRIVED_0)
    assert judged(arrived, back).turn == f"row 7: po_0 had ended as completed, and the list shows {status}"
    returned = after(arrived, back)
    assert (returned.outcome, returned.failure_code) == (W.RETURNED, status)
    assert judged(returned, back) == Judgement(standing=listed(returned, back)[0])
    assert after(row(S.NEW, 1, earlier_arrived=True), back).state is S.NEW  # it was made new


def test_what_had_arrived_once_was_returned_whatever_was_shown_between() -> None:
    now = row(S.CREATED)
    for status in ("completed", "pending", "failed"):
        now = after(now, payout(0, status))
    assert now.outcome is W.RETURNED


def test_nothing_new_is_no_outcome_and_a_reason_that_was_missing_is_one() -> None:
    failed = row(S.CREATED, **FAILED_0)
    assert judged(failed, payout(0, "failed")).facts is None
    assert judged(row(S.CREATED, service_status="pending"), payout(0)).facts is None
    assert judged(row(S.CREATED), payout(0, None)).facts is None
    told = payout(0, "failed", failure=Failure(code=FailureCode(value="NO_FUNDS")))
    assert after(failed, told).failure_code == "NO_FUNDS"


def test_a_payout_given_up_that_stands_again_is_told() -> None:
    failed = row(S.CREATED, 1, **FAILED_0)
    told = "row 7: po_0, an earlier payout of it, is completed on the list"
    assert judged(failed, payout(1, "failed"), payout(0, "completed")).turn == told
    assert judged(row(S.NEW, 1), payout(0, "completed")).turn == told
    both = judged(row(S.CREATED, 1, **ARRIVED_0), payout(1, "completed"), payout(0, "completed"))
    assert (both.turn, both.findings) == (None, (told,))


@pytest.mark.parametrize(
    ("of", "payouts", "finding"),
    [
        (row(S.CONFLICT), [other(0)], "row 7: in conflict, and the list shows po_0, XCD 77, pending"),
        (
            row(S.CONFLICT),
            [other(0, "failed")],
            "row 7: in conflict, and the list shows po_0, XCD 77, failed",
        ),
        (row(S.REJECTED), [other(0)], "row 7: REJECTED, and the list shows po_0, XCD 77, pending"),
        (row(S.CREATED), [payout(0), payout(0, id="po_9")], "row 7: po_9 has its reference, beside po_0"),
        (
            row(S.CREATED),
            [payout(0), other(1)],
            "row 7: the list shows po_1, XCD 77, pending under its ~g1, a later payout of it that this "
            "ledger does not know of; pay the row by no other means before you have looked at it",
        ),
    ],
)
def test_what_is_wrong_is_told(of: LedgerRow, payouts: list[Payout], finding: str) -> None:
    assert judged(of, *payouts).findings == (finding,)


@pytest.mark.parametrize(
    ("shown", "code", "message"),
    [
        (other(0), OTHER_CONTENT, "the list shows po_0, XCD 77, pending"),
        (payout(0, metadata={}), OTHER_PAYOUT, "the list shows po_0, XCD 10.10, pending"),
        (
            payout(
                0,
                "sent to +229 90",
                id="of Ama Mensah",
                amount=Amount(value=Decimal(2), currency="+2290190112233 "),
            ),
            OTHER_CONTENT,
            "the list shows a payout, 2",
        ),
        (payout(0, None, id="po_1", amount=None, metadata={}), OTHER_PAYOUT, "the list shows po_1"),
    ],
)
def test_a_conflict_says_whose_payout_it_is_and_shows_no_account(
    shown: Payout, code: str, message: str
) -> None:
    conflict = after(row(S.IN_DOUBT), shown)
    assert (conflict.state, conflict.failure_code, conflict.failure_message) == (S.CONFLICT, code, message)


def test_a_conflict_names_the_later_payouts_that_are_not_the_rows() -> None:
    message = after(row(S.IN_DOUBT), other(0), other(1)).failure_message
    assert message == "the list shows po_0, XCD 77, pending; and po_1, XCD 77, pending under its ~g1"
    failed = after(row(S.IN_DOUBT), payout(0, "failed"), other(1))
    assert failed.failure_message == "the list shows po_1, XCD 77, pending under its ~g1"


def test_the_sum_of_a_payout_is_kept_where_the_row_asks_for_another() -> None:
    rounded = payout(0, amount=Amount(value=Decimal("10.1000000000000000000001"), currency="XCD"))
    now = after(row(S.CREATED), rounded)
    assert now.payout_money == "XCD 10.1000000000000000000001"
    assert listed(now, rounded)[0].match is Match.EQUAL
    assert after(now, payout(0)).payout_money is None
    assert after(row(S.IN_DOUBT), other(0)).payout_money == "XCD 77"


@pytest.mark.parametrize(("written", "kept"), [("1e400", "1E400"), ("9" * 4_000, "9" * 60 + "…")])
def test_a_payout_of_a_number_beyond_any_amount_is_not_the_rows(written: str, kept: str) -> None:
    far = decode.structure({"value": written, "currency": "XCD"}, Amount)
    now = after(row(S.IN_DOUBT), payout(0, amount=far))
    assert (now.state, now.failure_code, now.payout_money) == (S.CONFLICT, OTHER_CONTENT, f"XCD {kept}")
    assert after(row(S.CREATED), payout(0, amount=None)).payout_money is None
    method = payout(0, method=Method(value="moov_bj"))
    assert listed(now, method)[0].difference == "the list shows po_0 with another method"


def test_a_strangers_payout_beside_a_row_in_conflict_is_none_of_the_batch() -> None:
    assert extra(row(S.CONFLICT), payout(0, metadata={})) == {}


def blocked(of: LedgerRow, *payouts: Payout) -> int | str:
    """The row's next generation, or why it must not be paid again."""
    return next_generation(of, listed(of, *payouts))


def test_a_row_is_paid_again_only_if_the_list_shows_each_of_its_payouts_as_failed() -> None:
    failed = row(S.CREATED, **FAILED_0)
    assert blocked(failed, payout(0, "failed")) == 1
    assert blocked(failed) == UNSEEN
    assert blocked(failed, payout(0, "failed", id="po_9")) == (
        "the list shows po_9 under its reference, which is not the row's payout"
    )
    assert blocked(failed, payout(0, "completed")) == "its payout is completed"
    assert blocked(failed, other(0, "failed")) == "po_0 is of XCD 77, and XCD 10.1 was asked for"
    retried = row(S.CREATED, 1, **FAILED_0)
    assert blocked(retried, payout(1, "failed"), payout(0, "failed")) == 2
    assert blocked(retried, payout(1, "failed")) == UNSEEN_EARLIER
    said = "the list shows po_{}, XCD 10.10, {}, {} payout of it that has not failed"
    assert blocked(retried, payout(1, "failed"), payout(0)) == said.format(0, "pending", "an earlier")
    assert blocked(failed, payout(0, "failed"), payout(1)) == said.format(1, "pending", "a later")
    arrived = row(S.CREATED, **ARRIVED_0)
    assert blocked(arrived, payout(0, "failed")) == (
        "row 7: po_0 had ended as completed, and the list shows failed"
    )
    assert blocked(after(arrived, payout(0, "failed")), payout(0, "failed")) == 1


def test_a_number_whose_payout_was_never_shown_is_taken_again() -> None:
    """An earlier payout stands for a row whose later one may still appear."""
    looked_up = after(row(S.IN_FLIGHT, 1), payout(0), absent=True)
    assert (looked_up.payout_id, looked_up.generation) == ("po_0", 1)
    assert blocked(after(looked_up, payout(0, "failed")), payout(0, "failed")) == 1


def test_a_later_payout_is_sent_only_if_each_earlier_one_is_shown_and_has_failed() -> None:
    retried = row(S.NEW, 2)

    def allowed(*payouts: Payout) -> bool:
        return may_be_sent(retried, listed(retried, *payouts))

    assert allowed(payout(0, "failed"), payout(1, "failed"))
    assert allowed(payout(0, "failed"), payout(1, "failed"), other(3))
    assert not allowed(payout(0, "failed"))
    assert not allowed(payout(1, "failed"))
    assert not allowed(payout(0, "failed"), payout(1))
    assert not allowed(payout(0, "failed"), payout(1, "failed"), payout(1, id="po_9"))


# A lost ledger


@pytest.mark.parametrize("state", S)
def test_a_row_gets_the_generation_of_its_latest_payout(state: RowState) -> None:
    now = after(row(state), payout(0, "failed"), payout(1, "failed"), payout(2, "completed"))
    assert (now.outcome, now.payout_id, now.generation) == (W.ARRIVED, "po_2", 2)
    assert extra(row(state), payout(0, "completed"), payout(2)) == {"po_2": IN_EXCESS}


def test_another_payout_than_the_rows_changes_no_generation() -> None:
    failed, too_long = row(S.CREATED, **FAILED_0), row(S.CREATED, stem="r" * 190)
    foreign = Identity("sandbox", "july", "seven", 1).proof("content").text
    strange = [
        *(other(1), payout(17), payout(1, id=None), payout(1, metadata={"payments_sdk": foreign})),
        payout(1, metadata={"payments_sdk": "2.later"}),
    ]
    for shown in strange:
        assert judged(failed, payout(0, "failed"), shown).facts is None
    assert after(failed, payout(0, "failed"), payout(16)).generation == 16
    last = payout(1, reference="r" * 190 + "~g1")
    assert listed(too_long, last)[0].match is Match.FOREIGN
    assert after(too_long, last).generation == 0
