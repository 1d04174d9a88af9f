"""What the conformance suite of the engines has in common: a scene to pay in, programs to disturb, the judge.

    python -m tests.engines.harness NOTES PROGRAM [ARGUMENTS…]
    python -m tests.engines.harness NOTES -m MODULE [ARGUMENTS…]

runs an engine's worker, which notes the time and the lease right before the first byte of each payout. Chunks
are of 100 rows, or of `ENGINE_CHUNK`. The rest is the product's own, its leases of 15 seconds included.
Programs find the account and the ledger in `PAYMENTS_API_KEY`, `PAYMENTS_BASE_URL` and `PAYMENTS_LEDGER`.
"""

from __future__ import annotations

import asyncio
import os
import runpy
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit

import attrs
import pytest

from payments_async import AsyncPayments
from payments_async.bulk import SharedBatch
from payments_async.sandbox import Sandbox, SandboxLimits
from tests.campaigns.leases import too_late
from tests.support.servers import PASSWORD, CutProxy, PostgresServer
from tests.support.worker_processes import Write

ROOT: Final = Path(__file__).parents[2]
PHONE: Final = "+22990112233"
"""Every row's account: it may show nowhere."""
CASES: Final = (
    "kill -9",
    "stopped for 30 s",
    "delivered twice",
    "job lost",
    "SIGTERM",
    "cancel",
    "database away",
    "service away",
    "pause, resume",
    "rows in doubt",
    "schedule",
    "two batches",
)
"""What every engine has to stand. `@pytest.mark.case(…)` names the ones that a test proves."""
KILLED: Final = pytest.mark.parametrize(
    ("rows", "kills"),
    [
        pytest.param(600, 2, marks=(pytest.mark.brief, pytest.mark.case("kill -9"))),
        pytest.param(2000, 5, marks=pytest.mark.case("kill -9")),
        pytest.param(20000, 5, marks=(pytest.mark.large, pytest.mark.case("kill -9"))),
    ],
    ids=["brief", "long", "large"],
)
"""A batch's rows, and how many workers are killed meanwhile."""
AWAY: Final = pytest.mark.parametrize(
    "line",
    [
        pytest.param("to_database", marks=pytest.mark.case("database away")),
        pytest.param("to_service", marks=pytest.mark.case("service away")),
    ],
)
"""Which of a scene's lines is cut for 45 seconds."""
_HEAD: Final = "row_key,amount,currency,method,instrument.phone_number,instrument.country,description"
_STATE: Final = """
SELECT b.state, coalesce(sum(c.unsent), 0)::int, coalesce(sum(c.in_flight + c.in_doubt), 0)::int
FROM payments.batches b LEFT JOIN payments.chunks c ON c.batch = b.batch
WHERE b.batch_id = %s GROUP BY b.state
"""
_LEASES: Final = """
SELECT e.chunk, encode(e.lease, 'hex') FROM payments.entries e JOIN payments.batches b ON b.batch = e.batch
WHERE e.kind = 'lease' AND b.batch_id = %s ORDER BY e.chunk, e.number
"""


