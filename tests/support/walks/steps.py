"""The steps of a walk: what an operator, the service, an app or an accident does next."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from payments_async import Instrument
from payments_async.bulk import BulkError, Outbox
from tests.support.batches import item
from tests.support.walks.processes import FAULTS, RULES, Process
from tests.support.walks.walk import Breach, Place, Step, Walk

_TURNS: Final = {
    "pending": (False, False),
    "completed": (True, False),
    "failed": (False, True),
    "cancelled": (False, True),
    "reversed": (True, True),
}
"""{status: whether it is shown with completed_at, and with failed_at}."""
_DAY: Final = 86_400.0


def _ledger(walk: Walk) -> Place:
    return walk.chance.choice(walk.places)


def _key(walk: Walk) -> str:
    return walk.chance.choice(("own", "own", "own", "another of the project"))


# Runs


def _disturb(walk: Walk) -> None:
    """Payouts and requests fail, in the service and on their way; the list lags, lacks one, or is away."""
    chance = walk.chance
    for name in [f"row {number}" for number in range(1, 10)] + [f"order {number}" for number in range(40)]:
        rule = walk.service.on("payouts.create", description=name)
        if chance.random() < 0.5 and name.startswith("row"):
            rule.outcome("fail:RECIPIENT_ERROR")
        if chance.random() < 0.4:
            walk.faults[name] = chance.choices(FAULTS, k=chance.choice((1, 1, 2, 4)))
        if chance.random() < 0.4:
            rule.respond(chance.choice(RULES), times=chance.choice((1, 2, 5)))
    match chance.choice(("", "", "", "lags", "lacks one", "is away")):
        case "lags":
            walk.lag = chance.choice((20.0, 120.0, 300.0))
        case "lacks one" if walk.payouts:
            walk.hidden = {chance.choice(walk.payouts).id}
            walk.ever_hidden |= walk.hidden
        case "is away":
            times = chance.choice((1, 2, None))
            walk.service.on("payouts.list").respond("http:503", times=times, after=chance.randint(0, 4))


def _options(walk: Walk) -> dict[str, Any]:
    return {
        "wait_final": walk.chance.choice((None, 30.0)),
        "patience": walk.chance.choice((0.0, 10.0, 60.0, 60.0, 1200.0)),
        "for_seconds": walk.chance.choice((None, None, None, 3.0, 40.0)),
        "concurrency": walk.chance.choice((1, 3, 8)),
        "drain": 1.0,
    }


async def run(walk: Walk) -> None:
    """The batch is paid in one process; what its certificate says is judged."""
    if is_honest := walk.chance.random() < 0.5:
        walk.service.on("payouts.create").outcome("fail:RECIPIENT_ERROR", times=walk.chance.randint(1, 5))
    else:
        _disturb(walk)
    place = _ledger(walk)
    async with walk.opened(place, _key(walk)) as process:
        report = await walk.do(process, process.batch.run(**_options(walk)))
    if report is not None and report.certificate is not None and is_honest:
        walk.judge(place, report.certificate)


async def at_once(walk: Walk, places: Sequence[Place], command: str) -> None:
    """The same command in several processes, of which some are stopped before any request or transaction."""
    async with contextlib.AsyncExitStack() as stack:
        works = []
        for place in places:
            process = await stack.enter_async_context(walk.opened(place))
            if len(places) == 1 or walk.chance.random() < 0.4:
                process.stop_after = walk.chance.randint(2, 40)
            how = _options(walk) if command == "run" else {}
            if command == "run" and not place.items and walk.chance.random() < 0.3:
                how |= {"follow": True, "for_seconds": 20.0}
            works.append(_until_stopped(walk, process, getattr(process.batch, command)(**how)))
        await asyncio.gather(*works)


async def _until_stopped(walk: Walk, process: Process, work: Any) -> None:
    """One that is stopped is killed, or cancelled, or sleeps for long."""
    await walk.do(process, work)
    if process.stopped.is_set():
        fate = walk.chance.choice(("killed", "killed", "cancelled", "sleeps"))
        walk.note("processes", fate)
        if fate == "cancelled":
            process.running.cancel()
            await walk.go_on(process)
        elif fate == "killed" or len(walk.sleepers) > 1:
            await walk.kill(process)
        else:
            walk.sleepers.append(process)


async def runs(walk: Walk) -> None:
    """Several processes run the batch, perhaps over two ledgers; or one that is stopped."""
    _disturb(walk)
    await at_once(walk, [_ledger(walk) for _ in range(walk.chance.choice((1, 1, 2, 3)))], "run")


async def wake(walk: Walk) -> None:
    """A process that has slept goes on to its end, perhaps after another one has run."""
    if walk.sleepers:
        if walk.chance.random() < 0.5:
            await run(walk)
        walk.note("processes", "woken")
        process = walk.sleepers.pop(0)
        await walk.go_on(process)
        await walk.close(process)


# Commands


async def reconcile(walk: Walk) -> None:
    """A certificate, perhaps of a list that lags."""
    _disturb(walk)
    async with walk.opened(_ledger(walk), _key(walk)) as process:
        await process.batch.reconcile()


async def retry(walk: Walk) -> None:
    """Rows whose payouts have failed are made new; those that were returned, by their numbers."""
    async with walk.opened(_ledger(walk)) as process:
        report = await process.batch.retry_failed()
        walk.note("rows", "retried", len(report.rows))
        numbers = [each.number for each in report.left if "name the row" in each.reason]
        if numbers and walk.chance.random() < 0.7:
            report = await process.batch.retry_failed(rows=numbers)
            walk.note("rows", "retried after a return", len(report.rows))
        if walk.chance.random() < 0.3:
            walk.note(
                "rows", "refused and retried", len((await process.batch.retry_failed(rejected=True)).rows)
            )


async def retries(walk: Walk) -> None:
    """Two processes retry at once, perhaps over two ledgers."""
    await at_once(walk, [_ledger(walk), _ledger(walk)], "retry_failed")


async def decide(walk: Walk) -> None:
    """An operator pauses, resumes, cancels, limits or confirms."""
    what = walk.chance.choice(
        ("pause", "resume", "resume", "resume", "cancel_rest", "limit", "limit", "confirm")
    )
    walk.note("decisions", what)
    async with walk.opened(_ledger(walk)) as process:
        if what == "limit":
            await process.batch.limit(max_rows=walk.chance.choice((None, None, 2)), max_failure_rate=1.0)
        elif what == "confirm":
            payable = (await process.batch.status()).payable
            await process.batch.confirm(payable)
            with contextlib.suppress(BulkError):
                await process.batch.confirm({**payable, "XCD": payable.get("XCD", 0) + 1})
                raise Breach("a wrong total was confirmed")
        else:
            await getattr(process.batch, what)()


async def edit(walk: Walk) -> None:
    """A row of the file is edited, or left out for good."""
    place = _ledger(walk)
    items, at = list(place.items), walk.chance.randrange(len(place.items))
    if walk.chance.random() < 0.7:
        items[at] = item(int(items[at][0][4:]), **walk.money())
    elif len(items) > 2:
        del items[at]
    async with walk.opened(place) as process:
        report = await process.batch.load(items, accept_edits=True)
    place.items = items
    walk.note("rows", "edited", report.corrected + report.cancelled)


# The service, time and ledgers


async def turn(walk: Walk) -> None:
    """The service says otherwise of some payouts that have ended."""
    turn_to(walk, walk.chance.sample(walk.payouts, len(walk.payouts) // 2), *_TURNS)


def turn_to(walk: Walk, payouts: Sequence[Any], *statuses: str) -> None:
    """These payouts, as far as they have ended, get other statuses."""
    walk.turned()
    for payout in payouts:
        if walk.now - payout.created_at > 6.0:  # each ends after five seconds
            payout.status = walk.chance.choice(statuses)
            completed, failed = _TURNS[payout.status]
            payout.completed_at = payout.created_at if completed else None
            payout.failed_at = payout.created_at if failed else None
            walk.note("turns", payout.status)
    walk.turned()


async def wait(walk: Walk) -> None:
    """Minutes or days pass; the ledgers' clock is set a day ahead, or back."""
    seconds = walk.chance.choice((60.0, 1_000.0, 5_000.0, _DAY, 3 * _DAY))
    if walk.chance.random() < 0.7:
        walk.note("waits", f"{seconds:,.0f} s")
        walk.pass_time(seconds)
    else:
        walk.shift(ahead := walk.chance.choice((0.0, _DAY, -_DAY)))
        walk.note("clock", f"{ahead:+,.0f} s")


