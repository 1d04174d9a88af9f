"""When two base URLs are one service."""

from __future__ import annotations

import pytest

from payments_async._http.addresses import normal, same_service


@pytest.mark.parametrize(
    "other",
    [
        *("https://api.x/v1", "HTTPS://api.x/v1", "https://API.X/v1", "https://api.x:443/v1"),
        *("https://api.x:0443/v1", "https://api.x:/v1", "https://api.x./v1", "https://api.x.:443/v1"),
        *("https://api.x/v1/", "https://api.x/v1//"),
    ],
)
def test_one_service_has_many_spellings(other: str) -> None:
    assert same_service("https://api.x/v1", other)
    assert same_service(other, "https://api.x/v1")
    assert normal(other) == "https://api.x/v1"


@pytest.mark.parametrize(
    "other",
    [
        *("http://api.x/v1", "https://api.x:8443/v1", "https://api.x:80/v1", "https://api.y/v1"),
        *("https://x/v1", "https://api.x/V1", "https://api.x/beta/v1", "https://user@api.x/v1"),
        *("https://api.x@api.y/v1", "https://api.x/v1?a=b", "api.x/v1", ""),
    ],
)
def test_another_service_stays_another(other: str) -> None:
    assert not same_service("https://api.x/v1", other)


@pytest.mark.parametrize(
    "other", ["http://[0:0:0:0:0:0:0:1]/v1", "http://[::0001]:80/v1", "HTTP://[::1]/v1/"]
)
def test_an_ipv6_address_has_one_short_form(other: str) -> None:
    assert normal(other) == "http://[::1]/v1"
    assert not same_service(other, "http://[::2]/v1")


def test_a_domain_of_another_alphabet_is_the_same_in_capitals() -> None:
    assert same_service("https://xn--bcher-kva.example/v1", "https://XN--Bcher-KVA.example/v1")


@pytest.mark.parametrize(
    "text", ["http://[::1/v1", "https://x:99999/v1", "https://x:y/v1", "http://[a:b]/v1"]
)
def test_what_is_no_address_is_only_the_same_as_itself(text: str) -> None:
    assert normal(text) == text
    assert same_service(text, text)
