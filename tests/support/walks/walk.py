"""Batches, their service and their operators: plays steps, and judges after each by the service's books."""

from __future__ import annotations

import asyncio
import json
import math
import random
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch
from urllib.parse import urlsplit

import attrs

from payments_async import AsyncPayments, RateLimits
from payments_async._http.transport import AiohttpTransport
from payments_async._runtime import SYSTEM
from payments_async.bulk import Certificate, PayoutBatch
from payments_async.bulk._ledger.database import Database
from payments_async.bulk._page.feed import read_figures
from payments_async.bulk._page.view import batch_context
from payments_async.bulk._protocol.identifiers import parted
from payments_async.bulk._texts.ledger_address import LedgerAddress
from payments_async.bulk._texts.outcomes import NAMES
from payments_async.errors import PaymentsError
from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from payments_async.sandbox._common.profiles import OBSERVED
from tests.support.batches import Dated, Item, item
from tests.support.ledger_clock import ledger_time
from tests.support.walks.processes import Clock, Late, Line, Process, at_gates

_ROWS: Final = (3, 4, 6, 9)
ALIVE: Final = ("pending", "processing", "completed")
_CREATED: Final = ("not_final", "arrived", "failed", "returned")
_OPEN: Final = ("in_doubt", "under_way", "not_started", "conflict")
_BESIDE: Final = ("moved_in_conflict", "in_excess")
_SLACK: Final = 900.0 + 300.0 + 120.0
"""Seconds for which a reading allows a later payout, by which the list may lag, and in which it is sent."""
Step = Callable[["Walk"], Awaitable[object]]
Span = Sequence[float]
"""Its first and its last moment."""


class Breach(Exception):
    """A walk went wrong."""


@attrs.define
class Place:
    """One ledger of a batch."""

    path: Path
    batch_id: str
    items: list[Item]
    """The file's rows; none for an outbox."""
    lineage: int
    """Another one for each ledger that does not know what an earlier one knew."""
    created: dict[int, Any] = attrs.field(factory=dict)
    """{row that it has recorded as created: how it had been made new before that}."""
    copies: list[tuple[bytes, list[Item]]] = attrs.field(factory=list)

    @property
    def rows(self) -> list[Any]:
        if not self.path.exists():
            return []
        with closing(sqlite3.connect(self.path)) as connection:
            connection.row_factory = sqlite3.Row
            return connection.execute("SELECT * FROM payments_rows").fetchall()

    def copy(self) -> None:
        with closing(sqlite3.connect(self.path)) as here, closing(sqlite3.connect(":memory:")) as there:
            here.backup(there)
            self.copies.append((there.serialize(), self.items))


