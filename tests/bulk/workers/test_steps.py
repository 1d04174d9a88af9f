"""The steps that a scheduler calls: idempotent, by any processes, and each end says what follows."""

from __future__ import annotations

import asyncio
import pickle
import re
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from payments_async.bulk import BatchDatabase, BulkError
from payments_async.bulk._leasing import worker_session
from payments_async.bulk._ledger.postgresql.commits import SharedCommitter
from payments_async.bulk._protocol.machines import Standbys
from payments_async.bulk.ledger_errors import LedgerBroken, LedgerFull, LedgerUnavailable
from payments_async.bulk.steps import (
    Done,
    FailureCause,
    Held,
    HoldReason,
    Never,
    Now,
    StepEnd,
    StepFailed,
    Steps,
    Wait,
)
from tests.support.fleet import Fleet, books, posts
from tests.support.patience import until
from tests.support.payout_files import csv_file

LIVE = "sk_live_x"


def done(end: StepEnd) -> tuple[int, int]:
    """(rows decided, rows) of a step's figures."""
    assert end.figures is not None
    return end.figures.done, end.figures.rows


def payroll(folder: Path, rows: int) -> Path:
    """A file of so many payouts."""
    common = {"currency": "XOF", "method": "mtn_bj", "instrument.country": "BJ"}
    number = {"instrument.phone_number": "+22990112233"}
    return csv_file(
        folder,
        *({"row_key": f"row-{n}", "amount": f"{n}.01", **common, **number} for n in range(1, rows + 1)),
    )


async def test_a_file_becomes_a_closed_batch_by_steps_each_called_twice(fleet: Fleet, tmp_path: Path) -> None:
    steps = await fleet.steps()
    path = payroll(tmp_path, 120)
    plans = [await steps.plan(path, batch_id="june", confirm_total={"XOF": "7261.20"}) for _ in range(2)]
    assert [(plan.chunks, plan.rows, plan.next) for plan in plans] == [(3, 120, Now())] * 2
    facts = {"batch_id": "june", "next": "now", "chunks": 3, "rows": 120, "sums": {"XOF": "7261.20"}}
    assert plans[0].facts() == facts
    for chunk, rows in ((1, 50), (2, 50), (3, 20)):
        for _ in range(2):
            end = await steps.pay("june", chunk)
            assert (end.next, done(end)) == (Done(), (rows, rows))
    for _ in range(2):
        assert (await steps.settle("june")).next == Done()
    first, second = [await steps.close("june") for _ in range(2)]
    assert (first.next, second.next) == (Done(), Done())
    assert first.certificate is not None
    assert (second.certificate, first.is_clean, second.is_clean, end.is_clean) == (None, True, True, None)
    assert posts(fleet.sandbox) == len(books(fleet.sandbox)) == 120
    assert len(fleet.entries("plan")) == 1
    assert fleet.query("SELECT state FROM payments.batches") == [("closed",)]
    assert fleet.query("SELECT count(*) FROM payments.workers") == [(1,)]
    assert end.facts()["figures"]["rows"]["created"] == 20


async def test_a_closed_batch_is_followed_until_all_payouts_are_final(fleet: Fleet) -> None:
    await fleet.planned(3)
    steps = await fleet.steps()
    await steps.pay("june", 1)
    end = await steps.close("june", follow=True)
    assert end.next == Wait(86_400.0, "3 payouts are not final")
    fleet.sandbox.advance(86_400)
    end = await steps.close("june", follow=True)
    assert end.next == Done()
    assert end.figures is not None
    assert end.figures.counts["arrived"] == 3
    reads = len(fleet.sandbox.requests)
    assert (await steps.close("june", follow=True)).next == Done()
    assert len(fleet.sandbox.requests) == reads


async def test_a_closed_batch_says_whether_the_list_agrees_whoever_asks(fleet: Fleet) -> None:
    await fleet.planned(3)
    steps = await fleet.steps()
    await steps.pay("june", 1)
    fleet.sandbox.reset()  # the service forgets its payouts
    assert [((end := await steps.close("june")).next, end.is_clean) for _ in range(2)] == [
        (Done(), False)
    ] * 2
    assert (await (await fleet.steps()).close("june")).facts()["is_clean"] is False


