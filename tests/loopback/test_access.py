"""Who reaches the sandbox, its inspector and the listener, over real sockets."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

import attrs
import pytest

from payments_async._cli.webhooks.receiver import Receiver
from payments_async._loopback import access, peers, server
from payments_async._loopback.access import Access, AccessRefused, under
from payments_async.sandbox import Sandbox
from tests.sandbox.raw_requests import PAYOUT
from tests.support.strangers import STRANGER, ask_as_stranger, needs_root, nobody_is_known

CONSOLE = ("/_sandbox/", "/_sandbox/payouts", "/_sandbox/api/state", "/_sandbox/api/requests")
EVERYWHERE = ("/v1/payouts", *CONSOLE, "/checkout/x", "/checkout/assets/checkout.css")


@attrs.frozen
class Got:
    """An answer."""

    status: int
    headers: Mapping[str, str]
    text: str


def ask(sandbox: Sandbox, path: str, method: str = "GET", **headers: str) -> Got:
    """Ask over a socket, as this user."""
    line = http.client.HTTPConnection(sandbox.origin.removeprefix("http://"), timeout=300)
    line.request(method, path, headers=headers)
    answer = line.getresponse()
    try:
        return Got(answer.status, dict(answer.headers), answer.read().decode())
    finally:
        answer.close()
        line.close()


def port_of(sandbox: Sandbox) -> int:
    """Where it listens."""
    return urlsplit(sandbox.origin).port or 0


@needs_root
def test_a_sandbox_answers_its_own_user_and_tells_another_of_shared() -> None:
    with Sandbox() as sandbox:
        key = {"Authorization": f"Bearer {sandbox.api_key}"}
        for path in (*EVERYWHERE, f"{sandbox._access.root}/_sandbox/"):
            reply = ask_as_stranger(port_of(sandbox), path, headers=key)
            message = json.loads(reply.text)["message"]
            assert (reply.status, "`payments sandbox --shared`" in message) == (403, True)
            assert f"you are user {STRANGER}" in message
        body = json.dumps(PAYOUT)
        assert ask_as_stranger(port_of(sandbox), "/v1/payouts", "POST", key, body).status == 403
        assert sandbox.books.payouts() == []
        assert sandbox.requests == []


@needs_root
def test_a_shared_sandbox_answers_every_user() -> None:
    with Sandbox(shared=True) as sandbox:
        assert sandbox.inspector_url == f"{sandbox.origin}/_sandbox/"
        key = {"Authorization": f"Bearer {sandbox.api_key}"}
        for path, status in (("/v1/payouts", 200), *((path, 200) for path in CONSOLE[:3])):
            assert ask_as_stranger(port_of(sandbox), path, headers=key).status == status


def test_where_no_user_is_known_the_api_needs_its_key_and_the_pages_the_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nobody_is_known(monkeypatch)
    with Sandbox() as sandbox:
        for path in CONSOLE:
            got = ask(sandbox, path)
            assert (got.status, "inspector_url" in got.text) == (403, True)
            assert ask(sandbox, path, Authorization="Bearer sk_test_none").status == 403
            assert ask(sandbox, path, Authorization=f"Bearer {sandbox.api_key}").status == 200
        assert ask(sandbox, "/v1/payouts").status == 401
        assert ask(sandbox, "/v1/payouts", Authorization=f"Bearer {sandbox.api_key}").status == 200
        assert ask(sandbox, "/checkout/nothing").status == 404  # its sessions have names that nobody guesses
    with Sandbox(shared=True) as sandbox:
        assert ask(sandbox, "/_sandbox/").status == 200


def test_the_inspector_s_links_lead_on_under_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody_is_known(monkeypatch)
    with Sandbox() as sandbox:
        sandbox.handle(
            "POST",
            "/v1/payouts",
            {"Authorization": f"Bearer {sandbox.api_key}"},
            json.dumps({**PAYOUT, "reference": "order-7"}).encode(),
        )
        root = sandbox._access.root
        assert sandbox.inspector_url == f"{sandbox.origin}{root}/_sandbox/"
        got = ask(sandbox, f"{root}/_sandbox/")
        assert (got.status, got.headers["Referrer-Policy"]) == (200, "no-referrer")
        links = set(re.findall(r'(?:href|src|action)="(/[^"]*)"', got.text))
        assert len(links) > 10
        for link in links:
            assert link.startswith(f"{root}/_sandbox/")
            assert ask(sandbox, link).status == 200
        for path in CONSOLE:
            assert ask(sandbox, root + path).status == 200
        found = ask(sandbox, f"{root}/_sandbox/payouts/order-7")
        assert (found.status, found.headers["Location"][:-20]) == (303, f"{root}/_sandbox/payouts/po_")


def test_trace_is_405_everywhere() -> None:
    with Sandbox() as sandbox:
        for path in (*EVERYWHERE, "/x"):
            got = ask(sandbox, path, "TRACE", Authorization=f"Bearer {sandbox.api_key}")
            assert (got.status, "GET" in got.headers["Allow"]) == (405, True)
            assert sandbox.api_key not in got.text


@needs_root
def test_a_listener_takes_deliveries_of_its_own_user_and_with_shared_of_every_one() -> None:
    got: list[bytes] = []

    def take(body: bytes, headers: Mapping[str, str]) -> int:
        got.append(body)
        return 204

    with Receiver(None, take) as receiver:
        reply = ask_as_stranger(receiver.port, "/", "POST", body="{}")
        assert (reply.status, got) == (403, [])
        assert "`payments webhooks listen --shared`" in reply.text
        assert f"user {STRANGER}" in reply.text
    with Receiver(None, take, shared=True) as receiver:
        assert ask_as_stranger(receiver.port, "/", "POST", body="{}").status == 204
    assert got == [b"{}"]


def test_root_may_reach_what_belongs_to_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access.os, "geteuid", lambda: 1000, raising=False)
    rules = Access("s")
    for uid in (1000, 0, None):
        assert rules.admit(uid, "GET", "/", {}) == ("", uid is not None)
    with pytest.raises(AccessRefused, match="answers user 1000 alone, and you are user 1001") as refused:
        rules.admit(1001, "GET", "/s/", {})
    assert refused.value.status == 403


def test_a_page_s_own_addresses_begin_with_the_secret_and_others_do_not() -> None:
    page = '<a href="/x">1</a> <a href="https://x/">2</a> "quoted" <a href="#a">3</a> <path d="L0"/>'
    assert under("", page) == page
    assert under("/s", page) == page.replace('"/x', '"/s/x')


def test_the_kernel_is_asked_once_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(server, "uid_of", lambda line: asked.append(line.fileno()) or peers.uid_of(line))
    with Sandbox() as sandbox:
        for connections in (1, 2):
            line = http.client.HTTPConnection(sandbox.origin.removeprefix("http://"), timeout=300)
            for _ in range(3):
                line.request("GET", "/v1/payouts", headers={"Authorization": f"Bearer {sandbox.api_key}"})
                assert line.getresponse().read()
            line.close()
            assert len(asked) == connections
