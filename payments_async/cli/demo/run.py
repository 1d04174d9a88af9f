"""The demonstration from the file to the verdict."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...sandbox import Sandbox
from .._exit_codes import Exit
from .._output import Show
from .compare import Figures, Tally, compare
from .legs import LEGS, Job, Leg
from .payout_file import Row, disturbed, read_csv, write_csv
from .report import tell_leg, tell_plan, tell_result


def play(count: int, seed: int, show: Show) -> Exit:
    """Send `count` payouts with each client; `Exit.REFUSED` when the books do not agree.

    Raises PaymentsError when a call fails for good, and OutcomeUnknown among them.
    """
    with tempfile.TemporaryDirectory(prefix="payments-demo-") as folder:
        file = write_csv(Path(folder) / "payouts.csv", count, seed)
        rows = read_csv(file)
    tell_plan(file, rows, show)
    faults = disturbed(rows, seed)
    done = [_run(leg, rows, faults, seed + number, show) for number, leg in enumerate(LEGS)]
    tell_result(done, show)
    return Exit.REFUSED if any(figures.problems for figures in done) else Exit.DONE


def _run(leg: Leg, rows: Sequence[Row], faults: Mapping[str, str], seed: int, show: Show) -> Figures:
    """Do one leg against a sandbox of its own that disturbs the payouts in `faults`, and check its books."""
    show.heading(leg.client, leg.manner)
    tally = Tally()
    with Sandbox(seed=seed) as sandbox:
        for reference, fault in faults.items():
            sandbox.on("payouts.create", reference=reference).respond(fault)
        sent = leg.work(Job(sandbox, rows, tally, show))
        figures = compare(leg.client, rows, faults, sent, tally, sandbox.books)
    tell_leg(figures, show)
    return figures
