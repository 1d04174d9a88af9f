"""What is due, what is under way and what nobody receives: the state behind the sandbox's webhooks.

Not safe for threads by itself: the sandbox's lock is around every call.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

import attrs

from ..common.values import Change, Delivery, Notice
from .address_guard import NotSent
from .queue import KEPT, WebhookQueue
from .webhook import Webhook, WebhookTry

INBOX = 2_000
"""How many of the latest deliveries of records without a receiver are kept."""


@attrs.define(eq=False)
class Outbox:
    """Sorts what the core tells. `poke` is set while somebody sends."""

    lock: threading.RLock
    courier: WebhookQueue = attrs.field(factory=WebhookQueue)
    deliveries: deque[Delivery] = attrs.field(factory=lambda: deque(maxlen=KEPT))
    inbox: deque[Notice] = attrs.field(factory=lambda: deque(maxlen=INBOX))
    poke: Callable[[], None] | None = None
    _idle: threading.Condition = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._idle = threading.Condition(self.lock)

    def keep(self, told: Delivery) -> str | None:
        """One more is due; gives its id if the request that caused it must wait for its first try."""
        if not told.forged:
            self.deliveries.append(told)
        webhook_id = self.courier.accept(told)
        is_awaited = any(word.kind == "before_response" for word in told.hooks)
        return webhook_id if is_awaited and not self.courier.find(webhook_id).is_over else None

    def clear(self) -> None:
        """Forget everything; what is under way is not waited for."""
        self.courier.clear()
        self.deliveries.clear()
        self.inbox.clear()

    def take(self, now: float, room: int) -> list[Webhook]:
        """At most `room` of those to be sent now."""
        taken = self.courier.take(now, room)
        self._idle.notify_all()
        return taken

    def reported(self, webhook_id: str, result: WebhookTry | NotSent) -> None:
        """A try is over, or the address was refused."""
        if webhook_id not in self.courier:  # forgotten by `clear` meanwhile
            return
        if isinstance(result, NotSent):
            self.courier.refuse(webhook_id, str(result))
        else:
            self.courier.report(webhook_id, result)
        self._idle.notify_all()

    def fired(self, now: float) -> list[Change]:
        """The tries that are due by `now`, as changes; none when nobody sends."""
        if self.poke is None:
            return []
        return [
            Change(webhook.next_at or now, "webhook", webhook.id, _before(webhook), "sending")
            for webhook in self.courier.due(now)
        ]

    def wait_until_idle(self, now: Callable[[], float], timeout: float) -> bool:
        """Whether nothing is due or under way within `timeout` real seconds. The lock is free meanwhile."""
        return self._idle.wait_for(lambda: self.courier.is_idle(now()), timeout)


def _before(webhook: Webhook) -> str | None:
    return "waiting" if webhook.tries else None
