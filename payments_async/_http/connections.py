"""What both ways to fly do with a connection of aiohttp's: look at it, set it up, break it off."""

from __future__ import annotations

from asyncio import BaseTransport, selector_events
from typing import Final

from aiohttp import ClientConnectionResetError
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection

_RECEIVE: Final = 64 * 1024
"""asyncio allocates a read's buffer at full size; its 256 KiB cost each answer a system call for memory."""

_STOCK: Final = getattr(selector_events, "_SelectorSocketTransport", None)


def is_fresh(protocol: ResponseHandler | None) -> bool:
    """Whether a connection stands, and nothing has arrived on it before anything was asked.

    aiohttp hands out an idle connection without looking at what has come in meanwhile (a server's farewell
    before it hangs up, say) and would take that for the answer to the next request.
    """
    return protocol is not None and protocol.is_connected() and not protocol.should_close


def check_fresh(protocol: ResponseHandler | None) -> None:
    """Refuse a connection that is not fresh."""
    if not is_fresh(protocol):
        raise ClientConnectionResetError("the pooled connection was no longer usable")


def abort(connection: Connection) -> None:
    """Break a connection off.

    Closing it under TLS would say farewell first and wait for the peer's, half a minute if the peer is
    silent; and what is still in our buffers would be sent although the attempt has been given up.
    """
    transport = connection.transport
    if transport is not None:
        transport.abort()


def receive_less(transport: BaseTransport | None) -> None:
    """Have the stock loop read this connection into a smaller buffer."""
    if type(transport) is _STOCK:
        transport.max_size = _RECEIVE  # type: ignore[union-attr] # the stock transport's own, undeclared