@attrs.define(eq=False)
class Program:
    """A session of processes of an engine: a worker, with all that it has started."""

    process: subprocess.Popen[bytes]
    log: Path
    notes: Path
    must_live: bool = True
    """True until a test ends it, or expects it to end."""

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all of it that is still there."""
        for process in self.processes():
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def processes(self) -> list[int]:
        """The ids of its processes. Each task of Airflow is a group of its own."""
        found: list[int] = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(session) == self.process.pid and state != "Z":
                    found.append(int(entry.name))
        return found

    def kill(self) -> None:
        """Kill all of it, as when the machine fails."""
        self.must_live = False
        while self.processes():  # one may have been starting another
            self.signal(signal.SIGKILL)
        self.process.wait()

    def terminate(self) -> None:
        """Ask its first process to end in order, as a service manager does."""
        self.must_live = False
        self.process.terminate()

    async def ended(self, within: float = 300.0) -> int:
        """Wait for its end; the exit code."""
        return await asyncio.to_thread(self.process.wait, within)

    @property
    def writes(self) -> list[Write]:
        """The payouts that it has begun to send."""
        lines = self.notes.read_text().splitlines() if self.notes.exists() else []
        return [Write(float(at), lease, int(chunk)) for at, lease, chunk in map(str.split, lines)]


@attrs.define(eq=False)
class Scene:
    """A service and an empty database, each behind a line that can be cut, and the programs that use them."""

    sandbox: Sandbox
    server: PostgresServer
    name: str
    """The database's."""
    folder: Path
    to_database: CutProxy
    to_service: CutProxy
    programs: list[Program] = attrs.field(factory=list)
    _files: int = 0
    _stack: ExitStack = attrs.field(factory=ExitStack)

    @classmethod
    def in_database(cls, server: PostgresServer, url: str, folder: Path, stack: ExitStack) -> Self:
        """A scene whose service has no limits, and pays at once; `stack` ends it."""
        sandbox = stack.enter_context(Sandbox(limits=SandboxLimits.off(), scenario="immediate"))
        lines = server.address, ("127.0.0.1", urlsplit(sandbox.base_url).port or 0)
        to_database, to_service = (stack.enter_context(CutProxy(line)) for line in lines)
        scene = cls(sandbox, server, url.rpartition("/")[2], folder, to_database, to_service)
        stack.callback(scene.end)
        return scene

    @property
    def environment(self) -> dict[str, str]:
        """How a program finds the account and the ledger."""
        base_url = urlsplit(self.sandbox.base_url)._replace(netloc=f"127.0.0.1:{self.to_service.port}")
        return {
            "PAYMENTS_API_KEY": self.sandbox.api_key,
            "PAYMENTS_BASE_URL": base_url.geturl(),
            "PAYMENTS_LEDGER": self.server.url(self.name, port=self.to_database.port) + "?connect_timeout=5",
        }

    def file(self, rows: int, name: str = "june", folder: Path | None = None) -> Path:
        """A file of so many payouts; no two rows of two files have the same amount. Row 7 is "row 7"."""
        first = self._files * 100_000
        self._files += 1
        path = (folder or self.folder) / f"{name}.csv"
        cells = (f"r{n},{first + n}.01,XOF,mtn_bj,{PHONE},BJ,row {n}" for n in range(1, rows + 1))
        path.write_text("\n".join([_HEAD, *cells, ""]))
        return path

    def start(self, *program: str | Path, **environment: str) -> Program:
        """Start a program of an engine, in a group of its own."""
        number = len(self.programs)
        log, notes = self.folder / f"{number}.log", self.folder / f"{number}.notes"
        path = os.pathsep.join(filter(None, sys.path))  # the package that is tested
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tests.engines.harness", str(notes), *map(str, program)],
                env={
                    **os.environ,
                    **self.environment,
                    "PYTHONPATH": path,
                    **environment,
                },
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.programs.append(Program(process, log, notes))
        return self.programs[-1]

    def end(self) -> None:
        """Kill every program that still runs."""
        for program in self.programs:
            program.signal(signal.SIGCONT)
            program.kill()

    def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a statement finds in the database, past the line that may be cut."""
        return self.server.query(self.name, statement, *values)

    def state(self, batch_id: str = "june") -> tuple[str, int, int]:
        """(state, rows not started, rows under way or in doubt) of a batch; ("", 0, 0) before its import."""
        if self.query("SELECT to_regclass('payments.batches') IS NULL") == [(True,)]:
            return "", 0, 0
        for state, unsent, open_rows in self.query(_STATE, batch_id):
            return str(state), int(unsent), int(open_rows)
        return "", 0, 0

    @property
    def paid(self) -> int:
        """The payouts in the service's books."""
        return len(self.sandbox.books.payouts())

    async def until_paid(self, rows: int) -> None:
        """Wait until the service's books have so many payouts."""
        await self.until(lambda: self.paid >= rows)

    def slow(self, seconds: float) -> None:
        """Let every payout take so long, so that a test can disturb it."""
        self.sandbox.on("payouts.create").respond(f"slow:{round(seconds * 1000)}ms", times=None)

    async def until_state(self, state: str, *batch_ids: str) -> None:
        """Wait until batches are in a state: `imported`, `open`, `paused` or `closed`."""
        await self.until(lambda: all(self.state(name)[0] == state for name in batch_ids or ("june",)))

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so. Fails when a worker ends that no test has ended."""
        while not await asyncio.to_thread(condition):
            assert all(program.process.poll() is None for program in self.programs if program.must_live), (
                "a worker has ended"
            )
            await asyncio.sleep(0.2)

    def logs(self) -> str:
        """All that the programs have written."""
        return "\n".join(program.log.read_text(errors="replace") for program in self.programs)

    async def judge(self, rows: Mapping[str, int], *stores: Path) -> None:
        """Require that batches of so many rows are paid exactly, closed and clean, and nothing has leaked.

        `stores` are files of the engine, its database for one with what lies beside it (`store.db-wal`), in
        which no account and no key may be.
        """
        entries = self.sandbox.books.payouts()
        references = Counter(str(entry.reference) for entry in entries)
        assert not [name for name, times in references.items() if times > 1]
        assert len(entries) == sum(rows.values())
        assert len({entry.amount for entry in entries}) == len(entries)  # each row's is its own
        base_url = self.environment["PAYMENTS_BASE_URL"]  # the ledger's
        async with AsyncPayments(self.sandbox.api_key, base_url=base_url) as client:
            for name, count in rows.items():
                assert self.state(name) == ("closed", 0, 0), self.state(name)
                url = self.server.url(self.name)
                async with SharedBatch.open(url, client, batch_id=name) as batch:
                    certificate = await batch.reconcile()
                    assert certificate.is_clean, certificate.findings
                    assert certificate.report.counts["created"] == count
                writes = [write for program in self.programs for write in program.writes]
                order = [(int(chunk), str(lease)) for chunk, lease in self.query(_LEASES, name)]
                leases = {lease for _, lease in order}
                sent = [write for write in writes if write.lease in leases]
                print(f"{name}: {count} rows, {len(sent)} requests, {len(leases)} leases")
                assert too_late(sent, order) == []
        assert sum((entry.amount for entry in entries), Decimal(0)) == sum(
            (total for name in rows for total in self.asked(name)), Decimal(0)
        )
        self.require_no_secret(*stores)

    def require_no_secret(self, *stores: Path) -> None:
        """Require that neither the programs' logs nor these files show an account, a key or a password."""
        logs = [program.log for program in self.programs]
        for place in (*logs, *(file for store in stores for file in store.parent.glob(f"{store.name}*"))):
            content = place.read_bytes()
            for secret in (PHONE, PHONE[4:], self.sandbox.api_key, PASSWORD):
                assert secret.encode() not in content, f"{place.name} shows an account or a secret"

    def asked(self, batch_id: str) -> list[Decimal]:
        """The amounts that a batch's file asks for."""
        lines = next(self.folder.rglob(f"{batch_id}.csv")).read_text().splitlines()[1:]
        return [Decimal(line.split(",")[1]) for line in lines]


def main(notes: str, *program: str) -> None:
    """Run a program of an engine with notes of what it sends."""
    from payments_async.bulk._ledger import importing
    from payments_async.bulk._ledger.postgresql import importing as shared_importing
    from tests.support.worker_process import note_writes

    importing.BLOCK = int(os.environ.get("ENGINE_CHUNK", "100"))  # type: ignore[misc] # many small chunks
    shared_importing._LARGEST = importing.BLOCK  # type: ignore[misc] # the same
    note_writes(notes)
    if program[0] == "-m":
        sys.argv = [*program[1:]]
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [*program]
        sys.path.insert(0, str(Path(program[0]).parent))
        runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
