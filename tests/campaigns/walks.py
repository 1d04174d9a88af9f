"""Random walks of a batch, judged by the service's books: `python -m tests.campaigns.walks 300 [40]`.

So many walks over a ledger in a file, and the second number over PostgreSQL. At each step an operator's
command, a kill, a fault of the service or a turn of a payout's status; after each, a whole reading of the
list. The judge compares certificate, status and export with the service's own books, to the last digit, and
each creation with what lived at that moment. `--ablate RULE` leaves a rule out: the walks must then go wrong.
Exits 1 when one did.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import attrs

from payments_async.bulk import Certificate, PayoutBatch
from payments_async.bulk.engine import reading
from payments_async.bulk.protocol import judge
from payments_async.bulk.protocol.generations import parted
from payments_async.bulk.protocol.matching import Match
from payments_async.bulk.protocol.row_state import RowState
from payments_async.errors import PaymentsError
from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from tests.support.batches import Item, in_process, item, ledger_rows, name_of, open_at, steady_ledgers
from tests.support.servers import postgres_server

ROWS: Final = 6
STEPS: Final = 16
ALIVE: Final = ("pending", "processing", "completed")
TURNS: Final[Mapping[str, tuple[bool, bool]]] = {
    "pending": (False, False),
    "completed": (True, False),
    "failed": (False, True),
    "cancelled": (False, True),
    "reversed": (True, True),
}
"""{status: whether it is shown with completed_at, and with failed_at}."""
_FAULTS: Final = ("lost_response", "lost_request", "http:500", "http:422", "http:409", "reset", "429:5")


class Breach(Exception):
    """A walk went wrong."""


@attrs.define
class Walk:
    """One batch, from its loading to the last step."""

    place: Path | str
    chance: random.Random
    seen: Counter[str]
    service: Sandbox = attrs.field(
        factory=lambda: Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits.off())
    )
    items: list[Item] = attrs.field(factory=list)
    batch: PayoutBatch | None = None
    made: int = 0
    """Payouts that were looked at when they were made."""
    is_disturbed: bool = False
    """Whether a status has turned since the last step began."""

    async def play(self) -> None:
        """All of it. Raises Breach."""
        self.items = [item(number, amount=_amount(self.chance)) for number in range(1, ROWS + 1)]
        async with in_process(self.service, self.chance.randrange(1 << 30)) as client:
            self.service.clock.advance(60.0)
            await self._opened(client)
            try:
                for _ in range(STEPS):
                    await self._go_on(client)
            finally:
                await self.closed()

    async def _go_on(self, client: Any) -> None:
        name, step = self.chance.choice(_STEPS)
        self.seen[name] += 1
        await self._step(step, client)
        self._look_at_new()
        if step is not _turn or self.chance.random() < 0.3:  # else the next command is the first to see it
            await self._judge()

    async def _opened(self, client: Any) -> None:
        self.batch = await open_at(self.place, client).__aenter__()
        await self.batch.load(self.items, batch_id=name_of(self.place) or "walk")

    async def closed(self) -> None:
        """Leave the batch."""
        if self.batch is not None:
            await self.batch.__aexit__(None, None, None)

    async def _step(self, step: Callable[[Walk, Any], Awaitable[None]], client: Any) -> None:
        self.service.clear_rules()
        try:
            await step(self, client)
        except PaymentsError as error:
            self.seen[f"{type(error).__name__} of a command"] += 1
        self.service.clear_rules()

    # The judge

    @property
    def payouts(self) -> list[Any]:
        """The service's own records, oldest first."""
        return list(self.service._core.world.tenants[self.service.api_key].payouts)

    def _look_at_new(self) -> None:
        """No payout of a row was made while another of that row lived."""
        records = self.payouts
        for place in range(self.made, len(records)):
            stem, _ = parted(records[place].reference)
            beside = [each for each in records[:place] if parted(each.reference)[0] == stem]
            if any(each.id in self._alive for each in beside):
                raise Breach(f"{records[place].reference} was made while another payout of its row lived")
        self.made = len(records)
        self._alive = {each.id for each in records if each.status in ALIVE}

    _alive: set[str] = attrs.field(factory=set, init=False)
    ended: set[str] = attrs.field(factory=set, init=False)
    """Payouts that have ended by themselves: the sandbox does nothing more with them."""

    async def _judge(self) -> None:
        """What everybody is told of the money equals the books."""
        assert self.batch is not None
        certificate = await self.batch.reconcile()
        report = self.batch.status()
        told = certificate.report
        if (report.counts, report.sums, report.exit_code) != (told.counts, told.sums, told.exit_code):
            raise Breach("status and certificate say different things")
        self._compare_sums(certificate)
        await self._compare_rows(certificate)
        await self._compare_export()
        if findings := (await self.batch.check()).findings:
            raise Breach(f"the ledger's own check: {findings[:3]}")

    def _compare_sums(self, certificate: Certificate) -> None:
        counts, sums = certificate.report.counts, certificate.report.sums["XOF"]
        self.seen.update(f"at a stop: {word}" for word, number in counts.items() if number)
        said = sum(sums[word] for word in ("not_final", "arrived", "moved_in_conflict", "in_excess"))
        booked = sum((each.amount for each in self.payouts if each.status in ALIVE), Decimal(0))
        if not said <= booked <= said + sums["in_doubt"]:
            raise Breach(f"books {booked}, said {said}, in doubt {sums['in_doubt']}")
        parts = ("not_started", "cancelled", "rejected", "under_way", "in_doubt", "conflict", "created")
        if sums["asked"] != sum(sums[word] for word in parts):
            raise Breach("what was asked is not the sum of its parts")
        wrong = counts["moved_in_conflict"] or counts["in_excess"] or counts["conflict"] or counts["in_doubt"]
        if certificate.is_clean and (wrong or counts["not_started"]):
            raise Breach("a clean certificate over what is not")
        if certificate.is_settled and any(each.status in ("pending", "processing") for each in self.payouts):
            raise Breach("settled, and the books have a payout on its way")
        if certificate.report.complete and certificate.report.exit_code == 0 and booked != sums["created"]:
            raise Breach("exit code 0, and the books have another sum")

    async def _compare_rows(self, certificate: Certificate) -> None:
        assert self.batch is not None
        for row in await ledger_rows(self.batch):
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

    async def _compare_export(self) -> None:
        assert self.batch is not None
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "out.json"
            await self.batch.export(path)
            rows = json.loads(path.read_text())
        sums = Counter[str]()
        for row in rows:
            sums[row["outcome"]] += int(Decimal(row["amount"]) * 100)
        for word, amount in self.batch.status().sums["XOF"].items():
            if word in sums and sums[word] != int(amount * 100):
                raise Breach(f"the export has {sums[word]} hundredths {word}")


