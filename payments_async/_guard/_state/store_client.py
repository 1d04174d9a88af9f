"""Asks a store for all rate limiters, and others, of this process that use it.

It has a thread and an event loop of its own, so that callers on any loop or thread share one connection.
The thread starts when one of its users first needs something, such as a permit. It ends when a client that
uses it is closed, after a minute without callers, and with the process; the next caller starts another.

While the store cannot be reached it is tried once a second, and nobody asks for anything meanwhile. A
forked child asks for itself: what it inherits is never used and never finalized.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol
from weakref import WeakSet, WeakValueDictionary

from ..._emitter import logger
from ..._extras import needs
from ..._http.types import Secret
from ..._rate_limit.limits import Outage
from ..._rate_limit.store import StoreUnavailable
from ..._rate_limit.waiters import NEVER
from ..._runtime import SYSTEM, Runtime, check_process, renewed_in_child
from ...errors import ConfigurationError
from .compare_and_set import LimitStore

RETRY: Final = 1.0
"""Seconds between tries of a store that cannot be reached."""
LINGER: Final = 60.0
"""Seconds without callers after which the thread ends."""
FAREWELL: Final = 2.0
"""The most seconds for which the end of the process waits for a thread."""


class StoreUser(Protocol):
    """What the store client needs of those for whom it asks, such as limiters."""

    @property
    def has_waiters(self) -> bool:
        """True if a caller waits."""

    @property
    def has_reports(self) -> bool:
        """True if the store is to be told something before the process ends."""

    def plan(self, now: float) -> float:
        """When to be served next; `NEVER` while nothing is needed."""

    def dismiss(self) -> None:
        """Forget the plan, and call the store client again when something is needed."""

    async def exchange(self, store: LimitStore, monotonic: Callable[[], float]) -> None:
        """Tell and ask all that is due. Raises `StoreUnavailable`, ConfigurationError."""

    def lose(self, now: float, *, again: bool = False) -> None:
        """The store cannot be reached (`again`: still not)."""


class StoreClient:
    """One store's thread: starts it, wakes it, ends it.

    Thread-safe without a lock of its own, which could deadlock: a caller holds the lock of one limiter, and
    at any moment the garbage collector may end another call, which takes that of another limiter.
    """

    worker: str
    """Random name of this process, in the store."""
    _loop: asyncio.AbstractEventLoop | None
    _task: asyncio.Task[None] | None
    _wake: asyncio.Event
    _thread: threading.Thread | None

    def __init__(self, address: Secret, runtime: Runtime, *, insecure_database: bool = False) -> None:
        """`address`: the store's, a URL. `insecure_database`: allow another host without verified TLS."""
        self.address = address
        self.insecure_database = insecure_database
        self.runtime = runtime
        self.outage: Outage | None = None
        """Why the store cannot be reached."""
        self.was_reached: bool = False
        self._begin_anew()
        _clients.add(self)

    def call(self, user: StoreUser) -> None:
        """Look at a user soon; from any thread."""
        self._called.append(user)
        if self._claim():
            self._is_ending = False
            start(self)
        else:
            self._tell(self._wake.set)

    def end(self) -> None:
        """End the thread as soon as no caller waits."""
        self._is_ending = True
        self._tell(self._wake.set)

    def stop(self) -> None:
        """End the thread, at the end of the process: the calls that still wait start no other."""
        self._is_stopped = True
        self._tell(self._cancel)
        if self._thread is not None:
            self._thread.join(FAREWELL)

    def _claim(self) -> bool:
        """Take the right to run a thread; False while one runs."""
        try:
            return self._right.pop() and not self._is_stopped
        except IndexError:
            return False

    def _tell(self, call: Callable[[], object]) -> None:
        """Call this on the thread's loop. Before the loop runs, it will look by itself."""
        if (loop := self._loop) is not None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(call)

    def _cancel(self) -> None:
        if self._task is not None:  # else it closes its connection already
            self._task.cancel()

    def start_thread(self) -> None:
        """Start the thread. Its loop waits by a selector, as psycopg needs on every platform."""
        thread = threading.Thread(target=self._run, name="payments-guard", daemon=True)
        thread.start()
        self._thread = thread  # now: one that has not started yet cannot be joined

    def forked(self) -> None:
        """Begin anew in a forked child. The parent's are kept, so that they are never finalized here."""
        _INHERITED.append((self._loop, self._task, self._wake, self._thread))
        self.outage = None
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.worker = self.runtime.token(8).hex()
        self._called: deque[StoreUser] = deque()
        self._right = deque([True])  # while no thread runs
        self._is_ending = self._is_stopped = False
        self._loop = self._task = self._thread = None
        self._wake = asyncio.Event()

    def _run(self) -> None:
        with (
            suppress(asyncio.CancelledError),
            asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner,
        ):
            runner.run(self.serve())

    async def serve(self) -> None:
        """Ask the store for what its users need, until nobody needs anything."""
        session, is_over = StoreSession(self), False
        self._wake = asyncio.Event()
        try:
            while not is_over:
                self._task, self._loop = asyncio.current_task(), asyncio.get_running_loop()
                if self._is_stopped:
                    break  # it was stopped before it could be told
                self._wake.clear()
                while self._called:
                    session.users.add(self._called.popleft())
                following = await session.ask_all()
                if session.has_waiters or not self._is_ending:
                    await self._rest(following)
                is_over = self._is_over(session)
        finally:
            if self._is_stopped:
                session.users.update(self._called)
                await session.report_all()
            if not is_over:
                self._give_way(session)
            await session.close()

    def _is_over(self, session: StoreSession) -> bool:
        if session.has_waiters or not (self._is_ending or session.is_idle(LINGER)):
            return False
        self._give_way(session)
        return not (self._called and self._claim())  # whoever called just now may have found a thread running

    def _give_way(self, session: StoreSession) -> None:
        """Let the next caller start another thread, and ask anew."""
        session.dismiss()
        self.outage = self._loop = self._task = None
        self._right.append(True)

    async def _rest(self, until: float) -> None:
        """Wait until then, or a call; without a time, until nobody has called for long."""
        seconds = until - self.runtime.monotonic()
        timer = self.runtime.call_later(
            max(min(seconds, LINGER), 0.0), self._wake.set, background=seconds > LINGER
        )
        try:
            await self._wake.wait()
        finally:
            timer.cancel()


