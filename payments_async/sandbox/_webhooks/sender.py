"""Sends webhooks: one POST for each try, to an address that `address_guard` has allowed.

Runs on the server's loop. No redirect is followed, no proxy asked, no cookie kept, and only the status of an
answer counts; its beginning is kept for people to read. Timeouts are in seconds of the machine, not of the
sandbox, because the receiver's time is.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Final

import aiohttp
import attrs
from yarl import URL

from .._records.emit_webhook import headers_for
from .address_guard import DeliveryAddress, NotSent, check_addresses, read_target
from .webhook import Webhook, WebhookTry

TIMEOUT: Final = 10.0  # seconds for one try (gap Y)

AT_ONCE: Final = 16
"""Tries under way at most, so that deliveries never crowd out the API."""

_ANSWER_BYTES: Final = 65_536
"""Bytes of an answer that are read, so that the receiver can finish."""

_ANSWER_SHOWN: Final = 500
"""Characters of a refusal's body that are kept, for people to read."""

LISTENER: Final = "X-Sandbox-Listener"
"""A header of answers: its receiver only shows deliveries, as `payments webhooks listen` does."""

DELIVERY: Final = "X-Sandbox-Delivery"
"""A header of deliveries: the id with which one can be sent again. The service has no such header."""

_REST: Final = 0.01
"""Sandbox seconds at least until the queue is read again for what has fallen due."""

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


@attrs.frozen
class SenderCallbacks:
    """The sender's access to the queue and the clock. Called from the server's thread only."""

    take: Callable[[int], tuple[list[Webhook], float | None]]
    """Gives what to send now, at most so many, and in how many sandbox seconds there may be more."""
    report: Callable[[str, WebhookTry | NotSent], None]
    put_back: Callable[[], None]
    now: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]


