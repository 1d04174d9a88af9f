"""One batch, its service and its operator: plays steps, and judges after each by the service's books."""

from __future__ import annotations

import json
import random
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import attrs

from payments_async import AsyncPayments, RateLimits
from payments_async.bulk import AnyBatch, Certificate
from payments_async.bulk._protocol.identifiers import parted
from payments_async.bulk._protocol.row_state import RowState
from payments_async.errors import PaymentsError
from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from payments_async.sandbox._common.profiles import OBSERVED
from tests.support.batches import Item, in_process, item, ledger_rows, name_of, open_at, runtime_of
from tests.support.databases import in_step
from tests.support.walks.lists import ALIVE, FAITHFUL, TRICKS, HostileList

STEPS: Final = 16
ROWS: Final = (4, 6, 6, 9, 14)
PAGES: Final = (1, 2, 2, 3, 5, 100)
"""Payouts on a page of an honest list."""
PARTS: Final = ("not_started", "cancelled", "rejected", "under_way", "in_doubt", "conflict")
CREATED: Final = ("not_final", "arrived", "failed", "returned")
Step = Callable[["Walk"], Awaitable[None]]
_LIMITS: Final = RateLimits(writes=60_000).share(1)
"""Of the client's own: a database would count by its own clock."""


class Breach(Exception):
    """A walk went wrong."""


