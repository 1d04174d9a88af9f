"""The paths every call goes through, each done so many times, under valgrind (`benchmarks.instructions`).

Time stands but for a tenth of a millisecond a look, chance is a constant, the network is a stub: two runs do
the same. Outside valgrind it shows microseconds of CPU instead, and suits a profiler.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from datetime import datetime
from functools import partial
from typing import Any

from benchmarks import bodies, inside
from benchmarks.bodies import ARGUMENTS, KEY, UNPACED, arguments, call_arguments
from benchmarks.counting import Counter
from benchmarks.wire import BODY, PAYOUT_ANSWER, PAYOUT_ID, REFERENCE
from payments_async import AsyncPayments, Guard, PayoutRequest, UnprocessableError
from payments_async._http.types import HTTPRequest, HTTPResponse
from payments_async._request.prepare import writing
from payments_async._runtime import Timer
from payments_async.bulk import PayoutBatch
from payments_async.params import operations
from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from payments_sync import Payments

Path = Callable[[], object]
WARM = 60
"""Rounds before anything is counted: CPython 3.11 specialises code while it runs."""


class Standing:
    """A runtime in which every look at the clock is a tenth of a millisecond after the last."""

    def __init__(self) -> None:
        self._looks = 0

    def monotonic(self) -> float:
        """Seconds."""
        self._looks += 1
        return self._looks * 1e-4

    def boottime(self) -> float:
        """The same."""
        return self.monotonic()

    def now(self) -> datetime:
        """Always the same day."""
        return inside.now()

    def random(self) -> float:
        """No chance."""
        return 0.5

    def token(self, size: int) -> bytes:
        """The same bytes."""
        return bytes(size)

    async def sleep(self, seconds: float) -> None:
        """Nobody waits here."""
        raise AssertionError("a hot path waits for nothing")

    def call_later(self, delay: float, callback: Callable[[], object], *, background: bool = False) -> Timer:
        """Nobody waits here."""
        raise AssertionError("a hot path starts no timer")


def done(coroutine: Coroutine[Any, Any, Any]) -> object:
    """Run what never has to wait, without a loop."""
    try:
        coroutine.send(None)
    except StopIteration as stopped:
        return stopped.value
    raise AssertionError("a hot path waited")


def refused(client: AsyncPayments) -> None:
    """A creation whose answer is a 422."""
    try:
        done(client.payouts.create(**call_arguments()))
    except UnprocessableError:
        return
    raise AssertionError("not refused")


class Echo(inside.Stub):
    """A transport that answers each creation with a payout as it was asked for, and the list with none."""

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        request.sent = True
        if request.body is None:
            return HTTPResponse(200, inside.HEADERS, b'{"data":[],"pagination":{"has_more_pages":false}}')
        reference = request.body.partition(b'"reference":"')[2].partition(b'"')[0]
        body = PAYOUT_ANSWER.replace(PAYOUT_ID.encode(), b"po_" + reference)
        return HTTPResponse(201, inside.HEADERS, body.replace(REFERENCE.encode(), reference))


async def pay_batch(folder: str) -> None:
    """A thousand rows, loaded and paid, with a ledger on the disk; the list, which is empty, denies them."""
    rows = [PayoutRequest(**{**ARGUMENTS, "reference": f"row-{number}"}) for number in range(1_000)]
    client = AsyncPayments(KEY, base_url=inside.URL, transport=Echo(inside.CREATED), limits=UNPACED)
    async with client, PayoutBatch.open(f"{folder}/batch.ledger", client, batch_id="bench") as batch:
        await batch.load(rows)
        assert (await batch.run()).counts["created"] == len(rows)


def batch() -> None:
    """The same, on a loop of its own."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(pay_batch(folder))


