"""Batches for tests: rows, clients whose waits take no time, and the books' verdict on a run."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from email.utils import formatdate
from pathlib import Path
from typing import Any, ClassVar

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from payments_async import AsyncPayments, Instrument, PayoutRequest
from payments_async._http.types import HTTPRequest, HTTPResponse, Transport
from payments_async._http.types import TransportError as TransportError
from payments_async.bulk import BatchReport, PayoutBatch
from payments_async.bulk._ledger.database import Database
from payments_async.bulk._ledger.readings import ReadingLost as ReadingLost
from payments_async.bulk._ledger.readings import ReadingStore as ReadingStore
from payments_async.bulk._ledger.values import UnreadableRow as UnreadableRow
from payments_async.bulk._ledger.views import all_rows
from payments_async.bulk._protocol.records import LedgerRow as LedgerRow
from payments_async.sandbox import Sandbox
from payments_async.testing import IN_PROCESS, InProcessTransport
from tests.support.jumping import EPOCH, JumpingRuntime
from tests.support.ledger_clock import ledger_time
from tests.support.scripted import altered

Item = tuple[str, PayoutRequest]
ApiKey = str | Callable[[], str]


def item(number: int, **changes: Any) -> Item:
    """A row of its own amount, known to the sandbox's rules by its description."""
    fields: dict[str, Any] = {
        "amount": Decimal(number) + Decimal("0.01"),
        "currency": "XCD",
        "method": "mtn_bj",
        "instrument": Instrument.phone("+2290190112233", "BJ"),
        "description": f"row {number}",
    }
    return f"row-{number}", PayoutRequest(**{**fields, **changes})


def items(count: int) -> list[Item]:
    return [item(number) for number in range(1, count + 1)]


class Dated:
    """A transport whose answers carry the sandbox's time as `Date`."""

    def __init__(self, transport: Transport, sandbox: Sandbox) -> None:
        self._transport, self._sandbox = transport, sandbox

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        answer = await self._transport.send(request)
        date = formatdate(self._sandbox.clock.now(), usegmt=True)
        headers = CIMultiDict(answer.headers)
        headers["Date"] = date
        return altered(answer, headers=CIMultiDictProxy(headers))

    async def aclose(self) -> None:
        await self._transport.aclose()


class Between:
    """A transport in front of a client's own, until it is removed."""

    def __init__(self, client: Any) -> None:
        self._pipeline, self._transport = client._pipeline, client._pipeline.transport
        self._pipeline.transport = self

    def remove(self) -> None:
        self._pipeline.transport = self._transport

    async def send(self, request: Any) -> Any:
        """The service's answer, unless a subclass has another one."""
        return await self._transport.send(request)

    async def aclose(self) -> None:
        await self._transport.aclose()


class Altering(Between):
    def __init__(self, client: Any, function: Callable[[Any, Any], Any]) -> None:
        super().__init__(client)
        self._function = function

    async def send(self, request: Any) -> Any:
        return self._function(request, await super().send(request))


def alter(client: Any, function: Callable[[Any, Any], Any]) -> None:
    Altering(client, function)


class SteadyRuntime(JumpingRuntime):
    """A jumping clock that stands still while a ledger is at work (`steady_ledgers`)."""

    at_work: ClassVar[set[object]] = set()
    """One mark for each piece of work of a ledger that is under way."""
    ended: ClassVar[int] = 0
    """How many pieces of such work have ended."""
    clocks: ClassVar[list[SteadyRuntime]] = []
    """Those of the test: a ledger has the time of the one that is ahead."""
    _seen = 0

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        SteadyRuntime.clocks.append(self)

    def _give_way(self, loop: asyncio.AbstractEventLoop, moves: int, turns: int) -> None:
        """Give way to nothing while the clock stands still anyway."""
        super()._give_way(loop, moves, 0 if SteadyRuntime.at_work else turns)

    def _jump(self, loop: asyncio.AbstractEventLoop, moves: int) -> None:
        if SteadyRuntime.at_work or self._seen != SteadyRuntime.ended:  # what has just ended wakes others
            self._seen = SteadyRuntime.ended
            self._armed.discard(loop)
            self._arm(loop)
        else:
            super()._jump(loop, moves)


