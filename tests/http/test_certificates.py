"""What is said of a refused certificate: its reason, its dates, and the clock."""

from __future__ import annotations

import socket
import ssl
from datetime import UTC, datetime

import aiohttp
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from payments_async._http.failures import Dates, dates_of, refusal, words
from tests.http.test_failure_names import WHERE
from tests.support.rawserver import CERTIFICATE

DATES = (datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 2, 1, tzinfo=UTC))
VALID = (
    "the server's certificate was refused: why; it is valid from 2020-01-01 00:00 UTC to 2020-02-01 00:00 UTC"
)


def element(tag: int, *contents: bytes) -> bytes:
    """An element of DER."""
    content = b"".join(contents)
    size = len(content).to_bytes(2)
    return bytes([tag]) + (size[1:] if len(content) < 128 else b"\x82" + size) + content


def certificate(first: bytes, last: bytes, *, version: bytes = b"") -> bytes:
    """As much of a certificate as is read, with an issuer of 300 bytes."""
    validity = element(0x30, first, last)
    before = (version, element(0x02, b"\1"), element(0x30), element(0x30, bytes(300)))
    return element(0x30, element(0x30, *before, validity))


def test_dates_are_read_in_both_forms_and_with_or_without_a_version() -> None:
    short, long = element(0x17, b"200101000000Z"), element(0x18, b"20200201000000Z")
    assert dates_of(certificate(short, long)) == DATES
    assert dates_of(certificate(short, long, version=element(0xA0, b"\2\1\2"))) == DATES
    old = dates_of(certificate(element(0x17, b"991231235959Z"), long))
    assert old is not None
    assert old[0].year == 1999


def test_the_dates_of_a_real_certificate_are_those_of_openssl() -> None:
    pem = CERTIFICATE.read_text()
    der = ssl.PEM_cert_to_DER_cert(pem[pem.index("-----BEGIN CERT") :])
    first, last = dates_of(der) or DATES
    assert (f"{first:%F %T}", f"{last:%F %T}") == ("2026-11-20 22:38:29", "2126-10-27 22:38:29")


@given(st.binary())
def test_other_bytes_have_no_dates_and_do_no_harm(data: bytes) -> None:
    assert dates_of(data) is None


def test_the_clock_is_spoken_of_when_it_is_outside_the_dates_alone() -> None:
    def said(dates: Dates | None, now: datetime) -> str:
        return words("why", dates, now)

    assert said(None, DATES[0]) == "the server's certificate was refused: why"
    assert said(DATES, DATES[0]) == said(DATES, DATES[1]) == VALID
    for now in (datetime(2019, 12, 31, tzinfo=UTC), datetime(2020, 2, 2, tzinfo=UTC)):
        assert said(DATES, now) == (
            f"{VALID}, and this machine's clock says {now:%F} 00:00 UTC: is the clock right?"
        )


async def test_without_a_connection_or_behind_a_proxy_the_reason_is_all() -> None:
    error = aiohttp.ClientConnectorCertificateError(WHERE, ssl.SSLCertVerificationError(1, "secret"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        gone = URL(f"https://127.0.0.1:{free.getsockname()[1]}/")
    for url in (None, gone):
        failure = await refusal(error, url, lambda: DATES[0])
        assert failure.kind == "tls"
        assert failure.detail == "the server's certificate was refused: it is not valid"
