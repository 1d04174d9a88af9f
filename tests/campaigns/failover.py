"""A database fails over to a standby that lacks its last commits, while workers pay and an operator commands.

    python -m tests.campaigns.failover 300 12 [--seed 1]

Each round has a primary, a standby, three workers and a service that loses answers, refuses rows by mood and
carries out some requests that were given up seconds later. At random the standby is parted from the primary;
then rows are sent, cancelled and retried, and the primary dies. In every fourth round the standby is
synchronous. Waits of minutes take seconds here. The service's books and the ledger's chains decide: no intent
before the loss is noticed, nothing paid twice, no verdict false. Exits 1 on a breach.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import time
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any, Final

import attrs
from multidict import CIMultiDict

from payments_async import AsyncPayments
from payments_async._http.types import HTTPRequest, HTTPResponse, TransportError, withheld
from payments_async.bulk import RecoveryReport, RowState, SharedBatch
from payments_async.bulk._engine import resolver, sender
from payments_async.bulk._leasing import batch_closing, chunk_run
from payments_async.bulk._protocol import attempts, clocks, machines, rows_in_doubt
from payments_async.bulk._protocol.identifiers import parted
from payments_async.bulk._protocol.records import LedgerRow
from payments_async.bulk.ledger_errors import LedgerError, LedgerOfAnotherInput
from payments_async.sandbox import Answer, Sandbox, SandboxLimits, VirtualClock
from payments_async.sandbox._common.values import Request
from payments_async.testing import IN_PROCESS, InProcessTransport
from tests.campaigns.kills import told
from tests.support.batches import Item, items, ledger_rows
from tests.support.failover import ServerPair, server_pair
from tests.support.fleet import Fleet, shorten
from tests.support.scripted import altered

WORKERS: Final = 3
PATIENCE: Final = 90.0
"""Seconds after which a round that comes to no end is a breach."""
_ABANDONED, _SETTLES, _INTENT = 6.0, 0.5, 3.0
_HASTE: Final[tuple[tuple[Any, str, float], ...]] = (
    *((module, "INTENT_LIFETIME", _INTENT) for module in (clocks, attempts, sender)),
    (sender, "_MARGIN", 0.3),
    (sender, "_OUTAGE", 0.5),
    (rows_in_doubt, "ABANDONED_AFTER", _ABANDONED),
    (rows_in_doubt, "LIST_SETTLES", _SETTLES),
    (machines, "PROOF_AFTER", _INTENT + _ABANDONED + _SETTLES),
    (resolver, "_SCAN_AGAIN", 0.5),
    (chunk_run, "LOOK_AGAIN", 1.0),
    (batch_closing, "_AGAIN", 0.5),
)
_INTENTS: Final = (
    "SELECT count(*) FROM payments.entries e WHERE e.kind IN ('lease', 'claim', 'resend') AND e.wall > %s "
    "AND e.wall < (SELECT min(c.wall) FROM payments.entries c WHERE c.kind = 'recover' "
    "AND c.changes LIKE '%%\"confirmed\": true%%')"
)


class MoodySandbox(Sandbox):
    """Refuses good rows at times, and takes them later. Some payouts fail in the end, once."""

    def __init__(self, chance: random.Random, seed: int) -> None:
        """`seed`: each makes another key, since a key's limit stays in the database where it was first."""
        super().__init__(clock=VirtualClock.frozen(time.time()), limits=SandboxLimits.off(), seed=seed)
        self._chance = chance
        self.mood = 0.04
        """The share of good rows that it refuses."""

    def _answer(self, request: Request) -> Answer:
        self.clear_rules()
        if request.method == "POST":
            if self._chance.random() < self.mood:
                self.on("payouts.create").respond("http:422")
            elif self._chance.random() < 0.06 and b"~g" not in request.body:
                self.on("payouts.create").outcome("fail:RECIPIENT_ERROR")
        return super()._answer(request)


@attrs.define
class Weather:
    """What happens to requests on all lines."""

    late: float = 0.06
    """The share that is carried out after it was given up."""
    delivered: list[asyncio.Task[Any]] = attrs.field(factory=list)


