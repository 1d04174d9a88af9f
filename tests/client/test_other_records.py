"""An answer about another record than the one asked for is refused, and its connection is closed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from payments_async import ResponseMismatch
from payments_async._http import transport
from tests.support.motion import PAYOUT, payout_answer, play
from tests.support.rawserver import RawServer, Step
from tests.support.scripted import ScriptedTransport, answer
from tests.support.surfaces import Connect, error_of

pytestmark = pytest.mark.parametrize("surface", ["async"], indirect=True)  # the mirror sends nothing itself

Read = Callable[[Any], Awaitable[Any]]
PAID = {"completed_at": "2026-01-01T00:00:00Z"}


def checkout(session: Any) -> dict[str, Any]:
    return {"checkout": {"id": session}, "payment": {"id": "pi_1", **PAID}}


READS: Mapping[str, tuple[Read, Callable[[Any], dict[str, Any]]]] = {
    "checkouts.retrieve": (lambda client: client.checkouts.retrieve("mine"), checkout),
    "payment_intents.retrieve_attempt": (
        lambda client: client.payment_intents.retrieve_attempt("pi_1", "mine"),
        lambda given: {"id": given, **PAID},
    ),
    "payouts.sync": (lambda client: client.payouts.sync("mine"), lambda given: {"id": given, **PAID}),
    "payment_intents.requery": (
        lambda client: client.payment_intents.requery("mine"),
        lambda given: {"id": "rq_1", "payment_intent_id": given},
    ),
}
WAITS: Mapping[str, tuple[Read, Callable[[Any], dict[str, Any]]]] = {
    "checkouts.wait": (lambda client: client.checkouts.wait("mine"), checkout),
    "payment_intents.wait_attempt": (
        lambda client: client.payment_intents.wait_attempt("pi_1", "mine"),
        lambda given: {"id": given, **PAID},
    ),
}
every_read = pytest.mark.parametrize("name", READS)


@pytest.mark.parametrize("name", [*READS, *WAITS])
async def test_an_answer_about_another_record_is_a_mismatch(connect: Connect, name: str) -> None:
    read, body = {**READS, **WAITS}[name]
    played = play(connect, answer(200, {"data": body("another")}))
    caught = await error_of(ResponseMismatch, read(played.client))
    error = caught
    assert (error.effect, list(error.differences.values())) == ("none", [("mine", "another")])
    assert len(played.transport.requests) == 1  # an answer to someone else is no reason to ask again at once
    assert [attempt.verdict for attempt in error.attempts] == ["executed"]


@every_read
@pytest.mark.parametrize("given", ["mine", None, ...], ids=["its id", "null", "absent"])
async def test_an_answer_that_names_no_other_record_is_taken(connect: Connect, name: str, given: Any) -> None:
    read, body = READS[name]
    text = json.dumps(body("GIVEN")).replace('"GIVEN"', json.dumps(None if given is ... else given))
    data = json.loads(text.replace('"id": null, ', "")) if given is ... else json.loads(text)
    found = await read(connect(transport=ScriptedTransport(answer(200, {"data": data}))))
    if name in ("checkouts.retrieve", "payouts.sync"):
        assert (found.id, getattr(found, "url", "")) == ("mine" if given == "mine" else "", "")


@pytest.mark.parametrize("way", ["direct", "session"])
@pytest.mark.parametrize("name", ["payouts.sync", "payouts.create"])
async def test_the_connection_that_gave_it_is_closed(
    connect: Connect, server: RawServer, monkeypatch: pytest.MonkeyPatch, way: str, name: str
) -> None:
    monkeypatch.setattr(transport, "is_supported", lambda: way == "direct")
    server.scripts["/v1/payouts/mine/sync"] = [whole({"id": "another"}), Step.HANG]
    server.scripts["/v1/payouts/kept/sync"] = [whole({"id": "kept"})]
    other = json.loads(payout_answer(reference="r-9").body)["data"]
    server.scripts["/v1/payouts"] = [whole(other, status=b"201 Created"), Step.HANG]
    client = connect(base_url=server.url("/v1"), max_retries=0)
    await client.payouts.sync("kept")
    with pytest.raises(ResponseMismatch):
        await (client.payouts.sync("mine") if name == "payouts.sync" else client.payouts.create(**PAYOUT))
    assert server.connections == 1
    assert await asyncio.to_thread(server.hangups.get, timeout=300)  # at once, not with the next request
    await client.payouts.sync("kept")
    assert server.connections == 2


def whole(data: Any, status: bytes = b"200 OK") -> bytes:
    """An answer that leaves its connection open."""
    body = json.dumps({"data": data}).encode()
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)
