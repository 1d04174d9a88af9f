"""An agent's client finds and explains what a program did wrong: over stdio, by the tools alone."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from mcp import Client, StdioServerParameters

from payments_async._cli.webhooks.receiver import Receiver
from payments_async.sandbox import Sandbox, VirtualClock
from payments_async.sandbox._records.tenants import fingerprint_of
from payments_async.sandbox.advisor._rules import RULES
from tests.sandbox.advisor.test_rules import FOUND, Step, ask
from tests.sandbox.raw_requests import Api


async def call(client: Client, tool: str, **arguments: Any) -> tuple[Any, str]:
    """A tool's answer, read and as it came."""
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    assert content.type == "text"
    assert not result.is_error, content.text
    return json.loads(content.text), content.text


async def review(origin: str) -> dict[str, tuple[set[str], str]]:
    """What an agent does: ask for advice, and look at what each finding names.

    By rule: the keys of the programs that show it, and everything that the tools answered about it.
    """
    line = ["-m", "payments_async._cli", "mcp", "--sandbox", origin, "--write"]
    explained = {}
    async with Client(StdioServerParameters(command=sys.executable, args=line)) as client:
        await call(client, "advance_clock", by="60s")
        advice, _ = await call(client, "advice")
        for finding in advice["findings"]:
            looks = [await call(client, "request", id=name) for name in finding["requests"]]
            if finding["webhooks"]:
                deliveries, text = await call(client, "webhooks")
                named = [one["id"] for one in deliveries["webhooks"] if one["id"] in finding["webhooks"]]
                assert named == finding["webhooks"]
                looks += [await call(client, "payout", id=finding["subject"]), ({}, text)]
            keys = {record["key"] for record, _ in looks if record}
            print(f"\n{finding['text']}\n    {finding['why']}\n    {finding['fix']}")
            explained[finding["rule"]] = keys, json.dumps(finding) + "".join(text for _, text in looks)
    return explained


MISTAKES: Mapping[str, Sequence[Step]] = {
    **{mistake.rule: mistake.steps for mistake in FOUND.values()},
    "key_in_browser": [ask("GET", origin="https://shop.test")],
}
"""By rule: what a program did."""


def test_each_mistake_is_found_with_its_program_and_nothing_else() -> None:
    with Sandbox(clock=VirtualClock.frozen()) as sandbox, Receiver(None, lambda *_: 204) as receiver:
        programs = {rule: Api(sandbox, sandbox.new_key()) for rule in MISTAKES}
        for rule, program in programs.items():
            for step in MISTAKES[rule] if rule != "webhook_trusted" else ():
                step(program)
        programs["webhook_trusted"].payout(webhook_url=receiver.url, idempotency_key="key-00001")
        sandbox.wait_for_webhooks()
        sandbox.advance(10)
        sandbox.wait_for_webhooks()
        explained = asyncio.run(review(sandbox.origin))
    assert explained.keys() == RULES.keys()
    for rule, (keys, texts) in explained.items():
        assert keys == {fingerprint_of(programs[rule].key)}, rule
        assert "sk_sandbox_" not in texts
        assert "+2290190000000" not in texts
