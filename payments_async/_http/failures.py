"""Converts aiohttp's exceptions to transport errors, in one place.

An exception of aiohttp may carry the request's headers or its URL, so only its class is kept and, for errors
of the operating system, the name of their code. An exception that is in no rule comes from a program that
replaces a part of aiohttp (a stand-in, an agent), or is our own fault: it is kept whole, since nothing else
says what is wrong.

After a refused certificate Python does not hand it out, so it is fetched on a connection of its own, over
which no request goes. Only its dates are read: whoever sent it is not known.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import Final

import aiohttp
from aiohttp import ClientConnectorCertificateError
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from .types import FailureKind, TransportError

_Rule = tuple[tuple[type[BaseException], ...], FailureKind, str]

RULES: Final[tuple[_Rule, ...]] = (
    ((aiohttp.ClientConnectorDNSError,), "dns", "the host name was not resolved"),
    ((aiohttp.ClientSSLError, ssl.SSLError), "tls", "no secure connection"),
    ((TimeoutError,), "timeout", "no connection in time"),
    ((aiohttp.ClientConnectorError,), "connect", "no connection"),
    ((aiohttp.ClientHttpProxyError,), "connect", "the proxy refused to connect"),
    ((aiohttp.ClientPayloadError,), "reset", "the answer was cut short"),
    ((aiohttp.ClientResponseError, HttpProcessingError), "protocol", "the answer is not HTTP/1.1"),
    ((aiohttp.ClientConnectionError, OSError), "reset", "the connection was closed before the answer"),
)
"""First match wins: aiohttp's classes inherit from one another and from OSError."""

_RESOLVER_CODES: Final[Mapping[int, str]] = {
    code: name for name, code in vars(socket).items() if name.startswith("EAI_") and isinstance(code, int)
}


def describe(exc: Exception) -> TransportError:
    """Make the failure to report for an exception, without a link to it unless it is unforeseen."""
    if isinstance(exc, TransportError):
        return TransportError(exc.kind, exc.detail)
    if type(exc) is aiohttp.ClientConnectionError:  # aiohttp's own are subclasses; stand-ins raise the base
        return _unexpected(exc)
    if isinstance(exc, aiohttp.ClientProxyConnectionError):  # the error of the call names the service
        return TransportError("connect", f"no connection to the proxy {exc.host}:{exc.port} ({_facts(exc)})")
    for classes, kind, words in RULES:
        if isinstance(exc, classes):
            return TransportError(kind, f"{words} ({_facts(exc)})")
    return _unexpected(exc)


def _unexpected(exc: Exception) -> TransportError:
    """Make the failure of an unforeseen exception. Its frames and what led to it may hold headers."""
    detail = f"raised at {_innermost(exc.__traceback__)}"
    exc.__cause__ = exc.__context__ = None
    return TransportError("unexpected", detail, exc.with_traceback(None))


def _innermost(traceback: TracebackType | None) -> str:
    """The file, with its folder, and the line at which an exception was raised."""
    frames = list(walk_tb(traceback))
    if not frames:
        return "an unknown place"
    frame, line = frames[-1]
    return f"{'/'.join(Path(frame.f_code.co_filename).parts[-2:])}:{line}"


def _facts(exc: Exception) -> str:
    """The exception's class and the system's code, such as `ClientConnectorError, ECONNREFUSED`."""
    name = type(exc).__name__
    code = _code(exc.os_error if isinstance(exc, aiohttp.ClientConnectorError) else exc)
    return f"{name}, {code}" if code else name


def _code(exc: BaseException) -> str | None:
    """The name of a code of errno, the resolver or OpenSSL; their messages may quote the peer."""
    if isinstance(exc, ssl.SSLError):
        return exc.reason
    if not isinstance(exc, OSError) or exc.errno is None:
        return None
    names = _RESOLVER_CODES if isinstance(exc, socket.gaierror) else errno.errorcode
    return names.get(exc.errno)


Dates = tuple[datetime, datetime]
"""The first and the last moment of a certificate's validity."""
_LOOK: Final = 5.0
"""Seconds to fetch a certificate."""
_VERSION, _UTC_TIME = 0xA0, 0x17  # tags of DER
_FORM: Final = "%Y-%m-%d %H:%M UTC"


async def refusal(
    error: ClientConnectorCertificateError, url: URL | None, now: Callable[[], datetime]
) -> TransportError:
    """Make the failure for a certificate that was refused. `url`: where to fetch it; None behind a proxy."""
    reason = str(getattr(error.certificate_error, "verify_message", "") or "it is not valid")
    der = b"" if url is None else await _fetched(url)
    return TransportError("tls", words(reason, dates_of(der), now()))


def words(reason: str, dates: Dates | None, now: datetime) -> str:
    """Say why a certificate was refused, and speak of the clock when it is outside the dates."""
    text = f"the server's certificate was refused: {reason}"
    if dates is None:
        return text
    first, last = dates
    text = f"{text}; it is valid from {first:{_FORM}} to {last:{_FORM}}"
    if first <= now <= last:
        return text
    return f"{text}, and this machine's clock says {now.astimezone(UTC):{_FORM}}: is the clock right?"


def dates_of(der: bytes) -> Dates | None:
    """Read the dates of a certificate in DER (RFC 5280, 4.1); None when they cannot be read."""
    with suppress(IndexError, ValueError):
        _, at, _ = _element(der, 0)  # Certificate
        _, at, _ = _element(der, at)  # TBSCertificate
        tag, _, end = _element(der, at)
        at = end if tag == _VERSION else at
        for _ in ("serialNumber", "signature", "issuer"):
            _, _, at = _element(der, at)
        _, at, _ = _element(der, at)  # Validity
        first, at = _time(der, at)
        last, _ = _time(der, at)
        return first, last
    return None


def _element(der: bytes, at: int) -> tuple[int, int, int]:
    """The tag of an element, and where its content begins and ends."""
    size, begin = der[at + 1], at + 2
    if size & 0x80:  # a long form: the number of bytes that hold the size
        end = begin + (size & 0x7F)
        size, begin = int.from_bytes(der[begin:end]), end
    return der[at], begin, begin + size


def _time(der: bytes, at: int) -> tuple[datetime, int]:
    tag, begin, end = _element(der, at)
    text = der[begin:end].decode("ascii")
    if tag == _UTC_TIME:
        text = f"{'19' if text >= '5' else '20'}{text}"
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC), end


async def _fetched(url: URL) -> bytes:
    """Fetch the certificate, unchecked; empty when it cannot be had."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with suppress(OSError, ValueError):  # TimeoutError is an OSError
        async with asyncio.timeout(_LOOK):
            _, writer = await asyncio.open_connection(
                url.raw_host, url.port, ssl=context, server_hostname=url.raw_host
            )
        try:
            return writer.get_extra_info("ssl_object").getpeercert(binary_form=True) or b""
        finally:
            writer.transport.abort()
    return b""
