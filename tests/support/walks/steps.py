"""The steps of a walk: what an operator, the service or an accident does next."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, Final
from unittest.mock import patch

from payments_async.bulk._leasing.chunk_run import LeaseHolder
from payments_async.bulk._protocol.identifiers import parted
from payments_async.errors import PaymentsError
from tests.support.batches import SteadyRuntime, item, runtime_of
from tests.support.databases import run as in_database
from tests.support.walks.lists import TURNS
from tests.support.walks.walk import Step, Walk

_FAULTS: Final = ("lost_response", "lost_request", "http:500", "http:422", "http:409", "reset", "429:5")


def _key(number: int) -> str:
    return f"row-{number}"


# Runs


async def run(walk: Walk) -> None:
    """The batch is paid, and some payouts fail."""
    for key, _ in walk.items:
        if walk.chance.random() < 0.4:
            rule = walk.service.on("payouts.create", description=key.replace("-", " "))
            rule.outcome("fail:RECIPIENT_ERROR")
    await walk.opened.run(
        wait_final=walk.chance.choice((None, 60.0, 60.0)),
        patience=walk.chance.choice((0.0, 1500.0)),
        concurrency=8,
    )


async def run_through_faults(walk: Walk) -> None:
    """The batch is paid, and requests fail."""
    for key, _ in walk.items:
        if walk.chance.random() < 0.6:
            rule = walk.service.on("payouts.create", description=key.replace("-", " "))
            fault = walk.chance.choice(_FAULTS)
            # not for ever: a row that alone is left, while all requests fail, is posted for 23 hours
            rule.respond(fault, times=walk.chance.choice((1, 2, 3 if fault.startswith("429") else 30)))
            walk.note("faults of creations", fault)
    if walk.lists.trick is None and walk.chance.random() < 0.3:
        times: int | None = walk.chance.choice((1, 2, None))
        walk.service.on("payouts.list").respond("http:503", times=times, after=walk.chance.randint(1, 6))
        walk.note("lists", {1: "503 once", 2: "503 twice"}.get(times, "503 to the end"))
    await run(walk)


async def kill(walk: Walk) -> None:
    """The run ends at any commit or request; the next process finds the ledger as it is."""
    running = asyncio.ensure_future(run_through_faults(walk))
    await _until_any_moment(walk, running, 35)
    leaves_leases = isinstance(walk.place, str) and walk.chance.random() < 0.5
    walk.note("kills", "after the end" if running.done() else "of a run")
    with patch.object(LeaseHolder, "give_back", _nothing) if leaves_leases else contextlib.nullcontext():
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError, PaymentsError):
            await running
    await walk.close()
    if isinstance(walk.place, str):
        held = "SELECT count(*) FROM payments.chunks WHERE lease IS NOT NULL"
        walk.note("kills", "that left a lease", in_database(walk.place, held)[0][0])
    await walk.open()


async def _until_any_moment(walk: Walk, work: asyncio.Future[Any], most: int) -> None:
    """Wait for the end of any of the next commits and requests."""
    until = SteadyRuntime.ended + walk.lists.requests + walk.chance.randint(0, most)
    while not work.done() and SteadyRuntime.ended + walk.lists.requests < until:  # noqa: ASYNC110 - no event
        await asyncio.sleep(0)


async def _nothing(*_: object) -> None:
    pass


# Readers


async def reconcile(walk: Walk) -> None:
    """A certificate, of a list that may be spoilt."""
    certificate = await walk.opened.reconcile()
    if walk.lists.spoilt:
        await walk.judge_spoilt(certificate)


async def reconcile_beside_a_run(walk: Walk) -> None:
    """Another process reconciles, perhaps several times, while this one pays."""
    if not isinstance(walk.place, str):  # a file has one owner
        await reconcile(walk)
        return
    async with walk.another_reader() as other:
        running = asyncio.ensure_future(run_through_faults(walk))
        for _ in range(walk.chance.randint(1, 4)):
            await _until_any_moment(walk, running, 30)
            await _both(walk, [other.reconcile()], "beside a run")
        await running


async def two_reconcile(walk: Walk) -> None:
    """Two processes reconcile at once, while statuses turn, perhaps right after a ledger was lost."""
    if walk.chance.random() < 0.4:
        await lose(walk)
    if not isinstance(walk.place, str):
        await reconcile(walk)
        return
    async with walk.another_reader() as other:
        first = asyncio.ensure_future(walk.opened.reconcile())
        await _until_any_moment(walk, first, 6)
        await _both(walk, [first, other.reconcile(), _turn_later(walk, first)], "beside a reconcile")


async def _turn_later(walk: Walk, beside: asyncio.Future[Any]) -> None:
    await _until_any_moment(walk, beside, 8)
    if walk.chance.random() < 0.5:
        await turn(walk)


async def _both(walk: Walk, works: Sequence[Any], where: str) -> None:
    """Wait for all of them; count the errors that an operator may see. Raises others."""
    for ended in await asyncio.gather(*works, return_exceptions=True):
        if isinstance(ended, PaymentsError):
            walk.note("two readers", f"{type(ended).__name__} {where}")
        elif isinstance(ended, BaseException):
            raise ended
    walk.note("two readers", f"reconciled {where}")


# Turns, and what follows them


async def turn(walk: Walk) -> None:
    """The service says otherwise of some payouts that have ended."""
    _turn(walk, {each.id for each in walk.payouts if walk.chance.random() < 0.4}, list(TURNS))


def _turn(walk: Walk, chosen: set[str], statuses: Sequence[str]) -> None:
    for payout in walk.payouts:
        if payout.status not in ("pending", "processing"):
            walk.ended.add(payout.id)
        if payout.id in walk.ended and payout.id in chosen:
            payout.status = walk.chance.choice(statuses)
            completed, failed = TURNS[payout.status]
            payout.completed_at = payout.created_at if completed else None
            payout.failed_at = payout.created_at if failed else None
            walk.note("turns", payout.status)
    walk.turned()


async def retry(walk: Walk) -> None:
    """Rows whose payouts have failed are made new, perhaps those that were returned too."""
    report = await walk.opened.retry_failed()
    walk.note("rows", "retried", len(report.rows))
    by_number = [left.number for left in report.left if "name the row" in left.reason]
    if by_number and walk.chance.random() < 0.7:
        returned = await walk.opened.retry_failed(rows=by_number)
        walk.note("rows", "retried after a return", len(returned.rows))


async def retry_rejected(walk: Walk) -> None:
    """Rejected rows are made new."""
    walk.note("rows", "rejected and retried", len((await walk.opened.retry_failed(rejected=True)).rows))


async def live_again(walk: Walk) -> None:
    """Rows are retried, their earlier payouts turn, and the next to read the list is the run that pays."""
    trick = walk.lists.trick if walk.chance.random() < 0.7 else None
    walk.lists.plan(None if trick else walk.lists.trick)
    report = await walk.opened.retry_failed()
    walk.note("rows", "retried", len(report.rows))
    stems = {
        parted(row.reference)[0] async for row in walk.opened._ledger.rows() if row.number in report.rows
    }
    earlier = [each for each in walk.payouts if parted(each.reference)[0] in stems]
    chosen = {each.id for each in earlier if walk.chance.random() < 0.6}
    walk.note("rows", "retried, and an earlier payout lives again", len(chosen))
    _turn(walk, chosen, ("completed", "pending"))
    if trick:  # for the run, then
        walk.lists.plan(trick)
    await walk.chance.choice((run, run, run_through_faults))(walk)


# Files and ledgers


async def edit(walk: Walk) -> None:
    """A row of the file is edited, or left out for good."""
    before, place = list(walk.items), walk.chance.randrange(len(walk.items))
    if walk.chance.random() < 0.7:
        walk.items[place] = _edited(walk, place)
    elif len(walk.items) > 1:
        del walk.items[place]
    try:
        report = await walk.load(accept_edits=True)
    except PaymentsError:
        walk.items = before
        raise
    walk.note("rows", "edited", report.corrected)
    walk.note("rows", "cancelled", report.cancelled)


def _edited(walk: Walk, place: int) -> Any:
    return item(int(walk.items[place][0][4:]), amount=walk.amount())


async def lose(walk: Walk) -> None:
    """The ledger is lost, and the file is loaded into a new one, perhaps edited."""
    await walk.close()
    walk.note("ledgers", "lost")
    if isinstance(walk.place, str):
        in_database(walk.place, "TRUNCATE payments.batches, payments.chunks")
    else:
        walk.place = walk.place.with_name(f"{walk.place.name}x")
    if walk.chance.random() < 0.5:
        place = walk.chance.randrange(len(walk.items))
        walk.items[place] = _edited(walk, place)
        walk.note("ledgers", "lost, and a row edited")
    await walk.open()


async def wait(walk: Walk) -> None:
    """Time passes."""
    walk.service.clock.advance(walk.chance.choice((60.0, 1_000.0, 90_000.0)))
    runtime_of(walk.client).advance(1_000.0)


STEPS: Final[Sequence[tuple[str, Step]]] = (
    *[("run", run)] * 2,
    ("run through faults", run_through_faults),
    *[("kill", kill)] * 2,
    *[("turn", turn)] * 2,
    *[("retry", retry)] * 2,
    ("retry rejected", retry_rejected),
    *[("retry, live again, run", live_again)] * 2,
    ("reconcile", reconcile),
    ("reconcile beside a run", reconcile_beside_a_run),
    ("two reconcile", two_reconcile),
    ("edit", edit),
    ("wait", wait),
    ("lose the ledger", lose),
)
