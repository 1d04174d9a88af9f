"""Webhooks over real sockets on loopback: what is sent, to which address and when, and what never is."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import aiohttp
import attrs
import pytest
from aiohttp import web

from payments_async.sandbox import Sandbox, VirtualClock, Webhook
from tests.sandbox.raw_requests import PAYOUT, Api, WebhookTried

Answering = Callable[[web.Request], Awaitable[web.StreamResponse]]


@attrs.define
class Receiver:
    """What a developer's own application is to the sandbox."""

    port: int = 0
    got: list[tuple[web.Request, Any]] = attrs.field(factory=list)
    answering: Answering | None = None

    async def take(self, request: web.Request) -> web.StreamResponse:
        self.got.append((request, await request.json()))
        return web.Response() if self.answering is None else await self.answering(request)

    def url(self, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}/hook?token=t-1"

    @property
    def events(self) -> list[str]:
        return [body["event"] for _, body in self.got]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = web.Application()
    app.router.add_route("*", "/{any:.*}", receiver.take)
    runner = web.AppRunner(app, shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.port = runner.addresses[0][1]
    yield receiver
    await runner.cleanup()


@pytest.fixture
async def serving() -> AsyncIterator[Api]:
    async with Sandbox(clock=VirtualClock.frozen()) as sandbox:
        yield Api(sandbox, sandbox.api_key)


async def all_tried(api: Api) -> list[Webhook]:
    await asyncio.to_thread(api.sandbox.wait_for_webhooks)
    return api.sandbox.webhooks


async def hang(_: web.Request) -> web.StreamResponse:
    """Never answers."""
    never: asyncio.Future[web.StreamResponse] = asyncio.get_running_loop().create_future()
    return await never


def always(status: int, **headers: str) -> Answering:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, headers=headers)

    return answer


async def test_a_payout_tells_its_receiver_of_its_creation_at_once_and_of_its_end(
    serving: Api, receiver: Receiver
) -> None:
    payout_id = serving.payout(webhook_url=receiver.url()).data["id"]
    await all_tried(serving)
    assert receiver.events == ["payout.created"]
    serving.sandbox.advance(5)
    webhooks = await all_tried(serving)
    assert receiver.events == ["payout.created", "payout.completed"]
    request, body = receiver.got[-1]
    assert (request.method, request.path_qs) == ("POST", "/hook?token=t-1")
    assert body["payout"] == serving.sync(payout_id)
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["X-Sandbox-Delivery"] == webhooks[1].id
    assert not {"X-Payment-Event", "X-Payment-Id", "Authorization", "Cookie"} & set(request.headers)
    assert {webhook.state for webhook in webhooks} == {"delivered"}
    assert all(tried.status == 200 and tried.seconds > 0 for webhook in webhooks for tried in webhook.tries)
    assert [webhook.tries[0].at - webhooks[0].at for webhook in webhooks] == [0, 5]


async def test_a_payment_s_headers_hint_at_what_its_body_says(serving: Api, receiver: Receiver) -> None:
    intent = serving.intent(webhook_url=receiver.url(), scenario="immediate").data
    await all_tried(serving)
    assert receiver.events == ["payment.attempt.completed", "payment.completed"]
    for request, body in receiver.got:
        assert request.headers["X-Payment-Event"] == body["event"]
        assert request.headers["X-Payment-Id"] == body["payment"]["id"] == intent["id"]


async def test_tries_come_when_their_time_has_come_and_end_after_the_fifth(
    serving: Api, receiver: Receiver
) -> None:
    receiver.answering = always(503)
    serving.payout(webhook_url=receiver.url(), scenario="manual")
    (webhook,) = await all_tried(serving)
    counts = [len(webhook.tries)]
    for seconds in (29, 1, 89, 1, 480, 3000, 9999):
        serving.sandbox.advance(seconds)
        (webhook,) = await all_tried(serving)
        counts.append(len(webhook.tries))
    assert counts == [1, 1, 2, 2, 3, 4, 5, 5]
    assert (webhook.state, len(receiver.got)) == ("given_up", 5)
    assert [tried.at - webhook.at for tried in webhook.tries] == [0, 30, 120, 600, 3600]
    assert all(body == receiver.got[0][1] for _, body in receiver.got)


async def leave(request: web.Request) -> web.StreamResponse:
    """Ends the line without an answer."""
    assert request.transport is not None
    request.transport.close()
    return web.Response()


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"x" * 65_536)


@pytest.mark.parametrize(
    ("answering", "state", "status", "error"),
    [
        (always(301, Location="http://8.8.8.8/"), "waiting", 301, "a redirect is not followed"),
        (always(308, Location="http://8.8.8.8/"), "waiting", 308, "a redirect is not followed"),
        (hang, "waiting", None, "no answer within 0.5 s"),
        (leave, "waiting", None, "the connection ended without an answer"),
        (endless, "delivered", 200, None),
    ],
)
async def test_a_try_ends_by_what_the_receiver_answers(
    serving: Api,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    answering: Answering,
    state: str,
    status: int | None,
    error: str | None,
) -> None:
    if answering is hang:
        monkeypatch.setattr("payments_async.sandbox._webhooks.sender.TIMEOUT", 0.5)
    receiver.answering = answering
    serving.payout(webhook_url=receiver.url(), scenario="manual")
    (webhook,) = await all_tried(serving)
    (tried,) = webhook.tries
    assert (webhook.state, tried.status, tried.error, len(receiver.got)) == (state, status, error, 1)
    assert webhook.next_at == (webhook.at + 30 if state == "waiting" else None)


