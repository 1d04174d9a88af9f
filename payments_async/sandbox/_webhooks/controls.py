"""Controls of webhooks for tests: show, repeat, forge, wait."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager

from .._common.clock import Clock
from .._common.values import Delivery
from .._records.emit_webhook import emit_webhook, forged_payload
from .._records.records import PaymentRecord, PayoutRecord
from .._records.world import World
from .outbox import WebhookOutbox
from .webhook import Webhook


class WebhookControls:
    """Shows, repeats and forges deliveries. Every method may be called from any thread."""

    clock: Clock
    _outbox: WebhookOutbox

    @abstractmethod
    def changing(self) -> AbstractContextManager[World]:
        """The records as of now, to change them, under the sandbox's lock."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[World]:
        """The records as of now, to read them, under the sandbox's lock."""

    @property
    def deliveries(self) -> list[Delivery]:
        """The latest deliveries that were due, oldest first, with any result.

        What became of each is in `webhooks`.
        """
        with self.reading():
            due = [one for one in self._outbox.queue.webhooks if one.origin == "due"]
            return [Delivery(one.at, one.event, one.record_id, one.url, one.body) for one in due]

    @property
    def webhooks(self) -> list[Webhook]:
        """Each delivery with its state and tries, oldest first; copies, forgeries and repeats too.

        All that wait to be tried (50,000 at most) and the latest 20,000 that are over. They leave only while
        the sandbox serves.
        """
        with self.reading():
            return self._outbox.queue.webhooks

    def find_webhook(self, webhook_id: str) -> Webhook:
        """The delivery of this id; `LookupError`. Not for tests."""
        with self.reading():
            return self._outbox.queue.find(webhook_id)

    def resend(self, webhook_id: str) -> Webhook:
        """Send a delivery again, with new tries, whatever its result was; `LookupError`."""
        with self.changing() as world:
            webhook = self._outbox.queue.resend(webhook_id, world.now)
            self._poke()
            return webhook

    def forge(self, record_id: str, event: str | None = None, *, url: str | None = None) -> Webhook:
        """Send a false delivery: that `event` has happened to a payout or payment.

        `event` is `payout.completed` or `payment.completed` unless given; `url` is the record's own
        `webhook_url`. A payment is named by its own id or its checkout session's. The record stays as it is.
        `LookupError` for an unknown id; `ValueError` for an event that such a record does not have, and for a
        record without `webhook_url` when no `url` is given.
        """
        with self._outbox.lock:
            with self.changing() as world:
                _forge(world, record_id, event, url)
            return self._outbox.queue.webhooks[-1]

    def wait_for_webhooks(self, timeout: float = 10.0) -> None:
        """Return once every delivery due by now has been tried; retries that are not due yet do not count.

        Blocks: from asyncio, `await asyncio.to_thread(sandbox.wait_for_webhooks)`. TimeoutError after
        `timeout` seconds of the machine's time, at once when the sandbox is not serving and something is due.
        """
        with self.reading() as world:
            is_serving = self._outbox.poke is not None
            now = lambda: max(world.now, self.clock.now())  # noqa: E731 - the world's is rounded, maybe up
            if not self._outbox.wait_until_idle(now, timeout if is_serving else 0):
                late = f"webhooks are still due after {timeout:g} s"
                raise TimeoutError(late if is_serving else "the sandbox is not serving")

    def _poke(self) -> None:
        if self._outbox.poke is not None:
            self._outbox.poke()


def _forge(world: World, record_id: str, event: str | None, url: str | None) -> None:
    record = _find(world, record_id)
    target = url or record.webhook_url
    if not target:
        raise ValueError(f"{record.id} has no webhook_url; say where to: forge(..., url=...)")
    event = event or ("payout" if isinstance(record, PayoutRecord) else "payment") + ".completed"
    payload = forged_payload(record, event, world.now)
    world.has_receivers = True
    emit_webhook(world, target, event, record.id, lambda: payload, forged=True)


def _find(world: World, record_id: str) -> PayoutRecord | PaymentRecord:
    for tenant in world.tenants.values():
        record = tenant.payouts_by_id.get(record_id) or tenant.payment_of(record_id)
        if record is not None:
            return record
    raise LookupError(f"no payout, payment or checkout session {record_id!r}")