@attrs.define
class UnreliableLine:
    """A transport that takes its time, loses answers, and delivers some requests after they were given up.

    Its answers have the true time, though the sandbox's clock is set forward so that payouts come to an end.
    """

    _transport: InProcessTransport
    _chance: random.Random
    _weather: Weather

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        """Pass a request to the sandbox, or seem to lose it."""
        await asyncio.sleep(self._chance.uniform(0.01, 0.15))
        fate = self._chance.random() if request.method == "POST" else 1.0
        if fate < self._weather.late:
            if request.is_withheld:
                raise withheld()
            request.sent = True
            self._weather.delivered.append(asyncio.ensure_future(self._deliver(request)))
            raise TransportError("reset", "the request is on its way for longer than anybody waits")
        answer = await self._transport.send(request)
        if fate < self._weather.late + 0.06:
            raise TransportError("reset", "the answer was lost")
        date = formatdate(time.time(), usegmt=True)
        return altered(answer, headers=CIMultiDict({**answer.headers, "Date": date}))

    async def _deliver(self, request: HTTPRequest) -> None:
        given_up = time.monotonic()
        await asyncio.sleep(0.95 * _ABANDONED * self._chance.random() ** 0.5)
        if time.monotonic() - given_up < _ABANDONED:  # a busy machine may keep it longer
            await self._transport.send(altered(request, may_send=None))

    async def aclose(self) -> None:
        """Nothing to close."""


@attrs.define
class Report:
    """What a campaign came to."""

    rounds: int = 0
    lost: int = 0
    """Rows whose intents or outcomes were lost."""
    late: int = 0
    missing: int = 0
    """Commands that were lost."""
    problems: list[str] = attrs.field(factory=list)

    def __str__(self) -> str:
        return (
            f"{self.rounds} rounds; {self.lost} rows settled from the list, "
            f"{self.missing} commands lost, {self.late} requests carried out late"
        )


@attrs.define
class Operator:
    """Cancels and retries rows, and remembers what was asked for."""

    batch: SharedBatch
    chance: random.Random
    input: list[Item]
    given: list[str] = attrs.field(factory=list)

    async def command(self) -> None:
        """Cancel some of the last rows, or retry what has failed."""
        if self.chance.random() < 0.5:
            fewer = self.input[: -self.chance.randrange(1, 6)]
            with contextlib.suppress(LedgerOfAnotherInput):  # they are being sent already
                await self.batch.load(fewer, accept_edits=True)
                self.input = fewer
                self.given.append("cancel")
        else:
            await self.batch.follow(0.5)
            if (await self.batch.retry_failed()).rows:
                self.given.append("retry")

    def missing(self, report: RecoveryReport) -> int:
        """How many commands the ledger lacks; lost retries may have been made good from the list."""
        known = [command.kind for command in report.commands]
        return sum(max(0, self.given.count(kind) - known.count(kind)) for kind in ("cancel", "retry"))

    async def give_again(self) -> None:
        """Repeat what was lost."""
        await self.batch.load(self.input, accept_edits=True)
        await self.batch.follow(0.5)
        await self.batch.retry_failed()


@attrs.define
class Round:
    """One batch, from its import to its certificate."""

    pair: ServerPair
    sandbox: MoodySandbox
    fleet: Fleet
    chance: random.Random
    report: Report
    synchronous: bool
    folder: str
    lost_commands: int
    """Commands between the parting and the fail-over. With none the operator confirms at once."""
    weather: Weather = attrs.field(factory=Weather)
    problems: list[str] = attrs.field(factory=list)
    _workers: list[asyncio.Task[None]] = attrs.field(factory=list)

    async def play(self, rows: int) -> None:
        """All of it."""
        batch = SharedBatch.open(self.fleet.url, self._client(), batch_id="june")
        async with batch:
            operator = Operator(batch, self.chance, items(rows))
            await batch.load(operator.input)
            await batch.plan(lossy_standby=True)
            self._workers += [asyncio.ensure_future(self._supervise()) for _ in range(WORKERS)]
            await self._until_left(batch, self.chance.uniform(0.5, 0.9) * rows)
            await operator.command()
            if not self.synchronous:
                await asyncio.to_thread(self.pair.part)
            for _ in range(self.lost_commands):
                await operator.command()
            # what is given up now is carried out after the fail-over, when good rows are refused most
            self.weather.late, self.sandbox.mood = 0.4, 0.3
            await asyncio.sleep(self.chance.uniform(0.0, 1.0))
            died = time.time()
            await asyncio.to_thread(self.pair.fail_over)
            self.weather.late = 0.06
            if not self.synchronous:
                await self._recover(operator, died)
            await asyncio.sleep(1.0)
            self.sandbox.mood = 0.04
            await self._until_left(batch, 0)
            await self._end(operator)

    async def stop(self) -> None:
        """Cut all workers off."""
        for each in self._workers:
            each.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)

    async def _supervise(self) -> None:
        """Start a worker, and another one whenever it ends, as it does when its database is away for long."""
        while True:
            options = {"until_idle": False, "concurrency": 6, "folder": self.folder}
            worker = await self.fleet.worker(client=self._client(), **options)
            with contextlib.suppress(LedgerError):
                await worker.run()
            await asyncio.sleep(0.2)

    def _client(self) -> AsyncPayments:
        line = UnreliableLine(InProcessTransport(self.sandbox), self.chance, self.weather)
        return AsyncPayments(api_key=self.sandbox.api_key, base_url=IN_PROCESS, transport=line, max_retries=5)

    async def _until_left(self, batch: SharedBatch, rows: float) -> None:
        """Wait until so few rows are open."""
        while True:
            self.sandbox.advance(20.0)
            try:
                counts = (await batch.refresh()).counts
            except LedgerError:
                continue
            if counts["not_started"] + counts["under_way"] + counts["in_doubt"] <= rows:
                return
            await asyncio.sleep(0.05)

    async def _recover(self, operator: Operator, died: float) -> None:
        """Wait until a worker has noticed, then recover as an operator would."""
        batch = operator.batch
        while "suspect" not in str((await batch.refresh()).stopped):  # noqa: ASYNC110 - of other workers
            await asyncio.sleep(0.02)
        report = await batch.recover()
        self.report.lost += report.settled
        self.report.missing += operator.missing(report)
        if self.lost_commands:
            while report.wait:
                await asyncio.sleep(report.wait)
                report = await batch.recover()
            await operator.give_again()
        await batch.recover(commands_complete=True)
        (((early,),),) = [await asyncio.to_thread(self.fleet.query, _INTENTS, died)]
        if early:
            self.problems.append(f"{early} leases or intents between the fail-over and its recovery")

    async def _end(self, operator: Operator) -> None:
        """Prove what was lost, certify, and compare with the books."""
        batch = operator.batch
        report = await batch.recover()
        while report.wait:
            await asyncio.sleep(report.wait)
            report = await batch.recover()
        if self.synchronous and report.reason is not None:
            self.problems.append(f"a synchronous standby, and yet: {report.reason}")
        await asyncio.gather(*self.weather.delivered)
        self.report.late += len(self.weather.delivered)
        certificate = await batch.reconcile()
        self.problems += certificate.findings
        rows, wanted = await ledger_rows(batch), {key for key, _ in operator.input}
        self.problems += breaches(self.sandbox, rows)
        for row in rows:
            if (row.state is RowState.CANCELLED) is (row.row_key in wanted):
                self.problems.append(f"row {row.number} is {row.state}, whatever the operator said")


