"""An agent's client finds and explains the mistakes that programs made: over stdio, by the tools alone."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import pytest
from mcp import Client, StdioServerParameters

from payments_async._cli.webhooks.receiver import Receiver
from payments_async.sandbox import Sandbox, VirtualClock
from payments_async.sandbox._records.tenants import fingerprint_of
from payments_async.sandbox.advisor import HEADINGS
from tests.sandbox.raw_requests import TRIED, Api

ONE, TWO = {"idempotency_key": "key-00001"}, {"idempotency_key": "key-00002"}
HANGS = {"metadata": {"sandbox_scenario": "hang"}}


def two_without_key(api: Api) -> None:
    for _ in range(2):
        api.payout()


def two_keys(api: Api) -> None:
    api.payout(reference="r-1", **ONE)
    api.payout(reference="r-1", **TWO)


def one_key(api: Api) -> None:
    api.payout(reference="r-1", **ONE)
    api.payout(reference="r-2", **ONE)


def paid_again(api: Api) -> None:
    api.payout(**ONE)
    api.payout(description="again", **TWO)


def early_retry(api: Api) -> None:
    api.get("/payouts", scenario="429:10")
    api.get("/payouts")


def parallel_loops(api: Api) -> None:
    for _ in range(4):
        api.payout(**ONE, scenario="http:503*9")


def polling_too_fast(api: Api) -> None:
    checkout = api.checkout().data["checkout"]["id"]
    for _ in range(3):
        api.get(f"/payment/checkouts/{checkout}")


def polling_after_final(api: Api) -> None:
    api.post("/payment/intents", TRIED)
    payment = next(each for each in api.sandbox.books.payments() if each.key == fingerprint_of(api.key))
    for _ in range(6):
        api.get(f"/payment/intents/{payment.id}/attempts/{payment.attempts[0]}")
        api.sandbox.advance(5)


def live_reads(api: Api) -> None:
    payout = api.payout(**HANGS).data["id"]
    for _ in range(3):
        api.sync(payout)
        api.sandbox.advance(10)


def key_in_browser(api: Api) -> None:
    headers = {"Authorization": f"Bearer {api.key}", "Origin": "https://shop.test"}
    api.sandbox.handle("GET", "/v1/payouts", headers)


def webhook_trusted(api: Api) -> None:
    with Receiver(None, lambda body, headers: 204) as receiver:
        api.payout(webhook_url=receiver.url)
        api.sandbox.wait_for_webhooks()
        api.sandbox.advance(10)
        api.sandbox.wait_for_webhooks()


def accepted_as_is(api: Api) -> None:
    api.payout(reference="r-1", currency="AAA", **ONE)


SEEDS: Mapping[str, Callable[[Api], None]] = {
    "post_without_key": two_without_key,
    "two_keys": two_keys,
    "one_key": one_key,
    "paid_again": paid_again,
    "early_retry": early_retry,
    "parallel_loops": parallel_loops,
    "polling_too_fast": polling_too_fast,
    "polling_after_final": polling_after_final,
    "live_reads": live_reads,
    "webhook_trusted": webhook_trusted,
    "key_in_browser": key_in_browser,
    "accepted_as_is": accepted_as_is,
}
"""Each by a program with a key of its own."""


@attrs.frozen
class Explained:
    """A finding as an agent explains it, and the ids of the keys whose requests show it."""

    rule: str
    text: str
    keys: frozenset[str]
    texts: str
    """Everything that the tools answered about it."""


async def call(client: Client, tool: str, **arguments: Any) -> tuple[Any, str]:
    """A tool's answer, read and as it came."""
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    assert content.type == "text"
    assert not result.is_error, content.text
    return json.loads(content.text), content.text


async def explain(client: Client, finding: dict[str, Any]) -> Explained:
    """Look at what a finding names, and say what is wrong, where, why and what to do."""
    shown, texts, keys = [], json.dumps(finding), set()
    for name in finding["requests"]:
        request, text = await call(client, "request", id=name)
        keys.add(request["key"])
        shown.append(f"{request['method']} {request['path']}: {request['reason'] or request['status']}")
        texts += text
    if finding["webhooks"]:
        deliveries, text = await call(client, "webhooks")
        payout, _ = await call(client, "payout", id=finding["subject"])
        keys.add(payout["key"])
        named = [each for each in deliveries["webhooks"] if each["id"] in finding["webhooks"]]
        shown += [f"{each['event']} to {each['url']}: {each['state']}" for each in named]
        texts += text
    said = "\n".join([finding["title"], *(f"    {line}" for line in shown), finding["why"], finding["fix"]])
    return Explained(finding["rule"], said, frozenset(keys), texts)


async def review(origin: str) -> list[Explained]:
    """What an agent does: let the time of deliveries pass, ask for advice, look at each finding."""
    line = ["-m", "payments_async._cli", "mcp", "--sandbox", origin, "--write"]
    async with Client(StdioServerParameters(command=sys.executable, args=line)) as client:
        await call(client, "advance_clock", by="60s")
        advice, _ = await call(client, "advice")
        return [await explain(client, finding) for finding in advice["findings"]]


@pytest.fixture(scope="module")
def reviewed() -> Iterator[tuple[Mapping[str, Api], list[Explained]]]:
    """Programs with a mistake each, in one sandbox, and what an agent says of them."""
    with Sandbox(clock=VirtualClock.frozen()) as sandbox:
        programs = {rule: Api(sandbox, sandbox.new_key()) for rule in SEEDS}
        for rule, program in programs.items():
            SEEDS[rule](program)
        yield programs, asyncio.run(review(sandbox.origin))


@pytest.mark.parametrize("rule", SEEDS)
def test_a_mistake_is_found_and_explained(
    rule: str, reviewed: tuple[Mapping[str, Api], list[Explained]]
) -> None:
    programs, explained = reviewed
    (found,) = (each for each in explained if each.rule == rule)
    print(f"\n{found.text}")
    assert found.keys == {fingerprint_of(programs[rule].key)}, (
        "the evidence is this program's, and no other's"
    )
    assert len(found.text.splitlines()) >= 4
    for secret in ("sk_sandbox_", "+22990000000"):
        assert secret not in found.texts


def test_each_mistake_is_found_and_nothing_else(reviewed: tuple[Mapping[str, Api], list[Explained]]) -> None:
    _, explained = reviewed
    assert sorted(each.rule for each in explained) == sorted(SEEDS) == sorted(HEADINGS)
