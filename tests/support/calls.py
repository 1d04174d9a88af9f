"""Every operation as one entry: how it is called, and the full body it is answered with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from typing import Any

import attrs

from payments_async import Instrument
from tests.support import bodies
from tests.support.bodies import Json, encoded
from tests.support.jumping import JumpingRuntime
from tests.support.scripted import ScriptedTransport, answer
from tests.support.surfaces import Connect

PAYMENT: Mapping[str, Any] = {"amount": Decimal("10.10"), "currency": "XOF"}
PAYOUT: Mapping[str, Any] = {
    **PAYMENT,
    "method": "mtn_bj",
    "instrument": Instrument.phone(bodies.PHONE, "BJ"),
    "reference": "inv-7",
}


@attrs.frozen
class Operation:
    """`call(client, **options)` does it, `body` answers it, `id_path` leads to the id a create must show."""

    name: str
    call: Callable[..., Awaitable[Any]]
    body: Json
    creates: bool = False
    id_path: tuple[str, ...] = ()


def _both(payment: Json) -> Json:
    return {"checkout": bodies.CHECKOUT, "payment": payment}


_ALL = (
    Operation(
        "checkouts.create",
        lambda client, **options: client.checkouts.create(**PAYMENT, **options),
        {"message": "Checkout created.", "data": _both(bodies.INTENT)},
        creates=True,
        id_path=("data", "checkout", "id"),
    ),
    Operation(
        "payment_intents.create",
        lambda client, **options: client.payment_intents.create(**PAYMENT, **options),
        {"message": "Payment created.", "data": bodies.INTENT},
        creates=True,
        id_path=("data", "id"),
    ),
    Operation(
        "payouts.create",
        lambda client, **options: client.payouts.create(**PAYOUT, **options),
        {"message": "Payout created.", "data": bodies.PAYOUT},
        creates=True,
        id_path=("data", "id"),
    ),
    Operation(
        "checkouts.retrieve",
        lambda client, **options: client.checkouts.retrieve("cs_1", **options),
        {"data": _both(bodies.INTENT)},
    ),
    Operation(
        "payment_intents.list",
        lambda client, **options: client.payment_intents.list(**options),
        {"data": [bodies.INTENT_LIST], "pagination": bodies.PAGINATION},
    ),
    Operation(
        "payment_intents.retrieve_attempt",
        lambda client, **options: client.payment_intents.retrieve_attempt("pi_1", "pa_1", **options),
        {"data": bodies.ATTEMPT},
    ),
    Operation(
        "payment_intents.refund_availability",
        lambda client, **options: client.payment_intents.refund_availability("pi_1", **options),
        {"data": bodies.REFUND_AVAILABILITY},
    ),
    Operation(
        "payment_intents.requery",
        lambda client, **options: client.payment_intents.requery("pi_1", **options),
        {"data": bodies.REQUERY},
    ),
    Operation(
        "payment_intents.inspect_attempt",
        lambda client, **options: client.payment_intents.inspect_attempt("pi_1", "pa_1", **options),
        {"data": bodies.INSPECTION},
    ),
    Operation(
        "payouts.list",
        lambda client, **options: client.payouts.list(**options),
        {"data": [bodies.PAYOUT], "pagination": bodies.PAGINATION},
    ),
    Operation(
        "payouts.sync",
        lambda client, **options: client.payouts.sync("po_1", **options),
        {"data": bodies.PAYOUT},
    ),
    Operation(
        "payouts.inspect",
        lambda client, **options: client.payouts.inspect("po_1", **options),
        {"data": bodies.INSPECTION},
    ),
    Operation(
        "methods.status",
        lambda client, **options: client.methods.status("mtn_bj", "BJ", **options),
        {"data": bodies.METHOD_STATUS, "meta": bodies.METHOD_STATUS_META},
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
    transport = ScriptedTransport(answer(status, raw, names))
    client = connect(transport=transport, runtime=JumpingRuntime(), max_retries=0)
    return await OPERATIONS[operation].call(client)
