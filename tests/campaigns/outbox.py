"""A FastAPI program that takes orders, killed with SIGKILL again and again, and its outbox's processes too.

    python -m tests.campaigns.outbox 50 [--seed 1]

An order and its payout stand in one transaction of the program's own SQLAlchemy session; a third of them is
rolled back. Customers ask again when they got no answer. Two processes of `payments payouts run --follow` pay
meanwhile, and are killed as well; a share of all requests to the service is disturbed. In the end, by the
sandbox's books, on SQLite and PostgreSQL, of an async and a sync program: each committed order was paid once,
to the last digit, and nothing else; the certificate is clean. Exits 1 on a breach.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import aiohttp
import attrs
import sqlalchemy as sa
import uvicorn
from fastapi import FastAPI, HTTPException, Response
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import payments_async.bulk
import payments_sync.bulk
from payments_async import Instrument
from payments_async.bulk import metadata
from tests.support.disturbed import BRISK, DisturbedSandbox
from tests.support.payout_command import COMMAND, environment_of
from tests.support.servers import free_port, postgres_server

KILLED: Final = -signal.SIGKILL
CUSTOMERS, PAYERS = 4, 2
WALLET: Final = {"method": "mtn_gh", "instrument": Instrument.phone("+233241234567", "GH")}
WINDOW, LIFE = (0.0, 0.6), (0.5, 15.0)
"""Seconds from a program's first order to its kill; from the start of a process that pays to its kill."""


class Base(DeclarativeBase):
    """The program's own tables."""


class Order(Base):
    __tablename__ = "orders"
    number: Mapped[int] = mapped_column(primary_key=True)
    amount: Mapped[str]

    def payout(self) -> dict[str, Any]:
        return {**WALLET, "currency": "GHS", "amount": self.amount, "reference": f"order-{self.number}"}


def program(url: str, surface: str) -> FastAPI:
    """The program, which takes orders: `POST /orders/7`. It thinks better of every third one."""
    engine, own = sa.create_engine(url), create_async_engine(url.replace("sqlite:", "sqlite+aiosqlite:"))
    outbox = payments_async.bulk.Outbox("payouts", environment="sandbox")
    twin = payments_sync.bulk.Outbox("payouts", environment="sandbox")
    for tables in (Base.metadata, metadata):
        tables.create_all(engine)

    async def take(number: int) -> None:
        async with AsyncSession(own) as session, session.begin():
            session.add(order := Order(number=number, amount=f"{number}.07"))
            await outbox.add(session, **order.payout())
            if number % 3 == 0:
                raise HTTPException(409)

    def take_blocking(number: int) -> None:
        with Session(engine) as session, session.begin():
            session.add(order := Order(number=number, amount=f"{number}.07"))
            twin.add(session, **order.payout())
            if number % 3 == 0:
                raise HTTPException(409)

    app = FastAPI()
    app.post("/orders/{number}")(take if surface == "async" else take_blocking)
    app.add_exception_handler(sa.exc.IntegrityError, lambda *_: Response(status_code=409))  # it is taken
    return app


