"""Worker processes that pay a batch on Temporal: the program of one, and a group of which some are killed."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import attrs

from ..._runtime import SYSTEM
from .._exit_codes import CommandEnded, Exit

_CONCURRENCY: Final = 32
"""Payouts under way at a time: few, so that the payroll outlasts some kills."""
_VARIABLES: Final = ("DEMO_TEMPORAL", "DEMO_LEDGER", "DEMO_API_KEY", "DEMO_BASE_URL", "DEMO_PAGE")
"""What a worker is given."""


@attrs.define(eq=False)
class WorkerGroup:
    """The worker processes that run now."""

    _environment: Mapping[str, str] = attrs.field(repr=False)
    _log: Path
    processes: dict[asyncio.subprocess.Process, asyncio.Future[bytes]] = attrs.field(factory=dict)
    """{process: done once it is at work}."""

    async def start(self) -> int:
        """Start one more, and return its process id. It ends when this process does."""
        with self._log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", __name__),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=self._environment,
                start_new_session=True,  # Ctrl-C in the terminal is for the demonstration, which ends them
            )
        assert process.stdout is not None
        self.processes[process] = asyncio.ensure_future(process.stdout.readline())
        return process.pid

    async def kill(self, process: asyncio.subprocess.Process) -> None:
        """Kill one, as when its machine fails."""
        begun = self.processes.pop(process)
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await begun

    async def replace_one(self) -> tuple[int, int] | None:
        """Kill one by chance and start another. Returns both process ids; None while not all are at work.

        On a slow machine a worker takes longer to start than until the next kill: none would get to work.
        """
        if not all(begun.done() for begun in self.processes.values()):
            return None
        lost = [*self.processes][int(SYSTEM.random() * len(self.processes))]
        await self.kill(lost)
        return lost.pid, await self.start()

    def require_alive(self) -> None:
        """Raise CommandEnded when one has ended by itself."""
        for process in self.processes:
            if process.returncode is not None:
                lines = self._log.read_text(errors="replace").splitlines()
                *_, why = ["it left no reason", *(line for line in lines if "Error: " in line)]
                raise CommandEnded(f"worker {process.pid} ended by itself: {why}", Exit.REFUSED)


@asynccontextmanager
async def worker_group(
    number: int, folder: Path, *, temporal: str, ledger: str, api_key: str, base_url: str, page: str
) -> AsyncIterator[WorkerGroup]:
    """Context of workers for a Temporal server, a ledger and an account; they name the page of the batch."""
    given = dict(zip(_VARIABLES, (temporal, ledger, api_key, base_url, page), strict=True))
    group = WorkerGroup({**os.environ, **given}, folder / "workers.log")
    try:
        for _ in range(number):
            await group.start()
        yield group
    finally:
        for process in tuple(group.processes):
            await group.kill(process)


async def _work(temporal: str, ledger: str, api_key: str, base_url: str, page: str) -> None:
    """Pay until the standard input is closed."""
    from temporalio.client import Client

    from ... import AsyncPayments
    from ...bulk.engines.temporal import payroll_worker

    engine = await Client.connect(temporal)
    async with (
        AsyncPayments(api_key, base_url=base_url) as client,
        payroll_worker(engine, ledger, client, concurrency=_CONCURRENCY, page=page),
    ):
        print("at work", flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_work(*(os.environ.pop(name) for name in _VARIABLES)))
