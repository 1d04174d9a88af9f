"""Three processes pay one batch, killed with SIGKILL every other second, over a line that fails.

    python -m tests.campaigns.kills [ROWS] [--service sandbox|reference] [--database sqlite|postgresql]
                                    [--story NAME] [--every SECONDS] [--seed 1]

All stories on both databases beside both services, unless they are chosen. The service is a process of its
own: the sandbox, or one that was written from the interface alone; its books decide. Each row is paid exactly
once but for those that the service refused, sums are equal to the cent, and the certificate is clean.
Meanwhile the database is restarted twice, if it is a server. Exits 1 on a breach.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import attrs

from tests.support.disturbed import BRIEF, DisturbedSandbox
from tests.support.servers import PostgresServer, postgres_server

PROGRAM: Final = """
import sys
from pathlib import Path
from tests.support.ledger_clock import shift_by
shift_by(Path(sys.argv.pop(1)))
from payments_async._cli import main
sys.exit(main())
"""
"""`payments`, whose ledgers have a clock that a file shifts."""
HEAD: Final = "row_key,amount,currency,method,instrument.phone_number,instrument.country"
KINDS: Final = (("XCD", "mtn_bj", "+22990112233", "BJ"), ("GHS", "mtn_gh", "+233241234567", "GH"))
DAY: Final = 86_400.0
LATER: Final = 16 * 60.0
"""Seconds after which a payout that no list shows was never made."""
FAULTY: Final = 0.02
"""The share of each kind of fault, of all requests."""
COMPLETE: Final = (0, 1)
"""Exit codes of a process that has left nothing to do."""
ENDS: Final = (*COMPLETE, 3, 75)
"""Exit codes of a process that ended by itself."""
STALLED: Final = 15.0
"""Seconds after which what is left waits for 15 minutes to pass."""
STORIES: Final = ("plain", "deleted", "older copy", "two ledgers", "clock")
Row = tuple[str, Decimal]


# The services


@attrs.define
class Service:
    """A service in a process of its own, and what it has paid."""

    process: subprocess.Popen[str]
    base_url: str
    api_key: str

    def ask(self, what: str) -> Any:
        """`count` or `books`; `calm` ends the faults."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(what, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