async def test_a_chunk_that_another_process_has_is_waited_for(fleet: Fleet) -> None:
    await fleet.planned(10)
    fleet.sandbox.on("payouts.create").respond("slow:300ms", times=None)
    first, second = await fleet.steps(concurrency=2), await fleet.steps()
    paying = asyncio.ensure_future(first.pay("june", 1))
    await until(lambda: posts(fleet.sandbox) > 0)
    end = await second.pay("june", 1)
    assert isinstance(end.next, Wait)
    assert 0.0 < end.next.seconds <= 15.0
    assert (await paying).next == Done()
    assert posts(fleet.sandbox) == 10


async def test_a_pause_holds_each_step_until_it_ends(fleet: Fleet) -> None:
    batch, steps = await fleet.planned(60), await fleet.steps(concurrency=2)
    fleet.sandbox.on("payouts.create").respond("slow:100ms", times=None)
    paying = asyncio.ensure_future(steps.pay("june", 1))
    await until(lambda: posts(fleet.sandbox) > 3)
    await batch.pause("lunch")
    held = Held(HoldReason.PAUSED, "lunch")
    end = await paying
    assert end.next == held
    assert done(end)[0] == (await batch.refresh()).counts["created"] < 50  # what was under way is recorded
    assert [(await step("june")).next for step in (steps.settle, steps.close)] == [held, held]
    await batch.resume()
    fleet.sandbox.clear_rules()
    assert (await steps.pay("june", 1)).next == Done()
    assert (await steps.settle("june")).next == Wait(15.0, "rows are still to be sent")


async def test_rows_that_the_stop_rules_hold_back_are_held(fleet: Fleet) -> None:
    await fleet.planned(60, max_rows=20)
    steps = await fleet.steps()
    assert (await steps.pay("june", 1)).next == Now()  # the rest of it may be granted, when it is asked for
    for chunk in (1, 2):
        end = await steps.pay("june", chunk)
        assert isinstance(end.next, Held)
        assert (end.next.by, done(end)[0]) == (HoldReason.STOP_RULE, 20 if chunk == 1 else 0)
    ends = (await steps.settle("june"), await steps.close("june"))
    assert [end.chunks for end in ends] == [2, 2]
    for end in ends:
        assert isinstance(end.next, Held)
        assert "as many as --max-rows allows" in end.next.reason
    assert len(books(fleet.sandbox)) == 20


async def test_rows_in_doubt_are_settled_after_their_chunks(fleet: Fleet) -> None:
    rule = fleet.sandbox.on("payouts.create", description="row 7")
    rule.respond("lost_request", times=1).respond("http:409", times=None, after=1)
    await fleet.planned(20)
    steps = await fleet.steps(patience=0.0)
    assert (await steps.pay("june", 1)).next == Done()
    for step in (steps.settle, steps.settle, steps.close):
        end = await step("june")
        assert isinstance(end.next, Wait)
        assert (end.next.reason, end.next.seconds > 600.0) == ("rows in doubt wait for their next look", True)
    fleet.sandbox.clear_rules()
    fleet.query("UPDATE payments.chunks SET look_at = NULL")
    patient = await fleet.steps(patience=60.0)
    assert (await patient.settle("june")).next == Done()
    assert (await patient.close("june")).next == Done()
    assert len(books(fleet.sandbox)) == 20


@pytest.mark.parametrize("signal", [asyncio.Event, threading.Event])
async def test_a_step_that_is_stopped_records_what_is_under_way(
    fleet: Fleet, signal: type[asyncio.Event] | type[threading.Event]
) -> None:
    await fleet.planned(50)
    fleet.sandbox.on("payouts.create").respond("slow:100ms", times=None)
    steps, stop, seen = await fleet.steps(concurrency=2), signal(), list[tuple[int, int]]()
    paying = asyncio.ensure_future(steps.pay("june", 1, stop=stop, on_progress=lambda *at: seen.append(at)))
    await until(lambda: posts(fleet.sandbox) > 3)
    stop.set()
    end = await paying
    assert end.next == Now()
    assert done(end) == seen[-1] == (len(books(fleet.sandbox)), 50)
    assert (posts(fleet.sandbox) < 50, fleet.held) == (True, set())
    assert (await steps.pay("june", 1, stop=stop)).next == Now()
    assert posts(fleet.sandbox) == seen[-1][0]


