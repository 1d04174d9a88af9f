"""Webhook deliveries: emits one, and writes its body and headers (gaps W, X).

A body shows the record as of now, or falsely. `webhooks/` decides when it is sent, and
sends it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
import msgspec

from .._common.json import JsonObject, encode
from .._common.scenario_words import HookWords, ScenarioOutcome, Timing, UnknownWord, near
from .._common.timestamps import stamp
from .._common.values import Delivery
from .payment_json import attempt_form, payment_list_form
from .payout_json import customer_form, failure_for, payout_form
from .records import PaymentRecord, PayoutRecord, Plan
from .world import World

Payload = Callable[[], JsonObject]
"""Gives the body of a webhook but for the event's name."""

CREATED = "payout.created"

PAYOUT_EVENTS: Mapping[str, str] = {
    CREATED: "pending",
    "payout.completed": "completed",
    "payout.failed": "failed",
}
"""Gap W: each event with the status it claims."""

PAYMENT_EVENTS: Mapping[str, str] = {
    "payment.completed": "completed",
    "payment.failed": "failed",
    "payment.expired": "expired",
    "payment.refunded": "refunded",
    "payment.partially_refunded": "partially_refunded",
}
ATTEMPT_EVENTS: Mapping[str, str] = {
    "payment.attempt.completed": "completed",
    "payment.attempt.failed": "failed",
    "payment.attempt.action_required": "action_required",
}

_PAYMENT_PREFIX = "payment."
_FORGED_CODE = "CUSTOMER_DECLINED"
_ACTION = ScenarioOutcome("action", action="approve_on_phone")


def emit_webhook(
    world: World,
    url: str | None,
    event: str,
    record_id: str,
    payload: Payload,
    hooks: HookWords = (),
    *,
    forged: bool = False,
) -> None:
    """A webhook is due now, if its record has a `url`."""
    if url:
        body = encode({"event": event, **payload()})
        world.add_effect(Delivery(world.now, event, record_id, url, body, hooks, forged))


def headers_for(event: str, record_id: str) -> dict[str, str]:
    """The headers of a delivery; those of a payment hint at the same as its body (gap X)."""
    headers = {"Content-Type": "application/json", "User-Agent": "payments-sandbox"}
    if event.startswith(_PAYMENT_PREFIX):
        headers |= {"X-Payment-Event": event, "X-Payment-Id": record_id}
    return headers


def payout_payload(payout: PayoutRecord) -> JsonObject:
    """The body of a delivery about a payout, but for the event."""
    return {"payout": payout_form(payout)}


def payment_payload(payment: PaymentRecord, now: float) -> JsonObject:
    """The body of a delivery about a payment, but for the event, at `now`."""
    active = payment.active_attempt
    return {
        "payment": payment_list_form(payment),
        "attempt": attempt_form(active, in_list=True) if active else None,
        "customer": customer_form(payment.customer_id, payment.body),
        "timestamp": stamp(now),
    }


def is_forged(hooks: HookWords) -> bool:
    """True if a record gets a delivery that claims its completion as soon as it exists."""
    return bool(hooks) and any(word.kind == "forge" for word in hooks)


def events_of(record: PayoutRecord | PaymentRecord) -> tuple[str, ...]:
    """The events there are for a record."""
    return tuple(PAYOUT_EVENTS) if isinstance(record, PayoutRecord) else (*PAYMENT_EVENTS, *ATTEMPT_EVENTS)


def forged_payload(record: PayoutRecord | PaymentRecord, event: str, now: float) -> JsonObject:
    """The body of a delivery that claims `event` falsely; `ValueError` for no event of the record."""
    if event not in events_of(record):
        raise UnknownWord(f"no event {event!r} of this record ({near(event, events_of(record))})")
    if isinstance(record, PayoutRecord):
        return payout_payload(_claiming(record, PAYOUT_EVENTS[event], now))
    if event in ATTEMPT_EVENTS:
        return payment_payload(_attempted(record, ATTEMPT_EVENTS[event], now), now)
    return payment_payload(_paid(record, PAYMENT_EVENTS[event], now), now)


def as_created(payout: PayoutRecord) -> PayoutRecord:
    """A payout as it was when it was created, pending."""
    return _claiming(payout, "pending", payout.created_at)


def _claiming(payout: PayoutRecord, status: str, now: float) -> PayoutRecord:
    if payout.status == status:
        return payout
    is_over = status != "pending"
    return msgspec.structs.replace(
        payout,
        status=status,
        failure=failure_for(_FORGED_CODE) if status == "failed" else None,
        initiated_at=payout.initiated_at or now if is_over else None,
        completed_at=now if status == "completed" else None,
        failed_at=now if status == "failed" else None,
    )


def _paid(payment: PaymentRecord, status: str, now: float) -> PaymentRecord:
    """A payment that claims `status`, and its active attempt the success or failure that goes with it."""
    ending = status if status in ("failed", "expired") else "completed"
    claimed = attrs.evolve(
        payment,
        status=status,
        completed_at=now if ending == "completed" else None,
        failed_at=now if ending == "failed" else None,
        expired_at=now if ending == "expired" else None,
    )
    return _attempted(claimed, ending, now)


def _attempted(payment: PaymentRecord, status: str, now: float) -> PaymentRecord:
    """A payment whose active attempt, if there is one, claims `status`."""
    active = payment.active_attempt
    if active is None or active.status == status:
        return payment
    claimed = attrs.evolve(
        active, status=status, failure=failure_for(_FORGED_CODE) if status == "failed" else None
    )
    setattr(claimed, f"{status}_at", now)
    if status == "action_required":
        claimed.plan = Plan(_ACTION, Timing("manual"))  # its form shows what the plan asks for
    return attrs.evolve(payment, attempts=(*payment.attempts[:-1], claimed))