async def copies(walk: Walk) -> None:
    """A copy of a ledger is kept; later, perhaps, it is put back."""
    place = _ledger(walk)
    if place.copies and walk.chance.random() < 0.5:
        content, place.items = walk.chance.choice(place.copies)
        walk.replace(place, content)
        walk.note("ledgers", "an older copy")
    elif place.rows:
        place.copy()


async def lose(walk: Walk) -> None:
    """A ledger is lost; the file, perhaps as it was edited for another ledger, is loaded into a new one."""
    place = _ledger(walk)
    walk.replace(place, None)
    place.copies, place.items = [], _ledger(walk).items
    walk.note("ledgers", "lost")


async def another_ledger(walk: Walk) -> None:
    """Somebody else begins with the same file over a ledger of his own; later one of both goes."""
    place, *others = walk.places
    if not others:
        walk.add_ledger(place.batch_id, place.items)
        walk.note("ledgers", "a second one")
    elif walk.chance.random() < 0.5:
        walk.places.pop(walk.chance.randrange(2))


async def strangers_key(walk: Walk) -> None:
    """A key of another project is refused by a ledger that has sent anything; a lost one cannot know."""
    place = _ledger(walk)
    if any(row["first_sent"] for row in place.rows):
        async with walk.opened(place, "a stranger's") as process:
            if await walk.do(process, process.batch.run(patience=0.0)) is not None:
                raise Breach("a key of another project was let in")


