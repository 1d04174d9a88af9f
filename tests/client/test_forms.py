"""Every form as the sandbox serves it: what the client hands over is what the wire said, no more, no less."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from payments_async.models import Checkout, MethodStatus, Page, PaymentAttempt, PaymentIntent, Payout
from payments_async.sandbox import Sandbox, VirtualClock
from tests.support.calls import PAYMENT, PAYOUT
from tests.support.faithful import differences
from tests.support.jumping import JumpingRuntime
from tests.support.tapped import Tapped

pytestmark = pytest.mark.parametrize("surface", ["async"], indirect=True)  # the mirror decodes nothing itself

ATTEMPT = {"method_code": "mtn_bj", "country": "BJ"}
CUSTOMER = {"email": "ada@example.com", "first_name": "Ada"}
RICH = {"customer": CUSTOMER, "description": "Books", "metadata": {"order": "7", "n": 1}}

Client = Any
Act = Callable[[Client, Sandbox], Awaitable[Any]]


async def _intent(client: Client, **more: Any) -> PaymentIntent:
    intent: PaymentIntent = await client.payment_intents.create(**{**PAYMENT, **RICH, **more})
    return intent


async def _tried(client: Client, outcome: str | None = None) -> tuple[str, str]:
    """Ids of an intent and its attempt."""
    metadata = {"sandbox_scenario": outcome} if outcome else None
    intent = await _intent(client, attempt=ATTEMPT, metadata=metadata)
    assert intent.active_attempt
    return str(intent.id), str(intent.active_attempt.id)


async def _paid_checkout(client: Client, sandbox: Sandbox) -> Checkout:
    made = await client.checkouts.create(**PAYMENT, **RICH, restriction={"country_code": "BJ"})
    sandbox.pay(made.id)
    found: Checkout = await client.checkouts.retrieve(made.id)
    return found


async def _refundable(client: Client, sandbox: Sandbox) -> Any:
    intent = await _intent(client)
    sandbox.pay(str(intent.id))
    sandbox.refund(str(intent.id), PAYMENT["amount"] / 2, pending=True)
    return await client.payment_intents.refund_availability(intent.id)


async def _failed_attempt(client: Client, sandbox: Sandbox) -> PaymentAttempt:
    intent, attempt = await _tried(client, "fail:CUSTOMER_DECLINED immediate")
    found: PaymentAttempt = await client.payment_intents.retrieve_attempt(intent, attempt)
    return found


async def _failed_in_list(client: Client, sandbox: Sandbox) -> Page[PaymentIntent]:
    await _tried(client, "fail:CUSTOMER_DECLINED immediate")
    await _intent(client, attempt=ATTEMPT, metadata={"sandbox_scenario": "action:collect_otp"})
    found: Page[PaymentIntent] = await client.payment_intents.list(page_size=2)
    return found


async def _failed_payouts(client: Client, sandbox: Sandbox) -> Page[Payout]:
    metadata = {"sandbox_scenario": "fail:INSUFFICIENT_FUNDS immediate"}
    await client.payouts.create(**{**PAYOUT, "metadata": metadata})
    found: Page[Payout] = await client.payouts.list(page_size=1)
    return found


async def _synced(client: Client, sandbox: Sandbox) -> Payout:
    made = await client.payouts.create(**PAYOUT, **RICH)
    sandbox.settle(made.id)
    found: Payout = await client.payouts.sync(made.id)
    return found


async def _requeried(client: Client, sandbox: Sandbox) -> Any:
    return await client.payment_intents.requery((await _tried(client))[0])


async def _inspected_attempt(client: Client, sandbox: Sandbox) -> Any:
    return await client.payment_intents.inspect_attempt(*(await _tried(client)))


async def _inspected_payout(client: Client, sandbox: Sandbox) -> Any:
    return await client.payouts.inspect((await client.payouts.create(**PAYOUT)).id)


ACTS: dict[str, Act] = {
    "created checkout": lambda client, _: client.checkouts.create(**PAYMENT, **RICH),
    "paid checkout": _paid_checkout,
    "created intent": lambda client, _: _intent(client, attempt=ATTEMPT),
    "intents list": _failed_in_list,
    "failed attempt": _failed_attempt,
    "refund availability": _refundable,
    "created payout": lambda client, _: client.payouts.create(**PAYOUT, **RICH),
    "payouts list": _failed_payouts,
    "synced payout": _synced,
    "requery": _requeried,
    "attempt inspection": _inspected_attempt,
    "payout inspection": _inspected_payout,
    "method status": lambda client, _: client.methods.status("mtn_bj", "BJ"),
}


def _said(value: Any, body: Any) -> Any:
    """The part of the body that the value stands for."""
    if isinstance(value, Page):
        return body
    if isinstance(value, MethodStatus):
        return {
            **body["meta"],
            **body["data"],
            **({"x_later": body["data"]["x_later"]} if "x_later" in body else {}),
        }
    return body["data"]


def _extras(value: Any) -> set[str]:
    """Names of unknown fields anywhere in a plain record."""
    if isinstance(value, dict):
        return {name for name in value if name == "x_later"}.union(*map(_extras, value.values()))
    return set().union(*map(_extras, value)) if isinstance(value, list) else set()


@pytest.mark.parametrize("profile", ["observed", "hostile"])
@pytest.mark.parametrize("form", ACTS)
async def test_a_record_says_what_the_sandbox_said(
    connect: Callable[..., Any], form: str, profile: str
) -> None:
    with Sandbox(profile=profile, clock=VirtualClock.frozen()) as sandbox:
        tap = Tapped()
        client = connect(sandbox, transport=tap, runtime=JumpingRuntime())
        value = await ACTS[form](client, sandbox)

    assert list(differences(_said(value, tap.json), value)) == []
    records = list(value) if isinstance(value, Page) else [value]
    found = set().union(*(_extras(record.to_dict()) for record in records))
    assert found == ({"x_later"} if profile == "hostile" else set())
    assert value.response.status == tap.last.status  # type: ignore[union-attr] # there was an answer
