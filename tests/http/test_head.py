"""What the transport refuses to put on the wire, and that it does not repeat it."""

from __future__ import annotations

import pytest

from payments_async._http.head import address, check_head, check_proxy, target
from payments_async._http.types import HTTPRequest


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


@pytest.mark.parametrize(
    "url",
    [
        "/v1/payouts",
        "ftp://api.example.com/secret",
        "https://user:secret@api.example.com/v1",
        "https://api.example.com/secret#part",
        "https://api.example.com/secret HTTP/1.1\r\nX: y",
        "https://api.example.com/secret\n",
        "https://api.example.com/secr\u00e9t",
        "https:///secret",
    ],
)
def test_an_address_unfit_for_a_request_line_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="absolute") as caught:
        address(url)
    assert "secr" not in str(caught.value)


URL = "https://api.example.com/v1"


def head(headers: dict[str, str]) -> HTTPRequest:
    return HTTPRequest("POST", URL, headers, None, 1)


@pytest.mark.parametrize("value", ["secret\r\nX: y", "secret\n", "\rsecret", "sec\x00ret", "secret\x7f"])
def test_a_control_character_in_a_value_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="control character") as caught:
        check_head(head({"Accept": "a", "Authorization": value}))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["", "X Y", "X:", "X\n", "X\u00e9", "Content-Length", "transfer-encoding", "HOST"]
)
def test_a_name_that_is_no_token_or_frames_the_message_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        check_head(head({"Accept": "a", name: "b"}))


@pytest.mark.parametrize("method", ["", "post", "GET /x", "GET\r\n"])
def test_a_method_that_is_no_token_is_refused(method: str) -> None:
    with pytest.raises(ValueError, match="method"):
        target(method, URL)


def test_ordinary_headers_pass() -> None:
    check_head(head({"Authorization": "Bearer x", "X-Idempotency-Key": "a\tb", "Content-Type": "é"}))


@pytest.mark.parametrize(
    "proxy", ["http://127.0.0.1:3128", "http://user:s%2Fecret@proxy.example.com", "https://[::1]:3128/"]
)
def test_a_proxy_address_passes(proxy: str) -> None:
    check_proxy(proxy)


@pytest.mark.parametrize(
    "proxy",
    [
        *("", "secret", "socks5://secret", "http://secret:port", "http://", "http://proxy.test/secret"),
        *("http://secret..test:3128", "http://.secret.test", f"http://{'secret' * 11}.test"),
        *(f"http://user:12{sign}34secret@proxy.test:3128" for sign in "/?#"),
    ],
)
def test_what_is_no_proxy_address_is_refused_without_repeating_it(proxy: str) -> None:
    with pytest.raises(ValueError, match="proxy must be") as caught:
        check_proxy(proxy)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None
