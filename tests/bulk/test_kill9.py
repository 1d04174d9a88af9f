"""A real process, killed with SIGKILL at random moments of a real run, until the batch is complete."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path

from payments_async.sandbox import Answer, Sandbox, SandboxLimits
from payments_async.sandbox._values import Request

ROWS, KILLS = 2000, 4
PROGRAM = """
import asyncio, sys
from payments_async import AsyncPayments
from payments_async.bulk import PayoutBatch

async def main(base_url, folder):
    key = sys.stdin.readline().strip()
    async with AsyncPayments(key, base_url=base_url) as client:
        async with PayoutBatch.open(folder + "/ledger", client) as batch:
            await batch.load(folder + "/payouts.csv")
            report = await batch.run(lambda progress: None)
            certificate = await batch.certify()
    print(certificate.to_json())
    raise SystemExit(report.exit_code)

asyncio.run(main(*sys.argv[1:]))
"""
LINE_FAULTS = ("lost_response", "reset", "http:503", "cut_body", "lost_request", "bad_json")


def write_input(folder: Path) -> Decimal:
    """The rows, all amounts different; their sum."""
    head = "row_key,amount,currency,method,instrument.phone_number,instrument.country"
    amounts = [Decimal(number) + Decimal("0.07") for number in range(1, ROWS + 1)]
    lines = [f"r{place},{amount},XOF,mtn_bj,+22990112233,BJ" for place, amount in enumerate(amounts)]
    (folder / "payouts.csv").write_text("\n".join([head, *lines, ""]))
    return sum(amounts, Decimal(0))


def disturb(sandbox: Sandbox, chance: random.Random) -> None:
    """Now and then a fault of the line, all through the runs."""
    rule = sandbox.on("payouts.create")
    for place in range(40, 2 * ROWS, 40):
        rule.respond(chance.choice(LINE_FAULTS), times=1, after=place + chance.randrange(20))


class ToldSandbox(Sandbox):
    """Tells when a creation has arrived."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        super().__init__(limits=SandboxLimits.off())

    def _answer(self, request: Request) -> Answer:
        if request.method == "POST":
            self.arrived.set()
        return super()._answer(request)


def start(sandbox: Sandbox, folder: Path) -> subprocess.Popen[str]:
    """One more start of the program; the key does not show among the processes."""
    command = [sys.executable, "-c", PROGRAM, sandbox.base_url, str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(f"{sandbox.api_key}\n")
    process.stdin.close()
    process.stdin = None
    return process


def kill_after_first_send(sandbox: ToldSandbox, folder: Path, delay: float) -> int:
    """Start it, and kill it so long after its first creation; its exit code."""
    sandbox.arrived.clear()
    process = start(sandbox, folder)
    try:
        assert sandbox.arrived.wait(20)
        time.sleep(delay)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=20)
    return process.returncode


def test_kill_9_at_any_moment_pays_no_row_twice_and_loses_none(tmp_path: Path) -> None:
    chance = random.Random(20260101)
    total = write_input(tmp_path)
    sandbox = ToldSandbox()
    with sandbox:
        disturb(sandbox, chance)
        codes = [kill_after_first_send(sandbox, tmp_path, chance.uniform(0.02, 0.25)) for _ in range(KILLS)]
        assert codes == [-signal.SIGKILL] * KILLS
        assert 0 < len(sandbox.books.payouts()) < ROWS
        last = start(sandbox, tmp_path)
        told, _ = last.communicate(timeout=40)
        assert last.returncode == 0
        entries = sandbox.books.payouts()
    certificate = json.loads(told)
    assert len(entries) == ROWS
    assert max(Counter(entry.reference for entry in entries).values()) == 1
    assert sum((entry.amount for entry in entries), Decimal(0)) == total
    assert certificate["clean"]
    assert certificate["counts"]["CREATED"] == ROWS
    assert Decimal(certificate["sums"]["XOF"]["CREATED"]) == total
    assert certificate["list"]["seen"] == ROWS