def ledger_now() -> float:
    return max([clock.now() for clock in SteadyRuntime.clocks], default=EPOCH).timestamp()


@contextmanager
def steady_ledgers() -> Iterator[None]:
    """Let what ledgers do take no time on any `SteadyRuntime`, and let them have its time."""
    # a set of its own: work that a simulated crash left behind ends whenever its frames are collected
    at_work = SteadyRuntime.at_work = set()
    SteadyRuntime.clocks.clear()

    def counting(work: Callable[..., Any]) -> Callable[..., Any]:
        async def counted(*args: Any, **options: Any) -> Any:
            at_work.add(mark := object())
            try:
                return await work(*args, **options)
            finally:
                SteadyRuntime.ended += 1  # before the mark goes: a loop of another thread may look in between
                at_work.discard(mark)

        return counted

    with pytest.MonkeyPatch.context() as patch, ledger_time(ledger_now):
        for name in ("_attempt", "close"):
            patch.setattr(Database, name, counting(getattr(Database, name)))
        yield


def in_process(
    sandbox: Sandbox, seed: int = 0, api_key: ApiKey | None = None, **options: Any
) -> AsyncPayments:
    return AsyncPayments(**calling(sandbox, seed, api_key, **options))


def calling(sandbox: Sandbox, seed: int = 0, api_key: ApiKey | None = None, **options: Any) -> dict[str, Any]:
    """The options of such a client, of either surface."""
    runtime = options.pop("runtime", None) or SteadyRuntime(seed, on_jump=sandbox.advance)
    transport = Dated(InProcessTransport(sandbox, runtime=runtime), sandbox)
    found = {"api_key": api_key or sandbox.api_key, "base_url": IN_PROCESS}
    return {**found, "transport": transport, "runtime": runtime, **options}


def runtime_of(client: AsyncPayments) -> Any:
    return client._pipeline.runtime


def open_at(place: Path | str, client: AsyncPayments | None = None, **options: Any) -> PayoutBatch:
    return PayoutBatch.open(place, client, **{"batch_id": "batch", **options})


async def paid(place: Path | str, client: AsyncPayments, rows: Sequence[Item], **options: Any) -> BatchReport:
    max_rows = options.pop("max_rows", None)
    async with open_at(place, client) as batch:
        await batch.load(rows)
        await batch.limit(max_rows=max_rows)
        return await batch.run(**options)


async def run_rows(batch: Any, rows: int | Sequence[Item], *progress: Any, **options: Any) -> Any:
    """Load an open batch, of either surface, with these rows, or so many, and run it: its report."""
    await batch.load(items(rows) if isinstance(rows, int) else rows)
    return await batch.run(*progress, **options)


async def pay_stranger(sandbox: Sandbox, **changes: Any) -> str:
    """Somebody else's payout to the account of the first row, under the reference `taken`. Returns its id."""
    fields = {"amount": "1.01", "currency": "XCD", "method": "mtn_bj", "reference": "taken", **changes}
    async with in_process(sandbox, seed=1 + len(str(fields["reference"]))) as stranger:
        payout = await stranger.payouts.create(
            **{"instrument": Instrument.phone("+2290190112233", "BJ"), **fields}
        )
    return str(payout.id)


async def ledger_rows(batch: PayoutBatch) -> list[LedgerRow]:
    return [row async for row in all_rows(batch._ledger)]


def assert_true(report: BatchReport, sandbox: Sandbox, rows: Sequence[Item]) -> None:
    """What the report says is what the books say: each row once, every amount to the cent."""
    entries = sandbox.books.payouts()
    twice = [ref for ref, times in Counter(entry.reference for entry in entries).items() if times > 1]
    assert twice == []
    assert len(entries) == report.counts["created"]
    assert sorted(entry.amount for entry in entries) == sorted({entry.amount for entry in entries})
    assert {entry.amount for entry in entries} <= {request.amount for _, request in rows}
    created = report.sums["XCD"]["created"]
    assert created == sum((entry.amount for entry in entries), Decimal(0))
    assert report.is_balanced
    assert report.rows == len(rows)
