"""Cancelling an attempt: its connection ends with it, and what leaves is a cancellation like any other."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.http.conftest import BOTH
from tests.http.requests import AiohttpTransport, TransportError, get, make_request
from tests.support.patience import PATIENCE
from tests.support.rawserver import RawServer, Step

pytestmark = BOTH

BEGUN = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"


@pytest.mark.parametrize("script", [[Step.HANG], [BEGUN, Step.HANG]], ids=["unanswered", "half answered"])
async def test_a_cancelled_attempts_connection_is_closed_and_not_used_again(
    script: list[bytes | Step], server: RawServer, transport: AiohttpTransport
) -> None:
    server.scripts["/slow"] = script
    request = make_request(server.url("/slow"))
    task = asyncio.ensure_future(transport.send(request))
    assert await asyncio.to_thread(server.arrivals.get, timeout=300) == "/slow"
    task.cancel("why")
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert (caught.value.args, request.sent) == (("why",), True)
    assert await asyncio.to_thread(server.hangups.get, timeout=300) == "/slow"
    assert (await transport.send(get(server.url("/next")))).body == b"{}"
    assert server.connections == 2


async def test_the_cancellation_that_leaves_has_no_past(
    server: RawServer, transport: AiohttpTransport
) -> None:
    server.scripts["/slow"] = [Step.HANG]
    kept: list[BaseException] = []

    async def work() -> None:
        try:
            await transport.send(make_request(server.url("/slow")))
        except asyncio.CancelledError as exc:
            kept.append(exc)
            raise

    task = asyncio.ensure_future(work())
    await asyncio.to_thread(server.arrivals.get, timeout=300)
    task.cancel()
    await asyncio.wait([task])
    assert (kept[0].__cause__, kept[0].__context__) == (None, None)
    assert task.cancelled()


async def test_cancelling_before_a_connection_sends_nothing(transport: AiohttpTransport) -> None:
    with RawServer(unread=True) as server:
        request = make_request(server.url("/", scheme="https"))
        task = asyncio.ensure_future(transport.send(request))
        asyncio.get_running_loop().call_later(0.05, task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not request.sent


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_what_was_not_sent_when_an_attempt_is_given_up_is_never_sent(
    transport: AiohttpTransport,
) -> None:
    received: asyncio.Queue[int] = asyncio.Queue()
    given_up = asyncio.Event()
    accepted = 0

    async def read_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal accepted
        accepted += 1
        await given_up.wait()
        size = 0
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(1 << 20):
                size += len(piece)
        received.put_nowait(size)
        writer.close()

    server = await asyncio.start_server(read_late, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    body = bytes(20_000_000)
    for seconds in PATIENCE:
        request = make_request(f"http://127.0.0.1:{port}/", body=body, timeout=seconds)
        with pytest.raises(TransportError):
            await transport.send(request)
        if request.sent:
            break
    assert request.sent, "else this shows nothing"
    given_up.set()
    sizes = [await received.get()]
    while len(sizes) < accepted:  # an attempt may have connected in time, but not sent
        sizes.append(await received.get())
    assert max(sizes) < len(body)
    server.close()