class StoreSession:
    """Asks a store for what its users need, on the loop of a store client, while its thread runs."""

    def __init__(self, client: StoreClient) -> None:
        self._client = client
        self._monotonic = client.runtime.monotonic
        self._store: LimitStore | None = None
        self._used = self._retry_at = self._monotonic()
        self.users: set[StoreUser] = set()
        """Those that need something now or soon."""

    @property
    def has_waiters(self) -> bool:
        """True if a caller waits at one of the users."""
        return any(user.has_waiters for user in self.users)

    def is_idle(self, seconds: float) -> bool:
        """True if the store has answered nobody for so long."""
        return self._monotonic() - self._used >= seconds

    async def ask_all(self) -> float:
        """Ask for each user that is due. Returns the time of the next."""
        following = NEVER
        if self._client.outage is not None:
            now = self._monotonic()
            for user in self.users:
                user.lose(now)
            if now < self._retry_at:
                return self._retry_at
        for user in tuple(self.users):
            if user.plan(now := self._monotonic()) <= now and not await self._ask(user):
                return self._retry_at
            due = user.plan(self._monotonic())
            if due == NEVER:
                self.users.discard(user)
            following = min(following, due)
        return following

    async def report_all(self) -> None:
        """Report what users know and the store does not, at the end of the process."""
        for user in self.users:
            if user.has_reports:
                await self._ask(user)

    def dismiss(self) -> None:
        """Let go of all users; they call again."""
        for user in self.users:
            user.dismiss()
        self.users.clear()

    async def close(self) -> None:
        """Close the connection."""
        if self._store is not None:
            with suppress(StoreUnavailable):
                await self._store.aclose()

    async def _ask(self, user: StoreUser) -> bool:
        """Report and ask for one user; False when the store cannot be reached."""
        try:
            store = self._store = self._store or self._opened()
            await user.exchange(store, self._monotonic)
        except ConfigurationError as error:
            self._lose(str(error), refusal=not self._client.was_reached)
        except StoreUnavailable as error:
            self._lose(str(error))
        except Exception as fault:  # ours; without the thread all callers would wait for ever
            self._lose(f"{type(fault).__name__} while it was asked")
        else:
            self._find()
            return True
        return False

    def _opened(self) -> LimitStore:
        client = self._client
        return open_store(client.address, insecure_database=client.insecure_database, runtime=client.runtime)

    def _lose(self, reason: str, *, refusal: bool = False) -> None:
        now, outage = self._monotonic(), self._client.outage
        self._retry_at = now + RETRY
        if outage is None or refusal > outage.is_refusal:
            self._client.outage = Outage(now if outage is None else outage.since, reason, refusal)
            logger.warning("the limit store cannot be used: %s", reason)
        for user in self.users:
            user.lose(now, again=True)

    def _find(self) -> None:
        outage, self._client.outage = self._client.outage, None
        self._client.was_reached, self._used = True, self._monotonic()
        if outage is not None:
            logger.info("the limit store is back after %.0f s", self._used - outage.since)


