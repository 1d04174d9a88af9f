"""Every kind of fault, on a real socket and in process: each row once, every cent accounted for."""

from __future__ import annotations

from pathlib import Path

import pytest

from payments_async.bulk import PayoutBatch
from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from tests.support.batches import assert_true, items, over_socket, spread_faults

# many times as slow when it is traced; others cover the same
pytestmark = pytest.mark.no_cover  # heavy under a tracer; what it runs is covered without it

KINDS = (
    *("http:500", "http:502", "http:503", "http:504", "http:408", "http:409", "http:422", "http:400"),
    *("429:1", "reset", "lost_request", "lost_response", "cut_body", "bad_json", "wrong_type", "empty"),
)
COUNT = 300


def new_sandbox(profile: str = "observed", seed: int = 0) -> Sandbox:
    limits = SandboxLimits.off()
    return Sandbox(clock=VirtualClock.frozen(), limits=limits, profile=profile, seed=seed)


async def test_faults_of_every_kind_on_a_real_socket_pay_each_row_once(tmp_path: Path) -> None:
    rows = items(COUNT)
    with new_sandbox() as sandbox:
        spread_faults(sandbox, COUNT, KINDS, 0.02, seed=1)
        sandbox.on("payouts.list").respond("http:503", times=3, after=1)
        async with over_socket(sandbox) as client, PayoutBatch.open(tmp_path / "l", client) as batch:
            await batch.load(rows)
            report = await batch.run()
            assert report.is_complete
            assert report.counts["rejected"] > 0
            assert report.exit_code == 1
            assert_true(report, sandbox, rows)
            certificate = await batch.reconcile()
            assert certificate.is_clean
            assert certificate.audit.seen == report.counts["created"]
