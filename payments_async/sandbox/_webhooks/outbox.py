"""The webhooks of one sandbox: those that are due or under way.

Each is made, and its body written, in `_records/emit_webhook.py`.
Not safe for threads by itself: the sandbox's lock is held around every call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import attrs

from .._common.values import Delivery
from .address_guard import NotSent
from .retry_schedule import WebhookQueue
from .webhook import Webhook, WebhookTry


@attrs.define(eq=False)
class WebhookOutbox:
    """Keeps the deliveries that the core emits. `poke` wakes the sender, and is set while there is one."""

    lock: threading.RLock
    queue: WebhookQueue = attrs.field(factory=WebhookQueue)
    poke: Callable[[], None] | None = None
    _idle: threading.Condition = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._idle = threading.Condition(self.lock)

    def keep(self, delivery: Delivery) -> str | None:
        """Add a delivery; gives its id if the request that caused it must wait for the first try."""
        webhook_id = self.queue.accept(delivery)
        is_awaited = any(word.kind == "before_response" for word in delivery.hooks)
        return webhook_id if is_awaited and not self.queue.find(webhook_id).is_over else None

    def clear(self) -> None:
        """Forget everything, without waiting for tries under way."""
        self.queue.clear()

    def take(self, now: float, room: int) -> list[Webhook]:
        """Take at most `room` webhooks to be sent now."""
        taken = self.queue.take(now, room)
        self._idle.notify_all()
        return taken

    def reported(self, webhook_id: str, result: WebhookTry | NotSent) -> None:
        """Note the result of a try, or that the address was refused."""
        if webhook_id not in self.queue:  # forgotten by `clear` meanwhile
            return
        if isinstance(result, NotSent):
            self.queue.refuse(webhook_id, str(result))
        else:
            self.queue.report(webhook_id, result)
        self._idle.notify_all()

    def wait_until_idle(self, now: Callable[[], float], timeout: float) -> bool:
        """True if nothing is due or under way within `timeout` real seconds. The lock is free meanwhile."""
        return self._idle.wait_for(lambda: self.queue.is_idle(now()), timeout)
