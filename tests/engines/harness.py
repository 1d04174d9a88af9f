"""A service and a ledger, the programs of an engine that pay, and the service's word on what was paid.

The programs are those of `examples/engines`, with shorter times and another hour put into their text.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import attrs

from payments_async import AsyncPayments
from payments_async.bulk import PayoutBatch
from payments_async.sandbox import Sandbox, SandboxLimits
from tests.support.servers import PASSWORD

EXAMPLES: Final = Path(__file__).parents[2] / "examples" / "engines"
PHONE: Final = "+22990112233"
"""Every row's account: it may show nowhere."""
ROWS: Final = 2000
SLOWLY: Final = "0.005"
"""The part of the limit with which a program needs minutes for its rows, however late a signal reaches it."""
_HEAD: Final = "row_key,amount,currency,method,instrument.phone_number,instrument.country"


@attrs.define(eq=False)
class Program:
    """A session of processes of an engine, with all that it has started."""

    process: subprocess.Popen[bytes]
    log: Path
    must_live: bool = True
    """True until a test ends it, or expects it to end."""

    def processes(self) -> list[int]:
        """The ids of its processes. Each task of Airflow is a group of its own."""
        found: list[int] = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(session) == self.process.pid and state != "Z":
                    found.append(int(entry.name))
        return found

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all of it that is still there."""
        self.must_live = False
        for process in self.processes():
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def kill(self) -> None:
        """Kill all of it, as when the machine fails."""
        while self.processes():  # one may have been starting another
            self.signal(signal.SIGKILL)
        self.process.wait()

    async def ended(self) -> int:
        self.must_live = False
        return await asyncio.to_thread(self.process.wait)


@attrs.define(eq=False)
class Scene:
    """A service in a process of its own, an empty ledger, a folder of files, and the programs on them."""

    service: subprocess.Popen[str]
    variables: dict[str, str]
    """How a program finds the account, the ledger and the files."""
    folder: Path
    programs: list[Program] = attrs.field(factory=list)
    amounts: dict[str, list[Decimal]] = attrs.field(factory=dict)
    """{batch: the amounts of its file}; no two are the same."""

    @classmethod
    def begin(cls, ledger: str, folder: Path) -> Scene:
        service = subprocess.Popen(
            [sys.executable, "-m", "tests.engines.harness"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert service.stdout is not None
        account = json.loads(service.stdout.readline())
        return cls(service, {**account, "PAYMENTS_LEDGER": ledger, "PAYROLL_FILES": str(folder)}, folder)

    def end(self) -> None:
        """Kill every program that still runs, and end the service."""
        for program in self.programs:
            program.kill()
        self.service.communicate()

    def _ask(self, line: str) -> Any:
        assert self.service.stdin is not None
        assert self.service.stdout is not None
        self.service.stdin.write(f"{line}\n")
        self.service.stdin.flush()
        return json.loads(self.service.stdout.readline())

    def slow(self, seconds: float) -> None:
        """Let every payout take so long, so that a test can disturb it."""
        self._ask(f"slow:{round(seconds * 1000)}ms")

    @property
    def books(self) -> list[tuple[str, Decimal]]:
        return [(reference, Decimal(amount)) for reference, amount in self._ask("books")]

    def file(self, batch_id: str, rows: int = ROWS) -> None:
        first = 10_000 * len(self.amounts)
        self.amounts[batch_id] = [Decimal(f"{first + number}.01") for number in range(1, rows + 1)]
        cells = (f"r{amount},{amount},XCD,mtn_bj,{PHONE},BJ" for amount in self.amounts[batch_id])
        (self.folder / f"{batch_id}.csv").write_text("\n".join([_HEAD, *cells, ""]))

    def program(self, engine: str, changes: Mapping[str, str]) -> Path:
        """The example of an engine in the test's folder, with these texts in the place of others."""
        text = (EXAMPLES / f"{engine}_payroll.py").read_text()
        assert text.count("\n") <= 50  # as docs/engines.md says
        for old, new in changes.items():
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        path = self.folder / f"{engine}_payroll.py"
        path.write_text(text)
        return path

    def start(self, *program: str | Path, **environment: str) -> Program:
        log = self.folder / f"{len(self.programs)}.log"
        path = os.pathsep.join(filter(None, sys.path))  # the package that is tested
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-P", *map(str, program)],
                env={**os.environ, **self.variables, "PYTHONPATH": path, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.programs.append(Program(process, log))
        return self.programs[-1]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so. Fails when a program ends that no test has ended."""
        while not await asyncio.to_thread(condition):
            ended = [each.log for each in self.programs if each.must_live and each.process.poll() is not None]
            assert not ended, f"a program has ended: {ended}"
            await asyncio.sleep(0.2)

    async def until_paid(self, rows: int) -> None:
        await self.until(lambda: len(self.books) >= rows)

    def _open(self, client: AsyncPayments | None, batch_id: str) -> PayoutBatch:
        return PayoutBatch.open(self.variables["PAYMENTS_LEDGER"], client, batch_id=batch_id)

    async def kill_workers(self, start: Callable[[], Program]) -> None:
        """Pay with two programs, which are killed and replaced three times."""
        workers = [start(), start()]
        for kill in (1, 2, 3):
            await self.until_paid(kill * ROWS // 4)
            for worker in workers:
                worker.kill()
            workers = [start(), start()]

    async def assert_drained(self, batch_id: str) -> None:
        """A program that was terminated has recorded what it had under way, and left rows."""
        counts = await self.counts(batch_id)
        assert counts["created"] == len(self.books) < ROWS
        assert counts["under_way"] == counts["in_doubt"] == 0

    async def until_at_work(self, processes: int, batch_id: str) -> None:
        """Wait until so many processes have rows of a batch taken."""
        async with self._open(None, batch_id) as batch:
            while len(await batch.holders()) < processes:  # noqa: ASYNC110 - other processes tell no event
                await asyncio.sleep(0.2)

    async def counts(self, batch_id: str) -> dict[str, int]:
        async with self._open(None, batch_id) as batch:
            return dict((await batch.status()).counts)

    async def batches(self) -> set[str]:
        async with self._open(None, "any") as batch:
            return {known.binding.batch_id for known in await batch.batches()}

    async def judge(self, *stores: bytes) -> None:
        """Require that the ledger's batches are paid exactly, by the service's books, and certified clean.

        Neither `stores`, which are what the engine has stored, nor the programs' logs may show an account, a
        key or a password.
        """
        books, names = self.books, await self.batches()
        references = Counter(reference for reference, _ in books)
        assert [reference for reference, times in references.items() if times > 1] == []
        asked = [amount for name in names for amount in self.amounts[name]]
        assert sorted(amount for _, amount in books) == sorted(asked)
        key, base_url = self.variables["PAYMENTS_API_KEY"], self.variables["PAYMENTS_BASE_URL"]
        async with AsyncPayments(key, base_url=base_url) as client:
            for name in names:
                async with self._open(client, name) as batch:
                    certificate = await batch.reconcile()
                assert certificate.is_clean, certificate.findings
                assert certificate.report.exit_code == 0
                assert certificate.report.sums["XCD"]["arrived"] == sum(self.amounts[name])
        for content in (*stores, *(program.log.read_bytes() for program in self.programs)):
            for secret in (PHONE, PHONE[4:], key, PASSWORD):
                assert secret.encode() not in content, "an account or a secret shows"


def zones() -> tuple[ZoneInfo, ZoneInfo]:
    """Two time zones of another day than each other's, the first one's not that of UTC either."""
    east, west = ZoneInfo("Pacific/Kiritimati"), ZoneInfo("Pacific/Pago_Pago")
    now = datetime.now(UTC)
    return (west, east) if now.astimezone(west).date() != now.date() else (east, west)


def serve(lines: Iterable[str]) -> None:
    """Serve a sandbox that pays at once: each line slows it, or with `books` gives what is in its books."""
    with Sandbox(limits=SandboxLimits.off(), scenario="immediate") as sandbox:
        account = {"PAYMENTS_API_KEY": sandbox.api_key, "PAYMENTS_BASE_URL": sandbox.base_url}
        print(json.dumps(account), flush=True)
        for line in map(str.strip, lines):
            if line != "books":
                sandbox.on("payouts.create").respond(line, times=None)
            payouts = sandbox.books.payouts()
            print(json.dumps([[str(each.reference), str(each.amount)] for each in payouts]), flush=True)


if __name__ == "__main__":
    serve(sys.stdin)
