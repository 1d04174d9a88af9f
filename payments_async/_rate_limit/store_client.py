"""Asks a store for all rate limiters of this process that use it.

It has a thread and an event loop of its own, so that callers on any loop or thread share one connection.
The thread starts when a limiter first needs permits. It ends when a client that uses it is closed, and after
a minute without anything to do; the next caller starts another. While the store cannot be reached it is tried
once a second.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress
from typing import Final
from weakref import WeakSet

from .._emitter import logger
from .._extras import needs
from .._http.types import Secret
from .._runtime import Runtime, renewed_in_child
from ..errors import ConfigurationError
from .limiter import RateLimiter
from .limits import LimitClass, Outage, RateLimits
from .shared_bucket import LAG, RETRY, SharedBucket
from .store import BlockStore, StoreUnavailable, row_name
from .waiters import ASKED

LINGER: Final = 60.0  # seconds without anything to do after which the thread ends


class SharedLimiter(RateLimiter):
    """Lets requests of one class through while a store grants permits."""

    __slots__ = ("_row", "_shared", "_store")

    lag: float = LAG

    def __init__(
        self, store: LimitStoreClient, place: tuple[str, str], kind: LimitClass, limits: RateLimits
    ) -> None:
        """`place`: the service's address, and the key's fingerprint."""
        sizes = limits.of(kind), limits.capacity(kind)
        self._shared = SharedBucket(*sizes, self._call_store, store.clock)
        super().__init__(self._shared)
        self._row, self._store = row_name(*place, kind), store
        self.resize(*sizes)

    @property
    def outage(self) -> Outage | None:
        return self._store.outage

    @property
    def part(self) -> int | None:
        return self._shared.part

    def resize(self, limit: int, capacity: int) -> None:
        """Change the limits, and the number of processes as it is known now."""
        self._shared.workers = self._store.workers
        super().resize(limit, capacity)

    async def reserve(self, store: BlockStore) -> None:
        """Reserve what is needed, and tell of a 429. Raises as the store does."""
        with self._lock:
            queues = (self._queue.interactive, self._queue.bulk)
            waiting = (sum(waiter.group.loop.is_running() for waiter in queue) for queue in queues)
            request, asked = self._shared.request(*waiting), self._store.clock()
        if request is not None:
            answer = await store.reserve(self._row, request)
            with self._lock:
                self._shared.take_answer(answer, request, asked)
                self._call_all()

    def dismiss(self) -> None:
        """Have the next caller without a permit call the store client, whose thread has ended."""
        with self._lock:
            self._shared.is_called = False

    def lose(self, now: float) -> None:
        """The store cannot be reached. Callers who wait look at why, and come back."""
        with self._lock:
            self._shared.is_called = True  # it is asked again by itself
            if not self._shared.is_lost:
                self._shared.lose(now)
            for waiter in (*self._queue.interactive, *self._queue.bulk):
                self._queue.leave(waiter)
                with suppress(RuntimeError):  # its loop was closed meanwhile
                    waiter.group.loop.call_soon_threadsafe(waiter.wake)

    def _call_store(self) -> None:
        self._store.call(self)


class LimitStoreClient:
    """The client of one store, and its thread.

    Thread-safe without a lock that is waited for, which could deadlock: a caller holds the lock of one
    limiter, and at any moment the garbage collector may end another call, which takes that of another.
    """

    outage: Outage | None  # why the store cannot be reached
    _loop: asyncio.AbstractEventLoop | None

    def __init__(self, address: Secret, runtime: Runtime, *, insecure_database: bool = False) -> None:
        """`address`: the store's, a URL. `insecure_database`: allow another host without verified TLS."""
        self.address = address
        self.workers: int | None = None
        """Processes that share the store, if known: each takes its part while it cannot be reached."""
        self._insecure_database = insecure_database
        self._runtime = runtime
        self._was_reached = False
        self._begin_anew()
        _clients.add(self)

    def clock(self) -> float:
        """Seconds, also while the machine is suspended where the platform has such a clock."""
        seconds = self._runtime.boottime()
        return self._runtime.monotonic() if seconds is None else seconds

    def call(self, limiter: SharedLimiter) -> None:
        """Look at a limiter soon; from any thread."""
        self._called.append(limiter)
        if self._running.acquire(blocking=False):
            self._is_ending = False
            start(self)
        else:
            self._wake_up()

    def end(self) -> None:
        """End the thread, once it has asked for all who have called."""
        self._is_ending = True
        self._wake_up()

    def forked(self) -> None:
        """Begin anew in a forked child. The parent's are kept, so that they are never finalized here."""
        _INHERITED.append((self._loop, self._wake))
        self._begin_anew()

    def run(self) -> None:
        """Serve, on a loop that waits by a selector, as psycopg needs on every platform."""
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(self.serve())

    async def serve(self) -> None:
        """Ask the store for the limiters that call, until the end."""
        store = open_store(self.address, insecure_database=self._insecure_database)
        self._retry_at, self._wake = ASKED, asyncio.Event()
        self._loop = asyncio.get_running_loop()
        lost = set[SharedLimiter]()
        try:
            while self._called or not self._is_ending:
                self._wake.clear()
                await self._ask_all(store, lost)
                if not self._is_ending:
                    await self._rest()
        finally:
            self.outage = self._loop = None
            self._running.release()  # the next caller starts another thread
            for limiter in lost:
                limiter.dismiss()
            if self._called:
                self.call(self._called.pop())  # who came meanwhile, and found this one running
            with suppress(StoreUnavailable):
                await store.aclose()

    async def _ask_all(self, store: BlockStore, lost: set[SharedLimiter]) -> None:
        """Ask for each limiter that called. In an outage, once a second for all of them (`lost`)."""
        is_away = self._runtime.monotonic() < self._retry_at
        if not is_away:
            self._called.extend(lost)
            lost.clear()
        while self._called:
            limiter = self._called.popleft()
            is_away = is_away or not await self._ask(store, limiter)
            if is_away:
                lost.add(limiter)
        for limiter in lost:
            limiter.lose(self._runtime.monotonic())

    async def _ask(self, store: BlockStore, limiter: SharedLimiter) -> bool:
        """Ask for one limiter; False when the store cannot be reached."""
        is_refusal = False
        try:
            await limiter.reserve(store)
        except ConfigurationError as error:
            reason, is_refusal = str(error), not self._was_reached
        except StoreUnavailable as error:
            reason = str(error)
        except Exception as fault:  # ours; without the thread all callers would wait for ever
            reason = f"{type(fault).__name__} while it was asked"
        else:
            self._was_reached = True
            if self.outage is not None:
                lasted = self._runtime.monotonic() - self.outage.since
                logger.info("the limit store is back after %.0f s", lasted)
            self.outage = None
            return True
        now = self._runtime.monotonic()
        self._retry_at = now + RETRY
        if self.outage is None or is_refusal > self.outage.is_refusal:
            self.outage = Outage(self.outage.since if self.outage else now, reason, is_refusal)
            logger.warning("the limit store cannot be used: %s", reason)
        return False

    async def _rest(self) -> None:
        """Wait for a call, or for the next try; without either for long, end."""
        if self.outage is None:
            timer = self._runtime.call_later(LINGER, self.end, background=True)
        else:
            wait = max(self._retry_at - self._runtime.monotonic(), 0.0)
            timer = self._runtime.call_later(wait, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()

    def _begin_anew(self) -> None:
        self.outage = self._loop = None
        self._called: deque[SharedLimiter] = deque()
        self._running: threading.Lock = threading.Lock()  # held while a thread runs
        self._is_ending = False
        self._wake = asyncio.Event()

    def _wake_up(self) -> None:
        """Have the thread look. Before its loop runs, it will look by itself."""
        if (loop := self._loop) is not None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._wake.set)


