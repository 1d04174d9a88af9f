"""From a minted URL to the trusted record, against the sandbox: payouts, payments and checkouts."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import attrs
import pytest

from payments_async.sandbox import Sandbox
from tests.support.motion import PAYOUT, jumping
from tests.support.receivers import SECRET, Handler, bring, make_receiver
from tests.support.surfaces import Connect

INTENT = {"amount": 5, "currency": "GHS"}


class Shop:
    """A client of a sandbox, a handler for all records, and the receiver in front of it."""

    def __init__(self, connect: Connect, sandbox: Sandbox, **options: Any) -> None:
        self.sandbox, self.client, self.paid = sandbox, jumping(connect, sandbox), Handler()
        self.receiver = self.receiver_with(**options)

    def receiver_with(self, **options: Any) -> Any:
        return make_receiver(self.client, on_payout=self.paid, on_payment=self.paid, **options)

    async def pay_out(self, reference: str = "r-1", **changes: Any) -> Any:
        given = {**PAYOUT, "reference": reference, "webhook_url": self.receiver.url_for_payout(reference)}
        return await self.client.payouts.create(**{**given, **changes})

    async def ask(self, reference: str = "order-7") -> Any:
        url = self.receiver.url_for_payment(reference)
        return await self.client.payment_intents.create(**INTENT, webhook_url=url)

    async def bring_last(self) -> int:
        return (await bring(self.receiver, self.sandbox.deliveries[-1])).status

    def reads(self) -> Counter[str | None]:
        return Counter(each.operation for each in self.sandbox.requests if each.method == "GET")


@pytest.fixture
def shop(connect: Connect, sandbox: Sandbox) -> Shop:
    return Shop(connect, sandbox)


async def test_a_payouts_states_are_handed_over_as_they_come(shop: Shop) -> None:
    payout = await shop.pay_out()
    assert await shop.bring_last() == 200
    shop.sandbox.settle(payout.id)
    assert await shop.bring_last() == 200
    given = shop.paid.given
    assert shop.paid.ends == [("r-1", False), ("r-1", True)]
    assert [each.event for each in given] == [each.event for each in shop.sandbox.deliveries]
    assert {each.kind for each in given} == {"payout"}
    assert given[-1].record.is_successful
    assert given[-1].record.id == payout.id


async def test_a_payment_is_told_with_its_attempts_and_refunds(shop: Shop) -> None:
    intent = await shop.ask()
    shop.sandbox.pay(intent.id, outcome="action:collect_otp")
    assert await shop.bring_last() == 200
    shop.sandbox.settle(intent.id)
    shop.sandbox.refund(intent.id)
    assert await shop.bring_last() == 200
    assert shop.paid.ends == [("order-7", False), ("order-7", True)]
    assert shop.paid.given[0].record.active_attempt.action_required_at


async def test_a_checkout_hands_its_payment_over(shop: Shop) -> None:
    url = shop.receiver.url_for_checkout("order-8")
    checkout = await shop.client.checkouts.create(**INTENT, webhook_url=url)
    shop.sandbox.pay(checkout.id)
    for delivery in shop.sandbox.deliveries:
        assert (await bring(shop.receiver, delivery)).status == 200
    assert shop.paid.ends == [("order-8", True)], "one state, however many deliveries told of it"
    assert shop.paid.given[0].kind == "checkout"
    assert shop.paid.given[0].record.id == checkout.payment.id


@pytest.mark.parametrize("between", [0, 100], ids=["one page", "two pages"])
async def test_payments_that_share_a_url_are_told_apart_by_their_ids(shop: Shop, between: int) -> None:
    first = await shop.ask()
    for _ in range(between):
        await shop.client.payment_intents.create(**INTENT)
    second = await shop.ask()
    assert first.id != second.id
    for paid in (second, first):
        shop.sandbox.pay(paid.id)
        assert await shop.bring_last() == 200
        assert shop.paid.given[-1].record.id == paid.id
    assert shop.paid.ends == [("order-7", True)] * 2


async def test_a_payment_that_shares_a_url_waits_for_a_reading_of_its_own(shop: Shop) -> None:
    both = [(await shop.ask()).id for _ in range(2)]
    for each in both:
        shop.sandbox.pay(each)
    url = shop.receiver.url_for_payment("order-7")
    bodies = [json.dumps({"payment": {"id": named}}).encode() for named in (*both, "pi_none")]
    answers = await asyncio.gather(*(shop.receiver.receive(path=url, body=body) for body in bodies[:2]))
    assert {answer.status for answer in answers} <= {200, 503}, "they come together, or one after the other"
    for body in (body for body, answer in zip(bodies, answers, strict=False) if answer.status == 503):
        assert (await shop.receiver.receive(path=url, body=body)).status == 200
    assert {each.record.id for each in shop.paid.given} == set(both)
    assert (await shop.receiver.receive(path=url, body=bodies[2])).status == 404, "no record of this URL"


@pytest.mark.parametrize("body", [b"", b"not JSON", b'{"something": "new"}', b'{"payout": {"id": ".."}}'])
async def test_a_body_that_says_nothing_is_enough_to_look(shop: Shop, body: bytes) -> None:
    await shop.pay_out()
    url = shop.receiver.url_for_payout("r-1")
    assert (await shop.receiver.receive(path=url, body=body)).status == 200
    assert shop.paid.states == [("r-1", "pending")]
    assert shop.paid.given[0].event is None


@pytest.mark.fact("events.re-read-before-acting")
async def test_what_a_body_says_about_money_is_not_believed(shop: Shop) -> None:
    payout = await shop.pay_out()
    (created,) = shop.sandbox.deliveries
    lie = {"event": "payout.completed", "payout": {"id": payout.id, "status": "completed", "amount": 1}}
    answer = await bring(shop.receiver, attrs.evolve(created, body=json.dumps(lie).encode()))
    assert answer.status == 200
    assert shop.paid.states == [("r-1", "pending")]
    assert shop.paid.given[0].record.amount.value == PAYOUT["amount"]


async def test_another_records_body_is_refused(shop: Shop) -> None:
    await shop.pay_out("r-1")
    await shop.pay_out("r-2")
    await shop.ask("r-1")
    shop.sandbox.advance(10_000.0)
    one, two = (each for each in shop.sandbox.deliveries if each.event == "payout.created")
    refused = await bring(shop.receiver, attrs.evolve(one, body=two.body))
    foreign = {"payment": {"id": "pi_1"}}
    also = await bring(shop.receiver, attrs.evolve(one, body=json.dumps(foreign).encode()))
    assert refused == also
    assert refused.status == 404
    assert not shop.paid.given


async def test_a_payment_of_another_url_is_not_handed_over(shop: Shop) -> None:
    await shop.ask()
    never_used = shop.receiver.url_for_payment("order-7", expires_in=60)
    answer = await shop.receiver.receive(path=never_used)
    assert (answer.status, answer.headers) == (503, {"Retry-After": "5"}), "it may be listed in a moment"
    assert not shop.paid.given


async def test_a_payout_far_back_in_the_list_is_read_by_itself(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("payments_async.webhooks._lookup.PAYOUT_PAGES", 1)
    await shop.pay_out()
    (created,) = shop.sandbox.deliveries
    for number in range(100):
        await shop.pay_out(f"later-{number}", webhook_url=None)
    before = shop.reads()
    assert (await bring(shop.receiver, created)).status == 200
    assert shop.reads() - before == {"payouts.list": 1, "payouts.sync": 1}
    assert shop.paid.states == [("r-1", "pending")]
    # Somebody who knows the URL names another payout, and one that is not there.
    lately = list(await shop.client.payouts.list(page_size=1))
    for named, status in ((lately[0].id, 404), ("po_nowhere", 503)):
        body = json.dumps({"payout": {"id": named}}).encode()
        again = shop.receiver.url_for_payout("r-1", expires_in=60)
        assert (await shop.receiver.receive(path=again, body=body)).status == status
    assert len(shop.paid.given) == 1


async def test_a_url_outlives_its_secret_for_as_long_as_that_is_kept(shop: Shop) -> None:
    await shop.pay_out()
    (created,) = shop.sandbox.deliveries
    urls = set()
    for secrets, status in ((["n" * 32], 404), (["n" * 32, SECRET], 200)):
        receiver = shop.receiver_with(secrets=secrets)
        assert (await bring(receiver, created)).status == status
        urls.add(receiver.url_for_payout("r-1"))
    assert len(urls) == 1, "the first secret makes them"
    assert len(shop.paid.given) == 1