@attrs.define
class Campaign:
    """One program, its customers, the processes that pay, and who kills them."""

    sandbox: DisturbedSandbox
    database: str
    """A file, or an address."""
    url: str
    """The same, for SQLAlchemy."""
    surface: str
    chance: random.Random
    orders: dict[str, Decimal] = attrs.field(factory=dict)
    """Those that were committed: {reference: amount}."""
    rolled_back: int = 0
    unanswered: int = 0
    kills: int = 0
    payers: int = 0
    problems: list[str] = attrs.field(factory=list)
    _port: int = attrs.field(factory=free_port)
    _numbers: Iterator[int] = attrs.field(factory=lambda: itertools.count(1))
    _taken: asyncio.Event = attrs.field(factory=asyncio.Event)
    _over: bool = False

    def __str__(self) -> str:
        total, faults = sum(self.orders.values(), Decimal(0)), self.sandbox.faults.total()
        return (
            f"{len(self.orders)} orders of GHS {total} committed, {self.rolled_back} rolled back, "
            f"{self.unanswered} requests unanswered; {self.kills} kills of the program, {self.payers} of "
            f"processes that pay; {self.sandbox.creations} creations asked for, {faults} faults"
        )

    async def take_orders(self, kills: int) -> None:
        """Take orders and pay them until there were enough kills."""
        serving = ("-m", "tests.campaigns.outbox", "--serve", self.url, self.surface, str(self._port))
        async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as tasks:
            for _ in range(CUSTOMERS):
                tasks.create_task(self._buy(session))
            for _ in range(PAYERS):
                tasks.create_task(self._kill_payers())
            while self.kills < kills and not self.problems:
                self._taken.clear()
                with self._started(*serving) as process:
                    await asyncio.wait_for(self._taken.wait(), 120)
                    await asyncio.sleep(self.chance.uniform(*WINDOW))
                self.kills += process.returncode == KILLED
            self._over = True

    async def _buy(self, session: aiohttp.ClientSession) -> None:
        """A customer, who orders, and asks again when no answer came."""
        number = 0
        while not self._over:
            number = number or next(self._numbers)
            url = f"http://127.0.0.1:{self._port}/orders/{number}"
            try:
                async with session.post(url) as answer:
                    self.problems += [f"{url}: {answer.status}"] * (answer.status not in (200, 409))
                self.rolled_back += number % 3 == 0
                self._taken.set()
                number = 0
            except aiohttp.ClientError:
                self.unanswered += 1
                await asyncio.sleep(0.05)

    async def _kill_payers(self) -> None:
        await self._taken.wait()  # there are tables
        while not self._over:
            with self._paying("run", "--follow") as process:
                await asyncio.sleep(self.chance.uniform(*LIFE))
            self.payers += process.returncode == KILLED

    def _paying(self, *command: str) -> AbstractContextManager[subprocess.Popen[str]]:
        return self._started(*COMMAND[1:], *command, "--batch-id", "payouts", "--json", fine=(0, 3, 75))

    @contextmanager
    def _started(self, *arguments: str, fine: tuple[int, ...] = ()) -> Iterator[subprocess.Popen[str]]:
        """Context of a process, which is killed at its end. It is a problem if it broke before."""
        place = {"PAYMENTS_LEDGER": self.database, **environment_of(self.sandbox)}
        with subprocess.Popen(
            [sys.executable, *arguments],
            env={**os.environ, **place},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()
                _, said = process.communicate()
        if process.returncode not in (KILLED, *fine) or "Traceback" in said:
            self.problems.append(f"{arguments} ended with {process.returncode}: {said[-2000:]}")

    def pay_the_rest(self) -> None:
        """Run the outbox without a kill until nothing is left, and certify it."""
        self.sandbox.share = 0.0
        for command in ("run", "reconcile"):
            with self._paying(command) as process:
                process.wait(300)
            self.problems += [f"{command}: {process.returncode}"] * bool(process.returncode)

    def judge(self) -> None:
        """Compare the program's orders with the service's books, reference by reference."""
        with Session(engine := sa.create_engine(self.url)) as session:
            committed = session.scalars(sa.select(Order)).all()
        engine.dispose()
        orders = self.orders = {f"order-{each.number}": Decimal(each.amount) for each in committed}
        entries = self.sandbox.books.payouts()
        paid = {str(entry.reference): entry.amount for entry in entries}
        facts = {
            f"{len(entries) - len(paid)} orders were paid twice": len(entries) == len(paid),
            f"never paid: {sorted(orders.keys() - paid.keys())[:5]}": orders.keys() <= paid.keys(),
            f"paid without an order: {sorted(paid.keys() - orders.keys())[:5]}": paid.keys() <= orders.keys(),
            f"amounts differ: {sorted(orders.items() ^ paid.items())[:5]}": orders == paid,
            "no order was committed": bool(orders),
        }
        self.problems += [problem for problem, is_so in facts.items() if not is_so]


def run(database: Path | str, surface: str, kills: int, seed: int = 1) -> Campaign:
    if isinstance(database, Path):
        database.touch(0o600)
        url = f"sqlite:///{database}?timeout=60"
    else:
        url = database.replace(":", "+psycopg:", 1)
    with DisturbedSandbox(seed, share=0.02, words=BRISK, readings=BRISK) as sandbox:
        campaign = Campaign(sandbox, str(database), url, surface, random.Random(seed))
        asyncio.run(campaign.take_orders(kills))
        campaign.pay_the_rest()
        campaign.judge()
    return campaign


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        url, surface, port = sys.argv[2:]
        return uvicorn.run(program(url, surface), port=int(port), log_level="error")
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.outbox")
    parser.add_argument("kills", type=int, help="kills of each program, after its first order")
    parser.add_argument("--seed", type=int, default=1)
    options, began, problems = parser.parse_args(), time.perf_counter(), list[str]()
    with tempfile.TemporaryDirectory() as folder, postgres_server() as server:
        for surface in ("async", "sync"):
            for database in (Path(folder, surface), server.url(server.make_database())):
                found = run(database, surface, options.kills, options.seed)
                print(f"{surface}, {found.url.partition(':')[0]}: {found}", flush=True)
                problems += found.problems
    print(f"{time.perf_counter() - began:.0f} s, {len(problems)} breaches", *problems, sep="\n")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