def _amount(chance: random.Random) -> Decimal:
    return Decimal(chance.randint(100, 9_999)) / 100


# Steps


async def _run(walk: Walk, client: Any) -> None:
    assert walk.batch is not None
    for number in range(1, ROWS + 1):
        if walk.chance.random() < 0.4:
            rule = walk.service.on("payouts.create", description=f"row {number}")
            rule.outcome("fail:RECIPIENT_ERROR")
    await walk.batch.run(
        wait_final=walk.chance.choice((None, 60.0, 60.0)), patience=walk.chance.choice((0.0, 1500.0))
    )


async def _run_through_faults(walk: Walk, client: Any) -> None:
    for number in range(1, ROWS + 1):
        if walk.chance.random() < 0.6:
            rule = walk.service.on("payouts.create", description=f"row {number}")
            fault = walk.chance.choice(_FAULTS)
            rule.respond(fault, times=walk.chance.choice((1, 2, 3 if fault.startswith("429") else None)))
    if walk.chance.random() < 0.3:
        walk.service.on("payouts.list").respond("http:503", times=None, after=walk.chance.randint(1, 3))
    await _run(walk, client)


async def _kill(walk: Walk, client: Any) -> None:
    """The run is cancelled at any request; the next process finds the ledger as it is."""
    assert walk.batch is not None
    running = asyncio.ensure_future(_run_through_faults(walk, client))
    for _ in range(walk.chance.randint(1, 400)):
        await asyncio.sleep(0)
        if running.done():
            break
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError, PaymentsError):
        await running
    await walk.closed()
    await walk._opened(client)


async def _turn(walk: Walk, client: Any) -> None:
    """The service says otherwise of some payouts."""
    for payout in walk.payouts:
        if payout.status not in ("pending", "processing"):
            walk.ended.add(payout.id)
        if payout.id in walk.ended and walk.chance.random() < 0.4:
            payout.status = walk.chance.choice(list(TURNS))
            completed, failed = TURNS[payout.status]
            payout.completed_at = payout.created_at if completed else None
            payout.failed_at = payout.created_at if failed else None
            walk.seen[f"turned: {payout.status}"] += 1
    walk._alive = {each.id for each in walk.payouts if each.status in ALIVE}


async def _retry(walk: Walk, client: Any) -> None:
    assert walk.batch is not None
    report = await walk.batch.retry_failed()
    walk.seen["rows retried"] += len(report.rows)
    by_number = [left.number for left in report.left if "name the row" in left.reason]
    if by_number and walk.chance.random() < 0.7:
        walk.seen["returned rows retried"] += len((await walk.batch.retry_failed(rows=by_number)).rows)


async def _retry_rejected(walk: Walk, client: Any) -> None:
    assert walk.batch is not None
    walk.seen["rejected rows retried"] += len((await walk.batch.retry_failed(rejected=True)).rows)


async def _edit(walk: Walk, client: Any) -> None:
    """A row of the file is edited, or left out for good."""
    assert walk.batch is not None
    before, place = list(walk.items), walk.chance.randrange(len(walk.items))
    if walk.chance.random() < 0.7:
        walk.items[place] = item(int(before[place][0][4:]), amount=_amount(walk.chance))
    elif len(walk.items) > 1:
        del walk.items[place]
    try:
        report = await walk.batch.load(walk.items, batch_id=name_of(walk.place) or "walk", accept_edits=True)
        walk.seen["rows edited"] += report.corrected
        walk.seen["rows cancelled"] += report.cancelled
    except PaymentsError:
        walk.items = before
        raise


