"""Every operation as one entry: how it is called, and the full body it is answered with."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any

import attrs

from tests.support import bodies, motion
from tests.support.bodies import Json, encoded
from tests.support.motion import play
from tests.support.scripted import answer
from tests.support.surfaces import Connect

PAYMENT: Mapping[str, Any] = motion.INTENT
PAYOUT: Mapping[str, Any] = {**motion.PAYOUT, "reference": "inv-7"}


@attrs.frozen
class Operation:
    """How one is called, what answers it, and the way to the id that the answer to a create must show."""

    name: str
    body: Json
    arguments: Mapping[str, Any] = {}
    id_path: tuple[str, ...] = ()

    @property
    def creates(self) -> bool:
        return bool(self.id_path)

    def call(self, client: Any, **options: Any) -> Awaitable[Any]:
        resource, method = self.name.split(".")
        called: Awaitable[Any] = getattr(getattr(client, resource), method)(**self.arguments, **options)
        return called


_BOTH = {"checkout": bodies.CHECKOUT, "payment": bodies.INTENT}
_OF_INTENT = {"payment_intent_id": "pi_1"}
_OF_ATTEMPT = {**_OF_INTENT, "attempt_id": "pa_1"}
_OF_PAYOUT = {"payout_id": "po_1"}
_ALL = (
    Operation(
        "checkouts.create",
        {"message": "Checkout created.", "data": _BOTH},
        PAYMENT,
        ("data", "checkout", "id"),
    ),
    Operation(
        "payment_intents.create",
        {"message": "Payment created.", "data": bodies.INTENT},
        PAYMENT,
        ("data", "id"),
    ),
    Operation(
        "payouts.create", {"message": "Payout created.", "data": bodies.PAYOUT}, PAYOUT, ("data", "id")
    ),
    Operation("checkouts.retrieve", {"data": _BOTH}, {"checkout_id": "cs_1"}),
    Operation("payment_intents.list", {"data": [bodies.INTENT_LIST], "pagination": bodies.PAGINATION}),
    Operation("payment_intents.retrieve_attempt", {"data": bodies.ATTEMPT}, _OF_ATTEMPT),
    Operation("payment_intents.refund_availability", {"data": bodies.REFUND_AVAILABILITY}, _OF_INTENT),
    Operation("payment_intents.requery", {"data": bodies.REQUERY}, _OF_INTENT),
    Operation("payment_intents.inspect_attempt", {"data": bodies.INSPECTION}, _OF_ATTEMPT),
    Operation("payouts.list", {"data": [bodies.PAYOUT], "pagination": bodies.PAGINATION}),
    Operation("payouts.sync", {"data": bodies.PAYOUT}, _OF_PAYOUT),
    Operation("payouts.inspect", {"data": bodies.INSPECTION}, _OF_PAYOUT),
    Operation(
        "methods.status",
        {"data": bodies.METHOD_STATUS, "meta": bodies.METHOD_STATUS_META},
        {"method_code": "mtn_bj", "country_code": "BJ"},
    ),
)
OPERATIONS: Mapping[str, Operation] = {operation.name: operation for operation in _ALL}
CREATES = tuple(name for name, operation in OPERATIONS.items() if operation.creates)
READS = tuple(name for name, operation in OPERATIONS.items() if not operation.creates)


async def call(
    connect: Connect, operation: str, body: Json | bytes, status: int = 200, **headers: str
) -> Any:
    """What the operation returns for one answer."""
    raw = body if isinstance(body, bytes) else encoded(body)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return await OPERATIONS[operation].call(play(connect, answer(status, raw, names), max_retries=0).client)
