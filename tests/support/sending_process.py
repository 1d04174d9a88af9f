"""A process whose tasks create payouts without pause, on a limit that it shares through a store.

    python -m tests.support.sending_process OPTIONS    as JSON: `Sending`

It prints a line when the first call has ended, and sends until its input ends. Then it prints what it did as
JSON: `Sent`. The store's clock is ahead by what
a test has put in `payments_test_clock`, a table in PostgreSQL or a key in Redis.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import subprocess
import sys
from collections import Counter
from typing import Any, Final, cast

import attrs

from payments_async import AsyncPayments, PaymentsError, RateLimits
from payments_async._rate_limit import store_client, store_postgresql, store_redis
from payments_async._rate_limit.compare_and_set import LimitStore, RowRead, RowWrite
from payments_async._rate_limit.store import LimitFigures, LimitRow
from payments_async._rate_limit.store_postgresql import PostgresLimitStore
from payments_async._rate_limit.store_redis import RedisLimitStore
from tests.campaigns.pacing import ARGUMENTS
from tests.rate_limit.fleet import leaves_no_room

TABLE: Final = "CREATE TABLE IF NOT EXISTS payments_test_clock AS SELECT 0::float8 AS seconds"
SQL_CLOCK: Final = f"{store_postgresql.CLOCK} + (SELECT seconds FROM payments_test_clock)"
LUA_CLOCK: Final = f"{store_redis.CLOCK} clock = clock + (redis.call('GET', 'payments_test_clock') or 0)"


@attrs.frozen
class Sending:
    """What a process is to do."""

    base_url: str
    store: str
    limit: int
    tasks: int
    workers: int
    leaves_room: bool = True
    """Whether the rate leaves room for what is under way."""


@attrs.frozen
class Sent:
    """What a process did."""

    sent: int
    """Calls that ended well."""
    round_trips: int
    """To the store."""
    failed: dict[str, int]
    """Calls that failed, by error."""


_counted: Counter[str] = Counter()


def _counts_round_trips(store: Any) -> LimitStore:
    exchange = store.exchange

    async def counted(row: LimitRow, write: RowWrite) -> RowRead:
        _counted["round_trips"] += 1
        return cast(RowRead, await exchange(row, write))

    store.exchange = counted
    return cast(LimitStore, store)


def _open_store(url: str, **_: object) -> LimitStore:
    if url.startswith("postgresql"):
        return _counts_round_trips(PostgresLimitStore(url, clock=SQL_CLOCK))
    return _counts_round_trips(RedisLimitStore(url, clock=LUA_CLOCK))


async def send(options: Sending) -> Sent:
    """Send until the input ends."""
    failed: Counter[str] = Counter()

    async def send_on(client: AsyncPayments) -> None:
        while True:
            try:
                await client.payouts.create(**ARGUMENTS)
            except PaymentsError as error:
                failed[type(error).__name__] += 1
            else:
                if not _counted["sent"]:
                    print("sending", flush=True)
                _counted["sent"] += 1

    async with AsyncPayments(
        "sk_sandbox_campaign",
        base_url=options.base_url,
        limits=RateLimits(writes=options.limit),
        limit_store=options.store,
        expected_workers=options.workers,
    ) as client:
        tasks = [asyncio.create_task(send_on(client)) for _ in range(options.tasks)]
        await asyncio.to_thread(sys.stdin.read)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    return Sent(_counted["sent"], _counted["round_trips"], dict(failed))


class SendingProcess:
    """The process, from outside."""

    def __init__(self, options: Sending) -> None:
        command = [sys.executable, "-m", "tests.support.sending_process", json.dumps(attrs.asdict(options))]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    def wait(self) -> None:
        """Wait until it sends."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "sending\n"

    def kill(self) -> None:
        """Kill -9."""
        self._process.kill()
        self._process.communicate()

    def stop(self) -> None:
        """Stand still."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Run again."""
        self._process.send_signal(signal.SIGCONT)

    def finish(self) -> None:
        """Send no more."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def result(self) -> Sent:
        """Wait until it has ended."""
        assert self._process.stdout is not None
        with self._process.stdout as told:
            said = told.read()
        self._process.wait()
        return Sent(**json.loads(said.splitlines()[-1]))


def main() -> None:
    """The command."""
    logging.disable()  # of calls that are cancelled at the end
    options = Sending(**json.loads(sys.argv[1]))
    store_client.open_store = _open_store
    if not options.leaves_room:
        LimitFigures.rate = leaves_no_room  # type: ignore[method-assign] # a process of its own
    print(json.dumps(attrs.asdict(asyncio.run(send(options)))))


if __name__ == "__main__":
    main()
