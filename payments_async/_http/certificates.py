"""Says why a certificate was refused: OpenSSL's reason, the certificate's dates, this machine's clock.

After a refusal Python does not hand the certificate out, so it is fetched on a connection of its own, over
which no request goes. Only its dates are read: whoever sent it is not known.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from aiohttp import ClientConnectorCertificateError
from yarl import URL

from .types import TransportError

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
