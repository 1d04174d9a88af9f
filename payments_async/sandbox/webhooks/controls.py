"""The part of `Sandbox` that is about webhooks."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager

from ..common.clock import Clock
from ..common.values import Delivery
from ..records.records import PaymentRecord, PayoutRecord
from ..records.webhook_json import forged_letter
from ..records.world import World, written
from .outbox import Outbox
from .webhook import Webhook


class WebhookControls:
    """Looks at and meddles with deliveries. Every method may be called from any thread."""

    clock: Clock
    _mail: Outbox

    @abstractmethod
    def present(self) -> AbstractContextManager[World]:
        """The sandbox's insides as of now, under its lock."""

    @property
    def deliveries(self) -> list[Delivery]:
        """The latest deliveries that were due, oldest first (20,000 at most), whatever became of them.

        What became of each is in `webhooks`. Those of records without a `webhook_url` are in `inbox`.
        """
        with self.present():
            return list(self._mail.deliveries)

    @property
    def inbox(self) -> list[Delivery]:
        """What records without a `webhook_url` would have been told, oldest first (2,000 at most)."""
        with self.present():
            return [
                Delivery(
                    told.at, told.event, told.record_id, "", written(told.event, told.letter), (), told.forged
                )
                for told in self._mail.inbox
            ]

    @property
    def webhooks(self) -> list[Webhook]:
        """Each delivery with its state and its tries, copies, forgeries and repeats too; oldest first.

        All that wait to be tried (50,000 at most) and the latest 20,000 that are over. They leave only while
        the sandbox serves.
        """
        with self.present():
            return self._mail.courier.webhooks

    def resend(self, webhook_id: str) -> Webhook:
        """Send a delivery once more, with tries of its own, whatever became of it; `LookupError`."""
        with self.present() as world:
            webhook = self._mail.courier.resend(webhook_id, world.now)
            self._poke()
            return webhook

    def forge(self, record_id: str, event: str | None = None, *, url: str | None = None) -> Webhook:
        """Send what is not so: that `event` has happened to a payout or payment, which it has not.

        `event` is `payout.completed` or `payment.completed` unless given; `url` is the record's own
        `webhook_url`. A payment is named by its own id or its checkout session's. The record stays as it is.
        `LookupError` for an unknown id; `ValueError` for an event that such a record does not have, and for a
        record without `webhook_url` when no `url` is given.
        """
        with self._mail.lock:
            with self.present() as world:
                _forge(world, record_id, event, url)
            return self._mail.courier.webhooks[-1]

    def wait_for_webhooks(self, timeout: float = 10.0) -> None:
        """Return once every delivery due by now has been tried; retries that are not due yet do not count.

        Blocks: from asyncio, `await asyncio.to_thread(sandbox.wait_for_webhooks)`. TimeoutError after
        `timeout` seconds of the machine's time, at once when the sandbox is not serving and something is due.
        """
        with self.present() as world:
            is_serving = self._mail.poke is not None
            now = lambda: max(world.now, self.clock.now())  # noqa: E731 - the world's is rounded, maybe up
            if not self._mail.wait_until_idle(now, timeout if is_serving else 0):
                raise TimeoutError(
                    f"webhooks are still due after {timeout:g} s" if is_serving else "nobody sends webhooks"
                )

    def _poke(self) -> None:
        if self._mail.poke is not None:
            self._mail.poke()


def _forge(world: World, record_id: str, event: str | None, url: str | None) -> None:
    record = _find(world, record_id)
    target = url or record.webhook_url
    if not target:
        raise ValueError(f"{record.id} has no webhook_url; say where to: forge(..., url=...)")
    event = event or ("payout" if isinstance(record, PayoutRecord) else "payment") + ".completed"
    letter = forged_letter(record, event, world.now)
    world.has_receivers = True
    world.notify(target, event, record.id, lambda: letter, forged=True)


def _find(world: World, record_id: str) -> PayoutRecord | PaymentRecord:
    for tenant in world.tenants.values():
        session = tenant.sessions.get(record_id)
        found = tenant.payouts_by_id.get(record_id) or tenant.payments_by_id.get(record_id)
        if session is not None:
            return session.payment
        if found is not None:
            return found
    raise LookupError(f"no payout, payment or checkout session {record_id!r}")
