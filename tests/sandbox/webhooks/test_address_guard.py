"""Addresses that webhooks may be sent to: this machine and private networks. Nothing here connects."""

from __future__ import annotations

from typing import Any

import pytest

from payments_async.sandbox import Sandbox
from payments_async.sandbox._webhooks.address_guard import LOOPBACK, NotSent, check_addresses, read_target

SHOP = frozenset({"shop.example"})


@pytest.mark.parametrize(
    ("url", "host", "port", "path", "addresses"),
    [
        ("http://127.0.0.1:8000/hook?a=b", "127.0.0.1", 8000, "/hook?a=b", ("127.0.0.1",)),
        ("HTTP://127.9.9.9", "127.9.9.9", 80, "/", ("127.9.9.9",)),
        ("http://[::1]:81/x#y", "::1", 81, "/x", ("::1",)),
        ("http://[::ffff:127.0.0.1]/", "::ffff:127.0.0.1", 80, "/", ("127.0.0.1",)),
        ("http://10.1.2.3/", "10.1.2.3", 80, "/", ("10.1.2.3",)),
        ("http://172.31.0.1/", "172.31.0.1", 80, "/", ("172.31.0.1",)),
        ("https://192.168.0.1/", "192.168.0.1", 443, "/", ("192.168.0.1",)),
        ("http://[fd00::1]/", "fd00::1", 80, "/", ("fd00::1",)),
        ("http://localhost:3000/", "localhost", 3000, "/", LOOPBACK),
        ("http://app.localhost./", "app.localhost", 80, "/", LOOPBACK),
        ("https://Shop.TEST/é?ü", "shop.test", 443, "/%C3%A9?%C3%BC", LOOPBACK),
        ("http://test/", "test", 80, "/", LOOPBACK),
    ],
)
def test_what_is_near_is_sent_to(
    url: str, host: str, port: int, path: str, addresses: tuple[str, ...]
) -> None:
    target = read_target(url)
    assert (target.host, target.port, target.path, target.addresses) == (host, port, path, addresses)


@pytest.mark.parametrize(
    "url",
    [
        "http://8.8.8.8/",
        "http://0.0.0.0/",
        "http://169.254.169.254/latest",
        "http://100.64.0.1/",
        "http://[::]/",
        "http://[::ffff:8.8.8.8]/",
        "http://[::ffff:0.0.0.0]/",
        "http://[2002:7f00:1::]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[fe80::1]/",
        "http://shop.example/",
        "http://www.example.com/",
        "http://x.invalid/",
        "http://receiver:9000/",
        "https://api.merchant.africa/hook",
        "http://router.local/",
    ],
)
def test_what_is_elsewhere_is_refused_and_says_how_to_allow_it(url: str) -> None:
    with pytest.raises(NotSent, match="allow_webhooks_to="):
        read_target(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hook",
        "//127.0.0.1/",
        "ftp://127.0.0.1/",
        "file:///etc/hosts",
        "http:///path",
        "http://:80/",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:x/",
        "http://[::1/",
        "http://[::1%25lo]/",
        "http://2130706433/",
        "http://127.1/",
        "http://0x7f.0.0.1/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://127.0.0.1.1/",
        "http://127.0.0.01/",
        "http://127.0.0.1@8.8.8.8/",
        "http://user:pass@127.0.0.1/",
        "http://8.8.8.8\\@127.0.0.1/",
        "http://127.0.0.1%2f@8.8.8.8/",
        "http://127.0.0.1\t.evil.org/",
        "http://127.0.0.1 /",
        "http://127.0.0.1/\r\nX: y",
        "http://１２７.0.0.1/",
        "http://bücher.test/",
        "http://-a.test/",
        "http://a..test/",
    ],
)
def test_what_another_reader_might_take_for_another_host_is_refused(url: str) -> None:
    with pytest.raises(NotSent):
        read_target(url)
    with pytest.raises(NotSent):
        read_target(url, SHOP)


def test_a_name_is_as_near_as_all_its_addresses() -> None:
    assert check_addresses("receiver", ["10.0.0.2", "::1"]) == ("10.0.0.2", "::1")
    with pytest.raises(NotSent, match=r"receiver \(8.8.8.8\) is neither"):
        check_addresses("receiver", ["10.0.0.2", "8.8.8.8"])
    with pytest.raises(NotSent, match="receiver has no address"):
        check_addresses("receiver", [])


def test_a_host_that_is_allowed_by_name_may_be_anywhere() -> None:
    assert read_target("https://shop.example/hook", SHOP).addresses == ()
    assert check_addresses("shop.example", ["93.184.216.34"], SHOP) == ("93.184.216.34",)
    assert read_target("http://8.8.8.8/", frozenset({"8.8.8.8"})).addresses == ("8.8.8.8",)
    for other in ("http://www.shop.example/", "http://shop.example.org/", "http://notshop.example/"):
        with pytest.raises(NotSent):
            read_target(other, SHOP)


@pytest.mark.parametrize(
    ("names", "error"),
    [
        ("shop.example", TypeError),
        ([5], TypeError),
        (["https://shop.example"], ValueError),
        (["shop.example/x"], ValueError),
        (["shop.example:80"], ValueError),
        (["*"], ValueError),
        ([""], ValueError),
    ],
)
def test_what_is_allowed_is_said_as_bare_hosts(names: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="allow_webhooks_to"):
        Sandbox(allow_webhooks_to=names)


def test_allowed_hosts_are_read_as_addresses_are() -> None:
    sandbox = Sandbox(allow_webhooks_to=["Shop.Example.", "[2001:db8::1]", "8.8.8.8"])
    assert sandbox._allowed == {"shop.example", "2001:db8::1", "8.8.8.8"}


def test_the_host_header_names_what_was_asked_for() -> None:
    urls = ["http://a.test/", "http://a.test:81/", "https://[::1]/", "https://[::1]:80/"]
    assert [read_target(url).authority for url in urls] == ["a.test", "a.test:81", "[::1]", "[::1]:80"]
