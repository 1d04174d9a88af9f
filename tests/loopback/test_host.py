"""Asked under another name, a server refuses: a web page may have one that leads to this machine."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator

import attrs
import pytest

from payments_async.sandbox import Sandbox
from tests.sandbox.raw_requests import PAYOUT, Api

EVERYWHERE = [
    "/v1/payouts",
    "/v1/nothing",
    *(f"/checkout/{{session}}{part}" for part in ("", "/phone")),
    "/checkout/assets/checkout.css",
    "/actions/x",
    "/_sandbox/",
    "/_sandbox/api/state",
    "/_sandbox/api/requests",
    "/x",
]
NAMES = [
    "evil.example",
    "evil.example:{port}",
    "127.0.0.1.evil.test:{port}",
    "127.0.0.1:x",
    "localhost:1:2",
    "",
]
OWN = ["127.0.0.1:{port}", "localhost:{port}", "LocalHost", "[::1]", "[::1]:9000", "localhost:9000"]


@pytest.fixture(scope="module")
def served() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@attrs.frozen
class Got:
    """An answer."""

    status: int
    body: bytes


def ask(sandbox: Sandbox, path: str, host: str | None, method: str = "GET", body: bytes = b"") -> Got:
    """Ask over a socket; no `host`, no such header."""
    line = http.client.HTTPConnection(sandbox.origin.removeprefix("http://"), timeout=300)
    line.putrequest(method, path, skip_host=True)
    line.putheader("Authorization", f"Bearer {sandbox.api_key}")
    line.putheader("Content-Length", str(len(body)))
    if host is not None:
        line.putheader("Host", host.format(port=sandbox.origin.rpartition(":")[2]))
    line.endheaders(body)
    answer = line.getresponse()
    try:
        return Got(answer.status, answer.read())
    finally:
        line.close()


@pytest.mark.parametrize(
    ("path", "host"),
    [*((path, NAMES[0]) for path in EVERYWHERE), *(("/v1/payouts", name) for name in NAMES[1:])],
)
def test_another_name_is_refused_at_every_address(served: Sandbox, path: str, host: str) -> None:
    session = Api(served, served.api_key).checkout().data["checkout"]["id"]
    before = len(served.requests)
    got = ask(served, path.format(session=session), host)
    assert got.status == 403
    assert "Host" in json.loads(got.body)["message"]
    assert session.encode() not in got.body
    assert len(served.requests) == before


def test_a_payout_asked_for_under_another_name_is_not_made(served: Sandbox) -> None:
    assert ask(served, "/v1/payouts", "evil.example", "POST", json.dumps(PAYOUT).encode()).status == 403
    assert served.books.payouts() == []


@pytest.mark.parametrize(
    ("path", "host"),
    [
        *((path, OWN[0]) for path in ("/checkout/{session}/phone", "/_sandbox/")),
        *(("/v1/payouts", name) for name in OWN),
    ],
)
def test_its_own_names_are_answered_whatever_the_port(served: Sandbox, path: str, host: str) -> None:
    session = Api(served, served.api_key).checkout().data["checkout"]["id"]
    assert ask(served, path.format(session=session), host).status == 200