async def _wait(walk: Walk, client: Any) -> None:
    walk.service.clock.advance(walk.chance.choice((60.0, 1_000.0, 90_000.0)))
    client._pipeline.runtime.advance(1_000.0)


async def _lose(walk: Walk, client: Any) -> None:
    """The ledger is lost, and the file is loaded into a new one."""
    await walk.closed()
    if isinstance(walk.place, str):  # databases are not lost this way
        await walk._opened(client)
        return
    walk.place = walk.place.with_name(f"{walk.place.name}x")
    walk.seen["ledgers lost"] += 1
    if walk.chance.random() < 0.5:  # the file has been edited since
        place = walk.chance.randrange(len(walk.items))
        walk.items[place] = item(int(walk.items[place][0][4:]), amount=_amount(walk.chance))
    await walk._opened(client)


_STEPS: Final = (
    *(("run", _run), ("run", _run), ("run through faults", _run_through_faults), ("kill", _kill)),
    *(
        ("turn", _turn),
        ("turn", _turn),
        ("retry", _retry),
        ("retry", _retry),
        ("retry rejected", _retry_rejected),
    ),
    *(("edit", _edit), ("wait", _wait), ("lose", _lose)),
)


# Rules that are left out


def _nothing(*_: Any, **__: Any) -> Any:
    return ()


def _first_word_counts(real: Callable[..., Any]) -> Callable[..., Any]:
    def ruled(row: Any, ruling: Any, *rest: Any) -> Any:
        return None if row.is_final and ruling.known == row.known else real(row, ruling, *rest)

    return ruled


def _without_status(real: Callable[..., Any]) -> Callable[..., Any]:
    def ruled(row: Any, ruling: Any, *rest: Any) -> Any:
        return (
            None if row.state is RowState.CREATED and ruling.known == row.known else real(row, ruling, *rest)
        )

    return ruled


def _without_conflicts(real: Callable[..., Any]) -> Callable[..., Any]:
    def extra(row: Any, ruling: Any, payouts: Any) -> Any:
        return () if ruling.known.state is RowState.CONFLICT else real(row, ruling, payouts)

    return extra


def _any_content(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *sides: Match.EQUAL if real(*sides) is Match.OTHER_BODY else real(*sides)


ABLATIONS: Final[Mapping[str, Callable[[], Any]]] = {
    "status is compared": lambda: patch.object(judge, "_outcome", _without_status(judge._outcome)),
    "older generations are looked at": lambda: patch.object(reading, "later_references", _nothing),
    "the latest word counts": lambda: patch.object(judge, "_outcome", _first_word_counts(judge._outcome)),
    "conflicts are counted": lambda: patch.object(judge, "_extra", _without_conflicts(judge._extra)),
    "content is compared": lambda: patch.object(judge, "match_of", _any_content(judge.match_of)),
}
"""{rule: leaves it out}."""


@contextlib.contextmanager
def without(rule: str | None) -> Iterator[None]:
    """Leave a rule out, if one is named."""
    with ABLATIONS[rule]() if rule else contextlib.nullcontext():
        yield


async def walked(place: Path | str, seed: int, seen: Counter[str]) -> str | None:
    """Play one walk. Gives what went wrong."""
    walk = Walk(place, random.Random(seed), seen)
    with steady_ledgers():
        try:
            await walk.play()
        except Breach as breach:
            return str(breach)
        finally:
            walk.service.clear_rules()
    return None


def main() -> int:
    """Walk, and print what happened; the exit code."""
    parser = argparse.ArgumentParser("python -m tests.campaigns.walks", description=__doc__)
    parser.add_argument("walks", type=int, nargs="?", default=300)
    parser.add_argument("on_postgresql", type=int, nargs="?", default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ablate", choices=[*ABLATIONS])
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    began, seen, breaches = time.perf_counter(), Counter[str](), list[str]()
    with tempfile.TemporaryDirectory() as folder, without(asked.ablate):
        for seed in range(asked.seed, asked.seed + asked.walks):
            found = asyncio.run(walked(Path(folder) / str(seed), seed, seen))
            breaches += [f"seed {seed}: {found}"] * (found is not None)
            if found and asked.ablate:
                break
    if asked.on_postgresql:
        with postgres_server() as server:
            for seed in range(asked.seed, asked.seed + asked.on_postgresql):
                with server.database() as name:
                    found = asyncio.run(walked(server.url(name), seed, seen))
                breaches += [f"PostgreSQL, seed {seed}: {found}"] * (found is not None)
    for event, count in sorted(seen.items()):
        print(f"{count:>9,}  {event}")
    print(
        f"{asked.walks:,} + {asked.on_postgresql:,} walks, {time.perf_counter() - began:.0f} s, "
        f"{len(breaches)} breaches"
    )
    print("\n".join(breaches[:20]))
    return int(bool(breaches))


if __name__ == "__main__":
    sys.exit(main())
