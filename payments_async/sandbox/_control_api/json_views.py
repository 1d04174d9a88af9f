"""Records, requests, rules and keys as plain values: for the JSON of the control API and for the pages.

Account data is masked unless it is asked for; a whole API key is in none of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from .._api.fault_rules import Rule
from .._common.json import JsonObject, decode
from .._common.masking import HIDDEN, address, mask, mask_path, mask_text
from .._common.operations import CONSOLE
from .._common.timestamps import stamp, stamp_or_null
from .._common.values import RequestRefused
from .._journal import LoggedExchange
from .._records.payment_json import attempt_form, payment_list_form
from .._records.payout_json import payout_form
from .._records.records import AttemptRecord, PaymentRecord, PayoutRecord
from .._records.tenants import Tenant
from .._webhooks import Webhook, WebhookTry

_SECRET_HEADER: Final = re.compile("auth|cookie|key|secret|signature|token")


def webhook_view(webhook: Webhook) -> JsonObject:
    return {
        "id": webhook.id,
        "at": stamp(webhook.at),
        "event": webhook.event,
        "record": webhook.record_id,
        "url": address(webhook.url),
        "origin": webhook.origin,
        "repeats": webhook.repeats,
        "state": webhook.state,
        "reason": webhook.reason,
        "next_at": stamp_or_null(webhook.next_at),
        "page": f"{CONSOLE}webhooks/{webhook.id}",
        "body": body_view(webhook.body, reveal=False),
        "tries": [_try_view(one) for one in webhook.tries],
    }


def _try_view(one: WebhookTry) -> JsonObject:
    return {
        "at": stamp(one.at),
        "seconds": one.seconds,
        "status": one.status,
        "error": one.error,
        "answer": mask_text(one.answer),
    }


def _headers(headers: Iterable[tuple[str, str]]) -> JsonObject:
    """Headers; secrets are hidden, which an idempotency key is not."""
    return {
        name: HIDDEN
        if _SECRET_HEADER.search(name.lower()) and name.lower() != "x-idempotency-key"
        else mask_text(value)
        for name, value in headers
    }


def request_view(exchange: LoggedExchange) -> JsonObject:
    """One line of the request log; `seconds` is None while the request is under way."""
    log = exchange.log
    return {
        "id": log.request_id,
        "at": stamp(log.at),
        "method": log.method,
        "path": mask_path(log.path),
        "operation": log.operation,
        "status": log.status,
        "idempotency_key": log.idempotency_key,
        "replayed": log.replayed,
        "fault": log.fault,
        "seconds": None if exchange.seconds is None else round(exchange.seconds, 6),
        "key": log.key,
        "page": f"{CONSOLE}requests/{log.request_id}",
    }


def exchange_view(exchange: LoggedExchange, *, reveal: bool) -> JsonObject:
    """A request with its headers (never the authorization) and both bodies, while they are kept."""
    answer = exchange.answer
    return {
        **request_view(exchange),
        "let_go": not exchange.is_whole,
        "headers": _headers(exchange.log.headers.items()),
        "body": body_view(exchange.body, reveal=reveal),
        "answer": answer
        and {
            "status": answer.status,
            "headers": _headers(answer.headers.items()),
            "body": body_view(answer.body, reveal=reveal),
            "line": type(answer.fault).__name__.lower() if answer.fault else None,
        },
    }


def body_view(body: bytes | None, *, reveal: bool) -> object:
    """A body's JSON, or its size when it is none; None for one that was dropped or is empty."""
    if not body:
        return None
    try:
        value = decode(body)
    except RequestRefused:
        return {"unreadable": f"{len(body)} bytes that are not JSON"}
    return value if reveal else mask(value)


def payout_view(payout: PayoutRecord, *, reveal: bool) -> JsonObject:
    """A payout in the interface's form, with the key it belongs to and what is planned for it."""
    page = f"{CONSOLE}payouts/{payout.id}"
    return {**_form(payout_form(payout), reveal), "key": payout.key, "plan": plan_words(payout), "page": page}


def payment_view(payment: PaymentRecord, *, reveal: bool) -> JsonObject:
    """A payment in its list form, with its session, every attempt and every refund."""
    session = payment.session
    return {
        **_form(payment_list_form(payment), reveal),
        "channel": payment.channel,
        "expires_at": stamp(payment.expires_at),
        "key": payment.key,
        "page": f"{CONSOLE}payments/{payment.id}",
        "session": session and {"id": session.id, "url": f"/checkout/{session.id}"},
        "attempts": [
            {**_form(attempt_form(one, in_list=True), reveal), "payer": {"country": one.country}}
            for one in payment.attempts
        ],
        "refunds": [{"id": one.id, "amount": one.amount, "pending": one.pending} for one in payment.refunds],
    }


def _form(form: JsonObject, reveal: bool) -> JsonObject:
    return form if reveal else {name: mask(value, name) for name, value in form.items()}


def plan_words(record: PayoutRecord | AttemptRecord) -> str:
    """The plan of a record, in words of the vocabulary."""
    outcome, timing = record.plan.outcome, record.plan.timing
    return outcome.word if outcome.kind == "hang" else f"{outcome.word} {timing.word}"


def rule_view(rule: Rule) -> JsonObject:
    """A rule, what it will still do, and how often it has been met."""
    return {
        "id": rule.id,
        "operation": rule.operation,
        "match": mask(dict(rule.match)),
        "key": rule.tenant,
        "words": rule.scenario.words,
        "used": rule.used,
        "remaining": rule.remaining,
        "used_up": rule.is_over,
    }


def key_view(key: str, tenant: Tenant) -> JsonObject:
    """A key by its fingerprint and last four characters, with how much belongs to it."""
    networks = tenant.allowlist
    return {
        "key": tenant.fingerprint,
        "hint": f"sk_sandbox_…{key[-4:]}",
        "status": tenant.status,
        "allowlist": None if networks is None else [str(network) for network in networks],
        "payouts": len(tenant.payouts),
        "payments": len(tenant.payments),
    }