@pytest.mark.parametrize("times", [1, 2])
async def test_a_cancelled_step_leaves_nothing_in_doubt_unless_it_is_cancelled_again(
    fleet: Fleet, times: int
) -> None:
    batch = await fleet.planned(50)
    fleet.sandbox.on("payouts.create").respond("slow:300ms", times=None)
    steps = await fleet.steps(concurrency=2)
    paying = asyncio.ensure_future(steps.pay("june", 1))
    await until(lambda: posts(fleet.sandbox) > 3)
    for _ in range(times):
        paying.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await paying
    counts = (await batch.refresh()).counts
    assert (counts["under_way"] == 0, fleet.held) == (times == 1, set())
    fleet.sandbox.clear_rules()
    assert (await steps.pay("june", 1)).next == Done()
    assert len(books(fleet.sandbox)) == 50


@pytest.mark.parametrize(
    ("rule", "cause", "then"),
    [
        ("http:401", FailureCause.KEY, Never),
        ("http:404", FailureCause.ADDRESS, Wait),
        ("reset", FailureCause.SERVICE, Wait),
    ],
)
async def test_a_service_that_cannot_be_used_fails_the_step(
    fleet: Fleet, rule: str, cause: FailureCause, then: type
) -> None:
    await fleet.planned(5)
    fleet.sandbox.on("payouts.list").respond(rule, times=None)
    steps = await fleet.steps()
    with pytest.raises(StepFailed) as caught:
        await steps.pay("june", 1)
    assert (caught.value.cause, type(caught.value.next)) == (cause, then)
    assert fleet.held == set()
    fleet.sandbox.clear_rules()
    assert (await steps.pay("june", 1)).next == Done()


async def test_another_key_is_proven_by_the_first_step_or_the_step_fails(fleet: Fleet) -> None:
    await fleet.planned(60)
    assert (await fleet.pay(1)).next == Done()
    steps = await fleet.steps(client=await fleet.client(api_key=fleet.sandbox.new_key()))
    fleet.sandbox.on("payouts.list").respond("http:503", times=None)
    with pytest.raises(StepFailed) as caught:
        await steps.pay("june", 2)
    assert (caught.value.cause, type(caught.value.next)) == (FailureCause.SERVICE, Wait)
    fleet.sandbox.clear_rules()
    end = await steps.pay("june", 2)  # the key is another project's
    assert isinstance(end.next, Never)
    assert "its key fingerprint is" in end.next.reason


async def test_a_database_that_is_away_fails_the_step(fleet: Fleet) -> None:
    async with Steps("postgresql://postgres@127.0.0.1:1/x", await fleet.client()) as steps:
        with pytest.raises(StepFailed) as caught:
            await steps.pay("june", 1)
    assert (caught.value.cause, type(caught.value.next)) == (FailureCause.DATABASE, Wait)
    assert isinstance(caught.value.__cause__, LedgerUnavailable)


async def test_a_database_whose_disk_is_full_fails_the_step(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object, **__: object) -> None:
        raise LedgerFull("the database", "the database's disk is full")

    await fleet.planned(5)
    steps = await fleet.steps()
    with monkeypatch.context() as patch, pytest.raises(StepFailed) as caught:
        patch.setattr(SharedCommitter, "claim", full)
        await steps.pay("june", 1)
    assert (caught.value.cause, caught.value.effect) == (FailureCause.DATABASE, "none")
    assert (await steps.pay("june", 1)).next == Done()


