"""The transport a client gets when it is given none."""

from __future__ import annotations

import ssl

from ._runtime import Runtime
from ._wire import Transport


def default_transport(
    runtime: Runtime,
    connect_timeout: float,
    max_connections: int,
    proxy: str | None,
    ssl_context: ssl.SSLContext | None,
) -> Transport:
    """aiohttp's. It is imported here, when a first client is made: that takes 0.2 s."""
    from ._transport import AiohttpTransport

    return AiohttpTransport(
        connect_timeout=connect_timeout,
        max_connections=max_connections,
        proxy=proxy,
        ssl_context=ssl_context,
        runtime=runtime,
    )
