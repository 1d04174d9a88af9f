"""What random steps seldom come to: each walk begins with one of these scenes, told in words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

from tests.support.walks.steps import another_ledger, at_once, lose, order, retry, turn_to
from tests.support.walks.walk import Step, Walk

_FAILS: Final = "fail:RECIPIENT_ERROR"


async def _run(walk: Walk) -> None:
    place = walk.places[0] if not walk.committed else walk.orders
    async with walk.opened(place) as process:
        await walk.do(process, process.batch.run(wait_final=30.0, patience=60.0, concurrency=1))


async def _sleep(walk: Walk, before: str, key: str = "own") -> None:
    """A process begins to run, and sleeps before that, if it ever comes."""
    process = await walk.start(walk.places[0], key)
    if before == "anything":
        process.stop_after = walk.chance.randint(2, 9)
    process.stop_before = before
    await walk.do(process, process.batch.run(patience=60.0, concurrency=1))
    if process.stopped.is_set():
        walk.sleepers.append(process)
    else:
        await walk.close(process)


async def _wake(walk: Walk, until: str = "") -> None:
    """The one that has slept longest goes on: to its end, or until it would do that."""
    if not walk.sleepers:
        return
    process = walk.sleepers.pop(0)
    process.stop_before = until
    await walk.go_on(process)
    if process.stopped.is_set():
        walk.sleepers.append(process)
    else:
        await walk.close(process)


async def _reconcile(walk: Walk) -> None:
    await walk.certify(walk.places[-1])


async def _cancel(walk: Walk) -> None:
    async with walk.opened(walk.places[0]) as process:
        await process.batch.cancel_rest()


async def _together(walk: Walk, command: str) -> None:
    await at_once(walk, [walk.places[0], *walk.places, walk.places[-1]], command)


async def _projects(walk: Walk) -> None:
    """The key of which project began it, is the walk's own."""
    if walk.projects[1] and not walk.projects[0]:
        walk.choose_project("a stranger's")


def _now(change: Callable[[Walk], object]) -> Step:
    async def changed(walk: Walk) -> None:
        change(walk)

    return changed


def _late(walk: Walk) -> None:
    walk.faults["row 1"] = ["late"]
    walk.service.on("payouts.create", description="row 1").respond("http:422", times=1)


_VERBS: Final[Mapping[str, Callable[[Walk], Awaitable[object]]]] = {
    "run": _run,
    "retry": retry,
    "reconcile": _reconcile,
    "cancel": _cancel,
    "lose": lose,
    "another ledger": another_ledger,
    "copy": _now(lambda walk: walk.places[0].copy()),
    "put back": _now(lambda walk: walk.replace(walk.places[0], walk.places[0].copies[0][0])),
    "retries": partial(_together, command="retry_failed"),
    "runs": partial(_together, command="run"),
    "sleep": partial(_sleep, before="POST"),
    "sleep answered": partial(_sleep, before="answer"),
    "sleep somewhere": partial(_sleep, before="anything"),
    "a stranger comes": partial(_sleep, before="", key="a stranger's"),
    "wake": _wake,
    "wake until it reads": partial(_wake, until="GET"),
    "one fails": _now(
        lambda walk: walk.service.on("payouts.create", description="row 1").outcome(_FAILS, times=1)
    ),
    "all fail": _now(
        lambda walk: walk.service.on("payouts.create").outcome(_FAILS, times=len(walk.places[0].items))
    ),
    "one is refused": _now(lambda walk: walk.service.on("payouts.create").respond("http:422", times=1)),
    "one comes late": _now(_late),
    "arrived": _now(lambda walk: turn_to(walk, walk.payouts[:1], "completed")),
    "open": _now(lambda walk: turn_to(walk, walk.payouts[:1], "pending")),
    "failed": _now(lambda walk: turn_to(walk, walk.payouts[:1], "failed")),
    "hidden": _now(lambda walk: walk.hidden.update(each.id for each in walk.payouts[:1])),
    "minutes": _now(lambda walk: walk.pass_time(100.0)),
    "hour": _now(lambda walk: walk.pass_time(3_600.0)),
    "days": _now(lambda walk: walk.pass_time(3 * 86_400.0)),
    "orders": order,
    "projects": _projects,
}
_SCRIPTS: Final[Mapping[str, str]] = {
    "a sleeper of an old row": "one fails, sleep, minutes, run, retry, run, wake",
    "a sleeper with an old answer": "one is refused, sleep answered, minutes, run, wake until it reads, wake",
    "a sleeper of a later row": "one fails, run, retry, sleep, arrived, hour, wake",
    "an older ledger": "one fails, run, copy, retry, run, put back, retry, run",
    "an older ledger, and failed again": "one fails, run, copy, retry, one fails, run, put back, retry, run",
    "retries at once": "one fails, run, another ledger, reconcile, retries, runs",
    "lost and cancelled": "run, lose, days, cancel, reconcile",
    "lost and alive again": "all fail, run, lose, days, run, retry, run, days, arrived, reconcile",
    "a number that was not used": "one fails, run, retry, open, reconcile, failed, reconcile, retry, run",
    "an old reading": "one fails, run, retry, reconcile, arrived, hour, run",
    "a reading without it": "one fails, run, retry, arrived, hour, hidden, run",
    "late and refused": "one comes late, run, hour",
    "two projects at once": "sleep somewhere, a stranger comes, wake, projects",
    "two projects, one of them first": "sleep answered, a stranger comes, wake",
    "orders of both environments": "orders, orders, orders, orders, run",
}


def _played(script: str) -> Step:
    async def play(walk: Walk) -> None:
        for verb in script.split(", "):
            await _VERBS[verb](walk)
            walk.look()

    return play


SCENES: Final = [(name, _played(script)) for name, script in _SCRIPTS.items()]
