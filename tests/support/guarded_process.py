"""A process whose tasks make random payouts without pause, under a guard whose sums are in a store.

    python -m tests.support.guarded_process OPTIONS    as JSON: `Guarded`; the secret key in PAYMENTS_API_KEY

It writes each request to its outbox before it sends it, and each end of a call to its log. Killed and
started again, it first sends what the outbox has without an end. Now and then it sends what another process
has in its outbox, uses a reference twice, is slow on the way to the service, or abandons a request, which
arrives later. It ends with its input, after the calls under way.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import attrs

from payments_async import (
    AsyncPayments,
    ConfigurationError,
    Guard,
    GuardRefused,
    Instrument,
    LimitStoreUnavailable,
    PaymentsError,
    PreparedRequest,
    RateLimits,
)
from payments_async._guard import clocks, key_guard, sums
from payments_async._guard.state import StateUnavailable
from payments_async._http.types import HTTPRequest, HTTPResponse, Transport, TransportError
from payments_async._runtime import SYSTEM

WALL: Final = "wall"
"""A file with the seconds by which the machine's clock is ahead."""
CLOCK_TABLE: Final = "public.clock_moved"
"""A table with those of the database's."""
METHODS: Final[Mapping[str, Mapping[str, Any]]] = {
    "GHS": {"method": "mtn_gh", "instrument": Instrument.phone("+233241234567", "GH")},
    "XOF": {"method": "mtn_bj", "instrument": Instrument.phone("+22990112233", "BJ")},
}


@attrs.frozen
class Guarded:
    base_url: str
    store: str
    """The guard's store, an address."""
    folder: str
    """Of all outboxes and logs."""
    number: int
    processes: int
    most: Mapping[str, str]
    sums: Sequence[tuple[str, str, int]]
    tasks: int = 24
    seed: int = 1
    pause: float = 0.03
    """Seconds after a refusal, on average."""
    strange: float = 0.02
    """Share of calls of each strange kind."""
    lease: float = 3.0
    settling: float = 5.0
    known: int = 200
    """Writes that a process remembers."""
    without: str = ""
    """A rule that is left out: see `ABLATIONS`."""
    begins: bool = False
    """Have the store's windows trusted first; without tasks, nothing else."""


_SEEN: Final = sums._Seen
_HOLD: Final = sums.GuardSums._hold


def _trusting(guard_sums: Any, run: Any) -> Any:
    """Hold the sums, and trust windows that are new or were put back."""
    held = _HOLD(guard_sums, run)
    held.known_from.update(dict.fromkeys(held.known_from, 0.0))
    return held


ABLATIONS: Final[Mapping[str, Sequence[tuple[Any, str, Any]]]] = {
    "held": [(sums, "_USED", sums._USED.replace("sum(units * (1 - paid))", "sum(0)"))],
    "paid": [(sums, "_SETTLE", {**sums._SETTLE, "paid": sums._NEVER})],
    "distrust": [(sums.GuardSums, "_hold", _trusting)],
    "clock": [
        (clocks.Clocks, "since", lambda self, earlier: self.clock - earlier.clock),
        (sums, "_Seen", lambda serial, now, ticks: _SEEN(serial, now, ticks - 1e9)),
    ],
}
"""Rules that are left out, to show that the judge sees it: what stands in the place of what."""


def _set(place: Any, **values: Any) -> None:
    for name, value in values.items():
        setattr(place, name, value)


def _scale(options: Guarded) -> None:
    """Bring what is made for windows of hours to windows of seconds; leave a rule out."""
    _set(sums, LEASE=options.lease, SETTLING=options.settling)
    _set(key_guard, LEASE=options.lease, _KNOWN=options.known)
    for place, name, value in ABLATIONS[options.without] if options.without else ():
        setattr(place, name, value)