# The outbox


async def order(walk: Walk) -> None:
    """An app asks for payouts in its own transactions: some are undone, some are for live keys."""
    async with walk.opened(walk.orders) as process:
        for _ in range(walk.chance.randint(1, 3)):
            walk.ordered += 1
            kind = walk.chance.choice(("order", "order", "undone", "live"))
            walk.note("orders", kind)
            with contextlib.suppress(BulkError):
                await process.batch._ledger.database.write(_order(walk, kind))
            if kind == "order":
                walk.committed.add(f"order-{walk.ordered}")


def _order(walk: Walk, kind: str) -> Any:
    outbox = Outbox("orders", environment="live" if kind == "live" else "sandbox")
    wallet, money = Instrument.phone("+2290190112233", "BJ"), walk.money()
    names: Any = {"reference": f"{kind}-{walk.ordered}", "description": f"order {walk.ordered % 40}", **money}

    async def work(connection: Any) -> None:
        await outbox.add(connection, method="mtn_bj", instrument=wallet, **names)
        if kind == "undone":
            raise BulkError("the app has changed its mind")

    return work


async def orders(walk: Walk) -> None:
    """One or two processes pay the outbox, for a while; or orders that are over are forgotten."""
    if walk.committed and walk.chance.random() < 0.7:
        _disturb(walk)
        await at_once(walk, [walk.orders] * walk.chance.choice((1, 2)), "run")
    elif any(row["first_sent"] for row in walk.orders.rows):
        async with walk.opened(walk.orders) as process:
            await process.batch.facts()
            before = datetime.fromtimestamp(walk.ledger_now - 3_600.0, UTC)
            walk.note("rows", "forgotten", await process.batch.forget(before))


_WEIGHTS: Final[Sequence[tuple[Step, int]]] = (
    *((run, 5), (runs, 8), (wake, 2), (reconcile, 1), (retry, 3), (retries, 2), (decide, 3), (edit, 2)),
    *((turn, 3), (wait, 4), (copies, 3), (lose, 1), (another_ledger, 1), (strangers_key, 1)),
    *((order, 2), (orders, 3)),
)
STEPS: Final[Sequence[tuple[str, Step]]] = [
    (step.__name__.replace("_", " "), step) for step, weight in _WEIGHTS for _ in range(weight)
]
