"""From a minted URL to the trusted record, against the sandbox: payouts, payments and checkouts."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from payments_async._http.transport import AiohttpTransport
from payments_async._runtime import SYSTEM
from payments_async.sandbox import Sandbox
from tests.support.jumping import JumpingRuntime
from tests.support.motion import PAYOUT, jumping
from tests.support.receivers import SECRET, Handler, bring, make_receiver

Connect = Callable[..., Any]
INTENT = {"amount": 5, "currency": "GHS"}


def reads(sandbox: Sandbox) -> Counter[str | None]:
    return Counter(each.operation for each in sandbox.requests if each.method == "GET")


async def test_a_payouts_states_are_handed_over_as_they_come(connect: Connect, sandbox: Sandbox) -> None:
    client, paid = jumping(connect, sandbox), Handler()
    receiver = make_receiver(client, on_payout=paid)
    url = receiver.url_for_payout("r-1")
    payout = await client.payouts.create(**PAYOUT, webhook_url=url)
    (created,) = sandbox.deliveries
    assert (await bring(receiver, created)).status == 200
    sandbox.settle(payout.id)
    assert (await bring(receiver, sandbox.deliveries[-1])).status == 200
    assert paid.ends == [("r-1", False), ("r-1", True)]
    assert [each.event for each in paid.given] == [each.event for each in sandbox.deliveries]
    assert {each.kind for each in paid.given} == {"payout"}
    assert paid.given[-1].record.is_successful
    assert paid.given[-1].record.id == payout.id


async def test_a_payment_is_told_with_its_attempts_and_refunds(connect: Connect, sandbox: Sandbox) -> None:
    client, moved = jumping(connect, sandbox), Handler()
    receiver = make_receiver(client, on_payment=moved)
    url = receiver.url_for_payment("order-7")
    intent = await client.payment_intents.create(**INTENT, webhook_url=url)
    sandbox.pay(intent.id, outcome="action:collect_otp")
    assert (await bring(receiver, sandbox.deliveries[-1])).status == 200
    sandbox.settle(intent.id)
    sandbox.refund(intent.id)
    assert (await bring(receiver, sandbox.deliveries[-1])).status == 200
    assert moved.ends == [("order-7", False), ("order-7", True)]
    assert moved.given[0].record.active_attempt.action_required_at


async def test_a_checkout_hands_its_payment_over(connect: Connect, sandbox: Sandbox) -> None:
    client, moved = jumping(connect, sandbox), Handler()
    receiver = make_receiver(client, on_payment=moved)
    url = receiver.url_for_checkout("order-8")
    checkout = await client.checkouts.create(**INTENT, webhook_url=url)
    sandbox.pay(checkout.id)
    for delivery in sandbox.deliveries:
        assert (await bring(receiver, delivery)).status == 200
    assert moved.ends == [("order-8", True)], "one state, however many deliveries told of it"
    assert moved.given[0].kind == "checkout"
    assert moved.given[0].record.id == checkout.payment.id


async def test_pay_pressed_again_is_one_checkout_on_the_next_day_too(
    connect: Connect, sandbox: Sandbox
) -> None:
    runtime = JumpingRuntime(on_jump=sandbox.advance)
    client = connect(sandbox, runtime=runtime, transport=runtime.wrap(AiohttpTransport(runtime=SYSTEM)))
    moved = Handler()
    receiver = make_receiver(client, on_payment=moved)
    runtime.advance(86_000.0)
    sandbox.advance(86_000.0)
    pressed = []
    for _ in range(3):
        url = receiver.url_for_checkout("order-8")
        checkout = await client.checkouts.create(**INTENT, webhook_url=url, idempotency_key="order-8-pay")
        pressed.append((url, checkout.id))
        runtime.advance(300.0)
        sandbox.advance(300.0)
    assert len({url for url, _ in pressed}) == 2, "one for each day"
    assert len({checkout for _, checkout in pressed}) == 1
    sandbox.pay(pressed[0][1])
    assert (await bring(receiver, sandbox.deliveries[-1])).status == 200
    assert moved.ends == [("order-8", True)]


@pytest.mark.parametrize("between", [0, 100], ids=["one page", "two pages"])
async def test_payments_that_share_a_url_are_told_apart_by_their_ids(
    connect: Connect, sandbox: Sandbox, between: int
) -> None:
    client, moved = jumping(connect, sandbox), Handler()
    receiver = make_receiver(client, on_payment=moved)
    first = await client.payment_intents.create(**INTENT, webhook_url=receiver.url_for_payment("order-7"))
    for _ in range(between):
        await client.payment_intents.create(**INTENT)
    second = await client.payment_intents.create(**INTENT, webhook_url=receiver.url_for_payment("order-7"))
    assert first.id != second.id
    for paid in (second, first):
        sandbox.pay(paid.id)
        assert (await bring(receiver, sandbox.deliveries[-1])).status == 200
        assert moved.given[-1].record.id == paid.id
    assert moved.ends == [("order-7", True)] * 2


async def test_a_payment_that_shares_a_url_waits_for_a_reading_of_its_own(
    connect: Connect, sandbox: Sandbox
) -> None:
    client, moved = jumping(connect, sandbox), Handler()
    receiver = make_receiver(client, on_payment=moved)
    url = receiver.url_for_payment("order-7")
    both = [(await client.payment_intents.create(**INTENT, webhook_url=url)).id for _ in range(2)]
    for each in both:
        sandbox.pay(each)
    bodies = [json.dumps({"payment": {"id": named}}).encode() for named in (*both, "pi_none")]
    answers = await asyncio.gather(*(receiver.receive(path=url, body=body) for body in bodies[:2]))
    assert {answer.status for answer in answers} <= {200, 503}, "they come together, or one after the other"
    for body in (body for body, answer in zip(bodies, answers, strict=False) if answer.status == 503):
        assert (await receiver.receive(path=url, body=body)).status == 200
    assert {each.record.id for each in moved.given} == set(both)
    assert (await receiver.receive(path=url, body=bodies[2])).status == 404, "no record of this URL"


@pytest.mark.parametrize("body", [b"", b"not JSON", b'{"something": "new"}', b'{"payout": {"id": ".."}}'])
async def test_a_body_that_says_nothing_is_enough_to_look(
    connect: Connect, sandbox: Sandbox, body: bytes
) -> None:
    client, paid = jumping(connect, sandbox), Handler()
    receiver = make_receiver(client, on_payout=paid)
    url = receiver.url_for_payout("r-1")
    await client.payouts.create(**PAYOUT, webhook_url=url)
    assert (await receiver.receive(path=url, body=body)).status == 200
    assert paid.states == [("r-1", "pending")]
    assert paid.given[0].event is None


@pytest.mark.fact("events.re-read-before-acting")
async def test_what_a_body_says_about_money_is_not_believed(connect: Connect, sandbox: Sandbox) -> None:
    client, paid = jumping(connect, sandbox), Handler()
    receiver = make_receiver(client, on_payout=paid)
    payout = await client.payouts.create(**PAYOUT, webhook_url=receiver.url_for_payout("r-1"))
    (created,) = sandbox.deliveries
    lie = {"event": "payout.completed", "payout": {"id": payout.id, "status": "completed", "amount": 1}}
    assert (await bring(receiver, attrs.evolve(created, body=json.dumps(lie).encode()))).status == 200
    assert paid.states == [("r-1", "pending")]
    assert paid.given[0].record.amount.value == PAYOUT["amount"]


async def test_another_records_body_is_refused(connect: Connect, sandbox: Sandbox) -> None:
    client, paid, moved = jumping(connect, sandbox), Handler(), Handler()
    receiver = make_receiver(client, on_payout=paid, on_payment=moved)
    await client.payouts.create(**PAYOUT, webhook_url=receiver.url_for_payout("r-1"))
    other = {**PAYOUT, "reference": "r-2"}
    await client.payouts.create(**other, webhook_url=receiver.url_for_payout("r-2"))
    await client.payment_intents.create(**INTENT, webhook_url=receiver.url_for_payment("r-1"))
    sandbox.advance(10_000.0)
    one, two = (each for each in sandbox.deliveries if each.event == "payout.created")
    refused = await bring(receiver, attrs.evolve(one, body=two.body))
    foreign = {"payment": {"id": "pi_1"}}
    also = await bring(receiver, attrs.evolve(one, body=json.dumps(foreign).encode()))
    assert refused == also
    assert refused.status == 404
    assert not paid.given
    assert not moved.given


async def test_a_payment_of_another_url_is_not_handed_over(connect: Connect, sandbox: Sandbox) -> None:
    client, moved = jumping(connect, sandbox), Handler()
    receiver = make_receiver(client, on_payment=moved, max_pages=1)
    await client.payment_intents.create(**INTENT, webhook_url=receiver.url_for_payment("order-7"))
    never_used = receiver.url_for_payment("order-7", expires_in=60)
    answer = await receiver.receive(path=never_used)
    assert (answer.status, answer.headers) == (503, {"Retry-After": "5"}), "it may be listed in a moment"
    assert not moved.given


async def test_a_payout_far_back_in_the_list_is_read_by_itself(connect: Connect, sandbox: Sandbox) -> None:
    client, paid = jumping(connect, sandbox), Handler()
    receiver = make_receiver(client, on_payout=paid, max_pages=1)
    url = receiver.url_for_payout("r-1")
    await client.payouts.create(**PAYOUT, webhook_url=url)
    (created,) = sandbox.deliveries
    for number in range(100):
        await client.payouts.create(**{**PAYOUT, "reference": f"later-{number}"})
    before = reads(sandbox)
    assert (await bring(receiver, created)).status == 200
    assert reads(sandbox) - before == {"payouts.list": 1, "payouts.sync": 1}
    assert paid.states == [("r-1", "pending")]
    # Somebody who knows the URL names another payout, and one that is not there.
    lately = list(await client.payouts.list(page_size=1))
    for named, status in ((lately[0].id, 404), ("po_nowhere", 503)):
        body = json.dumps({"payout": {"id": named}}).encode()
        again = receiver.url_for_payout("r-1", expires_in=60)
        assert (await receiver.receive(path=again, body=body)).status == status
    assert len(paid.given) == 1


async def test_several_pages_are_read_for_a_payment(connect: Connect, sandbox: Sandbox) -> None:
    client, moved = jumping(connect, sandbox), Handler()
    receiver = make_receiver(client, on_payment=moved)
    intent = await client.payment_intents.create(**INTENT, webhook_url=receiver.url_for_payment("o"))
    for _ in range(100):
        await client.payment_intents.create(**INTENT)
    sandbox.pay(intent.id)
    assert (await bring(receiver, sandbox.deliveries[-1])).status == 200
    assert reads(sandbox) == {"payment_intents.list": 2}
    assert moved.ends == [("o", True)]


async def test_a_payment_deeper_than_one_look_reads_is_found_by_the_next_and_then_at_once(
    connect: Connect, sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    client, moved = jumping(connect, sandbox), Handler()
    receiver = make_receiver(client, on_payment=moved, max_pages=1)
    intent = await client.payment_intents.create(**INTENT, webhook_url=receiver.url_for_payment("o"))
    for _ in range(250):
        await client.payment_intents.create(**INTENT)
    sandbox.pay(intent.id)
    told = sandbox.deliveries[-1]
    for status in (503, 503, 200):
        assert (await bring(receiver, told)).status == status
        receiver._runtime.advance(11.0)
    assert len(caplog.messages) == 2
    assert all("the next lookup continues from there" in line for line in caplog.messages)
    assert "order" not in caplog.text
    sandbox.refund(intent.id)
    assert (await bring(receiver, sandbox.deliveries[-1])).status == 200
    assert reads(sandbox) == {"payment_intents.list": 6}, "the newest first, then one further back"
    assert [each.record.id for each in moved.given] == [intent.id] * 2


async def test_a_record_that_is_not_there_is_told_with_what_may_be_wrong(
    connect: Connect, sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    """As when the service's clock is another one: the record was created on another day."""
    client, moved = jumping(connect, sandbox), Handler()
    receiver = make_receiver(client, on_payment=moved)
    url = receiver.url_for_payment("o")
    sandbox.advance(5 * 86_400)
    intent = await client.payment_intents.create(**INTENT, webhook_url=url)
    sandbox.pay(intent.id)
    assert (await bring(receiver, sandbox.deliveries[-1])).status == 503
    assert "has this process the service's time?" in caplog.text
    assert not moved.given


async def test_a_url_outlives_its_secret_for_as_long_as_that_is_kept(
    connect: Connect, sandbox: Sandbox
) -> None:
    client, paid = jumping(connect, sandbox), Handler()
    url = make_receiver(client, on_payout=paid).url_for_payout("r-1")
    await client.payouts.create(**PAYOUT, webhook_url=url)
    kept = make_receiver(client, on_payout=paid, secrets=["n" * 32, SECRET])
    dropped = make_receiver(client, on_payout=paid, secrets=["n" * 32])
    assert (await bring(dropped, sandbox.deliveries[0])).status == 404
    assert (await bring(kept, sandbox.deliveries[0])).status == 200
    assert len(paid.given) == 1
