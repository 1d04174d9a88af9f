"""Addresses and heads: what the transport refuses to put on the wire, without repeating it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from payments_async._http.addresses import normal, same_service
from payments_async._http.direct import address, target
from payments_async._http.session import proxy_address
from payments_async._http.types import HTTPRequest, check_head

URL = "https://api.example.com/v1"


def check_header(name: str, value: str) -> None:
    """Check a request with this header behind an ordinary one."""
    check_head(HTTPRequest("POST", URL, {"Accept": "a", name: value}, None, 1))


def check_method(method: str) -> None:
    target(method, URL)


NO_ADDRESSES = (
    "/v1/payouts",
    "ftp://api.example.com/secret",
    "https://user:secret@api.example.com/v1",
    "https://api.example.com/secret#part",
    "https://api.example.com/secret HTTP/1.1\r\nX: y",
    "https://api.example.com/secret\n",
    "https://api.example.com/secr\u00e9t",
    "https:///secret",
)
NO_VALUES = ("secret\r\nX: y", "secret\n", "\rsecret", "sec\x00ret", "secret\x7f")
NO_NAMES = ("", "X Y", "X:", "X\n", "X\u00e9", "Content-Length", "transfer-encoding", "HOST")
NO_PROXIES = (
    *("", "secret", "socks5://secret", "http://secret:port", "http://", "http://proxy.test/secret"),
    *("http://secret..test:3128", "http://.secret.test", f"http://{'secret' * 11}.test"),
    *(f"http://user:12{sign}34secret@proxy.test:3128" for sign in "/?#"),
)


@pytest.mark.parametrize(
    ("check", "told"),
    [
        *((partial(address, bad), "absolute") for bad in NO_ADDRESSES),
        *((partial(check_header, "Authorization", bad), "control character") for bad in NO_VALUES),
        *((partial(check_header, bad, "b"), "name") for bad in NO_NAMES),
        *((partial(check_method, bad), "method") for bad in ("", "post", "GET /x", "GET\r\n")),
        *((partial(proxy_address, bad), "proxy must be") for bad in NO_PROXIES),
    ],
)
def test_what_is_unfit_for_the_wire_is_refused_without_repeating_it(
    check: Callable[[], object], told: str
) -> None:
    with pytest.raises(ValueError, match=told) as caught:
        check()
    assert "secr" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8080/v1/payouts",
        "https://api.example.com/v1/payouts?created_at%5Bgte%5D=2026-01-01&cursor=a",
        "https://[::1]:8443/v1",
        "https://api.example.com",
    ],
)
def test_an_address_is_sent_as_it_is_and_parsed_once(url: str) -> None:
    assert str(address(url)).rstrip("/") == url
    assert address(url) is address(url)


def test_ordinary_headers_and_proxies_pass() -> None:
    headers = {"Authorization": "Bearer x", "X-Idempotency-Key": "a\tb", "Content-Type": "é"}
    check_head(HTTPRequest("POST", URL, headers, None, 1))
    for proxy in ("http://127.0.0.1:3128", "http://user:s%2Fecret@proxy.example.com", "https://[::1]:3128/"):
        proxy_address(proxy)


@pytest.mark.parametrize(
    ("form", "others"),
    [
        (
            "https://api.x/v1",
            (
                *("https://api.x/v1", "HTTPS://api.x/v1", "https://API.X/v1", "https://api.x:443/v1"),
                *("https://api.x:0443/v1", "https://api.x:/v1", "https://api.x./v1", "https://api.x.:443/v1"),
                *("https://api.x/v1/", "https://api.x/v1//"),
            ),
        ),
        ("https://xn--bcher-kva.example/v1", ("https://XN--Bcher-KVA.example/v1",)),
        ("http://[::1]/v1", ("http://[0:0:0:0:0:0:0:1]/v1", "http://[::0001]:80/v1", "HTTP://[::1]/v1/")),
        *((text, (text,)) for text in ("http://[::1/v1", "https://x:99999/v1", "https://x:y/v1")),
        ("http://[a:b]/v1", ("http://[a:b]/v1",)),
    ],
)
def test_one_service_has_many_spellings(form: str, others: tuple[str, ...]) -> None:
    for other in others:
        assert normal(other) == form
        assert same_service(form, other)
        assert same_service(other, form)


@pytest.mark.parametrize(
    "other",
    [
        *("http://api.x/v1", "https://api.x:8443/v1", "https://api.x:80/v1", "https://api.y/v1"),
        *("https://x/v1", "https://api.x/V1", "https://api.x/beta/v1", "https://user@api.x/v1"),
        *("https://api.x@api.y/v1", "https://api.x/v1?a=b", "api.x/v1", "", "http://[::1]/v1"),
    ],
)
def test_another_service_stays_another(other: str) -> None:
    assert not same_service("https://api.x/v1", other)
