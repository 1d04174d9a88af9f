"""Records, requests, rules and keys as plain values: for the JSON of the control API and for the pages.

Account data is masked unless it is asked for; a whole API key is in none of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from .._api.rule import Rule
from .._common.json import JsonObject, decode
from .._common.masking import HIDDEN, address, mask, mask_path, mask_text
from .._common.operations import CONSOLE
from .._common.scenario_words import Fault, HookWord, Scenario, ScenarioOutcome, Timing
from .._common.timestamps import stamp, stamp_or_null
from .._common.values import Change, Delivery, RequestRefused
from .._journal import JournalEntry, LoggedExchange, WebhookTried
from .._records.payment_json import attempt_form, payment_list_form
from .._records.payout_json import payout_form
from .._records.records import AttemptRecord, PaymentRecord, PayoutRecord
from .._records.tenants import Tenant
from .._webhooks import Webhook, WebhookTry
from .._webhooks.receiver_answers import ReceiverAnswer
from ..advisor._evidence import REPLAY_HEADER

_SECRET_HEADER = re.compile("auth|cookie|key|secret|signature|token")


def entry_view(entry: JournalEntry) -> JsonObject:
    """One line of the journal."""
    item = entry.item
    if isinstance(item, LoggedExchange):
        return {"seq": entry.seq, "kind": "request", **request_view(item)}
    if isinstance(item, Change):
        change = {"record": item.kind, "id": item.id, "before": item.before, "after": item.after}
        return {"seq": entry.seq, "kind": "change", "at": stamp(item.at), **change}
    if isinstance(item, WebhookTried):
        how = {"status": item.status, "error": item.error, "accepted": item.accepted, "forged": item.forged}
        which = {"id": item.webhook_id, "record": item.record_id, "event": item.event}
        return {"seq": entry.seq, "kind": "try", "at": stamp(item.at), **which, **how}
    assert isinstance(item, Delivery)  # nothing else enters the journal
    due = {"event": item.event, "id": item.record_id, "url": address(item.url), "forged": item.forged}
    return {"seq": entry.seq, "kind": "delivery", "at": stamp(item.at), **due}


def webhook_view(webhook: Webhook) -> JsonObject:
    """A delivery with its state and every try."""
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
    return {"at": stamp(one.at), "seconds": one.seconds, "status": one.status, "error": one.error}


def answered_webhook_view(webhook: Webhook, answers: Sequence[ReceiverAnswer | None]) -> JsonObject:
    """A delivery with its state, and every try with what the receiver answered."""
    return {**webhook_view(webhook), "tries": try_views(webhook, answers)}


def try_views(webhook: Webhook, answers: Sequence[ReceiverAnswer | None]) -> list[JsonObject]:
    """The tries of a delivery, with what the receiver answered."""
    return [
        {**_try_view(one), "answer": _answer_view(answer)}
        for one, answer in zip(webhook.tries, answers, strict=True)
    ]


def _answer_view(answer: ReceiverAnswer | None) -> JsonObject | None:
    if answer is None:
        return None
    is_whole = answer.length == len(answer.body)
    return {
        "headers": _headers(answer.headers),
        "body": _answer_body(answer.body, is_whole=is_whole),
        "length": answer.length,
        "is_whole": is_whole,
    }


def _headers(headers: Iterable[tuple[str, str]]) -> JsonObject:
    """Headers; secrets are hidden, which an idempotency key is not."""
    return {
        name: HIDDEN
        if _SECRET_HEADER.search(name.lower()) and name.lower() != "x-idempotency-key"
        else mask_text(value)
        for name, value in headers
    }


def _answer_body(body: bytes, *, is_whole: bool) -> object:
    """The JSON of a whole body, else its text; both masked, without signs that cannot be shown."""
    if is_whole:
        with suppress(RequestRefused):
            return mask(decode(body))
    text = body.decode("utf-8", "replace")
    return mask_text(
        "".join(sign if sign.isprintable() or sign in "\n\t" else "\N{MIDDLE DOT}" for sign in text)
    )


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
        "replay_of": log.headers.get(REPLAY_HEADER),
    }


def exchange_view(exchange: LoggedExchange, *, reveal: bool) -> JsonObject:
    """A request with its headers (never the authorization) and both bodies, while they are kept."""
    answer = exchange.answer
    return {
        **request_view(exchange),
        "let_go": not exchange.is_whole,
        "headers": _headers(exchange.log.headers.items()),
        "body": body_view(exchange.body, reveal=reveal),
        "answer": None
        if answer is None
        else {
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
    form = payout_form(payout)
    shown = form if reveal else _masked(form)
    page = f"{CONSOLE}payouts/{payout.id}"
    return {**shown, "key": payout.key, "plan": plan_words(payout), "page": page}


def payment_view(payment: PaymentRecord, *, reveal: bool) -> JsonObject:
    """A payment in its list form, with its session, every attempt and every refund."""
    form = payment_list_form(payment)
    session = payment.session
    shown = form if reveal else _masked(form)
    return {
        **shown,
        "channel": payment.channel,
        "expires_at": stamp(payment.expires_at),
        "key": payment.key,
        "page": f"{CONSOLE}payments/{payment.id}",
        "session": None if session is None else {"id": session.id, "url": f"/checkout/{session.id}"},
        "attempts": [attempt_view(attempt, reveal=reveal) for attempt in payment.attempts],
        "refunds": [
            {"id": refund.id, "amount": refund.amount, "pending": refund.pending}
            for refund in payment.refunds
        ],
    }


def attempt_view(attempt: AttemptRecord, *, reveal: bool) -> JsonObject:
    """An attempt in its list form, with who pays."""
    form = attempt_form(attempt, in_list=True)
    return {**(form if reveal else _masked(form)), "payer": {"country": attempt.country}}


def plan_words(record: PayoutRecord | AttemptRecord) -> str:
    """The plan of a record, in words of the vocabulary."""
    outcome, timing = record.plan.outcome, record.plan.timing
    words = _outcome_words(outcome)
    return words if outcome.kind == "hang" else f"{words} {_timing_words(timing)}"


def _outcome_words(outcome: ScenarioOutcome) -> str:
    argument = outcome.code or outcome.action or outcome.count
    return f"{outcome.kind}:{argument}" if argument else outcome.kind


def _timing_words(timing: Timing) -> str:
    if timing.kind == "manual":
        return timing.kind
    return f"after={timing.seconds:g}s" if timing.kind == "after" else f"reads={timing.reads}"


def rule_view(rule: Rule) -> JsonObject:
    """A rule, what it will still do, and how often it has been met."""
    return {
        "id": rule.id,
        "operation": rule.operation,
        "match": mask(dict(rule.match)),
        "key": rule.tenant,
        "words": scenario_words(rule.scenario),
        "used": rule.used,
        "remaining": rule.remaining,
        "used_up": rule.is_over,
    }


def scenario_words(scenario: Scenario) -> str:
    """A scenario in the words of the vocabulary, with how often each fault comes."""
    words = [_fault_words(fault) for fault in scenario.faults]
    if scenario.outcome is not None:
        words.append(_outcome_words(scenario.outcome))
    if scenario.timing is not None:
        words.append(_timing_words(scenario.timing))
    return " ".join([*words, *(_hook_words(hook) for hook in scenario.hooks)])


def _hook_words(hook: HookWord) -> str:
    argument = {"delay": f"{hook.seconds:g}s", "duplicate": str(hook.count)}
    return f"{hook.kind}:{argument[hook.kind]}" if hook.kind in argument else hook.kind


def _fault_words(fault: Fault) -> str:
    often = f"*{fault.times}" if fault.times is not None else " (every time)"
    return f"{fault.word}{often}" + (f" after {fault.after}" if fault.after else "")


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


def _masked(form: Mapping[str, object]) -> JsonObject:
    masked = mask(dict(form))
    assert isinstance(masked, dict)
    return masked
