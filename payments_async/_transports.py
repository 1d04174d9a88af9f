"""The transport a client gets when it is given none."""

from __future__ import annotations

import ssl

from ._runtime import Runtime
from ._wire import Transport
from .errors import ConfigurationError


def default_transport(
    runtime: Runtime,
    connect_timeout: float,
    max_connections: int,
    proxy: str | None,
    ssl_context: ssl.SSLContext | None,
) -> Transport:
    """aiohttp's. It is imported here, when a first client is made: that takes 0.2 s.

    Raises ConfigurationError for a proxy's address that is not one; it is not repeated.
    """
    from ._head import check_proxy
    from ._transport import AiohttpTransport

    fit = True
    if proxy is not None:
        try:
            check_proxy(proxy)
        except (TypeError, ValueError):
            fit = False
    if not fit:
        raise ConfigurationError("proxy must be an absolute http(s) address, such as http://proxy.test:3128")
    return AiohttpTransport(
        connect_timeout=connect_timeout,
        max_connections=max_connections,
        proxy=proxy,
        ssl_context=ssl_context,
        runtime=runtime,
    )