def _have_clocks(options: Guarded) -> None:
    """Go by a wall clock that the campaign sets; every second process is on another host with a database."""
    is_elsewhere = options.number % 2 == 1 and not options.store.startswith("sqlite:")
    if is_elsewhere:
        _set(clocks, _boot_id=lambda: "another")
    else:
        now, moved = SYSTEM.now, Path(options.folder) / WALL
        _set(SYSTEM, now=lambda: now() + timedelta(seconds=float(moved.read_text())))
    if not options.store.startswith("sqlite:"):
        from payments_async._guard import postgresql

        _set(postgresql, CLOCK=f"(SELECT {postgresql.CLOCK} + seconds FROM {CLOCK_TABLE})")


class Road:
    """The way to the service: some requests take long, and some are abandoned and arrive later."""

    def __init__(self, inner: Transport, options: Guarded, chance: random.Random) -> None:
        self._inner, self._options, self._chance = inner, options, chance
        self._late: set[asyncio.Task[None]] = set()

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        drawn, strange = self._chance.random(), self._options.strange
        if request.method == "POST" and drawn < strange:
            await asyncio.sleep(self._chance.uniform(0.0, 1.0))
        elif request.method == "POST" and drawn < 2 * strange:
            self._abandon(request)
            raise TransportError("timeout", "it was abandoned")
        return await self._inner.send(request)

    async def aclose(self) -> None:
        await asyncio.gather(*self._late)
        await self._inner.aclose()

    def _abandon(self, request: HTTPRequest) -> None:
        again = HTTPRequest(request.method, request.url, {**request.headers}, request.body, 1.0)
        request.sent = True
        task = asyncio.create_task(self._arrive(again))
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def _arrive(self, request: HTTPRequest) -> None:
        await asyncio.sleep(self._chance.uniform(0.0, max(self._options.settling - 1.5, 0.0)))
        with contextlib.suppress(TransportError):
            await self._inner.send(request)


class Sender:
    def __init__(self, options: Guarded, client: AsyncPayments, chance: random.Random) -> None:
        self._options, self._client, self._chance = options, client, chance
        self._folder = Path(options.folder)
        self._outbox = (self._folder / f"{options.number}.outbox").open("a")
        self._log = (self._folder / f"{options.number}.log").open("a")
        self._references: list[str] = []
        self._over = asyncio.Event()

    async def work(self) -> None:
        tasks = [asyncio.create_task(self._repeat(prepared)) for prepared in self._left_over()]
        tasks += [asyncio.create_task(self._work_on()) for _ in range(self._options.tasks)]
        await asyncio.to_thread(sys.stdin.read)
        self._over.set()
        await asyncio.wait(tasks)

    def _left_over(self) -> list[PreparedRequest]:
        """What an earlier process of this number has left without an end."""
        results = lines_of(self._folder / f"{self._options.number}.log")
        ended = {key for key, result in results if result != "doubt"}
        stored = lines_of(self._folder / f"{self._options.number}.outbox")
        return [_read(request) for request in stored if request["idempotency_key"] not in ended]

    async def _work_on(self) -> None:
        while not self._over.is_set():
            prepared = (self._chance.random() < self._options.strange and self._of_another()) or self._made()
            result = await self._send(prepared)
            if result == "doubt":
                await self._repeat(prepared)
            elif result == "sums":
                await self._rest(self._chance.expovariate(1 / self._options.pause))
            elif result in ("begin", "store"):
                await self._rest(1.0)

    async def _rest(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), seconds)

    async def _repeat(self, prepared: PreparedRequest) -> None:
        """Send a request again until its outcome is known, at times when its reservation has ended."""
        result, longest = "doubt", self._options.lease + self._options.settling
        while result == "doubt" and not self._over.is_set():
            await self._rest(self._chance.choice((0.1, 1.0, self._options.lease, longest)))
            result = await self._send(prepared, resolves=self._chance.random() < 0.1)

    def _made(self) -> PreparedRequest:
        chance = self._chance
        currency = chance.choice([*self._options.most])
        amount = chance.randint(1, int(self._options.most[currency]))
        twice = self._references and chance.random() < self._options.strange
        reference = chance.choice(self._references) if twice else chance.randbytes(8).hex()
        prepared = self._client.payouts.prepare(
            amount=amount, currency=currency, reference=reference, **METHODS[currency]
        )
        self._references = [*self._references[-20:], reference]
        self._outbox.write(prepared.to_json() + "\n")
        self._outbox.flush()
        return prepared

    def _of_another(self) -> PreparedRequest | None:
        number = self._chance.randrange(self._options.processes)
        found = lines_of(self._folder / f"{number}.outbox", last=4_096)
        return _read(found[-1]) if found else None

    async def _send(self, prepared: PreparedRequest, *, resolves: bool = False) -> str:
        try:
            if resolves:
                await self._client.resolve(prepared)
            else:
                await self._client.send(prepared, max_retries=self._chance.choice((0, 2)))
            result = "paid"
        except GuardRefused as error:
            result = error.rule
        except (LimitStoreUnavailable, ConfigurationError):
            result = "store"
        except PaymentsError as error:
            result = {"unknown": "doubt", "happened": "paid", "none": "none"}[error.effect]
        self._log.write(json.dumps([prepared.idempotency_key, result]) + "\n")
        self._log.flush()
        return result