@contextmanager
def serving(kind: str, seed: int, share: float) -> Iterator[Service]:
    """A service that serves until the context ends."""
    module = {"sandbox": "tests.campaigns.kills", "reference": "tests.support.reference_service"}[kind]
    options = ["--serve"] if kind == "sandbox" else ["--lag", "1", "--refusals", "0.002"]
    command = [sys.executable, "-m", module, *options, "--share", str(share), "--seed", str(seed)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, start_new_session=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            base_url, api_key = process.stdout.readline().split()
            yield Service(process, base_url, api_key)
        finally:
            process.kill()


def serve_sandbox(share: float, seed: int) -> None:
    """Serve a sandbox that fails, and answer what the other process asks on the standard input."""
    words = (*BRIEF, "http:422")
    with DisturbedSandbox(seed, share=share * len(words), words=words) as sandbox:
        print(sandbox.base_url, sandbox.api_key, flush=True)
        for line in sys.stdin:
            if line.strip() == "calm":
                sandbox.share = 0.0
            entries = sandbox.books.payouts()
            found = [(entry.currency, str(entry.amount)) for entry in entries]
            print(json.dumps(len(found) if line.strip() == "count" else found), flush=True)


# The ledgers


class FileLedger:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "payouts.ledger"
        self.address = str(self.path)

    def delete(self) -> None:
        for ending in ("", "-journal", "-wal", "-shm"):
            Path(f"{self.path}{ending}").unlink(missing_ok=True)

    def copy(self) -> None:
        with closing(sqlite3.connect(self.path)) as ledger, closing(self._copy()) as copy:
            ledger.backup(copy)

    def put_back(self) -> None:
        with closing(sqlite3.connect(self.path)) as ledger, closing(self._copy()) as copy:
            copy.backup(ledger)

    def _copy(self) -> sqlite3.Connection:
        return sqlite3.connect(f"{self.path}.copy")

    def problem(self) -> str | None:
        """What is wrong with the file; None while it is whole, or not made."""
        if not self.path.exists():
            return None
        with closing(sqlite3.connect(self.path, timeout=60.0)) as ledger:
            (found,) = ledger.execute("PRAGMA integrity_check").fetchone()
        return None if found == "ok" else f"the ledger is broken: {found}"

    def restart(self) -> None:
        """A file has no server."""


class ServerLedger:
    def __init__(self, server: PostgresServer) -> None:
        self.server, self.name = server, server.make_database().rpartition("/")[2]
        self.address = server.url(self.name)

    def _replace(self, template: str, name: str) -> None:
        alone = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
        self.server.query("postgres", alone, template)
        self.server.query("postgres", f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        self.server.query("postgres", f'CREATE DATABASE "{name}" TEMPLATE "{template}"')

    def delete(self) -> None:
        self._replace("template1", self.name)

    def copy(self) -> None:
        self._replace(self.name, f"{self.name}_copy")

    def put_back(self) -> None:
        self._replace(f"{self.name}_copy", self.name)

    def problem(self) -> str | None:
        """Nothing: a server looks after its files."""
        return None

    def restart(self) -> None:
        """Restart the server as if its machine had lost its current."""
        self.server.restart()


Ledger = FileLedger | ServerLedger


# One run


@attrs.define
class Slot:
    ledger: Ledger
    process: subprocess.Popen[bytes] | None = None


@attrs.define(slots=False)
class Trial:
    """A batch, the processes that pay it, and what happens to them."""

    folder: Path
    service: Service
    ledgers: list[Ledger]
    chance: random.Random
    rows: int
    every: float
    """Seconds between two kills."""
    kills: int = 0
    codes: Counter[int] = attrs.field(factory=Counter)
    problems: list[str] = attrs.field(factory=list)
    slots: list[Slot] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        each = 3 if len(self.ledgers) == 1 else 2
        self.slots = [Slot(ledger) for ledger in self.ledgers for _ in range(each)]
        self.source, self.shift = self.folder / "payouts.csv", self.folder / "shift"
        lines, self.asked = [HEAD], set[Row]()
        for number in range(1, self.rows + 1):
            currency, method, phone, country = KINDS[number % len(KINDS)]
            lines.append(f"r{number},{number}.07,{currency},{method},{phone},{country}")
            self.asked.add((currency, Decimal(f"{number}.07")))
        self.source.write_text("\n".join([*lines, ""]))
        self.set_clock(0.0)

    def set_clock(self, seconds: float) -> None:
        (self.folder / "next").write_text(str(seconds))
        (self.folder / "next").replace(self.shift)

    def start(self, ledger: Ledger, patience: str = "5s", **options: Any) -> subprocess.Popen[bytes]:
        """One more process, whose key does not show among the processes."""
        place = ("--ledger", ledger.address, "--batch-id", "june", "--base-url", self.service.base_url)
        return subprocess.Popen(
            [
                *(sys.executable, "-c", PROGRAM, str(self.shift), "payouts", "run", str(self.source)),
                *(*place, "--patience", patience, "--json"),
            ],
            env={**os.environ, "PAYMENTS_API_KEY": self.service.api_key},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            **{"stdout": subprocess.DEVNULL, **options},
        )

    def kill(self, slot: Slot) -> None:
        if slot.process is None:
            return
        if slot.process.poll() is None:
            self.kills += 1
        slot.process.kill()
        self._note(slot)

    def _note(self, slot: Slot) -> int:
        assert slot.process is not None
        _, said = slot.process.communicate()
        code, slot.process = slot.process.returncode, None
        if code != -signal.SIGKILL:
            self.codes[code] += 1
            if b"Traceback" in said or code not in ENDS:
                self.problems.append(f"a process ended with {code}: {said[-2000:].decode()}")
        return code

    def pay(self, moments: Mapping[float, Callable[[], None]]) -> None:
        """Keep the processes running, and kill them, until nothing more is paid.

        `moments`: what is done once such a share of the rows is paid.
        """
        due, killed_at, paid, paid_at = sorted(moments), time.monotonic(), 0, 0.0
        while not self.problems:
            for slot in self.slots:
                has_ended = slot.process is not None and slot.process.poll() is not None
                if has_ended and self._note(slot) in COMPLETE and not due:
                    return
                if slot.process is None:
                    slot.process = self.start(slot.ledger)
            time.sleep(0.2)
            now, count = time.monotonic(), self.service.ask("count")
            if count > paid:
                paid, paid_at = count, now
            if due and count >= due[0] * self.rows:
                moments[due.pop(0)]()
            elif not due and now >= paid_at + STALLED:
                return
            if now >= killed_at + self.every:
                killed_at = now
                self.kill(self.chance.choice(self.slots))
                self.look()

    def stop(self) -> None:
        for slot in self.slots:
            self.kill(slot)
        self.look()

    def look(self) -> None:
        self.problems += [problem for ledger in self.ledgers if (problem := ledger.problem()) is not None]

    def close(self, ledger: Ledger) -> Mapping[str, Any]:
        """Run until all is done and listed, each time a quarter of an hour later; the last report.

        The first time over a line that fails. Then that ends, as a list of many pages takes minutes over it.
        """
        for attempt in range(6):
            self.set_clock(float(self.shift.read_text()) + LATER)
            if attempt:
                self.service.ask("calm")
            process = self.start(ledger, "2m", stdout=subprocess.PIPE)
            told, said = process.communicate()
            assert process.returncode in ENDS, said[-2000:].decode()
            steps = {line["step"]: line for line in map(json.loads, told.splitlines())}
            certificate = steps.get("certified")
            if certificate is not None and certificate["clean"]:
                break
        return {**steps["finished"], "certificate": certificate}

    def judge(self, ledger: Ledger, report: Mapping[str, Any]) -> list[str]:
        """What is wrong with a batch at its end, by the service's books."""
        paid = Counter((currency, Decimal(amount)) for currency, amount in self.service.ask("books"))
        sums, created = Counter[str](), Counter[str]()
        for (currency, amount), times in paid.items():
            sums[currency] += amount * times  # type: ignore[assignment]
        for currency, by in report["sums"].items():
            created[currency] = Decimal(by["created"])  # type: ignore[assignment]
        twice = [row for row, times in paid.items() if times > 1]
        rows = report["rows"]
        unpaid = len(self.asked) - len(paid)
        facts = {
            f"rows were paid twice: {twice[:5]}": not twice,
            f"payouts of no row: {[*paid.keys() - self.asked][:5]}": paid.keys() <= self.asked,
            f"the report's sums are not the books': {created}, {sums}": created == sums,
            f"the report's counts are not the books': {rows}": rows["created"] == len(paid)
            and rows["rejected"] == unpaid < 0.2 * self.rows,
            f"the certificate is not clean: {report['certificate']}": bool(
                (report["certificate"] or {}).get("clean")
            ),
        }
        return [*(problem for problem, well in facts.items() if not well), *filter(None, [ledger.problem()])]


def tell(trial: Trial, story: str) -> list[str]:
    def all_stopped(act: Callable[[], None]) -> Callable[[], None]:
        def acted() -> None:
            trial.stop()
            act()

        return acted

    first = trial.ledgers[0]
    moments: dict[float, Callable[[], None]] = {0.25: first.restart, 0.5: first.restart}
    if story == "deleted":
        moments[1 / 3] = all_stopped(first.delete)
    elif story == "older copy":
        moments |= {0.28: all_stopped(first.copy), 1 / 3: all_stopped(first.put_back)}
    elif story == "clock":
        moments |= {0.3: lambda: trial.set_clock(DAY), 0.6: lambda: trial.set_clock(0.0)}
        moments[0.8] = lambda: trial.set_clock(-DAY)
    trial.pay(moments)
    trial.stop()
    if trial.problems:
        return trial.problems
    for ledger in trial.ledgers[1:]:  # after which the first one's list is whole
        trial.close(ledger)
    reports = [(ledger, trial.close(ledger)) for ledger in trial.ledgers]
    return [*trial.problems, *(each for found in reports for each in trial.judge(*found))]


def run(
    folder: Path,
    story: str,
    service: str,
    rows: int,
    *,
    seed: int = 1,
    every: float = 2.0,
    share: float = FAULTY,
    server: PostgresServer | None = None,
) -> tuple[Trial, list[str]]:
    count = 2 if story == "two ledgers" else 1
    places = [folder / str(number) for number in range(count)]
    for place in places:
        place.mkdir(parents=True)
    ledgers: list[Ledger] = [
        FileLedger(place) if server is None else ServerLedger(server) for place in places
    ]
    with serving(service, seed, share) as started:
        trial = Trial(folder, started, ledgers, random.Random(seed), rows, every)
        try:
            return trial, tell(trial, story)
        finally:
            trial.stop()


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.campaigns.kills", description=__doc__)
    parser.add_argument("rows", nargs="?", type=int, default=20_000)
    parser.add_argument("--service", choices=("sandbox", "reference"), action="append")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), action="append")
    parser.add_argument("--story", choices=STORIES, action="append")
    parser.add_argument("--every", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=FAULTY)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve_sandbox(asked.share, asked.seed)
        return 0
    found = 0
    for database in asked.database or ("sqlite", "postgresql"):
        for service in asked.service or ("sandbox", "reference"):
            for story in asked.story or STORIES:
                folder = Path(tempfile.mkdtemp())
                options = {"seed": asked.seed, "every": asked.every, "share": asked.share}
                began = time.monotonic()
                with nullcontext() if database == "sqlite" else postgres_server() as server:
                    trial, problems = run(folder, story, service, asked.rows, server=server, **options)
                seconds = time.monotonic() - began
                print(
                    f"{database}, {service}, {story}: {asked.rows} rows, {trial.kills} kills, "
                    f"codes {dict(trial.codes)}, {seconds:.0f} s: {problems or 'exact'}",
                    flush=True,
                )
                found += bool(problems)
                shutil.rmtree(folder)
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
