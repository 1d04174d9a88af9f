"""How soon after its start a process sends its first payout, with a large ledger and rows left in flight.

    python -m tests.campaigns.first_send 1000000 6

The batch is imported once. Each start then goes on with it and is killed 0.3 s after its first creation, so
that the next one finds rows in flight. Two spans are measured: from the start of the process, and from the
end of its imports, to the creation's arrival at the service. The sandbox and the process share this machine.
Exits 1 when the slowest start after a kill took more than 2.5 s, or more than 1 s after its imports.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

import attrs

from tests.support.disturbed import DisturbedSandbox
from tests.support.processes import Batch, killed, started

WHOLE, AFTER_IMPORTS = 2.5, 1.0
"""Seconds to the first creation, at most."""
RUNNING = 0.3
"""Seconds from the first creation to the kill."""
COMMAND = (
    "-c",
    """
import sys, time
import payments_async.bulk._engine.engine, payments_async.bulk._loading.load
import payments_async.bulk._reconcile.reconcile, payments_async._cli.payouts.run
import aiosqlite
print(time.monotonic(), flush=True)
from payments_async._cli import main
sys.exit(main())
""",
)
"""`payments`, with everything imported at first and the time told."""


@attrs.frozen
class Start:
    """One start: seconds to its first creation."""

    whole: float
    after_imports: float
    processor: float
    """Processor time until the kill: what the spans come to when nothing else runs."""


@attrs.frozen
class Report:
    """The first start, which imports, and those after kills."""

    rows: int
    importing: Start
    starts: tuple[Start, ...]

    @property
    def problems(self) -> list[str]:
        """What took too long."""
        spans = {"whole": WHOLE, "after_imports": AFTER_IMPORTS}
        worst = {name: max(getattr(each, name) for each in self.starts) for name in spans}
        return [f"{name}: {worst[name]:.2f} s" for name, most in spans.items() if worst[name] > most]

    def __str__(self) -> str:
        whole = [each.whole for each in self.starts]
        after = [each.after_imports for each in self.starts]
        return (
            f"{self.rows} rows, imported and first sent in {self.importing.whole:.1f} s; {len(whole)} starts "
            f"after kills: first send after {statistics.median(whole):.2f} s (worst {max(whole):.2f}), "
            f"{statistics.median(after):.2f} s after the imports (worst {max(after):.2f}); until the kill "
            f"{statistics.median(each.processor for each in self.starts):.2f} s of processor time, "
            f"load of the machine {os.getloadavg()[0]:.1f}"
        )


def run(folder: Path, rows: int, starts: int, *, patience: float = 600.0) -> Report:
    """Import a batch and start so many times again."""
    batch = Batch.write(folder, rows)
    with DisturbedSandbox(1, share=0.0) as sandbox:
        importing = _start(sandbox, batch, patience)
        again = tuple(_start(sandbox, batch, 60.0) for _ in range(starts))
    return Report(rows, importing, again)


def _start(sandbox: DisturbedSandbox, batch: Batch, patience: float) -> Start:
    sandbox.expect()
    began, used = time.monotonic(), _processor_time()
    with started(sandbox, batch, COMMAND) as process:
        sent = sandbox.arrived.wait(patience)
        time.sleep(RUNNING)
        end = killed(process)
    assert sent, f"nothing was sent: {end.said}"
    imported = float(end.told.split()[0])
    return Start(sandbox.arrived_at - began, sandbox.arrived_at - imported, _processor_time() - used)


def _processor_time() -> float:
    """Of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.first_send")
    parser.add_argument("rows", type=int, help="rows of the batch")
    parser.add_argument("starts", type=int, help="starts after kills")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(Path(folder), options.rows, options.starts)
    print(found)
    print("\n".join(found.problems))
    sys.exit(1 if found.problems else 0)


if __name__ == "__main__":
    main()
