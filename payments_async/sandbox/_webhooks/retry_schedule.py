"""The queue of webhooks and its retry schedule: gives those to send now, and plans each next try (gap Y).

Pure and synchronous, on sandbox time given by its caller. The tries of one record follow one another; those
of different records do not wait for each other.
"""

from __future__ import annotations

import heapq
from collections import deque

import attrs

from .._common.values import Delivery
from .webhook import NO_EFFECTS, HookEffects, Origin, State, Webhook, WebhookTry, hook_effects

TRY_TIMES = (0.0, 30.0, 120.0, 600.0, 3600.0)
"""Seconds of sandbox time from the moment a delivery is due to each of its tries."""

HELD_FOR = 60.0
"""Seconds `reorder` holds a delivery back at most, should the record have nothing more to tell."""

KEPT = 20_000
"""How many finished webhooks are kept, the latest ones."""

MOST_WAITING = 50_000
"""How many can wait to be sent; any more are given up at once, visibly, so that memory has a bound."""

_Entry = tuple[float, int, str]


def next_try(first_at: float, tried: int) -> float | None:
    """The moment of the next try after `tried` failed ones; None when it is given up."""
    return first_at + TRY_TIMES[tried] if tried < len(TRY_TIMES) else None


@attrs.define(eq=False)
class WebhookQueue:
    """All webhooks of one sandbox, with their states."""

    _all: dict[str, Webhook] = attrs.field(factory=dict)
    _over: deque[str] = attrs.field(factory=deque)
    """Ids of finished webhooks, in the order they ended."""
    _queue: list[_Entry] = attrs.field(factory=list)
    """The planned tries; outdated entries are skipped."""
    _busy: dict[str, list[_Entry]] = attrs.field(factory=dict)
    """Records with a running try, and the tries that wait for its end."""
    _held: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    """For each record the delivery that `reorder` holds back, with its copies."""
    _accepted: int = 0
    _pushed: int = 0

    @property
    def webhooks(self) -> list[Webhook]:
        """The latest, oldest first."""
        return list(self._all.values())

    def clear(self) -> None:
        """Forget them all. Ids are not used again, so a try under way cannot end another webhook."""
        for forgotten in (self._all, self._over, self._queue, self._busy, self._held):
            forgotten.clear()

    def __contains__(self, webhook_id: str) -> bool:
        return webhook_id in self._all

    def find(self, webhook_id: str) -> Webhook:
        """The webhook of this id; `LookupError`."""
        try:
            return self._all[webhook_id]
        except KeyError:
            raise LookupError(f"no webhook {webhook_id!r}") from None

    def accept(self, delivery: Delivery) -> str:
        """Add a delivery that is due and give its id; the scenario's words are applied here."""
        asked = hook_effects(delivery.hooks)
        first = Webhook(
            id=self._new_id(),
            at=delivery.at,
            event=delivery.event,
            record_id=delivery.record_id,
            url=delivery.url,
            body=delivery.body,
            origin="forged" if delivery.forged else "due",
            first_at=delivery.at + asked.delay,
        )
        copies = [self._copy(first, "duplicate", first.first_at) for _ in range(asked.copies - 1)]
        for webhook in (first, *copies):
            self._add(webhook, asked)
        return first.id

    def resend(self, webhook_id: str, now: float) -> Webhook:
        """Send a webhook again, from the first try on, whatever its result was; `LookupError`."""
        again = self._copy(self.find(webhook_id), "resent", now)
        self._add(again, NO_EFFECTS)
        return self.find(again.id)

    def _copy(self, webhook: Webhook, origin: Origin, first_at: float) -> Webhook:
        about = (webhook.at, webhook.event, webhook.record_id, webhook.url, webhook.body)
        return Webhook(self._new_id(), *about, origin=origin, repeats=webhook.id, first_at=first_at)

    def _new_id(self) -> str:
        self._accepted += 1
        return f"wh_{self._accepted:08d}"

    def _add(self, webhook: Webhook, asked: HookEffects) -> None:
        self._all[webhook.id] = webhook
        if asked.dropped:
            self._end(webhook, "dropped", "the scenario dropped it")
        elif len(self._all) - len(self._over) > MOST_WAITING:
            self._end(webhook, "given_up", f"{MOST_WAITING:,} deliveries were waiting already")
        elif asked.reordered:
            self._reorder(webhook)
        else:
            self._plan(webhook, webhook.first_at)

    def _reorder(self, webhook: Webhook) -> None:
        """Hold a webhook back, or, when one of the record is held back, send that right after this one."""
        held = [self._all[earlier] for earlier in self._held.pop(webhook.record_id, ())]
        if all(earlier.event == webhook.event for earlier in held):  # none, or copies of one
            self._held[webhook.record_id] = (*(earlier.id for earlier in held), webhook.id)
            self._plan(attrs.evolve(webhook, first_at=webhook.first_at + HELD_FOR))
            return
        self._plan(webhook)
        for earlier in held:
            self._plan(attrs.evolve(earlier, first_at=webhook.first_at))

    def _plan(self, webhook: Webhook, at: float | None = None) -> None:
        """Plan the next try for `at`, or for the planned first moment."""
        at = webhook.first_at if at is None else at
        self._all[webhook.id] = attrs.evolve(webhook, state="waiting", next_at=at)
        self._pushed += 1
        heapq.heappush(self._queue, (at, self._pushed, webhook.id))

    def _end(self, webhook: Webhook, state: State, reason: str | None = None) -> None:
        self._all[webhook.id] = attrs.evolve(webhook, state=state, reason=reason, next_at=None)
        self._over.append(webhook.id)
        if len(self._over) > KEPT:
            del self._all[self._over.popleft()]

    @property
    def next_at(self) -> float | None:
        """The earliest moment at which something may be due."""
        return self._queue[0][0] if self._queue else None

    def is_idle(self, now: float) -> bool:
        """True if no try is under way and none is due."""
        return not self._busy and (self.next_at is None or self.next_at > now)

    def take(self, now: float, room: int) -> list[Webhook]:
        """Take at most `room` webhooks that are due; they are under way until `report` or `refuse`."""
        taken: list[Webhook] = []
        while self._queue and self._queue[0][0] <= now and len(taken) < room:
            entry = heapq.heappop(self._queue)
            if not self._is_valid(entry):
                continue
            webhook = self._all[entry[2]]
            if webhook.record_id in self._busy:
                self._busy[webhook.record_id].append(entry)
                continue
            self._busy[webhook.record_id] = []
            if webhook.id in self._held.get(webhook.record_id, ()):
                del self._held[webhook.record_id]
            sending = attrs.evolve(webhook, state="sending", next_at=None)
            self._all[webhook.id] = sending
            taken.append(sending)
        return taken

    def _is_valid(self, entry: _Entry) -> bool:
        """True if an entry of the queue still holds: `reorder` plans a delivery anew."""
        at, _, webhook_id = entry
        webhook = self._all.get(webhook_id)
        return webhook is not None and webhook.state == "waiting" and webhook.next_at == at

    def report(self, webhook_id: str, tried: WebhookTry) -> Webhook:
        """Note the result of a try; gives the webhook as it then is."""
        webhook = self._free(webhook_id)
        webhook = attrs.evolve(webhook, tries=(*webhook.tries, tried))
        again = next_try(webhook.first_at, len(webhook.tries))
        if tried.is_success:
            self._end(webhook, "delivered")
        elif again is None:
            self._end(webhook, "given_up", f"{len(webhook.tries)} tries in vain")
        else:
            self._plan(webhook, max(again, tried.at))
        return self._all.get(webhook_id, webhook)

    def refuse(self, webhook_id: str, reason: str) -> None:
        """End a webhook under way whose address the sandbox does not send to."""
        self._end(self._free(webhook_id), "refused", reason)

    def put_back(self, now: float) -> None:
        """Make tries that were cut off due again, as if they had not begun."""
        for webhook in self._all.values():
            if webhook.state == "sending":
                self._plan(self._free(webhook.id), now)

    def _free(self, webhook_id: str) -> Webhook:
        webhook = self._all[webhook_id]
        for entry in self._busy.pop(webhook.record_id):
            heapq.heappush(self._queue, entry)
        return webhook