async def test_steps_connect_again_after_their_leases_could_not_be_renewed(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise LedgerBroken("the database", "failed")

    await fleet.planned(60)
    fleet.sandbox.on("payouts.create").respond("slow:100ms", times=None)
    steps = await fleet.steps(concurrency=2)
    with monkeypatch.context() as patch:
        paying = asyncio.ensure_future(steps.pay("june", 1))
        await until(lambda: posts(fleet.sandbox) > 3)
        patch.setattr(worker_session, "renew", broken)
        assert not isinstance((await paying).next, Done)
    fleet.sandbox.clear_rules()
    await until(lambda: not fleet.held)
    assert (await steps.pay("june", 1)).next == Done()
    assert len(books(fleet.sandbox)) == 50


async def test_a_batch_whose_server_changed_is_judged_before_a_step(fleet: Fleet) -> None:
    await fleet.planned(5)
    fleet.query("UPDATE payments.batches SET store = store || ' '")
    assert (await fleet.pay(1)).next == Done()
    fleet.query("UPDATE payments.batches SET lost_in = 1")  # and no reading has shown yet what was lost
    async with await fleet.steps() as steps:
        end = await steps.close("june")
    assert end.next == Held(HoldReason.SUSPECT, "commits may be lost: `payments payouts recover`")


async def test_a_machine_without_the_clock_that_leases_need_is_refused(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fleet.planned(1)
    client = await fleet.client()
    monkeypatch.setattr(client._internal.runtime, "boottime", lambda: None)
    with pytest.raises(BulkError, match="no clock that counts while it is suspended"):
        await (await fleet.steps(client=client)).pay("june", 1)


async def test_what_can_never_succeed_says_so(fleet: Fleet) -> None:
    await fleet.planned(5)
    other = await fleet.steps(client=await fleet.client(api_key=LIVE, base_url="https://localhost/v1"))
    steps = await fleet.steps()
    ends = [await steps.pay("june", 2), await steps.pay("july", 1), await other.pay("june", 1)]
    reasons = [end.next.reason for end in ends if isinstance(end.next, Never)]
    assert reasons[0] == "batch june has no chunk 2: its last is 1"
    assert "july: there is no such batch" in reasons[1]
    assert reasons[2] == "the ledger belongs to the other environment"


async def test_a_batch_is_found_however_the_letters_of_its_name_are_composed(fleet: Fleet) -> None:
    await fleet.planned(3, "caf\u00e9")
    assert (await fleet.pay(1, "cafe\u0301")).next == Done()


# The plan


async def test_a_live_batch_is_held_until_its_total_is_confirmed(fleet: Fleet, tmp_path: Path) -> None:
    path, approved = payroll(tmp_path, 3), tmp_path / "june.total"
    steps = await fleet.steps(client=await fleet.client(api_key=LIVE, base_url="https://localhost/v1"))
    plan = await steps.plan(path, batch_id="june")
    assert plan.next == Held(HoldReason.TOTAL, "a live key pays real money: confirm XOF 6.03")
    assert (await steps.pay("june", 1)).next == Held(HoldReason.TOTAL, "its total is not confirmed yet")
    plan = await steps.plan(path, batch_id="june", confirm_total={"XOF": 7})
    assert isinstance(plan.next, Held)
    assert "XOF 7 was confirmed, and the batch comes to XOF 6.03" in plan.next.reason
    approved.write_text("XOF 6.03\n")
    assert (await steps.plan(path, batch_id="june", confirm_from=approved)).next == Now()
    assert fleet.query("SELECT state FROM payments.batches") == [("open",)]


async def test_a_plan_that_cannot_be_made_says_what_is_wrong(fleet: Fleet, tmp_path: Path) -> None:
    steps, path, faulty = await fleet.steps(), payroll(tmp_path, 3), tmp_path / "faulty.csv"
    await steps.plan(path, batch_id="june")
    faulty.write_text(path.read_text().replace("2.01", "two"))
    for source, cause, then in [
        (tmp_path / "none.csv", FailureCause.FILE, Wait),
        (faulty, FailureCause.INPUT, Never),
        (payroll(tmp_path, 4), FailureCause.INPUT, Never),
    ]:
        with pytest.raises(StepFailed) as caught:
            await steps.plan(source, batch_id="june")
        assert (caught.value.cause, type(caught.value.next)) == (cause, then)
    with pytest.raises(StepFailed, match="as batch june"):
        await steps.plan(payroll(tmp_path, 3), batch_id="july")
    assert (await steps.plan(payroll(tmp_path, 3), batch_id="july", pay_again=True)).next == Now()
    edited = payroll(tmp_path, 3)
    edited.write_text(edited.read_text().replace("2.01", "2.02"))
    assert (await steps.plan(edited, batch_id="june", accept_edits=True)).sums == {"XOF": Decimal("6.04")}
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.cause, again.next, str(again)) == (caught.value.cause, caught.value.next, str(caught.value))


@pytest.mark.parametrize(
    ("confirmed", "words"),
    [
        ({"confirm_total": {"XOF": 6.03}}, "the amount of XOF must be exact"),
        ({"confirm_total": {"XOF": 1}, "confirm_from": "june.total"}, "not both"),
        ({"confirm_from": "june.total"}, "'XOF' is not a currency and an amount"),
    ],
)
async def test_a_confirmation_that_cannot_be_read_is_refused(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, confirmed: dict[str, Any], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("june.total").write_text("XOF\n")
    with pytest.raises(BulkError, match=words):
        await (await fleet.steps()).plan(payroll(tmp_path, 3), batch_id="june", **confirmed)
    assert fleet.query("SELECT to_regclass('payments.batches') IS NULL") == [(True,)]


async def test_a_standby_that_may_lose_commits_is_accepted_by_a_live_plan_only_on_purpose(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lossy(_: object) -> Standbys:
        return Standbys.ASYNCHRONOUS

    monkeypatch.setattr("payments_async.bulk._ledger.postgresql.ledger.standbys", lossy)
    steps = await fleet.steps(client=await fleet.client(api_key=LIVE, base_url="https://localhost/v1"))
    given: dict[str, Any] = {"batch_id": "june", "confirm_total": {"XOF": "6.03"}}
    with pytest.raises(StepFailed) as caught:
        await steps.plan(payroll(tmp_path, 3), **given)
    assert isinstance(caught.value.next, Never)
    assert (await steps.plan(payroll(tmp_path, 3), **given, lossy_standby=True)).next == Now()


async def test_a_missing_file_of_totals_fails_the_plan(fleet: Fleet, tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match="cannot be read"):
        await (await fleet.steps()).plan(payroll(tmp_path, 3), batch_id="june", confirm_from=tmp_path / "no")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"address": "june.ledger"}, "share a ledger in a database"),
        ({"address": 7}, "share a ledger in a database"),
        ({"address": "mysql://x"}, "not mysql://"),
        ({"concurrency": 0}, "concurrency must be a whole number, 1 or more"),
        ({"drain": -1}, "drain must be a number of seconds"),
        ({"patience": -1}, "patience must be a number of seconds"),
    ],
)
async def test_arguments_are_checked_before_anything_is_connected(
    fleet: Fleet, given: dict[str, Any], words: str
) -> None:
    asked = {"address": "postgresql://127.0.0.1:1/x", **given}
    with pytest.raises(BulkError, match=words):
        Steps(client=await fleet.client(), **asked)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"chunk": 0}, "chunk must be a whole number, 1 or more"),
        ({"chunk": "1"}, "chunk must be a whole number, 1 or more"),
        ({"batch_id": ""}, "batch_id must be text, not blank"),
    ],
)
async def test_a_steps_arguments_are_checked(fleet: Fleet, given: dict[str, Any], words: str) -> None:
    steps = await fleet.steps()
    with pytest.raises(BulkError, match=words):
        await steps.pay(**{"batch_id": "june", "chunk": 1, **given})


