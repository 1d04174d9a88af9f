"""Converts aiohttp's exceptions to transport errors, in one place.

An exception of aiohttp may carry the request's headers or its URL, so only its class is kept and, for errors
of the operating system, the name of their code. An exception that is in no rule comes from a program that
replaces a part of aiohttp (a stand-in, an agent), or is our own fault: it is kept whole, since nothing else
says what is wrong.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import Final

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

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


def describe(exc: Exception, now: datetime) -> TransportError:
    """Make the failure to report for an exception, without a link to it unless it is unforeseen."""
    if isinstance(exc, TransportError):
        return TransportError(exc.kind, exc.detail)
    if isinstance(exc, aiohttp.ClientConnectorCertificateError):
        return TransportError("tls", _refused(exc, now))
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


_OUTSIDE_ITS_DATES: Final = (9, 10)
"""OpenSSL's codes of a certificate that is not yet valid, and of one that has expired."""


def _refused(error: aiohttp.ClientConnectorCertificateError, now: datetime) -> str:
    """Say why a certificate was refused, and speak of the clock when it is outside its dates."""
    cause = error.certificate_error
    reason = getattr(cause, "verify_message", "") or "it is not valid"
    text = f"the server's certificate was refused: {reason}"
    if getattr(cause, "verify_code", None) not in _OUTSIDE_ITS_DATES:
        return text
    return (
        f"{text}, and this machine's clock says {now.astimezone(UTC):%Y-%m-%d %H:%M UTC}: is the clock right?"
    )
