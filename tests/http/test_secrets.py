"""The key leaves on the wire and by no other way: not in an exception, its past, its frames, or a log."""

from __future__ import annotations

import asyncio
import copy
import gc
import logging
import pickle
import traceback
import weakref
from asyncio import selector_events

import pytest

from tests.http.conftest import BOTH, AiohttpTransport, CommonHeaders, Secret
from tests.http.requests import KEY, HTTPRequest, TransportError, cut_short, get, make_request
from tests.support.rawserver import Drip, RawServer, Script, Step

pytestmark = BOTH

HEAD = b"HTTP/1.1 200 OK\r\n"
ENDINGS: dict[str, Script] = {
    "closed": [Step.CLOSE],
    "reset": [Step.RESET],
    "cut": [HEAD + b"Content-Length: 9\r\n\r\n{", Step.CLOSE],
    "not HTTP": [b"what?\r\n\r\n"],
    "bad chunk": [HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"],
    "too large": [HEAD + b"Content-Length: 99999999\r\n\r\n"],
    "echoed": [HEAD + b"X-Echo: " + KEY.encode() + b"\r\nContent-Length: 99999999\r\n\r\n"],
    "bad gzip": [HEAD + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}"],
    "switching": [b"HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"],
    "timeout": [Step.HANG],
    "drip": [HEAD + b"Content-Length: 9999\r\n\r\n", Drip(b"a", 0.005)],
}


def everything(exc: BaseException) -> str:
    """An exception as the most talkative error reporter would show it, suppressed links included.

    Without the first frame, the test's own, which knows the key.
    """
    assert exc.__traceback__ is not None
    exc.__traceback__ = exc.__traceback__.tb_next
    shown = []
    pending: list[BaseException | None] = [exc]
    while pending:
        link = pending.pop()
        if link is not None:
            report = traceback.TracebackException.from_exception(link, capture_locals=True)
            shown += [*report.format(), repr(link), repr(vars(link)), repr(link.args)]
            pending += [link.__cause__, link.__context__]
    return "".join(shown)


@pytest.mark.parametrize("case", ENDINGS)
async def test_a_failure_shows_no_key(
    case: str, server: RawServer, transport: AiohttpTransport, caplog: pytest.LogCaptureFixture
) -> None:
    server.scripts["/end"] = ENDINGS[case]
    caplog.set_level(logging.DEBUG)
    asyncio.get_running_loop().set_debug(True)
    _, caught = await cut_short(transport, server.url("/end"), lambda _: server.requests)
    await transport.aclose()
    gc.collect()
    assert KEY.encode() in server.requests[0]
    shown = everything(caught.value)
    assert "send" in shown
    assert KEY.split()[1] not in shown + caplog.text + repr(vars(transport))


async def test_a_refused_header_shows_no_key(transport: AiohttpTransport) -> None:
    request = make_request("http://127.0.0.1:1/")
    request.headers["Authorization"] = KEY + "\n"
    with pytest.raises(ValueError, match="control character") as caught:
        await transport.send(request)
    assert KEY.split()[1] not in everything(caught.value)


async def test_common_headers_show_no_key_once_they_are_written(
    server: RawServer, transport: AiohttpTransport
) -> None:
    common = CommonHeaders({"Authorization": Secret(KEY)}, "X-Idempotency-Key")
    request = HTTPRequest("POST", server.url("/"), None, b"{}", 60, common=common, own="key-12345678")
    await transport.send(request)
    assert common.lines is not None
    assert KEY.encode() in server.requests[0]
    shown = f"{request!r} {common!r} {common.headers!r} {common.lines!r} {copy.deepcopy(common).lines!r}"
    assert KEY.split()[1] not in shown
    with pytest.raises(TypeError, match="a secret is written to no file"):
        pickle.dumps(common)
    with pytest.raises(TypeError, match="__dict__"):
        vars(common)
    with pytest.raises(ValueError, match="control character") as caught:
        await transport.send(HTTPRequest("POST", request.url, None, b"{}", 60, None, common, "key\r\nX: y"))
    assert KEY.split()[1] not in everything(caught.value)
    unsafe = CommonHeaders({"Authorization": Secret(KEY + "\n")}, None)
    with pytest.raises(ValueError, match="control character") as caught:
        await transport.send(HTTPRequest("POST", request.url, None, b"{}", 60, None, unsafe))
    assert KEY.split()[1] not in everything(caught.value)


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_the_middle_of_writing_shows_no_key(
    interrupt: type[BaseException],
    server: RawServer,
    transport: AiohttpTransport,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write = selector_events._SelectorSocketTransport.write

    def interrupted(self: object, data: bytes) -> None:
        if KEY.encode() in data:
            raise interrupt from ValueError(data)
        write(self, data)

    monkeypatch.setattr(selector_events._SelectorSocketTransport, "write", interrupted)
    with asyncio.Runner() as runner:
        with pytest.raises(interrupt) as caught:
            runner.run(transport.send(get(server.url("/"))))
        shown = everything(caught.value)
        runner.run(transport.aclose())
    assert "send" in shown
    assert KEY.split()[1] not in shown


async def test_a_failure_is_freed_with_its_last_reference(transport: AiohttpTransport) -> None:
    gc.disable()  # what reference counting alone does not free would keep the request's headers about
    try:
        try:
            await transport.send(make_request("http://127.0.0.1:1/"))
        except TransportError as exc:
            failure = weakref.ref(exc)
        assert failure() is None
    finally:
        gc.enable()
