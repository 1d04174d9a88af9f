"""Batches paid by `payments payouts run` in processes that can be killed, and the books' word on it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import attrs

from payments_async import AsyncPayments
from payments_async.bulk import PayoutBatch
from payments_async.sandbox import PayoutEntry, Sandbox
from tests.support.disturbed import Row

COMMAND: Final = ("-m", "payments_async._cli")
"""`payments`, as arguments of Python."""
PATIENCE: Final = "5s"
"""How long a run waits for rows in doubt of which only time can tell; the next one asks for them again."""
COUNTRIES: Final = (("XOF", "mtn_bj", "+22990112233", "BJ"), ("GHS", "mtn_gh", "+233241234567", "GH"))
HEAD: Final = "row_key,amount,currency,method,instrument.phone_number,instrument.country"
COMPLETE: Final = (0, 1)
"""Exit codes of a run that has left nothing to do."""
STOPPED: Final = (3, 75)
"""Exit codes of one that is to be begun again."""


@attrs.frozen
class Batch:
    """An input file, its ledger, and the rows in it."""

    rows: frozenset[Row]
    source: Path
    ledger: Path

    @classmethod
    def write(cls, folder: Path, count: int, number: int = 0) -> Batch:
        """The file of one batch; no two rows of any two batches have the same amount."""
        amounts = [Decimal(number * count + place) + Decimal("0.07") for place in range(1, count + 1)]
        lines, rows = [HEAD], set()
        for place, amount in enumerate(amounts):
            currency, method, phone, country = COUNTRIES[place % len(COUNTRIES)]
            lines.append(f"r{place},{amount},{currency},{method},{phone},{country}")
            rows.add((currency, amount))
        folder.mkdir(parents=True, exist_ok=True)
        source = folder / f"payouts-{number}.csv"
        source.write_text("\n".join([*lines, ""]))
        return cls(frozenset(rows), source, folder / f"payouts-{number}.ledger")

    def elsewhere(self, folder: Path) -> Batch:
        """The same rows, in another folder with a ledger of its own."""
        folder.mkdir(parents=True, exist_ok=True)
        source = folder / self.source.name
        source.write_bytes(self.source.read_bytes())
        return attrs.evolve(self, source=source, ledger=folder / self.ledger.name)

    def entries(self, sandbox: Sandbox) -> list[PayoutEntry]:
        """The payouts of this batch in the service's books."""
        return [entry for entry in sandbox.books.payouts() if (entry.currency, entry.amount) in self.rows]