async def test_what_answers_no_http_or_does_not_listen_is_a_failed_try(serving: Api) -> None:
    async def babble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.test ready\r\n\r\n")
        await writer.drain()
        writer.close()

    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with await asyncio.start_server(babble, "127.0.0.1", 0) as server:
        serving.payout(webhook_url=f"http://localhost:{port}/", scenario="manual")
        mail = server.sockets[0].getsockname()[1]
        serving.payout(webhook_url=f"http://127.0.0.1:{mail}/", scenario="manual")
        refused, babbled = await all_tried(serving)
    assert "refused" in str(refused.tries[0].error)
    assert (babbled.state, babbled.tries[0].status, bool(babbled.tries[0].error)) == ("waiting", None, True)


@pytest.mark.parametrize(
    "url", ["http://8.8.8.8/hook", "https://shop.example/hook", "http://2130706433/", "x"]
)
async def test_a_public_address_gets_nothing_and_is_not_looked_up(
    serving: Api, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *_, **__: asked.append(host))
    serving.payout(webhook_url=url)
    serving.sandbox.advance(9999)
    created, completed = await all_tried(serving)
    for webhook in (created, completed):
        assert (webhook.state, webhook.tries) == ("refused", ())
        assert webhook.reason
    assert [delivery.url for delivery in serving.sandbox.deliveries] == [url, url]
    assert asked == []


@pytest.mark.parametrize(
    ("host", "path"),
    [
        ("127.0.0.1", "/_sandbox/api/reset"),
        ("localhost", "/v1/payouts"),
        ("shop.test", "/_sandbox/api/reset"),
        ("[::ffff:127.0.0.1]", "/v1/payouts"),
    ],
)
async def test_the_sandbox_itself_gets_nothing(serving: Api, host: str, path: str) -> None:
    port = serving.sandbox.origin.rpartition(":")[2]
    serving.payout(webhook_url=f"http://{host}:{port}{path}", scenario="manual")
    (webhook,) = await all_tried(serving)
    assert (webhook.state, webhook.tries) == ("refused", ())
    assert "the sandbox's own" in str(webhook.reason)


@pytest.mark.parametrize("marked", [True, False])
async def test_a_receiver_may_say_that_it_only_listens(
    serving: Api, receiver: Receiver, marked: bool
) -> None:
    async def take(_: web.Request) -> web.StreamResponse:
        return web.Response(headers={"X-Sandbox-Listener": "1"} if marked else {})

    receiver.answering = take
    serving.payout(webhook_url=receiver.url(), scenario="manual")
    (webhook,) = await all_tried(serving)
    assert [one.only_listened for one in webhook.tries] == [marked]
    tried = [entry.item for entry in serving.sandbox.entries() if isinstance(entry.item, WebhookTried)]
    assert [one.only_listened for one in tried] == [marked]