async def test_a_step_of_a_forgotten_batch_says_when_it_was_forgotten(fleet: Fleet, tmp_path: Path) -> None:
    steps, path = await fleet.steps(), payroll(tmp_path, 3)
    await steps.plan(path, batch_id="june", confirm_total={"XOF": "6.03"})
    await steps.pay("june", 1)
    await steps.close("june")
    async with BatchDatabase.open(fleet.url) as database:
        (forgotten,) = await database.forget(0.0, unsettled=["june"])
    assert forgotten.kept is None
    for step in (steps.pay("june", 1), steps.settle("june"), steps.close("june")):
        end = await step
        assert isinstance(end.next, Never)
        assert re.search(r"june: was forgotten on .* UTC; 3 rows were asked for, XOF 6.03", end.next.reason)
        assert end.figures is None
    assert (await steps.close("june", follow=True)).next == Done()
    with pytest.raises(StepFailed, match="was forgotten") as caught:
        await steps.plan(path, batch_id="june", confirm_total={"XOF": "6.03"})
    assert isinstance(caught.value.next, Never)
    with pytest.raises(StepFailed, match="the same input as batch june") as caught:
        await steps.plan(path, batch_id="july", confirm_total={"XOF": "6.03"})
    assert caught.value.cause is FailureCause.INPUT
    assert (await fleet.run()).rows == 0
    assert posts(fleet.sandbox) == 3
