"""What does the bulk engine cost per row, part by part, with the network taken out?

    python -m benchmarks.bulk_engine                  # 1,000 to 100,000 rows
    python -m benchmarks.bulk_engine 1000000 --rounds 1

Four things are run over the same rows, each in a process of its own so that its memory can be told:

* `ledger`: claims of 128 rows and records of 200, nothing else;
* `engine`: a whole run in which `Service.post`, and it alone, is taken out: every row is created at once;
* `client`: a whole run through the real client, with its transport taken out (answers of 1.7 kB);
* `import`: the rows made and imported.

The ledger is the real one: a file of its own, synced with every commit. CPU is the process's, SQLite's thread
included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from multidict import CIMultiDict, CIMultiDictProxy

from benchmarks.bodies import ARGUMENTS, PAYOUT_ANSWER
from payments_async import AsyncPayments, PayoutRequest, RateLimits
from payments_async._http.types import HTTPRequest, HTTPResponse
from payments_async.bulk._engine.engine import Engine, Pace
from payments_async.bulk._engine.service import Service
from payments_async.bulk._engine.stopping import Stopping
from payments_async.bulk._ledger.sqlite.ledger import SqliteLedger
from payments_async.bulk._loading.new_rows import RowIdentifiers
from payments_async.bulk._protocol.attempts import AttemptReply
from payments_async.bulk._protocol.outcomes import counts_of
from payments_async.bulk._protocol.records import Binding, LedgerRow, NewRow, RowOutcome
from payments_async.bulk._protocol.responses import Posted
from payments_async.bulk._protocol.row_state import confirm
from payments_async.bulk._protocol.stop_rules import StopRules
from payments_async.bulk.sources import Row

KEY = "sk_sandbox_benchmark"
BATCH = "benchmark"
URL = "https://sandbox.test/v1"
PARTS = ("import", "ledger", "engine", "client")
SIZES = (1_000, 10_000, 100_000)
CLAIMED, RECORDED = 128, 200
CONCURRENCY = 64


class Posting(Service):
    """A service that creates every payout at once: nothing is sent."""

    async def check_access(self) -> None:
        """Nothing to check."""

    async def post(self, row: LedgerRow, seconds: float, may_send: object = None) -> Posted:
        """Created."""
        return Posted(AttemptReply(200, record="matching", payout_id=f"po_{row.number:020}"), "pending")


class Answering:
    """A transport that answers every creation with a payout of all fields, and a list with none."""

    def __init__(self) -> None:
        self._made = 0
        self._headers = CIMultiDictProxy(
            CIMultiDict({"Content-Type": "application/json", "Date": "Sat, 21 Nov 2026 10:00:00 GMT"})
        )
        payout = json.loads(PAYOUT_ANSWER)
        payout["data"].update(id="<id>", reference="<reference>")
        before, after = json.dumps(payout).encode().split(b"<id>")
        self._parts = (before, *after.split(b"<reference>"))

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        """The answer."""
        request.sent = True
        if request.body is None:
            empty = b'{"data":[],"pagination":{"has_more_pages":false}}'
            return HTTPResponse(200, self._headers, empty)
        reference = request.body[
            (at := request.body.index(b'"reference":"') + 13) : request.body.index(b'"', at)
        ]
        self._made += 1
        before, between, after = self._parts
        body = b"%bpo_%020d%b%b%b" % (before, self._made, between, reference, after)
        return HTTPResponse(201, self._headers, body)

    async def aclose(self) -> None:
        """Nothing is open."""


async def rows(count: int) -> AsyncIterator[NewRow]:
    """Rows as an input gives them."""
    naming, request = RowIdentifiers("sandbox", BATCH, "", True), PayoutRequest(**ARGUMENTS)
    for number in range(1, count + 1):
        yield naming.new_row(Row(number, number + 1, str(number), None, request))


class Spent:
    """CPU and wall time of a part."""

    def __enter__(self) -> Spent:
        self.wall, self.cpu = -time.perf_counter(), -time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall += time.perf_counter()
        self.cpu += time.process_time()

    def per(self, count: int) -> dict[str, float]:
        """Microseconds."""
        return {"cpu": self.cpu / count * 1e6, "wall": self.wall / count * 1e6}


async def ledger_alone(ledger: SqliteLedger) -> None:
    """What the engine asks of the ledger, and nothing else."""
    learned: list[RowOutcome] = []
    while (claim := await ledger.claim(CLAIMED)).rows:
        for row in claim.rows:
            learned.append(RowOutcome(row.number, confirm(row.known, f"po_{row.number:020}"), "pending"))
            if len(learned) == RECORDED:
                await ledger.record(learned)
                learned = []
    if learned:
        await ledger.record(learned)


async def run(ledger: SqliteLedger, service: Service) -> None:
    """One run."""
    pace = Pace(concurrency=CONCURRENCY, rules=StopRules(), patience=60.0, drain=30.0)
    stopping = Stopping(service.runtime)
    await Engine(ledger, service, pace, stopping, lambda: None).run()
    assert stopping.reason is None, stopping.reason


async def measure(part: str, count: int, folder: Path) -> dict[str, float]:
    """Microseconds of CPU and wall per row, and the most memory the process ever held, MiB."""
    transport = Answering()
    limits = RateLimits(writes=10**8, burst=10**8)
    async with AsyncPayments(KEY, base_url=URL, transport=transport, limits=limits) as client:
        service = (Service if part == "client" else Posting)(client)
        binding = Binding(BATCH, "sandbox", URL, "key", "input", "{}")
        async with await SqliteLedger.open(
            folder / f"{part}.ledger", clock=service.moment, create=True
        ) as ledger:
            with Spent() as importing:
                await ledger.import_rows(binding, rows(count))
            with Spent() as spent:
                if part == "ledger":
                    await ledger_alone(ledger)
                elif part != "import":
                    await run(ledger, service)
            found = counts_of(ledger.totals)["not_started" if part == "import" else "created"]
            assert found == count, found
    found = (importing if part == "import" else spent).per(count)
    return {**found, "height": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def measured(part: str, count: int, rounds: int, folder: str | None) -> dict[str, float]:
    """The median of rounds, each in a process of its own."""
    found = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            command = [sys.executable, "-m", "benchmarks.bulk_engine", "--one", part, place, str(count)]
            found.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    return {name: statistics.median(each[name] for each in found) for name in found[0]}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--folder", help="where the ledgers lie; a disk whose syncs are to be counted")
    arguments = parser.parse_args()
    print("### The bulk engine, per row\n")
    print("| part | rows | CPU µs | wall µs | rows/s | most memory, MiB |")
    print("| --- | --- | --- | --- | --- | --- |")
    for part in arguments.parts:
        for count in arguments.sizes:
            found = measured(part, count, arguments.rounds, arguments.folder)
            speed = 1e6 / found["wall"]
            figures = f"{found['cpu']:.1f} | {found['wall']:.1f} | {speed:,.0f} | {found['height']:.1f}"
            print(f"| {part} | {count:,} | {figures} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(asyncio.run(measure(sys.argv[2], int(sys.argv[4]), Path(sys.argv[3])))))
    else:
        main()