async def test_a_delivery_goes_to_the_address_that_was_judged(
    monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    """A name service of an attacker gives a good address when asked first, and another after that."""
    asked: list[str] = []

    def rebinding(host: str, port: int, *_: object, **__: object) -> list[tuple[object, ...]]:
        asked.append(host)
        address = "127.0.0.1" if len(asked) == 1 else "127.0.0.99"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    async with Sandbox(clock=VirtualClock.frozen(), allow_webhooks_to=("shop.example",)) as sandbox:
        api = Api(sandbox, sandbox.api_key)
        api.payout(webhook_url=receiver.url("shop.example"), scenario="manual")
        (webhook,) = await all_tried(api)
    assert (webhook.state, asked) == ("delivered", ["shop.example"])
    assert receiver.got[0][0].host == f"shop.example:{receiver.port}"


async def test_a_look_up_holds_for_one_try(monkeypatch: pytest.MonkeyPatch, receiver: Receiver) -> None:
    """The next one asks again and judges again: here the name has come to lie on the sandbox itself."""
    asked: list[str] = []

    async def resolve(host: str, _: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"]

    monkeypatch.setattr("payments_async.sandbox._webhooks.sender.look_up", resolve)
    receiver.answering = always(500)
    async with Sandbox(clock=VirtualClock.frozen(), allow_webhooks_to=("shop.example",)) as sandbox:
        api = Api(sandbox, sandbox.api_key)
        api.payout(webhook_url=receiver.url("shop.example"), scenario="manual")
        await all_tried(api)
        assert sandbox._server is not None
        sandbox._server._sender.own = ("127.0.0.1", receiver.port)
        sandbox.advance(30)
        (webhook,) = await all_tried(api)
    assert (webhook.state, len(webhook.tries), len(receiver.got)) == ("refused", 1, 1)
    assert asked == ["shop.example", "shop.example"]


async def test_deliveries_come_by_themselves_on_a_clock_that_runs(receiver: Receiver) -> None:
    arrived = asyncio.Event()

    async def arrive(_: web.Request) -> web.StreamResponse:
        if receiver.events[-1] == "payout.completed":
            arrived.set()
        return web.Response()

    receiver.answering = arrive
    async with Sandbox(clock=VirtualClock(speed=100)) as sandbox:
        Api(sandbox, sandbox.api_key).payout(webhook_url=receiver.url())
        await asyncio.wait_for(arrived.wait(), 300)
    assert receiver.events == ["payout.created", "payout.completed"]


async def test_under_before_response_the_webhook_overtakes_the_answer(
    serving: Api, receiver: Receiver
) -> None:
    order: list[str] = []
    seen: list[int] = []

    async def look(request: web.Request) -> web.StreamResponse:
        body = receiver.got[-1][1]
        order.append(body["event"])
        seen.append(serving.get(f"/payouts/{body['payout']['id']}/sync").status)
        return web.Response(status=500)

    receiver.answering = look
    headers = {"Authorization": f"Bearer {serving.key}", "X-Sandbox-Scenario": "before_response immediate"}
    body = {**PAYOUT, "webhook_url": receiver.url()}
    address = f"{serving.sandbox.base_url}/payouts"
    async with (
        aiohttp.ClientSession() as session,
        session.post(address, json=body, headers=headers) as answer,
    ):
        order.append(str(answer.status))
    assert order == ["payout.created", "payout.completed", "201"]
    assert seen == [200, 200]


async def test_what_is_never_sent_keeps_no_answer_waiting(serving: Api, receiver: Receiver) -> None:
    headers = {"Authorization": f"Bearer {serving.key}", "X-Sandbox-Scenario": "before_response drop"}
    address = f"{serving.sandbox.base_url}/payouts"
    async with aiohttp.ClientSession() as session:
        for url in (receiver.url(), "http://8.8.8.8/"):
            body = {**PAYOUT, "webhook_url": url}
            async with session.post(address, json=body, headers=headers) as answer:
                assert answer.status == 201
            headers["X-Sandbox-Scenario"] = "before_response"
    assert [webhook.state for webhook in serving.sandbox.webhooks] == ["dropped", "refused"]
    assert receiver.got == []


async def test_stopping_cuts_off_what_is_under_way_and_starting_sends_it(receiver: Receiver) -> None:
    arrived = asyncio.Event()

    async def arrive(request: web.Request) -> web.StreamResponse:
        arrived.set()
        return await hang(request)

    receiver.answering = arrive
    sandbox = Sandbox(clock=VirtualClock.frozen())
    api = Api(sandbox, sandbox.api_key)
    api.payout(webhook_url=receiver.url(), scenario="manual")
    (webhook,) = sandbox.webhooks
    assert webhook.state == "waiting"
    async with sandbox:
        await asyncio.wait_for(arrived.wait(), 300)
        assert sandbox.webhooks[0].state == "sending"
    assert (sandbox.webhooks[0].state, sandbox.webhooks[0].tries) == ("waiting", ())
    receiver.answering = None
    async with sandbox:
        (webhook,) = await all_tried(api)
    assert (webhook.state, len(receiver.got)) == ("delivered", 2)


async def test_the_number_under_way_is_bounded_and_all_arrive(
    serving: Api, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way, most = 0, 0

    async def count(_: web.Request) -> web.StreamResponse:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.get_running_loop().run_in_executor(None, lambda: None)
        under_way -= 1
        return web.Response()

    monkeypatch.setattr("payments_async.sandbox._webhooks.sender.AT_ONCE", 3)
    receiver.answering = count
    for _ in range(20):
        serving.payout(webhook_url=receiver.url(), scenario="manual")
    assert {webhook.state for webhook in await all_tried(serving)} == {"delivered"}
    assert len(receiver.got) == 20
    assert most <= 3


async def test_waiting_for_webhooks_has_an_end(serving: Api, receiver: Receiver) -> None:
    receiver.answering = hang
    serving.sandbox.wait_for_webhooks(0)
    serving.payout(webhook_url=receiver.url(), scenario="manual")
    with pytest.raises(TimeoutError, match=r"still due after 0\.01 s"):
        await asyncio.to_thread(serving.sandbox.wait_for_webhooks, 0.01)


async def test_a_reset_forgets_what_is_under_way(serving: Api, receiver: Receiver) -> None:
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def hold(_: web.Request) -> web.StreamResponse:
        arrived.set()
        await go_on.wait()
        return web.Response()

    receiver.answering = hold
    serving.payout(webhook_url=receiver.url(), scenario="manual")
    await asyncio.wait_for(arrived.wait(), 300)
    serving.sandbox.reset()
    receiver.answering = None
    go_on.set()
    serving.payout(webhook_url=receiver.url(), scenario="manual")
    (webhook,) = await all_tried(serving)
    assert (webhook.id, webhook.state) == ("wh_00000002", "delivered")
