"""Who reaches the sandbox, its inspector and the listener, and under which names, over real sockets."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

import pytest

from payments_async._cli.webhooks.receiver import Receiver
from payments_async._loopback import access
from payments_async._loopback.access import Access, AccessRefused, under
from payments_async.sandbox import Sandbox
from tests.sandbox.raw_requests import PAYOUT, Api
from tests.support.strangers import STRANGER, Reply, ask_as_stranger, needs_root, nobody_is_known

CONSOLE = ("/_sandbox/", "/_sandbox/payouts", "/_sandbox/api/state", "/_sandbox/api/requests")
EVERYWHERE = ("/v1/payouts", *CONSOLE, "/checkout/x", "/checkout/assets/checkout.css")
OTHER_NAMES = (
    *("evil.example", "evil.example:{port}", "127.0.0.1.evil.test:{port}", "127.0.0.1:x", "localhost:1:2"),
    "",
)
OWN_NAMES = ("127.0.0.1:{port}", "localhost:{port}", "LocalHost", "[::1]", "[::1]:9000", "localhost:9000")


def ask(sandbox: Sandbox, path: str, method: str = "GET", body: str = "", **headers: str) -> Reply:
    """Ask over a socket, as this user."""
    line = http.client.HTTPConnection(sandbox.origin.removeprefix("http://"), timeout=300)
    line.request(method, path, body, headers)
    answer = line.getresponse()
    try:
        return Reply(answer.status, dict(answer.headers), answer.read().decode())
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


@pytest.mark.parametrize("is_bound", [False, True])
def test_the_secret_that_is_passed_on_makes_nobody_trusted(is_bound: bool) -> None:
    expected = {
        "/s/": ("/s", True),
        "/p/": ("/p", False),
        **dict.fromkeys(("/", "//", "/p", "/x/"), ("", False)),
    }
    for passed_on in ("p", None):
        rules = Access("s", passed_on=passed_on, is_bound=is_bound)
        seen = {path: rules.admit(None, "GET", path, {}) for path in expected}
        assert seen == (expected if passed_on else {**expected, "/p/": ("", False)})


def test_a_page_s_own_addresses_begin_with_the_secret_and_others_do_not() -> None:
    page = '<a href="/x">1</a> <a href="https://x/">2</a> "quoted" <a href="#a">3</a> <path d="L0"/>'
    assert under("", page) == page
    assert under("/s", page) == page.replace('"/x', '"/s/x')


@pytest.fixture(scope="module")
def served() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def ask_under(name: str, sandbox: Sandbox, path: str, method: str = "GET", body: str = "") -> Reply:
    """Ask with the key, under a name: a web page may have one of its own that leads to this machine."""
    host, key = name.format(port=port_of(sandbox)), f"Bearer {sandbox.api_key}"
    return ask(sandbox, path, method, body, Host=host, Authorization=key)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        *((path, OTHER_NAMES[0]) for path in (*EVERYWHERE, "/v1/nothing", "/actions/x", "/x")),
        *((f"/checkout/{{session}}{part}", OTHER_NAMES[0]) for part in ("", "/phone")),
        *(("/v1/payouts", name) for name in OTHER_NAMES[1:]),
    ],
)
def test_another_name_is_refused_at_every_address(served: Sandbox, path: str, name: str) -> None:
    session = Api(served, served.api_key).checkout().data["checkout"]["id"]
    before = len(served.requests)
    got = ask_under(name, served, path.format(session=session))
    assert got.status == 403
    assert "Host" in json.loads(got.text)["message"]
    assert session not in got.text
    assert len(served.requests) == before


def test_a_payout_asked_for_under_another_name_is_not_made(served: Sandbox) -> None:
    assert ask_under("evil.example", served, "/v1/payouts", "POST", json.dumps(PAYOUT)).status == 403
    assert served.books.payouts() == []


@pytest.mark.parametrize(
    ("path", "name"),
    [
        *((path, OWN_NAMES[0]) for path in ("/checkout/{session}/phone", "/_sandbox/")),
        *(("/v1/payouts", name) for name in OWN_NAMES),
    ],
)
def test_its_own_names_are_answered_whatever_the_port(served: Sandbox, path: str, name: str) -> None:
    session = Api(served, served.api_key).checkout().data["checkout"]["id"]
    assert ask_under(name, served, path.format(session=session)).status == 200
