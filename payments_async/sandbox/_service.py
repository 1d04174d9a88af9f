"""The service behind `Sandbox`: the core under its lock, the journal and the webhooks."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from msgspec.structs import replace

from ._api.core import Core
from ._common.clock import Clock, real_seconds
from ._common.values import Answer, Delivery, Effect, LoggedRequest, Request
from ._journal import Journal, JournalEntry, LoggedExchange, tried
from ._records.world import World
from ._webhooks import Webhook, WebhookTry
from ._webhooks.address_guard import NotSent
from ._webhooks.controls import WebhookControls
from ._webhooks.outbox import WebhookOutbox


class SandboxService(WebhookControls):
    """The parts of one simulated service, used by one thread at a time."""

    api_key: str

    def __init__(self, core: Core, clock: Clock) -> None:
        self.clock: Clock = clock
        self._core = core
        self._lock = threading.RLock()
        self._outbox = WebhookOutbox(self._lock)
        self._journal = Journal()

    @property
    def requests(self) -> list[LoggedRequest]:
        """The requests to the API that the journal keeps, oldest first, without their Authorization headers.

        Visits to a hosted page are not among them. Those whose bytes it dropped have no headers.
        """
        with self.reading():
            return [exchange.log for exchange in self._journal.newest_exchanges()][::-1]

    @property
    def journal(self) -> Journal:
        """Requests with their bodies, changes and deliveries by sequence number; read it with `entries`."""
        return self._journal

    def entries(self, after: int = 0) -> list[JournalEntry]:
        """The journal's entries after a number, oldest first."""
        with self.reading():
            return self._journal.since(after)

    def handle(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        *,
        address: str = "127.0.0.1",
    ) -> Answer:
        """Answer one request in the caller's thread; `answer.fault` says how the line should misbehave.

        `path` is as on the wire, with the version prefix and the query string: `/v1/payouts?per_page=2`. The
        hosted page is at `/checkout/{id}`, the inspector at `/_sandbox/`.
        """
        plain, _, query = path.partition("?")
        lowered = {name.lower(): value for name, value in (headers or {}).items()}
        request = Request(method, plain, query, lowered, body or b"", address)
        answer = self._serve(request)
        answer.on_end()
        return answer

    @abstractmethod
    def _serve(self, request: Request) -> Answer:
        """Answer a request, whatever it is for."""

    @contextmanager
    def changing(self) -> Iterator[World]:
        """The records as of now, to change them, for one thread at a time. Not for tests."""
        with self._lock:
            self._keep(self._core.due(self.clock.now()))
            try:
                yield self._core.world
            finally:
                self._keep(self._core.world.take_effects())

    @contextmanager
    def reading(self) -> Iterator[World]:
        """The records as of now, to read them, for one thread at a time."""
        with self._lock:
            self._keep(self._core.due(self.clock.now()))
            yield self._core.world

    def _answer(self, request: Request) -> Answer:
        with self._lock:
            began = real_seconds()
            answer, effects = self._core.handle(request, self.clock.now())
            if not (effects and isinstance(logged := effects[-1], LoggedRequest)):
                awaits = self._keep(effects)
                return replace(answer, awaits=awaits) if awaits else answer
            before = self._journal.last
            awaits = self._keep(effects[:-1])
            caused = self._journal.last - before
            exchange = self._journal.add_exchange(logged, began, request.body, answer, caused)
        return replace(answer, awaits=awaits, on_end=partial(self._left, exchange))

    def _left(self, exchange: LoggedExchange) -> None:
        """The answer to a request, or its caller, has left."""
        with self._lock:
            self._journal.end(exchange, real_seconds() - exchange.real)

    def _keep(self, effects: Sequence[Effect]) -> tuple[str, ...]:
        """Record effects and queue webhooks. Returns the webhooks that the request's answer waits for."""
        awaits: list[str] = []
        for effect in effects:
            assert not isinstance(effect, LoggedRequest)  # it comes with its answer, by `add_exchange`
            self._journal.add(effect)
            if isinstance(effect, Delivery) and (webhook_id := self._outbox.keep(effect)):
                awaits.append(webhook_id)
        if effects and self._core.world.has_receivers:
            self._poke()
        return tuple(awaits)

    def _take(self, room: int) -> tuple[list[Webhook], float | None]:
        """Take the webhooks to send now, and the seconds until there may be more."""
        with self.changing() as world:
            webhooks = self._outbox.take(world.now, room)
            moments = [self._outbox.queue.next_at if room > len(webhooks) else None]
            moments.append(world.next_at if world.has_receivers else None)
            due = min((moment for moment in moments if moment is not None), default=None)
            return webhooks, None if due is None else due - world.now

    def _report(self, webhook_id: str, result: WebhookTry | NotSent) -> None:
        with self.changing() as world:  # what fell due before stands before it
            self._outbox.reported(webhook_id, result)
            if webhook_id in self._outbox.queue:
                self._journal.add(tried(self._outbox.queue.find(webhook_id), result, world.now))

    def _put_back(self) -> None:
        with self._lock:
            self._outbox.queue.put_back(self._core.world.now)