@attrs.define
class Walk:
    """One batch, from its loading to the last step."""

    place: Path | str
    chance: random.Random
    seen: Counter[tuple[str, str]]
    """{(group, event): how often}."""
    service: Sandbox = attrs.field(init=False)
    lists: HostileList = attrs.field(init=False)
    client: AsyncPayments = attrs.field(init=False)
    batch: AnyBatch | None = None
    items: list[Item] = attrs.field(factory=list)
    made: int = 0
    """Payouts that were looked at when they were made."""
    ended: set[str] = attrs.field(factory=set)
    """Payouts that have ended by themselves: the sandbox does nothing more with them."""
    _alive: set[str] = attrs.field(factory=set)
    _is_judged: bool = True
    """True if an honest reading has shown all that the service knows, and no reading was spoilt since."""

    def note(self, group: str, event: str, count: int = 1) -> None:
        """Count an event."""
        self.seen[group, event] += count

    async def play(self, steps: Sequence[tuple[str, Step]]) -> None:
        """All of it. Raises Breach."""
        profile = attrs.evolve(OBSERVED, max_page_size=self.chance.choice(PAGES), oversized_page="clamp")
        self.service = Sandbox(profile=profile, clock=VirtualClock.frozen(), limits=SandboxLimits.off())
        rows = self.chance.choice(ROWS)
        self.items = [item(number, amount=self.amount()) for number in range(1, rows + 1)]
        self.note("sizes", f"{rows} rows")
        self.note("sizes", f"{profile.max_page_size} payouts a page")
        seed, chance = self.chance.randrange(1 << 30), random.Random(self.chance.random())
        async with in_process(self.service, seed, limits=_LIMITS) as client:
            self.client = client
            self.lists = HostileList(client._pipeline.transport, self.service, chance)
            client._pipeline.transport = self.lists
            self.service.clock.advance(60.0)
            with in_step(runtime_of(client)):
                await self.open()
                try:
                    for _ in range(STEPS):
                        await self._go_on(*self.chance.choice(steps))
                finally:
                    await self.close()

    async def _go_on(self, name: str, step: Step) -> None:
        self.note("steps", name)
        self.service.clear_rules()
        self.lists.remember()
        self.lists.plan(
            self.chance.choice(TRICKS) if self._is_judged and self.chance.random() < 0.4 else None
        )
        try:
            await step(self)
        except PaymentsError as error:
            self.note("errors of a command", type(error).__name__)
        self.service.clear_rules()
        if self.lists.spoilt:
            self.note("lists", str(self.lists.trick), self.lists.spoilt)
        self._is_judged = not self.lists.spoilt
        self._look_at_new()
        self.lists.plan(None)
        if name != "turn" or self.chance.random() < 0.3:  # else the next command is the first to see it
            await self.judge(await self.opened.reconcile())
            self._is_judged, self.lists.living = True, frozenset(self._alive)

    # The batch

    @property
    def opened(self) -> AnyBatch:
        """The batch, open."""
        assert self.batch is not None
        return self.batch

    async def open(self) -> None:
        """Open the batch, and load the file."""
        self.batch = await open_at(self.place, self.client).__aenter__()
        await self.load()

    async def load(self, *, accept_edits: bool = False) -> Any:
        """Load the file."""
        batch_id = name_of(self.place) or "walk"
        return await self.opened.load(self.items, batch_id=batch_id, accept_edits=accept_edits)

    async def close(self) -> None:
        """Leave the batch."""
        if self.batch is not None:
            await self.batch.__aexit__(None, None, None)
            self.batch = None

    @asynccontextmanager
    async def another_reader(self) -> AsyncIterator[AnyBatch]:
        """The batch of a database, open in another process, so to speak, whose lists are honest."""
        runtime = runtime_of(self.client)
        async with (
            in_process(self.service, runtime=runtime, limits=_LIMITS) as client,
            open_at(self.place, client) as batch,
        ):
            yield batch

    def amount(self) -> Decimal:
        """Any amount."""
        return Decimal(self.chance.randint(100, 9_999)) / 100

    # The service's books

    @property
    def payouts(self) -> list[Any]:
        """The service's own records, oldest first."""
        return list(self.service._core.world.tenants[self.service.api_key].payouts)

    def turned(self) -> None:
        """The service says otherwise of some payouts."""
        self._alive = {each.id for each in self.payouts if each.status in ALIVE}

    def _look_at_new(self) -> None:
        """No payout of a row was made while another of that row lived."""
        records = self.payouts
        for place in range(self.made, len(records)):
            stem, generation = parted(records[place].reference)
            beside = [each for each in records[:place] if parted(each.reference)[0] == stem]
            self.note("payouts", f"of generation {generation}" if generation < 3 else "of a later one")
            if lives := {each.id for each in beside} & self._alive:
                hidden = ", which the list had not shown" if lives <= self.lists.hidden else ""
                raise Breach(f"{records[place].reference} was made while another of its row lived{hidden}")
        self.made = len(records)
        self.turned()

    # The judge

    async def judge(self, certificate: Certificate) -> None:
        """What everybody is told of the money after an honest reading equals the books."""
        told = certificate.report
        for each in (self.opened.status(), (await self.opened.snapshot()).report):
            if (each.counts, each.sums, each.exit_code) != (told.counts, told.sums, told.exit_code):
                raise Breach("status and certificate say different things")
        self._compare_sums(certificate)
        await self._compare_rows()
        await self._compare_export(told.sums["XOF"])
        if findings := (await self.opened.check()).findings:
            raise Breach(f"the ledger's own check: {findings[:3]}")

    async def judge_spoilt(self, certificate: Certificate) -> None:
        """What a certificate may say of a list that was spoilt."""
        word = "agrees" if certificate.agrees else "does not agree"
        self.note("certificates of spoilt lists", f"{self.lists.trick}: {word}")
        if self.lists.trick in FAITHFUL and (certificate.agrees or self.lists.trick == "repeated"):
            await self.judge(certificate)
        created = [row for row in await ledger_rows(self.opened) if row.state is RowState.CREATED]
        if certificate.agrees and self.lists.content in {row.known.payout_id for row in created}:
            raise Breach("the certificate agrees with a payout of other content")

    def _compare_sums(self, certificate: Certificate) -> None:
        counts, sums = certificate.report.counts, certificate.report.sums["XOF"]
        for word, number in counts.items():
            self.note("stops with a row", word, bool(number))
        said = sum(sums[word] for word in ("not_final", "arrived", "moved_in_conflict", "in_excess"))
        booked = sum((each.amount for each in self.payouts if each.status in ALIVE), Decimal(0))
        if not said <= booked <= said + sums["in_doubt"]:
            raise Breach(f"books {booked}, said {said}, in doubt {sums['in_doubt']}")
        if sums["asked"] != sum(sums[word] for word in (*PARTS, "created")):
            raise Breach("what was asked is not the sum of its parts")
        wrong = counts["moved_in_conflict"] or counts["in_excess"] or counts["conflict"] or counts["in_doubt"]
        if certificate.is_clean and (wrong or counts["not_started"]):
            raise Breach("a clean certificate over what is not")
        if certificate.is_settled and any(each.status in ("pending", "processing") for each in self.payouts):
            raise Breach("settled, and the books have a payout on its way")
        if certificate.report.complete and certificate.report.exit_code == 0 and booked != sums["created"]:
            raise Breach("exit code 0, and the books have another sum")

    async def _compare_rows(self) -> None:
        for row in await ledger_rows(self.opened):
            if row.state is not RowState.CREATED:
                continue
            own = [each for each in self.payouts if parted(each.reference)[0] == parted(row.reference)[0]]
            statuses = {each.status for each in own if each.amount == row.amount}
            wanted = (
                "arrived"
                if "completed" in statuses
                else "not_final"
                if statuses & {"pending", "processing"}
                else ("failed", "returned")
            )
            if row.outcome not in wanted:
                raise Breach(f"row {row.number} is {row.outcome}, and the books have {sorted(statuses)}")

    async def _compare_export(self, said: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "out.json"
            await self.opened.export(path)
            rows = json.loads(path.read_text())
        sums = Counter[str]()
        for row in rows:
            sums[row["outcome"]] += int(Decimal(row["amount"]) * 100)
        for word in (*PARTS, *CREATED):
            if sums[word] != int(said[word] * 100):
                raise Breach(f"the export has {sums[word]} hundredths {word}")
