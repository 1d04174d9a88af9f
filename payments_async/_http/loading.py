"""The transport a client gets when it is given none."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from .._runtime import Runtime
from ..errors import ConfigurationError
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
    """aiohttp's. The first one imports aiohttp, which takes 0.2 s.

    Raises ConfigurationError for a proxy's address that is not one, which is not repeated, and for an aiohttp
    that cannot be imported.
    """
    if proxy is not None and not _fit(proxy):
        raise ConfigurationError("proxy must be an absolute http(s) address, such as http://proxy.test:3128")
    return _library()(
        connect_timeout=connect_timeout,
        max_connections=max_connections,
        proxy=proxy,
        ssl_context=ssl_context,
        runtime=runtime,
    )


def _library() -> type[AiohttpTransport]:
    """The transport's class. A broken installation may raise anything."""
    try:
        from .transport import AiohttpTransport

        return AiohttpTransport
    except Exception as broken:
        problem = f"{type(broken).__name__}: {broken}"
    raise ConfigurationError(
        f"the HTTP library, aiohttp, cannot be imported ({problem}): install this package anew, "
        "or give the client a transport of your own"
    )


def _fit(proxy: str) -> bool:
    from .head import check_proxy

    try:
        check_proxy(proxy)
    except (TypeError, ValueError):
        return False
    return True