@attrs.define
class Walk:
    """Some batches, one after another, each from its loading to its end, and an outbox."""

    folder: Path
    chance: random.Random
    seen: Counter[tuple[str, str]]
    """{(group, event): how often}."""
    step: str = "the beginning"
    """What is done now."""
    service: Sandbox = attrs.field(init=False)
    clock: Clock = attrs.field(init=False)
    wire: Any = attrs.field(init=False)
    places: list[Place] = attrs.field(init=False)
    orders: Place = attrs.field(init=False)
    """An outbox."""
    committed: set[str] = attrs.field(factory=set)
    keys: dict[str, str] = attrs.field(factory=dict)
    sleepers: list[Process] = attrs.field(factory=list)
    faults: dict[str, list[str]] = attrs.field(factory=dict)
    """{description of a row: what happens to its next requests}."""
    lag: float = 0.0
    hidden: set[str] = attrs.field(factory=set)
    """Payouts that the list does not show now."""
    ever_hidden: set[str] = attrs.field(factory=set)
    refused: set[str] = attrs.field(factory=set)
    """References for which the service has said 422."""
    late: list[Late] = attrs.field(factory=list)
    senders: dict[str, tuple[int, float]] = attrs.field(factory=dict)
    """{reference: the lineage whose request made its payout, and when that was sent}."""
    shifts: list[tuple[float, float]] = attrs.field(factory=lambda: [(0.0, 0.0)])
    """Since when the ledgers' clock is ahead, and how much."""
    dead: dict[str, list[list[float]]] = attrs.field(factory=dict)
    """{payout: when it had failed}."""
    stems: dict[str, set[str]] = attrs.field(factory=dict)
    """{batch: the references of its rows}."""
    compiled: Any = attrs.field(factory=dict)
    """Statements, for all processes: each would take a millisecond."""
    looked_at: int = 0
    """Payouts that were looked at when they were made."""
    lineages: int = 0
    ordered: int = 0

    def note(self, group: str, event: str, count: int = 1) -> None:
        self.seen[group, event] += count

    async def play(self, steps: Sequence[tuple[str, Step]]) -> None:
        """All of it. Raises Breach."""
        profile = attrs.evolve(
            OBSERVED, max_page_size=self.chance.choice((3, 5, 100)), oversized_page="clamp"
        )
        self.service = Sandbox(profile=profile, clock=VirtualClock.frozen(), limits=SandboxLimits.off())
        own = self.service.api_key
        self.keys = {"own": own, "another of the project": f"{own}2", "a stranger's": self.service.new_key()}
        self.clock = Clock(self.chance.randrange(1 << 30), self._passed)
        gated = at_gates(Database._attempt, lambda name: self.note("transactions", name))
        with self.service, patch.object(Database, "_attempt", gated), ledger_time(lambda: self.ledger_now):
            self.wire = AiohttpTransport(runtime=SYSTEM)
            self.choose_project("own")
            self.pass_time(60.0)
            self.orders = Place(self.folder / "orders", "orders", [], -1)
            self.begin_batch()
            try:
                for number, (name, step) in enumerate(steps, start=1):
                    self.step = f"step {number}, {name}"
                    self.note("steps", name)
                    await self._go_on(step)
                self.step = "the end"
                await self._end()
            finally:
                while self.sleepers:
                    await self.kill(self.sleepers.pop())
                await self.wire.aclose()

    async def _go_on(self, step: Step) -> None:
        try:
            await step(self)
        except PaymentsError as error:
            self.note("errors of a command", type(error).__name__)
        self.service.clear_rules()
        self.faults, self.lag, self.hidden = {}, 0.0, set()
        self.look()
        if self.chance.random() < 0.5:  # else the next command is the first to see it
            certificate = await self.certify(self.chance.choice(self.places))
            if certificate is not None and certificate.is_settled and self.chance.random() < 0.5:
                await self._end_batch()
                self.begin_batch()

    # Time

    @property
    def now(self) -> float:
        return self.service.clock.now()

    @property
    def ledger_now(self) -> float:
        return self.now + self.shifts[-1][1]

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self._passed(seconds)

    def _passed(self, seconds: float) -> None:
        """Let the service's time pass; what is late comes meanwhile."""
        until = self.now + seconds
        for late in sorted(self.late, key=lambda each: each.due):
            if late.due <= until:
                self.late.remove(late)
                self.service.advance(max(late.due - self.now, 0.0))
                asked, path = late.request, urlsplit(late.request.url).path
                answer = self.service.handle(asked.method, path, asked.headers, asked.body)
                self.note("late requests", str(answer.status))
                self.note_sent(json.loads(asked.body or b"")["reference"], late.lineage, late.sent_at)
        self.service.advance(until - self.now)

    def shift(self, seconds: float) -> None:
        """Set the ledgers' clock ahead by so much of the time. Nothing late comes after that."""
        self.late.clear()
        self.shifts.append((self.now, seconds))

    # Ledgers and processes

    def begin_batch(self) -> None:
        """Another file, under a name of its own."""
        items = [item(number, **self.money()) for number in range(1, self.chance.choice(_ROWS) + 1)]
        self.places = []
        self.add_ledger(f"batch {self.lineages}", items)

    def add_ledger(self, batch_id: str, items: list[Item]) -> None:
        self.lineages += 1
        self.places.append(Place(self.folder / f"{self.lineages}.l", batch_id, items, self.lineages))

    def money(self) -> dict[str, Any]:
        """Any amount; sums of the large ones are beyond a half of what a ledger adds up."""
        units = self.chance.choice((self.chance.randint(100, 9_999), self.chance.randint(4 * 10**8, 10**9)))
        amount = Decimal(units).scaleb(-self.chance.choice((0, 1, 2, 2)))
        return {"amount": amount, "currency": self.chance.choice(("XCD", "XCD", "GHS"))}

    def choose_project(self, key: str) -> None:
        """Let a key be that of the batches' project, which has another one."""
        keys, tenants = self.keys, self.service._core.world.tenants
        keys["own"], keys[key] = keys[key], keys["own"]
        tenants[keys["another of the project"]] = tenants[keys["own"]]

    async def start(self, place: Place, key: str = "own") -> Process:
        """Start a process that has a ledger open; its file is loaded."""
        process = Process(self.clock, place.lineage, key)
        process.client = AsyncPayments(
            self.keys[key],
            base_url=self.service.base_url,
            transport=Dated(Line(self, process), self.service),
            runtime=process,
            limits=RateLimits(writes=60_000).share(1),
        )
        process.batch = PayoutBatch.open(place.path, process.client, batch_id=place.batch_id)
        with self.clock.standing():
            await process.batch.__aenter__()
            process.batch._ledger.database._engine.sync_engine._compiled_cache = self.compiled
            if place.items and not place.rows:
                await process.batch.load(place.items)
        return process

    @asynccontextmanager
    async def opened(self, place: Place, key: str = "own") -> AsyncIterator[Process]:
        process = await self.start(place, key)
        try:
            yield process
        finally:
            if not (process.is_dead or process.stopped.is_set()):
                await self.close(process)

    async def do(self, process: Process, work: Coroutine[Any, Any, Any]) -> Any:
        """What a command gives; None for an error that an operator may see, or if it is stopped meanwhile."""
        process.running = asyncio.ensure_future(work)
        return await self.go_on(process)

    async def go_on(self, process: Process) -> Any:
        """Let a process go on with what it does, until that ends or it is stopped."""
        process.go_on()
        stopped = asyncio.ensure_future(process.stopped.wait())
        await asyncio.wait([process.running, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if process.stopped.is_set():
            async with self.clock.outside():  # what has passed its gate has ended
                return None
        process.stop_after = 0
        try:
            return await process.running
        except (PaymentsError, asyncio.CancelledError) as error:
            self.note("errors of a command", type(error).__name__)
        return None

    async def kill(self, process: Process) -> None:
        """End a process that was stopped: nothing more of it happens."""
        process.is_dead = True
        process.running.cancel()
        await self.go_on(process)
        await self.close(process)

    async def close(self, process: Process) -> None:
        """End a process that does nothing."""
        with self.clock.standing():
            await process.batch.__aexit__(None, None, None)
            await process.client.aclose()

    def replace(self, place: Place, content: bytes | None) -> None:
        """Delete a ledger, or put a copy of it in its place: it does not know what was done since.

        Who sleeps with the old one open has a file that is nowhere any more.
        """
        for file in self.folder.glob(f"{place.path.name}*"):
            file.unlink()
        if content is not None:
            place.path.write_bytes(content)
            place.path.chmod(0o600)
        self.lineages += 1
        place.lineage, place.created = self.lineages, {}

    # The service's books

    @property
    def projects(self) -> list[list[Any]]:
        """The payouts of our project, and of a stranger's."""
        found = self.service._core.world.tenants
        return [found[self.keys[name]].payouts for name in ("own", "a stranger's")]

    @property
    def payouts(self) -> list[Any]:
        """The service's own records of all projects, oldest first."""
        return sorted((each for of in self.projects for each in of), key=lambda each: each.created_at)

    def note_sent(self, reference: str, lineage: int, at: float) -> None:
        """Note who made a payout first."""
        if any(each.reference == reference for each in self.payouts):
            self.senders.setdefault(reference, (lineage, at))

    def turned(self) -> None:
        for each in self.payouts:
            spans = self.dead.setdefault(each.id, [])
            is_dead = bool(spans) and spans[-1][1] == math.inf
            if is_dead and each.status in ALIVE:
                spans[-1][1] = self.now
            elif not is_dead and each.status not in ALIVE:
                spans.append([self.now if spans else each.failed_at or self.now, math.inf])

    def look(self) -> None:
        """No row was paid twice, and what the ledgers call created, rejected or cancelled is so."""
        self.turned()
        records = self.payouts
        while self.looked_at < len(records):
            self._look_at_new(records[self.looked_at], records[: self.looked_at])
            self.looked_at += 1
        for place in (*self.places, self.orders):
            for row in place.rows:
                self._look_at_row(place, row)

    def _look_at_new(self, new: Any, others: Sequence[Any]) -> None:
        """No payout of a row was made while another of that row lived, nor in two projects."""
        if all(self.projects):
            raise Breach("two projects have paid rows of one batch")
        stem, generation = parted(new.reference)
        if stem.startswith(("live", "undone")):
            raise Breach(f"{stem} was paid")
        self.note("payouts", f"of generation {generation}" if generation < 3 else "of a later one")
        spans: Iterable[Span] = self._allowed(self.senders[new.reference][1])
        for each in others:
            if parted(each.reference)[0] == stem:
                spans = [*_common(spans, self.dead[each.id])]
        if not [*spans]:
            raise Breach(f"{new.reference} was made while another of its row lived")

    def _allowed(self, at: float) -> Iterator[Span]:
        """When a reading may have been that allows a later payout then, by the ledgers' clock."""
        ends = [*(since for since, _ in self.shifts[1:]), math.inf]
        here = next(ahead for since, ahead in reversed(self.shifts) if since <= at)
        for (since, ahead), end in zip(self.shifts, ends, strict=True):
            until = at + here - ahead
            yield max(since, until - _SLACK), min(end, until + 1.0, at)

    def _look_at_row(self, place: Place, row: Any) -> None:
        state, name = row["state"], f"row {row['id']} of {place.batch_id}"
        reference = row["stem"] + (f"~g{row['generation']}" if row["generation"] else "")
        made_new = row["generation"], row["epoch"], row["reset_at"]
        lineage, _ = self.senders.get(reference, (0, 0.0))
        shown = {each.id: each.reference for each in self.payouts}
        is_hidden = reference in {shown[each] for each in self.ever_hidden}
        if state == "CREATED":
            place.created[row["id"]] = made_new
            if row["payout_id"] not in shown:
                raise Breach(f"{name} is created, and its payout is not in the books")
        elif place.created.get(row["id"]) == made_new and state != "CONFLICT":
            raise Breach(f"{name} was created, and is {state}")
        if state == "REJECTED" and reference not in self.refused:
            raise Breach(f"{name} is rejected, and the service has not refused it")
        if state in ("REJECTED", "CANCELLED") and lineage == place.lineage and not is_hidden:
            raise Breach(f"{name} is {state}, and this ledger's request has paid it")

    # What everybody is told

    async def certify(self, place: Place) -> Certificate | None:
        """Read the list, which is honest, and judge what everybody is told afterwards."""
        async with self.opened(place) as process:
            certificate: Certificate | None = await self.do(process, process.batch.reconcile())
            if certificate is not None and self.judge(place, certificate):
                await self._compare_told(place, process.batch, certificate.report)
        return certificate

    def judge(self, place: Place, certificate: Certificate) -> bool:
        """What a certificate of an honest reading says equals the books, to the last digit.

        False for one of a reading that another process has begun: statuses may have changed since.
        """
        if certificate.looked_at < self.ledger_now - 1.0:
            return False
        report = certificate.report
        for word in ("agrees", "is_clean", "is_settled"):
            self.note("certificates", word, getattr(certificate, word))
        for word, number in report.counts.items():
            self.note("stops with a row", word, bool(number))
        before = self.stems.get(place.batch_id, set()) if place.items else set()  # an outbox forgets rows
        self.stems[place.batch_id] = before | {row["stem"] for row in place.rows}
        own = [each for each in self.payouts if parted(each.reference)[0] in self.stems[place.batch_id]]
        for currency in {*report.sums, *(each.currency for each in own)}:
            sums: Any = report.sums.get(currency, Counter())
            said = sum(sums[word] for word in ("not_final", "arrived", *_BESIDE))
            alive = (each.amount for each in own if each.currency == currency and each.status in ALIVE)
            booked = sum(alive, Decimal(0))
            if said != booked or (certificate.is_settled and sums["arrived"] != booked):
                raise Breach(f"{place.batch_id}: the books have {currency} {booked}, said {dict(sums)}")
            if sums["asked"] != sum(sums[word] for word in (*_OPEN, "cancelled", "rejected", *_CREATED)):
                raise Breach("what was asked is not the sum of its parts")
        if certificate.is_clean and any(report.counts[word] for word in (*_OPEN, *_BESIDE)):
            raise Breach("a clean certificate over what is not")
        return True

    async def _compare_told(self, place: Place, batch: PayoutBatch, told: Any) -> None:
        """Status, page and export say what the certificate says, of each row what the books say."""
        page = await read_figures(batch, LedgerAddress(str(place.path)))
        for each in (await batch.status(), page.report):
            if place.items and (each.counts, each.sums, each.exit_code) != (
                told.counts,
                told.sums,
                told.exit_code,
            ):
                raise Breach("status and certificate say different things")
        context: Any = batch_context(page)
        for table in context["tables"]:
            for word, line in zip(NAMES, table["lines"], strict=True):
                said = [Decimal(text.replace(",", "")) for text in line["sums"]]
                if said != [page.report.sums[code][word] for code in table["currencies"]]:
                    raise Breach(f"the page has {said} {word}")
        path, sums = self.folder / "out.jsonl", Counter[tuple[str, str]]()
        await batch.export(path, overwrite=True)
        for row in map(json.loads, path.read_text().splitlines()):
            sums[row["currency"], row["outcome"]] += Decimal(row["amount"])  # type: ignore[assignment]
            self._compare_row(row)
        for currency, words in told.sums.items():
            for word in (*_OPEN, *_CREATED):
                if place.items and sums[currency, word] != words[word]:
                    raise Breach(f"the export has {currency} {sums[currency, word]} {word}")

    def _compare_row(self, row: Any) -> None:
        stem, amount, outcome = parted(row["reference"])[0], Decimal(row["amount"]), row["outcome"]
        own = {
            each.status
            for each in self.payouts
            if parted(each.reference)[0] == stem and each.amount == amount
        }
        is_open = own & {"pending", "processing"}
        wanted = ("arrived",) if "completed" in own else ("not_final",) if is_open else ("failed", "returned")
        if outcome in _CREATED and outcome not in wanted:
            raise Breach(f"row {row['number']} is {outcome}, and the books have {sorted(own)}")

    # The end

    async def _end(self) -> None:
        """Nothing goes wrong any more: everything is paid or refused, and nothing is lost."""
        while self.sleepers:
            await self.kill(self.sleepers.pop())
        self.shift(0.0)
        self.pass_time(1_000.0)
        await self._end_batch()
        if self.committed:
            await self._complete(self.orders)
        if lost := self.committed - {each.reference for each in self.payouts} - self.refused:
            raise Breach(f"{sorted(lost)} were asked for, and not paid")

    async def _end_batch(self) -> None:
        for place in self.places:
            async with self.opened(place) as process:
                await process.batch.resume()
                await process.batch.limit()
            await self._complete(place)

    async def _complete(self, place: Place) -> None:
        report = None
        for key in ("own", "another of the project"):  # until something was paid, only one of them can go on
            if report is None:
                async with self.opened(place, key) as process:
                    report = await self.do(process, process.batch.run(wait_final=60.0, concurrency=4))
        if report is None or not report.is_complete:
            raise Breach(f"{place.batch_id} is not complete at last: {report and report.stopped}")
        self.look()
        await self.certify(place)


def _common(some: Iterable[Span], others: Iterable[Span]) -> Iterator[Span]:
    for begin, end in some:
        for first, last in others:
            if max(begin, first) <= min(end, last):
                yield max(begin, first), min(end, last)
