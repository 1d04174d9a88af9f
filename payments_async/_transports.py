"""The transport a client gets when it is given none."""

from __future__ import annotations

import asyncio
import ssl
import sys
import threading
from asyncio import _get_running_loop
from collections.abc import Callable
from typing import Final

from ._runtime import Runtime
from ._wire import Answer, Flight, Transport, TransportFailure
from .errors import ConfigurationError

_DOOR: Final = f"{__package__}._transport"


def default_transport(
    runtime: Runtime,
    connect_timeout: float,
    max_connections: int,
    proxy: str | None,
    ssl_context: ssl.SSLContext | None,
) -> Transport:
    """aiohttp's. It is imported when a first client is made, which takes 0.2 s; on a running loop, later.

    Raises ConfigurationError for a proxy's address that is not one; it is not repeated.
    """
    if proxy is not None and not _fit(proxy):
        raise ConfigurationError("proxy must be an absolute http(s) address, such as http://proxy.test:3128")

    def make() -> Transport:
        from ._transport import AiohttpTransport

        return AiohttpTransport(
            connect_timeout=connect_timeout,
            max_connections=max_connections,
            proxy=proxy,
            ssl_context=ssl_context,
            runtime=runtime,
        )

    imported = hasattr(sys.modules.get(_DOOR), "AiohttpTransport")
    return make() if imported or _get_running_loop() is None else LateTransport(make, runtime)


class LateTransport:
    """A transport whose library is imported with the first request, in a thread, while the loop goes on."""

    def __init__(self, make: Callable[[], Transport], runtime: Runtime) -> None:
        self._make = make
        self._runtime = runtime
        self._lock = threading.Lock()
        self._transport: Transport | None = None

    async def send(self, flight: Flight) -> Answer:
        """As any transport; the import counts as a part of the attempt."""
        transport = self._transport or await self._loaded(flight)
        return await transport.send(flight)

    async def aclose(self) -> None:
        """Close every connection of the running loop, if there ever was one."""
        if self._transport is not None:
            await self._transport.aclose()

    async def _loaded(self, flight: Flight) -> Transport:
        started = self._runtime.monotonic()
        loading = asyncio.ensure_future(asyncio.to_thread(self._load))
        loading.add_done_callback(lambda late: late.cancelled() or late.exception())  # nobody may ask for it
        await asyncio.wait([loading], timeout=flight.timeout)
        if not loading.done():
            raise TransportFailure("connect", "the HTTP library was not loaded in time; nothing was sent")
        flight.timeout = max(0.0, flight.timeout - (self._runtime.monotonic() - started))
        return loading.result()

    def _load(self) -> Transport:
        """In a thread: all who wait get the same one."""
        with self._lock:
            if self._transport is None:
                self._transport = self._make()
            return self._transport


def _fit(proxy: str) -> bool:
    from ._head import check_proxy

    try:
        check_proxy(proxy)
    except (TypeError, ValueError):
        return False
    return True