def start(client: LimitStoreClient) -> None:
    """Start a store client's thread; where time is simulated, there is none for it."""
    threading.Thread(target=client.run, name="payments-limits", daemon=True).start()


def open_store(url: str, *, insecure_database: bool = False) -> BlockStore:
    """The store at `postgresql://…`, `redis://…` or `rediss://…`; connects when first used.

    `insecure_database`: allow one on another host without TLS that proves its name.
    Raises ConfigurationError for another scheme, an address that cannot be used, or a missing library. The
    address itself is never shown: it may contain a password.
    """
    scheme = url.partition(":")[0].lower()
    try:
        if scheme in ("postgresql", "postgres"):
            from .store_postgresql import PostgresBlockStore

            return PostgresBlockStore(url, insecure_database=insecure_database)
        if scheme in ("redis", "rediss"):
            from .store_redis import RedisBlockStore

            return RedisBlockStore(url, insecure_database=insecure_database)
    except ImportError as error:
        if scheme.startswith("redis"):
            raise ConfigurationError(needs("a limit_store in Redis needs", "redis")) from error
        raise ConfigurationError(needs("a limit_store in PostgreSQL needs", "postgresql")) from error
    raise ConfigurationError("limit_store must be an address like postgresql://… or redis://…")


@renewed_in_child
def _after_fork() -> None:
    for client in _clients:
        client.forked()


_INHERITED: Final[list[object]] = []  # what the parent's threads use
_clients: Final[WeakSet[LimitStoreClient]] = WeakSet()
