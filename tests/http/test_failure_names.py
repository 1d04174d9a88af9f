"""Every exception that aiohttp or the system may raise has a kind, and its text stays behind."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.http_exceptions import BadStatusLine, HttpProcessingError
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from payments_async._http.failures import describe
from tests.http.requests import TransportError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "sk_sandbox_canary"
WHERE = ConnectionKey(f"{SECRET}.example.com", 443, True, True, None, None, None)
PROXY = ConnectionKey("proxy.example.com", 443, True, True, URL(f"http://u:{SECRET}@p"), None, None)
ASKED = aiohttp.RequestInfo(
    URL(f"https://api.example.com/?{SECRET}"),
    "GET",
    CIMultiDictProxy(CIMultiDict({"Authorization": SECRET})),
    URL("https://api.example.com"),
)
REFUSED = ConnectionRefusedError(errno.ECONNREFUSED, SECRET)
CERTIFICATE = ssl.SSLCertVerificationError(1, SECRET)
CERTIFICATE.reason = "CERTIFICATE_VERIFY_FAILED"
NO_NAME = socket.gaierror(socket.EAI_NONAME, SECRET)

TABLE: Mapping[str, tuple[Exception, str, str]] = {
    "dns": (aiohttp.ClientConnectorDNSError(WHERE, NO_NAME), "dns", "EAI_NONAME"),
    "dns, no code": (aiohttp.ClientConnectorDNSError(WHERE, OSError(None, SECRET)), "dns", "DNSError)"),
    "certificate": (
        aiohttp.ClientConnectorCertificateError(WHERE, CERTIFICATE),
        "tls",
        "the server's certificate was refused: it is not valid",
    ),
    "handshake": (aiohttp.ClientConnectorSSLError(WHERE, CERTIFICATE), "tls", "CERTIFICATE_VERIFY_FAILED"),
    "tls later": (CERTIFICATE, "tls", "CERTIFICATE_VERIFY_FAILED"),
    "connect timeout": (aiohttp.ConnectionTimeoutError(SECRET), "timeout", "ConnectionTimeoutError"),
    "bare timeout": (TimeoutError(SECRET), "timeout", "TimeoutError"),
    "refused": (aiohttp.ClientConnectorError(WHERE, REFUSED), "connect", "ECONNREFUSED"),
    "proxy down": (aiohttp.ClientProxyConnectionError(PROXY, REFUSED), "connect", "proxy.example.com:443"),
    "proxy says no": (
        aiohttp.ClientHttpProxyError(ASKED, (), status=407, message=SECRET),
        "connect",
        "ClientHttpProxyError",
    ),
    "cut": (aiohttp.ClientPayloadError(SECRET), "reset", "ClientPayloadError"),
    "not HTTP": (aiohttp.ClientResponseError(ASKED, (), message=SECRET), "protocol", "ClientResponseError"),
    "not HTTP, raw": (BadStatusLine(SECRET), "protocol", "BadStatusLine"),
    "parser": (HttpProcessingError(message=SECRET), "protocol", "HttpProcessingError"),
    "disconnected": (aiohttp.ServerDisconnectedError(SECRET), "reset", "ServerDisconnectedError"),
    "reset": (aiohttp.ClientOSError(errno.ECONNRESET, SECRET), "reset", "ECONNRESET"),
    "pipe": (BrokenPipeError(errno.EPIPE, SECRET), "reset", "EPIPE"),
    "odd errno": (OSError(99999, SECRET), "reset", "OSError)"),
}


@pytest.mark.parametrize("case", TABLE)
def test_an_exception_is_named_by_its_kind_and_code_alone(case: str) -> None:
    exc, kind, code = TABLE[case]
    failure = describe(exc, NOW)
    assert failure.kind == kind
    assert code in failure.detail
    assert SECRET not in f"{failure!r} {failure} {failure.args}"


def test_an_exception_that_was_never_raised_has_no_place() -> None:
    failure = describe(RuntimeError("words"), NOW)
    assert (failure.kind, failure.detail) == ("unexpected", "raised at an unknown place")


def test_our_own_failure_keeps_its_words_but_not_its_frames() -> None:
    try:
        raise TransportError("too_large", "words")
    except TransportError as exc:
        failure = describe(exc, NOW)
    assert (failure.kind, failure.detail, failure.__traceback__) == ("too_large", "words", None)