@contextmanager
def started(
    sandbox: Sandbox, batch: Batch, command: Sequence[str] = COMMAND
) -> Iterator[subprocess.Popen[str]]:
    """One more process that pays the batch, killed at the end; the key does not show among the processes."""
    place = ("--ledger", str(batch.ledger), "--base-url", sandbox.base_url)
    options = (*place, "--patience", PATIENCE, "--json")
    with subprocess.Popen(
        [sys.executable, *command, "payouts", "run", str(batch.source), *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PAYMENTS_API_KEY": sandbox.api_key},
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@attrs.frozen
class End:
    """How a process ended."""

    code: int
    told: str
    said: str
    """What it wrote to its standard error."""

    @property
    def killed(self) -> bool:
        """Whether it did not end by itself."""
        return self.code == -signal.SIGKILL

    @property
    def report(self) -> dict[str, Any]:
        """Its last line of JSON."""
        told: dict[str, Any] = json.loads(self.told.splitlines()[-1])
        return told

    @property
    def complete(self) -> bool:
        """Whether it has left nothing to do."""
        return self.code in COMPLETE

    @property
    def problem(self) -> str | None:
        """What is wrong with an end that was neither a kill nor one that a run may have."""
        fine = self.killed or (self.code in COMPLETE + STOPPED and "Traceback" not in self.said)
        return None if fine else f"a process ended with {self.code}: {self.said[-2000:]}"


def ended(process: subprocess.Popen[str], *, within: float) -> End:
    """How it ended; it is killed when it takes longer than so many seconds."""
    try:
        told, said = process.communicate(timeout=within)
    except subprocess.TimeoutExpired:
        process.kill()
        told, said = process.communicate()
    return End(process.returncode, told, said)


def killed(process: subprocess.Popen[str]) -> End:
    """How it ended, by being killed now or before."""
    process.poll()
    process.kill()
    return ended(process, within=20.0)


def run_to_the_end(sandbox: Sandbox, batch: Batch, *, starts: int = 12, seconds: float = 300.0) -> list[End]:
    """Start it until nothing is left to do; how each ended. Raises AssertionError for a run that broke."""
    ends: list[End] = []
    while not (ends and ends[-1].complete):
        assert len(ends) < starts, f"no end after {starts} starts: {[end.code for end in ends]}"
        with started(sandbox, batch) as process:
            end = ended(process, within=seconds)
        assert not end.killed, f"took longer than {seconds:g} s; {end.said}"
        assert end.problem is None, end.problem
        ends.append(end)
    return ends


async def _certified(sandbox: Sandbox, ledger: Path) -> Any:
    async with (
        AsyncPayments(sandbox.api_key, base_url=sandbox.base_url) as client,
        PayoutBatch.open(ledger, client, create=False) as batch,
    ):
        return json.loads((await batch.reconcile()).to_json())


def certificate_of(sandbox: Sandbox, batch: Batch) -> Any:
    """What the ledger and the list say at the end, as JSON."""
    return asyncio.run(_certified(sandbox, batch.ledger))


def sums_of(rows: Iterable[Row]) -> dict[str, Decimal]:
    """{currency: the sum of its amounts}."""
    found: dict[str, Decimal] = {}
    for currency, amount in rows:
        found[currency] = found.get(currency, Decimal(0)) + amount
    return found


def breaches(
    batch: Batch, entries: Iterable[PayoutEntry], certificate: Mapping[str, Any], end: End, refused: set[Row]
) -> list[str]:
    """What is wrong with a batch at its end, by the service's books alone; nothing, when all is well.

    `refused` are the rows that the service has refused at least once: only these may be unpaid. The last run
    ends with 1, too, when it could not read the list for its certificate.
    """
    paid = Counter((entry.currency, entry.amount) for entry in entries)
    unpaid = batch.rows - set(paid)
    sums = sums_of(paid.elements())
    told = {currency: Decimal(by["created"]) for currency, by in certificate["sums"].items()}
    counts, report = certificate["rows"], end.report
    uncertified = report["certificate"] is None
    reported = {currency: Decimal(by["created"]) for currency, by in report["sums"].items()}
    twice = [row for row, times in paid.items() if times > 1]
    lost = unpaid - refused
    facts = {
        f"{len(twice)} rows were paid twice: {twice[:5]}": not twice,
        f"{len(lost)} rows were lost: {sorted(lost)[:5]}": not lost,
        f"the books' sums differ from the input's: {sums}": sums == sums_of(batch.rows - unpaid),
        f"the certificate's sums differ from the books': {told}, {sums}": told == sums,
        f"the certificate's counts differ from the books': {counts}": (
            counts["created"] == len(paid) and counts["rejected"] == len(unpaid)
        ),
        f"the list was not seen whole: {certificate['list']}": certificate["list"]["seen"] == len(paid),
        f"the certificate is not clean: {certificate['ledger']}": certificate["clean"] is True,
        f"the last run's report differs from the books: {report}": (
            (report["rows"]["created"], report["rows"]["rejected"], reported)
            == (len(paid), len(unpaid), sums)
        ),
        f"the last exit code is wrong: {end.code}": end.code == (1 if unpaid or uncertified else 0),
    }
    return [problem for problem, well in facts.items() if not well]
