"""A process whose tasks create payouts without pause, on a limit that it shares through a store.

    python -m tests.support.sending_process OPTIONS    as JSON: `Sending`

It prints a line when the first call has ended, and sends until its input ends. Then it prints how many
calls ended well, and how many failed, by error.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import subprocess
import sys
from collections import Counter

import attrs

from payments_async import AsyncPayments, PaymentsError, RateLimits
from tests.campaigns.pacing import ARGUMENTS


@attrs.frozen
class Sending:
    base_url: str
    store: str
    limit: int
    tasks: int
    workers: int


async def send(options: Sending) -> None:
    failed, sent = Counter[str](), Counter[str]()

    async def send_on(client: AsyncPayments) -> None:
        while True:
            try:
                await client.payouts.create(**ARGUMENTS)
            except PaymentsError as error:
                failed[type(error).__name__] += 1
            else:
                if not sent:
                    print("sending", flush=True)
                sent["calls"] += 1

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
    print(json.dumps({"sent": sent["calls"], "failed": failed}))


class SendingProcess:
    def __init__(self, options: Sending) -> None:
        command = [sys.executable, "-m", "tests.support.sending_process", json.dumps(attrs.asdict(options))]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    def wait(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "sending\n"

    def stop(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def finish(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def result(self) -> str:
        assert self._process.stdout is not None
        with self._process.stdout as told:
            said = told.read()
        self._process.wait()
        return said.splitlines()[-1]


def main() -> None:
    logging.disable()  # the store is lost, and calls are cancelled at the end
    options = Sending(**json.loads(sys.argv[1]))
    asyncio.run(send(options))


if __name__ == "__main__":
    main()