def client_of(address: Secret, runtime: Runtime, *, insecure_database: bool = False) -> StoreClient:
    """The process's one client of the store at an address, for as long as somebody holds it."""
    with _making:
        client = _by_address.get((address, runtime))
        if client is None:
            client = StoreClient(address, runtime, insecure_database=insecure_database)
            _by_address[address, runtime] = client
        return client


def start(store_client: StoreClient) -> None:
    """Start a store client; where time is simulated, there is no thread for it."""
    store_client.start_thread()


@renewed_in_child
def _after_fork() -> None:
    for each in _clients:
        each.forked()


def _at_exit() -> None:
    check_process()
    for each in tuple(_clients):
        each.stop()


_INHERITED: Final[list[object]] = []
"""What the parent's threads use."""
_by_address: Final[WeakValueDictionary[tuple[Secret, Runtime], StoreClient]] = WeakValueDictionary()
_making = threading.Lock()
_clients: Final[WeakSet[StoreClient]] = WeakSet()

atexit.register(_at_exit)


def open_store(url: str, *, insecure_database: bool = False, runtime: Runtime = SYSTEM) -> LimitStore:
    """The store at `postgresql://…`, `redis://…`, `rediss://…` or `sqlite:/path`; connects when first used.

    `insecure_database`: allow one on another host without TLS that proves its name.
    Raises ConfigurationError for another scheme, an address that cannot be used, or a missing library. The
    address itself is never shown: it may contain a password.
    """
    scheme = url.partition(":")[0].lower()
    if scheme in ("postgresql", "postgres"):
        return _postgresql(url, insecure_database)
    if scheme in ("redis", "rediss"):
        return _redis(url, insecure_database)
    if scheme == "sqlite":
        return _sqlite(url, runtime)
    raise ConfigurationError("limit_store must be an address like postgresql://… or redis://…")


def _postgresql(url: str, insecure_database: bool) -> LimitStore:
    try:
        from .store_postgresql import PostgresLimitStore
    except ImportError as error:
        raise ConfigurationError(needs("a limit_store in PostgreSQL needs", "postgresql")) from error
    return PostgresLimitStore(url, insecure_database=insecure_database)


def _redis(url: str, insecure_database: bool) -> LimitStore:
    try:
        from .store_redis import RedisLimitStore
    except ImportError as error:
        raise ConfigurationError(needs("a limit_store in Redis needs", "redis")) from error
    return RedisLimitStore(url, insecure_database=insecure_database)


def _sqlite(url: str, runtime: Runtime) -> LimitStore:
    from .store_sqlite import SQLiteStore

    return SQLiteStore(url.partition(":")[2], runtime=runtime)