def _read(request: dict[str, Any]) -> PreparedRequest:
    return PreparedRequest.from_json(json.dumps(request))


def lines_of(path: Path, last: int = 0) -> list[Any]:
    """The whole lines of a file, each JSON; `last`: of so many bytes at its end."""
    try:
        with path.open("rb") as file:
            if last:
                file.seek(max(path.stat().st_size - last, 0))
                file.readline()
            text = file.read()
    except FileNotFoundError:
        return []
    found = []
    for line in text[: text.rfind(b"\n") + 1].splitlines():
        with contextlib.suppress(ValueError):  # a kill in the middle of a line
            found.append(json.loads(line))
    return found


def guard_of(options: Guarded) -> tuple[Guard, dict[str, Any]]:
    """The guard, and the client's options that say where its sums are."""
    path = options.store.removeprefix("sqlite:")
    state = path if path != options.store else None
    guard = Guard(most=options.most, sums=options.sums, state=state)
    return guard, {} if state else {"limit_store": options.store, "expected_workers": options.processes}


@contextlib.asynccontextmanager
async def _client(options: Guarded, chance: random.Random) -> Any:
    guard, more = guard_of(options)
    limits = RateLimits(writes=6_000_000, reads=6_000_000)
    client = AsyncPayments(base_url=options.base_url, guard=guard, limits=limits, timeout=1.2, **more)
    client._pipeline.transport = Road(client._pipeline.transport, options, chance)
    async with client:
        yield client


async def _begin(options: Guarded) -> None:
    async with _client(options, random.Random()) as client:
        while True:
            with contextlib.suppress(StateUnavailable):  # it is away, or the others have it
                return client._internal.guard.sums.begin()


async def _run(options: Guarded) -> None:
    if options.begins:
        await _begin(options)
    if not options.tasks:
        return
    chance = random.Random(f"{options.seed} {options.number} {os.getpid()}")
    async with _client(options, chance) as client:
        await Sender(options, client, chance).work()


class GuardedProcess:
    def __init__(self, options: Guarded, api_key: str) -> None:
        command = [sys.executable, "-m", "tests.support.guarded_process", json.dumps(attrs.asdict(options))]
        environment = {**os.environ, "PAYMENTS_API_KEY": api_key}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, env=environment, start_new_session=True
        )

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        self._process.send_signal(signal.SIGSTOP)
        yield
        self._process.send_signal(signal.SIGCONT)

    def finish(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def wait(self, seconds: float) -> int:
        """Wait until it has ended. Returns its exit code; it is killed if it takes longer."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise


def main() -> None:
    logging.disable()  # what is refused, and what of the store's outages
    options = Guarded(**json.loads(sys.argv[1]))
    _scale(options)
    _have_clocks(options)
    asyncio.run(_run(options))


if __name__ == "__main__":
    main()
