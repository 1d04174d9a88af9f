"""The handlers of the operations, for requests that were authenticated, admitted, read and are new."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter

import attrs

from .._checkout.method_catalogue import usual_plan
from .._common.iso_codes import is_country
from .._common.json import JsonObject, object_or_null, text_or_null
from .._common.timestamps import stamp
from .._common.values import RequestRefused
from .._records.payment_json import (
    attempt_form,
    checkout_form,
    payment_form,
    payment_list_form,
    refund_availability_form,
)
from .._records.payments import (
    WINDOW_MINUTES,
    create_payment,
    create_session,
    method_health,
    read_attempt,
    read_payment,
    start_attempt,
)
from .._records.payout_json import gateway_transaction, payout_form
from .._records.payouts import create_payout, read_payout
from .._records.records import USUAL_PLAN, AttemptRecord, PaymentRecord, PayoutRecord
from .._records.world import World
from .call import ServiceCall
from .fault_rules import ScenarioSource
from .field_checks import RequestField
from .paging import R, find_page, pagination_form, read_page_query
from .request_schemas import CHECKOUT, INTENT, PAYOUT, validate
from .scenario_lookup import pick_hooks, pick_plan

STATUS_TTL_SECONDS = 60


@attrs.frozen
class HandlerReply:
    """A successful answer before it is encoded."""

    body: JsonObject
    created: bool = False
    payout: PayoutRecord | None = None
    """The payout that was created and is pending: `created_reply` makes the same of it again."""


Handler = Callable[[World, ServiceCall, Sequence[ScenarioSource]], HandlerReply]


def _validate(world: World, call: ServiceCall, fields: Mapping[str, RequestField]) -> None:
    validate(call.body, fields, world.now, world.profile, call.operation.name)


def _create_checkout(world: World, call: ServiceCall, sources: Sequence[ScenarioSource]) -> HandlerReply:
    _validate(world, call, CHECKOUT)
    plan, hooks = pick_plan(sources, call.operation), pick_hooks(sources)
    payment = create_payment(world, call.tenant, call.body, "checkout", plan, call.idempotency_key, hooks)
    session = create_session(world, call.tenant, payment)
    return HandlerReply(
        {"message": "Checkout session created.", "data": checkout_form(session, world.pages)}, created=True
    )


def _retrieve_checkout(world: World, call: ServiceCall, _: Sequence[ScenarioSource]) -> HandlerReply:
    session = call.tenant.session(call.path_values["checkout_id"])
    read_payment(world, call.tenant, session.payment)
    return HandlerReply({"data": checkout_form(session, world.pages)})


def _create_intent(world: World, call: ServiceCall, sources: Sequence[ScenarioSource]) -> HandlerReply:
    _validate(world, call, INTENT)
    plan, hooks = pick_plan(sources, call.operation), pick_hooks(sources)
    payment = create_payment(world, call.tenant, call.body, "api", plan, call.idempotency_key, hooks)
    wanted = object_or_null(call.body, "attempt")
    if wanted is not None:
        phone, method = object_or_null(wanted, "phone") or {}, str(wanted["method_code"])
        start_attempt(
            world,
            call.tenant,
            payment,
            plan or usual_plan(method),
            method=method,
            country=text_or_null(wanted, "country") or text_or_null(phone, "country"),
            phone=text_or_null(phone, "number"),
            currency=text_or_null(wanted, "currency"),
        )
    return HandlerReply({"message": "Payment intent created.", "data": payment_form(payment)}, created=True)


def _list(
    world: World,
    call: ServiceCall,
    records: Sequence[R],
    filters: Mapping[str, Callable[[R], object]],
    read: Callable[[R], None],
    form: Callable[[R], JsonObject],
) -> HandlerReply:
    query = read_page_query(call.parameters, tuple(filters), world.profile)
    wanted = [(filters[name], text) for name, text in call.parameters.items() if name in filters]
    page = find_page(records, lambda record: all(shown(record) == text for shown, text in wanted), query)
    for record in page.items:
        read(record)
    return HandlerReply(
        {
            "data": [form(record) for record in page.items],
            "pagination": pagination_form(page, query, world.origin + call.request.path, call.parameters),
        }
    )


_PAYMENT_FILTERS: Mapping[str, Callable[[PaymentRecord], object]] = {
    name: attrgetter(name) for name in ("status", "channel", "customer_id")
}
_PAYOUT_FILTERS: Mapping[str, Callable[[PayoutRecord], object]] = {
    name: attrgetter(name) for name in ("status", "method", "currency", "customer_id")
}


def _list_intents(world: World, call: ServiceCall, _: Sequence[ScenarioSource]) -> HandlerReply:
    read = partial(read_payment, world, call.tenant)
    return _list(world, call, call.tenant.payments, _PAYMENT_FILTERS, read, payment_list_form)


def _retrieve_attempt(world: World, call: ServiceCall, _: Sequence[ScenarioSource]) -> HandlerReply:
    attempt = _attempt(call)
    read_attempt(world, call.tenant, attempt)
    return HandlerReply({"data": attempt_form(attempt)})


def _attempt(call: ServiceCall) -> AttemptRecord:
    return call.tenant.attempt(call.path_values["payment_intent_id"], call.path_values["attempt_id"])


def _refund_availability(_: World, call: ServiceCall, __: Sequence[ScenarioSource]) -> HandlerReply:
    payment = call.tenant.payment(call.path_values["payment_intent_id"])
    return HandlerReply({"data": refund_availability_form(payment)})


def _statuses(payment: PaymentRecord) -> JsonObject:
    active = payment.active_attempt
    return {"intent_status": payment.status, "attempt_status": active.status if active else None}


def _requery(world: World, call: ServiceCall, _: Sequence[ScenarioSource]) -> HandlerReply:
    """Answer a requery (gap T)."""
    payment = call.tenant.payment(call.path_values["payment_intent_id"])
    active, before = payment.active_attempt, _statuses(payment)
    requeried = 1 if active is not None and not active.is_final else 0
    read_payment(world, call.tenant, payment)
    return HandlerReply(
        {
            "data": {
                "id": world.chance.id("rq"),
                "status": "completed",
                "payment_intent_id": payment.id,
                "payment_attempt_id": active.id if active else None,
                "before": before,
                "after": _statuses(payment),
                "attempts": {"count": len(payment.attempts), "requeried": requeried},
                "completed_at": stamp(world.now),
                "created_at": stamp(world.now),
            }
        }
    )


def _inspection(world: World, record: AttemptRecord | PayoutRecord) -> HandlerReply:
    """Answer an inspection (gap U)."""
    transaction = gateway_transaction(record.gateway, record.status)
    return HandlerReply(
        {
            "data": {
                "gateway": "sandbox",
                "gateway_transaction_id": transaction["id"],
                "retrieved_at": stamp(world.now),
                "payload": {
                    "external_id": transaction["external_id"],
                    "state": transaction["status"].upper(),
                },
            }
        }
    )


def _inspect_attempt(world: World, call: ServiceCall, _: Sequence[ScenarioSource]) -> HandlerReply:
    return _inspection(world, _attempt(call))


def _create_payout(world: World, call: ServiceCall, sources: Sequence[ScenarioSource]) -> HandlerReply:
    _validate(world, call, PAYOUT)
    plan, hooks = pick_plan(sources, call.operation) or USUAL_PLAN, pick_hooks(sources)
    key, fields = call.idempotency_key, call.body
    payout = create_payout(world, call.tenant, call.request.body, fields, plan, key, hooks)
    return created_reply(payout, fields)


def created_reply(payout: PayoutRecord, fields: JsonObject | None = None) -> HandlerReply:
    """The answer to the creation of a payout; `fields` are those of the request, if they have been read."""
    body: JsonObject = {"message": "Payout created.", "data": payout_form(payout, fields)}
    return HandlerReply(body, created=True, payout=payout if payout.status == "pending" else None)


def _list_payouts(world: World, call: ServiceCall, _: Sequence[ScenarioSource]) -> HandlerReply:
    read = partial(read_payout, world)
    return _list(world, call, call.tenant.payouts, _PAYOUT_FILTERS, read, payout_form)


def _sync_payout(world: World, call: ServiceCall, _: Sequence[ScenarioSource]) -> HandlerReply:
    """Answer a payout's synchronization (gap V)."""
    payout = call.tenant.payout(call.path_values["payout_id"])
    read_payout(world, payout)
    return HandlerReply({"data": payout_form(payout)})