class WebhookSender:
    """Sends what is due while `run` runs. `poke` may be called from any thread, the rest in the loop."""

    def __init__(
        self, callbacks: SenderCallbacks, allowed: frozenset[str], resolve: Resolve | None = None
    ) -> None:
        self._callbacks = callbacks
        self._allowed = allowed
        self._resolve = resolve or look_up
        self.own: tuple[str, int] | None = None
        """Where the sandbox listens: no delivery goes there, least of all to its controls."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._poked = asyncio.Event()
        self._under_way: set[asyncio.Task[None]] = set()
        self._session: aiohttp.ClientSession | None = None
        self._awaited: dict[str, asyncio.Event] = {}

    async def run(self) -> None:
        """Send until cancelled; what is under way then is due again."""
        self._loop = asyncio.get_running_loop()
        alarm: asyncio.Task[None] | None = None
        try:
            while True:
                self._poked.clear()
                webhooks, wait = self._callbacks.take(AT_ONCE - len(self._under_way))
                for webhook in webhooks:
                    task = asyncio.ensure_future(self._deliver(webhook))
                    self._under_way.add(task)
                    task.add_done_callback(self._under_way.discard)
                if alarm is not None:
                    alarm.cancel()
                alarm = None if wait is None else asyncio.ensure_future(self._ring(max(wait, _REST)))
                await self._poked.wait()
        finally:
            self._loop = None
            tasks = [*self._under_way, *([alarm] if alarm else [])]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._session is not None:
                await self._session.close()
                self._session = None
            self._callbacks.put_back()

    async def _ring(self, wait: float) -> None:
        await self._callbacks.sleep(wait)
        self._poked.set()

    def poke(self) -> None:
        """Read the queue: something may be due. Without effect while the sender does not run."""
        loop = self._loop
        if loop is not None and not self._poked.is_set():
            with suppress(RuntimeError):  # the loop has been closed this very moment
                loop.call_soon_threadsafe(self._poked.set)

    async def tried(self, webhook_ids: Sequence[str]) -> None:
        """Return once the first try of each of these is over, or will not come."""
        for webhook_id in webhook_ids:
            event = self._awaited.setdefault(webhook_id, asyncio.Event())
            await event.wait()
            self._awaited.pop(webhook_id, None)

    async def _deliver(self, webhook: Webhook) -> None:
        loop = asyncio.get_running_loop()
        at, started = self._callbacks.now(), loop.time()
        result: WebhookTry | NotSent
        try:
            async with asyncio.timeout(TIMEOUT):
                result = await self._send(webhook, at)
        except NotSent as refused:
            result = refused
        except Exception as failure:  # of any kind: it must not end the sender or block the record
            result = WebhookTry(at, 0.0, error=_reason(failure))
        if isinstance(result, WebhookTry):
            result = attrs.evolve(result, seconds=round(loop.time() - started, 6))
        self._callbacks.report(webhook.id, result)
        if (event := self._awaited.get(webhook.id)) is not None:
            event.set()
        loop.call_soon(self._poked.set)  # once there is room for another

    async def _send(self, webhook: Webhook, at: float) -> WebhookTry:
        """The try; `NotSent` for a refused address."""
        target = read_target(webhook.url, self._allowed)
        addresses = target.addresses
        if not addresses:
            resolved = await self._resolve(target.host, target.port)
            addresses = check_addresses(target.host, resolved, self._allowed)
        if any(self._is_own(address, target.port) for address in addresses):
            raise NotSent("the address is the sandbox's own: nothing there receives webhooks")
        for address in addresses[:-1]:
            with suppress(aiohttp.ClientConnectorError):
                return await self._post(webhook, target, address, at)
        return await self._post(webhook, target, addresses[-1], at)

    def _is_own(self, address: str, port: int) -> bool:
        if self.own == ("0.0.0.0", port):  # noqa: S104 - compared, not listened on
            return is_of_this_machine(address)
        return (address, port) == self.own

    async def _post(self, webhook: Webhook, target: DeliveryAddress, address: str, at: float) -> WebhookTry:
        host = f"[{address}]" if ":" in address else address
        hints = headers_for(webhook.event, webhook.record_id)
        async with self._opened().post(
            URL(f"{target.scheme}://{host}:{target.port}{target.path}", encoded=True),
            data=webhook.body,
            headers={**hints, DELIVERY: webhook.id, "Host": target.authority},
            allow_redirects=False,
            server_hostname=target.host if target.scheme == "https" else None,
        ) as response:
            body = bytearray()
            while len(body) < _ANSWER_BYTES and (
                chunk := await response.content.read(_ANSWER_BYTES - len(body))
            ):
                body += chunk
            error = "a redirect is not followed" if 300 <= response.status < 400 else None
            answer = "" if response.status < 300 else body.decode("utf-8", "replace")[:_ANSWER_SHOWN]
            return WebhookTry(at, 0.0, response.status, error, LISTENER in response.headers, answer)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # a new connection each time: one that went stale meanwhile would look like a failed try
                connector=aiohttp.TCPConnector(limit=0, force_close=True),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None),
            )
        return self._session


def _reason(failure: Exception) -> str:
    """The reason of a failed try, with nothing of what was sent."""
    if isinstance(failure, TimeoutError):
        return f"no answer within {TIMEOUT:g} s"
    if isinstance(failure, aiohttp.ServerDisconnectedError):
        return "the connection ended without an answer"
    cause = failure.os_error if isinstance(failure, aiohttp.ClientConnectorError) else failure
    if isinstance(cause, ConnectionRefusedError):
        return "nothing listens there: connection refused"
    text = cause.strerror if isinstance(cause, OSError) else None
    return text or type(failure).__name__


def is_of_this_machine(address: str) -> bool:
    """True for a loopback address, and for one that this machine can listen on."""
    if ip_address(address).is_loopback:
        return True
    with suppress(OSError), socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        probe.bind((address, 0))
        return True
    return False


async def look_up(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, asked for once; OSError when there are none."""
    answers = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(answer[4][0]) for answer in answers]