def breaches(sandbox: Sandbox, rows: list[LedgerRow]) -> Iterator[str]:
    """What the books say against a ledger."""
    entries = sandbox.books.payouts()
    if len({entry.reference for entry in entries}) != len(entries):
        yield "a reference was used twice"
    paid: dict[str, list[Any]] = {}
    for entry in entries:
        if entry.status != "failed":
            paid.setdefault(parted(str(entry.reference))[0], []).append(entry)
    for row in rows:
        payouts = paid.get(parted(row.reference)[0], [])
        if len(payouts) > 1:
            yield f"row {row.number} was paid {len(payouts)} times"
        if row.state in (RowState.REJECTED, RowState.CANCELLED) and payouts:
            yield f"row {row.number} is {row.state}, and was paid"
        if row.state is RowState.CREATED and row.known.payout_id not in {entry.id for entry in entries}:
            yield f"row {row.number} is CREATED, and the books have no such payout"
        if row.state is RowState.CONFLICT:
            yield f"row {row.number} is in conflict, and nobody else uses its reference"


def run(rows: int, rounds: int, *, seed: int = 1) -> Report:
    """So many rounds, each with servers of its own."""
    report = Report()
    for owner, name, value in _HASTE:
        setattr(owner, name, value)
    shorten(setattr)
    for number in range(rounds):
        chance = random.Random(f"{seed}:{number}")
        found = asyncio.run(_round(chance, rows, report, number))
        report.rounds += 1
        report.problems += [f"round {number}: {problem}" for problem in found]
        print("\n".join([f"round {number}: {len(found)} breaches", *found]), flush=True)
    return report


async def _round(chance: random.Random, rows: int, report: Report, number: int) -> list[str]:
    sandbox, synchronous = MoodySandbox(random.Random(chance.random()), number), number % 4 == 3
    lost_commands = chance.randrange(1, 3) if number % 2 else 0
    with server_pair() as pair:
        if synchronous:
            pair.synchronise()
        url = pair.url(pair.primary.make_database())
        async with Fleet(url, sandbox) as fleet:
            folder = str(pair.primary.folder)
            played = Round(pair, sandbox, fleet, chance, report, synchronous, folder, lost_commands)
            try:
                await asyncio.wait_for(played.play(rows), PATIENCE)
            except LedgerOfAnotherInput as error:
                played.problems.append(str(error))
            except TimeoutError:
                played.problems.append(f"no end after {PATIENCE:g} s")
            finally:
                await played.stop()
    return played.problems


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.failover")
    parser.add_argument("rows", type=int, help="rows of a batch")
    parser.add_argument("rounds", type=int, help="batches")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.perf_counter()
    told(run(options.rows, options.rounds, seed=options.seed), began)


if __name__ == "__main__":
    main()