def _inspect_payout(world: World, call: ServiceCall, _: Sequence[ScenarioSource]) -> HandlerReply:
    return _inspection(world, call.tenant.payout(call.path_values["payout_id"]))


def _method_status(world: World, call: ServiceCall, _: Sequence[ScenarioSource]) -> HandlerReply:
    method, country = call.path_values["method_code"], call.path_values["country_code"]
    if not is_country(country):
        raise RequestRefused(404, "There is no such country.")
    status = method_health(call.tenant, world.now, method, country)
    return HandlerReply(
        {
            "data": {"method": method, "country": country, "status": status},
            "meta": {
                "environment": "sandbox",
                "window_minutes": WINDOW_MINUTES,
                "generated_at": stamp(world.now),
                "ttl_seconds": STATUS_TTL_SECONDS,
            },
        }
    )


HANDLERS: Mapping[str, Handler] = {
    "checkouts.create": _create_checkout,
    "checkouts.retrieve": _retrieve_checkout,
    "payment_intents.create": _create_intent,
    "payment_intents.list": _list_intents,
    "payment_intents.retrieve_attempt": _retrieve_attempt,
    "payment_intents.refund_availability": _refund_availability,
    "payment_intents.requery": _requery,
    "payment_intents.inspect_attempt": _inspect_attempt,
    "payouts.create": _create_payout,
    "payouts.list": _list_payouts,
    "payouts.sync": _sync_payout,
    "payouts.inspect": _inspect_payout,
    "methods.status": _method_status,
}