def creating() -> Path:
    """A creation at the sandbox, HTTP aside, and the end of an earlier one; each with a key of its own."""
    sandbox = Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits(writes=60_000_000, reads=10_000_000))
    payout = {
        name: value for name, value in BODY.items() if name != "webhook_url"
    }  # deliveries are other work
    known = {"Host": "127.0.0.1:7788", "Authorization": f"Bearer {sandbox.api_key}"}
    head = {**known, "Content-Type": "application/json", "Content-Length": "400"}
    prepared = [
        (
            {**head, "X-Idempotency-Key": f"key-{number:08d}"},
            json.dumps({**payout, "reference": f"r-{number}"}).encode(),
        )
        for number in range(500)
    ]
    each = itertools.cycle(prepared)

    def create() -> None:
        made = sandbox.handle("POST", "/v1/payouts", *next(each))
        assert "X-Idempotent-Replayed" not in made.headers
        sandbox.advance(0.1)

    return create


def stubbed(
    new_client: Callable[..., Any], answer: HTTPResponse = inside.CREATED, guard: Guard | None = None
) -> Any:
    """A client whose network is taken out."""
    stub, runtime = inside.Stub(answer), Standing()
    return new_client(KEY, base_url=inside.URL, transport=stub, limits=UNPACED, runtime=runtime, guard=guard)


def paths() -> dict[str, tuple[Path, int]]:
    """Each path, and how often it is done."""
    client, blocking = stubbed(AsyncPayments), stubbed(Payments)
    refusing = stubbed(AsyncPayments, inside.REFUSED)
    call = writing(client.payouts.prepare(**ARGUMENTS), {}, operation=operations.PAYOUTS_CREATE)
    rules = {"most": {"GHS": "5000"}, "methods": ["mtn_momo_gh"], "countries": ["GH"]}
    sums = [("GHS", 10**9, "hour"), ("GHS", 10**10, "day")]
    guarded = stubbed(AsyncPayments, guard=Guard(**rules))
    summed = stubbed(AsyncPayments, guard=Guard(**rules, sums=sums, budgets="process"))
    gate, clock = inside.gate(), Standing().monotonic

    def through_gate() -> None:
        gate.release(gate.try_acquire(clock()), clock())

    return {
        "prepare": (lambda: client.payouts.prepare(**arguments()), 300),
        "prepare_mapped": (lambda: client.payouts.prepare(**bodies.mapped_arguments()), 300),
        "checkout": (lambda: client.checkouts.prepare(**bodies.checkout_arguments()), 300),
        "checkout_restricted": (lambda: client.checkouts.prepare(**bodies.restricted_arguments()), 300),
        "read_answer": (lambda: inside.read(call, inside.CREATED), 300),
        "decode_one": (lambda: inside.read(inside.READ_ONE, inside.ONE), 300),
        "decode_unknown": (lambda: inside.read(inside.READ_ONE, inside.LATER), 300),
        "decode_bare": (lambda: inside.read(inside.READ_ONE, inside.BARE), 300),
        "decode_page": (lambda: inside.read(inside.READ_PAGE, inside.PAGE), 10),
        "gate": (through_gate, 1_000),
        "create": (lambda: done(client.payouts.create(**arguments())), 300),
        "call": (lambda: done(client.payouts.create(**call_arguments())), 300),
        "guarded": (lambda: done(guarded.payouts.create(**arguments())), 300),
        "guarded_sums": (lambda: done(summed.payouts.create(**arguments())), 300),
        "refused": (lambda: refused(refusing), 300),
        "sandbox_create": (creating(), 400),
        "blocking_create": (lambda: blocking.payouts.create(**arguments()), 300),
        "batch": (batch, 1),  # last: what is counted after threads have ended is not right
    }


def repeated(path: Path, times: int) -> None:
    """A path, so many times."""
    for _ in range(times):
        path()


def main(wanted: list[str]) -> None:
    """Count the wanted paths, or all."""
    counter = Counter()
    for name, (path, times) in paths().items():
        if wanted and name not in wanted:
            continue
        repeated(path, min(WARM, times * 2))
        gc.collect()
        gc.freeze()  # so that a collection in the middle looks at what the path made, and not at all modules
        if counter.present:
            counter.count(name, times, partial(repeated, path, times))
        else:
            started = time.process_time()
            repeated(path, times)
            print(f"{name:16} {(time.process_time() - started) / times * 1e6:8.2f} µs")


if __name__ == "__main__":
    inside.check()
    main(sys.argv[1:])
