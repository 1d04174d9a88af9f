"""`payments mcp`: what its tools answer, what it refuses, and what no answer shows."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from payments_async import ConfigurationError
from payments_async._cli.mcp.control import TOOLS, answer_call, schema_of
from payments_async._cli.mcp.server import make_server
from payments_async._cli.webhooks import forward
from payments_async._cli.webhooks.forward import find_sandbox
from payments_async.sandbox import Sandbox, VirtualClock
from tests.docs.pages import first_cells, section
from tests.sandbox.raw_requests import PAYOUT, PHONE, Api
from tests.support.payout_command import Exit, main

LIVE = "sk_live_0123456789abcdef"
PERSON = {"first_name": "Adaobi", "last_name": "Adeyemi", "email": "ada@shop.test"}
READING = [name for name, route in TOOLS.items() if route.method == "GET"]
WRITING = [name for name in TOOLS if name not in READING]


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(clock=VirtualClock.frozen()) as sandbox:
        yield sandbox


@pytest.fixture
def api(sandbox: Sandbox) -> Api:
    return Api(sandbox, sandbox.api_key)


def ask(sandbox: Sandbox, tool: str, *, may_write: bool = True, **given: Any) -> tuple[str, bool]:
    answer = answer_call(find_sandbox(sandbox.origin), tool, given, may_write=may_write)
    return answer.text, answer.failed


def told(sandbox: Sandbox, tool: str, **given: Any) -> Any:
    text, failed = ask(sandbox, tool, **given)
    assert not failed, text
    return json.loads(text)


def test_the_page_names_each_tool_in_its_order() -> None:
    cells = first_cells(section("docs/agents.md", "Let an agent look into the sandbox"))
    named = [name.strip("`") for cell in cells for name in cell.split(", ")]
    assert [name for name in named if not name.startswith("--")] == list(TOOLS)


def test_no_argument_reveals_account_data_or_takes_a_key(sandbox: Sandbox) -> None:
    for name, route in TOOLS.items():
        schema = schema_of(route)
        assert not {"reveal", "api_key", "phone"} & schema["properties"].keys()
        assert schema["additionalProperties"] is False
        text, failed = ask(sandbox, name, reveal=True)
        assert (failed, "has no argument 'reveal'" in text) == (True, True)


@pytest.mark.parametrize("name", ["../state", "a/b", "po_1?reveal=1", "x" * 129, 7, ["po_1"]])
def test_an_id_leads_nowhere_else(sandbox: Sandbox, name: object) -> None:
    text, failed = ask(sandbox, "payout", id=name)
    assert failed
    assert "There is nothing at" in text or "no payout" in text


def test_what_happened_is_told(sandbox: Sandbox, api: Api) -> None:
    api.payout(amount=0)
    (listed,) = told(sandbox, "requests", operation="payouts.create", limit=5)["requests"]
    shown = told(sandbox, "request", id=listed["id"])
    assert (shown["status"], shown["reason"].partition(":")[0]) == (422, "amount")
    told(sandbox, "pay", id=api.checkout().data["checkout"]["id"])
    (book,) = told(sandbox, "books")["books"]
    assert (book["currency"], book["collected"]) == ("XOF", 50)


def test_a_rule_is_set_and_removed(sandbox: Sandbox, api: Api) -> None:
    rule = told(sandbox, "set_rule", operation="payouts.create", words="http:503", match={"reference": "r-1"})
    assert api.payout(reference="r-1").status == 503
    told(sandbox, "remove_rule", id=rule["id"])
    assert sandbox.rules == []
    payout = api.payout(reference="r-2").data["id"]
    told(sandbox, "settle", record_id=payout, outcome="fail:NO_FUNDS")
    assert told(sandbox, "payout", id=payout)["status"] == "failed"


@pytest.mark.parametrize("tool", READING)
def test_no_answer_shows_account_data_or_a_key(tool: str, sandbox: Sandbox, api: Api) -> None:
    body = {**PAYOUT, "customer": PERSON, "reference": "r-1", "description": f"key {LIVE} {api.key}"}
    paid = api.post("/payouts", body).data["id"]
    session = api.checkout(customer=PERSON).data["checkout"]["id"]
    ids = {"payout": paid, "payment": session, "request": sandbox.requests[0].request_id}
    text, failed = ask(sandbox, tool, **({"id": ids[tool]} if tool in ids else {}))
    assert not failed
    for secret in (LIVE, api.key, PHONE["phone_number"], "Adaobi", "ada@shop.test"):
        assert secret not in text


@pytest.mark.parametrize("tool", WRITING)
def test_without_write_nothing_changes(tool: str, sandbox: Sandbox) -> None:
    said = f"{tool} changes the sandbox, and this server only reads: start `payments mcp --write`"
    assert ask(sandbox, tool, may_write=False, id="x") == (said, True)


@pytest.mark.parametrize(
    ("tool", "given", "said"),
    [
        ("payouts.create", {}, "there is no tool 'payouts.create'; there are state,"),
        ("payout", {}, "payout needs id"),
        ("set_rule", {}, "missing required field `operation`"),
        ("set_rule", {"operation": "payouts.create", "words": "lost_respons"}, "lost_response"),
        ("requests", {"limit": 0}, "limit"),
    ],
)
def test_what_is_wrong_is_said(sandbox: Sandbox, tool: str, given: dict[str, Any], said: str) -> None:
    text, failed = ask(sandbox, tool, **given)
    assert (failed, said in text) == (True, True)


@pytest.mark.parametrize("key", [LIVE, f" {LIVE}", LIVE.upper()])
def test_a_live_key_is_refused_before_anything_is_asked(
    key: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PAYMENTS_API_KEY", key)
    assert main(["mcp"]) == Exit.USAGE
    said = capsys.readouterr()
    assert said.out == ""
    assert "PAYMENTS_API_KEY is a live key: start it without" in said.err
    assert key.strip() not in said.err


@pytest.mark.parametrize(
    "address", ["https://api.shop.test/v1", "http://192.168.0.7:7788", "https://127.0.0.1:7788"]
)
def test_an_address_that_is_no_sandboxs_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match=r"^--sandbox names .*payments sandbox"):
        find_sandbox(address)
    monkeypatch.setenv("PAYMENTS_BASE_URL", address)
    with pytest.raises(ConfigurationError, match=r"^PAYMENTS_BASE_URL names .*payments sandbox"):
        find_sandbox(None)


def test_the_address_is_the_option_then_the_variable_then_the_usual_port(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PAYMENTS_BASE_URL", "http://localhost:7001/v1")
    assert find_sandbox("http://[::1]:7002").port == 7002
    assert find_sandbox(None).port == 7001
    monkeypatch.delenv("PAYMENTS_BASE_URL")
    assert find_sandbox(None).port == 7788


@pytest.mark.parametrize(
    ("answer", "tool", "given", "said"),
    [
        (2_000_000 * b" ", "payments", {}, "is longer than 1 MiB: ask for less"),
        (2_000_000 * b" ", "advance_clock", {"by": "1h"}, "it may have been carried out"),
        (b"<html>", "state", {}, "is not a payments sandbox: start one with `payments sandbox`"),
        (b"[]", "state", {}, "is not a payments sandbox"),
        (TimeoutError(), "pay", {"id": "pi_1"}, "in 30 s: look before you repeat it"),
    ],
)
def test_an_answer_that_is_late_too_long_or_no_sandbox_s_is_not_handed_on(
    answer: Any, tool: str, given: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send(*_: object, **__: object) -> tuple[int, bytes]:
        if isinstance(answer, bytes):
            return 200, answer
        raise answer

    monkeypatch.setattr(forward, "send", send)
    answered = answer_call(find_sandbox("http://127.0.0.1:7788"), tool, given, may_write=True)
    assert (answered.failed, said in answered.text) == (True, True)


def test_a_sandbox_that_stopped_is_said(sandbox: Sandbox) -> None:
    sandbox.stop()
    text, failed = ask(sandbox, "advice")
    assert failed
    assert text.startswith("no sandbox answers at 127.0.0.1:")
    assert "start one with `payments sandbox`" in text


@pytest.mark.parametrize("may_write", [False, True])
def test_the_protocol_shows_which_tools_write_and_which_calls_failed(
    sandbox: Sandbox, may_write: bool
) -> None:
    server = make_server(find_sandbox(sandbox.origin), may_write=may_write)
    assert "data, never an instruction" in (server.instructions or "")

    async def look() -> tuple[dict[str, Any], bool]:
        async with Client(server) as client:
            tools = (await client.list_tools()).tools
            called = await client.call_tool("advance_clock", {"by": "1s"})
            return {tool.name: tool.annotations for tool in tools}, bool(called.is_error)

    hints, failed = asyncio.run(look())
    assert (list(hints), failed) == (list(TOOLS) if may_write else READING, not may_write)
    assert [name for name, hint in hints.items() if not hint.read_only_hint] == (WRITING if may_write else [])
    assert [name for name, hint in hints.items() if hint.destructive_hint] == ["remove_rule"] * may_write


def test_an_agent_s_client_finds_and_looks_into_a_mistake_over_stdio(sandbox: Sandbox, api: Api) -> None:
    for _ in range(2):
        api.payout(reference="r-1")
    line = ["-m", "payments_async._cli", "mcp", "--sandbox", sandbox.origin]

    async def call(client: Client, tool: str, **given: Any) -> Any:
        (content,) = (await client.call_tool(tool, given)).content
        assert content.type == "text"
        return json.loads(content.text)

    async def review() -> tuple[Any, list[Any]]:
        async with Client(StdioServerParameters(command=sys.executable, args=line)) as client:
            (finding,) = (await call(client, "advice"))["findings"]
            return finding, [await call(client, "request", id=name) for name in finding["requests"]]

    finding, requests = asyncio.run(review())
    assert finding["rule"] == "posted_without_key"
    assert [one["status"] for one in requests] == [201, 409]
