"""Claims, outcomes and what the operator changes: intents first, knowledge only added, sums kept."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import attrs
import pytest

from payments_async.bulk._ledger import reader
from payments_async.bulk._protocol.outcomes import sums_of
from payments_async.bulk._protocol.records import IntentTimes, Resend, RowOutcome
from payments_async.bulk._protocol.row_state import RowKnowledge, RowState, contradict, doubt, intend
from payments_async.bulk.ledger_errors import LedgerRefused
from payments_async.models.statuses import PayoutEnd
from tests.support.ledgers import (
    BINDING,
    Clock,
    all_rows,
    counts,
    created,
    new_row,
    numbers,
    rejected,
    row_of,
)
from tests.support.places import BOTH, Place, begun, looked_at, opened, total_of

pytestmark = BOTH


async def test_a_claim_takes_new_rows_in_order_and_marks_them_in_flight(path: Place) -> None:
    clock = Clock()
    async with await begun(path, 5, clock) as ledger:
        first, second, third, none = [await ledger.claim(2) for _ in range(4)]
        assert [numbers(claim) for claim in (first, second, third, none)] == [[1, 2], [3, 4], [5], []]
        assert counts(ledger) == {"under_way": 5}
        row = await row_of(ledger, "row-3")
        assert row == second.rows[0]
        assert row.body == new_row(3).body
        assert row.known.intents == 1
        assert row.first_intent == row.key_intent == row.last_intent == row.changed_in
        assert (await ledger.intent_times([row])) == {3: IntentTimes(second.at, second.at, second.at)}
        assert second.at.session == "first"


async def test_outcomes_are_added_and_sums_move_with_them(path: Place) -> None:
    async with await begun(path, 4) as ledger:
        one, two, three, _ = (await ledger.claim(4)).rows
        changed = await ledger.record(
            [
                created(one, service_status="pending"),
                rejected(two, failure_code="422", failure_message="amount: too low"),
                RowOutcome(three.number, contradict(three.known)),
            ]
        )
        assert [row.state for row in changed] == [RowState.CREATED, RowState.REJECTED, RowState.CONFLICT]
    async with await opened(path) as ledger:
        assert await row_of(ledger, "row-1") == changed[0]
        assert (changed[0].known.payout_id, changed[0].service_status) == ("po_1", "pending")
        assert (changed[1].failure_code, changed[1].failure_message) == ("422", "amount: too low")
        assert total_of(ledger, "created") == (1, Decimal("10.10"))
        assert total_of(ledger, "not_started") == (0, Decimal(0))
        assert counts(ledger) == {"created": 1, "rejected": 1, "conflict": 1, "under_way": 1}
        assert (await ledger.check()).findings == ()


async def test_an_outcome_that_knows_less_changes_nothing(path: Place) -> None:
    async with await begun(path, 1) as ledger:
        (row,) = (await ledger.claim(1)).rows
        (now,) = await ledger.record([created(row, service_status="pending")])
        entries = (await ledger.check()).entries
        assert (
            await ledger.record([RowOutcome(1, doubt(row.known)), rejected(row), RowOutcome(1, row.known)])
            == ()
        )
        assert await ledger.record([created(row, service_status="pending")]) == ()
        assert (await ledger.check()).entries == entries
        assert await all_rows(ledger) == [now]


async def test_several_outcomes_of_one_row_in_a_group_are_all_heard(path: Place) -> None:
    async with await begun(path, 1) as ledger:
        (row,) = (await ledger.claim(1)).rows
        (now,) = await ledger.record(
            [created(row, service_status="pending"), RowOutcome(1, doubt(row.known))]
        )
        assert (now.state, now.service_status) == (RowState.CREATED, "pending")


async def test_a_status_is_mirrored_until_it_is_final(path: Place) -> None:
    async with await begun(path, 2) as ledger:
        rows = (await ledger.claim(2)).rows
        one, two = await ledger.record([created(row, service_status="pending") for row in rows])
        assert (await ledger.awaited()).rows == 2
        await ledger.record(
            [RowOutcome(1, one.known, "processing"), RowOutcome(2, two.known, "completed", PayoutEnd.ARRIVED)]
        )
        assert (await ledger.awaited()).rows == 1
        assert await ledger.record([RowOutcome(2, two.known, "processing")]) == ()
        assert [row.service_status for row in await all_rows(ledger)] == ["processing", "completed"]


async def test_what_arrived_is_summed_through_every_turn(path: Place) -> None:
    async with await begun(path, 3) as ledger:
        made = await ledger.record([created(row) for row in (await ledger.claim(3)).rows])
        ends = [
            ("completed", PayoutEnd.ARRIVED),
            ("completed", PayoutEnd.ARRIVED),
            ("failed", PayoutEnd.FAILED),
        ]
        await ledger.record(
            [RowOutcome(row.number, row.known, *end) for row, end in zip(made, ends, strict=True)]
        )
        sums = sums_of(ledger.totals)["XOF"]
        assert (sums["created"], sums["arrived"], sums["failed"]) == (
            *map(Decimal, ("30.30", "20.20", "10.10")),
        )
        turned = RowOutcome(
            1, made[0].known, "reversed", PayoutEnd.FAILED, failure_code="reversed", latest=True
        )
        await ledger.record([turned, RowOutcome(2, made[1].known, "pending", latest=True)])
    async with await opened(path) as ledger:
        sums = {word: amount for word, amount in sums_of(ledger.totals)["XOF"].items() if amount}
        parts = dict.fromkeys(("not_final", "failed", "returned"), Decimal("10.10"))
        assert sums == {"asked": Decimal("30.30"), "created": Decimal("30.30"), **parts}
        assert [row.outcome async for row in ledger.failed()] == ["returned", "failed"]
        assert (await ledger.check()).findings == ()


async def test_each_status_that_differs_from_the_one_before_is_kept_with_its_times(
    path: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "PAGE", 2)  # so many entries at a time
    clock = Clock()
    async with await begun(path, 12, clock) as ledger:
        *_, last = await all_rows(ledger)
        assert await ledger.statuses(last) == (), "the import's entry has a count of 12 rows"
        made = await ledger.record([created(row) for row in (await ledger.claim(12)).rows])
        odd = attrs.evolve(made[1].known, payout_id="x[1,")  # as an outline of row 1 begins
        words = [
            ("pending", PayoutEnd.OPEN),
            ("completed", PayoutEnd.ARRIVED),
            ("completed", PayoutEnd.UNCLEAR),
            (None, PayoutEnd.UNCLEAR),
            ("completed", PayoutEnd.ARRIVED),
        ]
        for number, word in enumerate(words):
            clock.wall += 60.0
            others = [
                RowOutcome(2, odd, f"word {number}", latest=True),
                RowOutcome(11, made[10].known, "other"),
            ]
            await ledger.record([RowOutcome(1, made[0].known, *word, latest=True), *others])
        await ledger.record([RowOutcome(1, made[0].known, *words[-1], payout_money="XOF 1", latest=True)])
    async with await looked_at(path) as ledger:
        first, _, third, *_ = await all_rows(ledger)
        found = await ledger.statuses(first)
        assert await ledger.statuses(third) == ()
        assert [(each.status, each.contradicts) for each in found] == [
            (word, end is PayoutEnd.UNCLEAR) for word, end in words
        ]
        assert {each.payout_id for each in found} == {made[0].known.payout_id}
        by_service = [each.service_at or 0.0 for each in found]
        assert all(60.0 < after - before < 70.0 for before, after in pairwise(by_service))
        assert [each.at for each in found] == sorted(each.at for each in found)
        if isinstance(path, Path):
            assert [each.at for each in found] == [at + 0.25 for at in by_service]
        assert (await ledger.check()).findings == ()


async def test_the_reason_of_a_doubt_goes_when_the_payout_is_found(path: Place) -> None:
    async with await begun(path, 1) as ledger:
        (row,) = (await ledger.claim(1)).rows
        (row,) = await ledger.record([RowOutcome(1, doubt(row.known), failure_code="timeout")])
        assert row.failure_code == "timeout"
        (row,) = await ledger.record([created(row)])
        assert row.failure_code is None


async def test_unfinished_rows_of_an_earlier_run_come_first_those_in_flight_before_those_in_doubt(
    path: Place,
) -> None:
    async with await begun(path, 6) as ledger:
        rows = (await ledger.claim(4)).rows
        await ledger.record([RowOutcome(2, doubt(rows[1].known)), created(rows[2])])
    async with await opened(path) as ledger:
        found = []
        async for row in ledger.unfinished():
            found.append(row.number)
            await ledger.record([RowOutcome(row.number, doubt(row.known))])
        assert found == [1, 4, 2]


async def test_pages_follow_each_other_without_gaps(path: Place) -> None:
    async with await begun(path, 1003) as ledger:
        assert [row.number for row in await all_rows(ledger)] == list(range(1, 1004))
        rows = [row for claim in [await ledger.claim(1000) for _ in range(2)] for row in claim.rows][:1000]
        in_flight = [row.number async for row in ledger.rows(RowState.IN_FLIGHT)]
        assert in_flight[:1000] == [row.number for row in rows]
        assert len(await ledger.record([created(row) for row in rows])) == 1000


async def test_a_resend_is_an_intent_with_the_same_key(path: Place) -> None:
    async with await begun(path, 2) as ledger:
        first = await ledger.claim(2)
        before, _ = first.rows
        again = await ledger.resend([Resend(1)])
        (row,) = again.rows
        entry = before.changed_in + 1
        assert row == attrs.evolve(before, known=intend(before.known), last_intent=entry, changed_in=entry)
        assert await ledger.intent_times([row]) == {1: IntentTimes(first.at, first.at, again.at)}


async def test_a_resend_in_the_next_epoch_has_a_key_of_its_own(path: Place) -> None:
    async with await begun(path, 1) as ledger:
        (row,) = (await ledger.claim(1)).rows
        first = row.changed_in
        (row,) = await ledger.record([RowOutcome(1, doubt(row.known))])
        (row,) = (await ledger.resend([Resend(1, next_key="key-of-epoch-1", absent=True)])).rows
        assert (row.state, row.known.epoch, row.idempotency_key) == (RowState.IN_FLIGHT, 1, "key-of-epoch-1")
        assert (row.first_intent, row.key_intent, row.known.cleared) == (first, first + 2, 1)
        await ledger.resend([Resend(1, next_key="key-of-epoch-2", absent=True)])
        assert (await ledger.check()).findings == ()


async def test_a_row_that_was_decided_meanwhile_is_not_sent_again(path: Place) -> None:
    async with await begun(path, 2) as ledger:
        one, two = (await ledger.claim(2)).rows
        await ledger.record([created(one)])
        assert numbers(await ledger.resend([Resend(2), Resend(1)])) == [2]
        await ledger.record([created(two)])
        entries = (await ledger.check()).entries
        assert (await ledger.resend([Resend(2), Resend(1)])).rows == ()
        assert (await ledger.check()).entries == entries


async def test_a_row_that_is_not_there_is_refused(path: Place) -> None:
    async with await begun(path, 1) as ledger:
        (row,) = (await ledger.claim(1)).rows
        with pytest.raises(LedgerRefused, match="row 9: is not there"):
            await ledger.record([attrs.evolve(created(row), number=9)])


async def test_a_corrected_row_is_new_again_with_another_body_key_and_amount(path: Place) -> None:
    async with await begun(path, 2) as ledger:
        one, _ = (await ledger.claim(2)).rows
        await ledger.record([rejected(one, failure_code="422")])
        better = new_row(1, amount=Decimal("12.50"), currency="GHS", body=b"better")
        (row,) = await ledger.correct([better])
        assert (row.state, row.known.revision, row.failure_code, row.key_intent) == (
            RowState.NEW,
            1,
            None,
            None,
        )
        assert row.first_intent == one.first_intent
        assert total_of(ledger, "not_started", "GHS") == (1, Decimal("12.50"))
        assert total_of(ledger, "rejected") == (0, Decimal(0))
    async with await opened(path) as ledger:  # in a database, what was corrected is granted anew
        (claimed,) = (await ledger.claim(9)).rows
        assert (claimed.body, claimed.idempotency_key) == (b"better", better.idempotency_key)
        assert (await ledger.check()).findings == ()


@pytest.mark.parametrize(
    ("better", "reason"),
    [
        (new_row(1, body=b"other", reference="another"), "keeps its reference"),
        (new_row(1, body=b"other", row_key="row-2"), "has another key"),
        (new_row(1), "idempotency key is used up"),
    ],
)
async def test_a_correction_that_is_another_row_or_no_other_body_is_refused(
    path: Place, better: object, reason: str
) -> None:
    async with await begun(path, 2) as ledger:
        one, _ = (await ledger.claim(2)).rows
        await ledger.record([rejected(one)])
        with pytest.raises(LedgerRefused, match=reason):
            await ledger.correct([better])  # type: ignore[list-item]  # parametrised
        assert counts(ledger) == {"rejected": 1, "under_way": 1}


async def test_a_new_generation_begins_with_a_new_reference_and_nothing_known(path: Place) -> None:
    async with await begun(path, 1) as ledger:
        (row,) = (await ledger.claim(1)).rows
        await ledger.record(
            [created(row, service_status="failed", payout_end=PayoutEnd.FAILED, failure_code="E1")]
        )
        again = new_row(1, reference="reference-1~g1", body=b"again")
        (row,) = await ledger.next_generation([again])
        assert (row.state, row.known.generation, row.known.payout_id) == (RowState.NEW, 1, "")
        assert (row.service_status, row.is_final, row.failure_code) == (None, False, None)
        assert (row.first_intent, row.key_intent, row.last_intent) == (None, None, None)
        assert await ledger.by_references(["reference-1"]) == []
        assert counts(ledger) == {"not_started": 1}


async def test_two_readings_that_find_the_same_later_payout_record_it_once(path: Place) -> None:
    """Both have judged the row before either records."""
    async with await begun(path, 2) as ledger:
        (row,) = (await ledger.claim(1)).rows
        later = new_row(1, reference="reference-1~g2", body=b"later")
        known = RowKnowledge(RowState.CREATED, generation=2, payout_id="po_later")
        found = (row, later, RowOutcome(1, known, "completed", PayoutEnd.ARRIVED, body_hash=later.body_hash))
        (changed,) = await ledger.adopt([found])
        assert (changed.reference, changed.known, changed.body) == (later.reference, known, b"later")
        assert changed == await row_of(ledger, "row-1")
        report = await ledger.check()
        assert report.findings == ()
        assert await ledger.adopt([found]) == ()
        assert (counts(ledger), await ledger.check()) == ({"not_started": 1, "created": 1}, report)
        newer = RowOutcome(1, known, "reversed", PayoutEnd.FAILED, body_hash=later.body_hash, latest=True)
        (changed,) = await ledger.adopt([(row, later, newer)])
        assert (changed.service_status, changed.had_arrived, changed.body) == ("reversed", True, b"later")
        assert (await ledger.check()).findings == ()


async def test_a_row_that_was_edited_meanwhile_does_not_get_a_later_payout(path: Place) -> None:
    async with await begun(path, 1) as ledger:
        row = await row_of(ledger, "row-1")
        (edited,) = await ledger.correct([new_row(1, body=b"edited")])
        later = new_row(1, reference="reference-1~g2", body=b"later")
        known = RowKnowledge(RowState.CREATED, generation=2, payout_id="po_later")
        assert await ledger.adopt([(row, later, RowOutcome(1, known, body_hash=later.body_hash))]) == ()
        assert await row_of(ledger, "row-1") == edited


async def test_another_key_is_written_down_and_part_of_the_chain(path: Place) -> None:
    rotated = attrs.evolve(BINDING, key_fingerprint="key-2", input_stat='{"size": 2}')
    async with await begun(path, 1) as ledger:
        entries = (await ledger.check()).entries
        await ledger.rebind(rotated)
        assert ledger.header.binding == rotated
        assert (await ledger.check()).entries == entries + 1
    async with await opened(path) as ledger:
        assert ledger.header.binding == rotated
        assert ledger.header.rows == 1
        assert (await ledger.check()).findings == ()


async def test_commits_asked_for_at_once_are_made_one_after_the_other(path: Place) -> None:
    async with await begun(path, 40) as ledger:
        claims = await asyncio.gather(*(ledger.claim(5) for _ in range(10)))
        taken = [number for claim in claims for number in numbers(claim)]
        assert sorted(taken) == list(range(1, 41))
        await asyncio.gather(*(ledger.record([created(row) for row in claim.rows]) for claim in claims))
        assert counts(ledger) == {"created": 40}
        assert (await ledger.check()).findings == ()


async def test_no_repr_shows_what_is_sent(path: Place) -> None:
    async with await begun(path, 1) as ledger:
        claim = await ledger.claim(1)
    assert "amount" in claim.rows[0].body.decode()
    assert "body=" not in repr(claim)
    assert "body=" not in repr(new_row(1, metadata="{}"))
