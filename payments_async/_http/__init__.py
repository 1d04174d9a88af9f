"""Sending requests: the aiohttp transport, its connections and its failures. Makes and shares transports."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from .._runtime import Runtime
from ..errors import ConfigurationError
from .addresses import PROXY_RULE
from .types import Transport

if TYPE_CHECKING:
    from .transport import AiohttpTransport


def default_transport(
    runtime: Runtime,
    connect_timeout: float,
    max_connections: int,
    proxy: str | None,
    ssl_context: ssl.SSLContext | None,
) -> Transport:
    """Make the default transport, based on aiohttp. The first call imports aiohttp, which takes 0.2 s.

    Raises ConfigurationError for an invalid proxy address, which the message does not repeat, and for an
    aiohttp that cannot be imported.
    """
    transport = _library()
    try:
        return transport(
            connect_timeout=connect_timeout,
            max_connections=max_connections,
            proxy=proxy,
            ssl_context=ssl_context,
            runtime=runtime,
        )
    except (TypeError, ValueError):
        pass  # raised again outside the handler: the frames of the first error hold the address
    raise ConfigurationError(PROXY_RULE)


def shared(transport: Transport) -> Transport:
    """Make a transport on another's connections, for another secret key. Raises ConfigurationError."""
    share = getattr(transport, "share", None)
    if not callable(share):
        raise ConfigurationError(
            "with_options(api_key=...) shares connections, and this client's transport has no method share: "
            "give it that method, or make a client for the key"
        )
    other: Transport = share()
    return other


def _library() -> type[AiohttpTransport]:
    """Import the transport's class. A broken installation may raise anything."""
    try:
        from .transport import AiohttpTransport

        return AiohttpTransport
    except Exception as broken:
        problem = f"{type(broken).__name__}: {broken}"
    raise ConfigurationError(
        f"the HTTP library, aiohttp, cannot be imported ({problem}): install this package anew, "
        "or give the client a transport of your own"
    )
