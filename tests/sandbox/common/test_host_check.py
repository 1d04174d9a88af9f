"""Asked under another name, it refuses: a web page may have rebound a name of its own to this machine."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator

import pytest

from payments_async.sandbox import Answer, Sandbox
from tests.sandbox.raw_requests import PAYOUT, Api

EVERYWHERE = [
    "/v1/payouts",
    "/v1/nothing",
    *(f"/checkout/{{session}}{part}" for part in ("", "/phone", "/events")),
    "/checkout/assets/checkout.css",
    "/actions/x",
    "/_sandbox/",
    "/_sandbox/api/state",
    "/_sandbox/api/stream",
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
def serving() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def ask(sandbox: Sandbox, path: str, host: str | None, method: str = "GET", body: bytes = b"") -> Answer:
    headers = {"Authorization": f"Bearer {sandbox.api_key}"}
    if host is not None:
        headers["Host"] = host.format(port=sandbox.origin.rpartition(":")[2])
    return sandbox.handle(method, path, headers, body)


@pytest.mark.parametrize(
    ("path", "host"),
    [*((path, NAMES[0]) for path in EVERYWHERE), *(("/v1/payouts", name) for name in NAMES[1:])],
)
def test_another_name_is_refused_at_every_address(serving: Sandbox, path: str, host: str) -> None:
    session = Api(serving, serving.api_key).checkout().data["checkout"]["id"]
    before = len(serving.requests)
    got = ask(serving, path.format(session=session), host)
    assert got.status == 403
    assert "Host" in json.loads(got.body)["message"]
    assert session.encode() not in got.body
    assert len(serving.requests) == before


def test_a_payout_asked_for_under_another_name_is_not_made(serving: Sandbox) -> None:
    assert ask(serving, "/v1/payouts", "evil.example", "POST", json.dumps(PAYOUT).encode()).status == 403
    assert serving.books.payouts() == []


@pytest.mark.parametrize(
    ("path", "host"),
    [
        *((path, OWN[0]) for path in ("/checkout/{session}/phone", "/_sandbox/")),
        *(("/v1/payouts", name) for name in (*OWN, None)),
    ],
)
def test_its_own_names_are_answered_whatever_the_port(serving: Sandbox, path: str, host: str | None) -> None:
    session = Api(serving, serving.api_key).checkout().data["checkout"]["id"]
    assert ask(serving, path.format(session=session), host).status == 200


def test_it_is_so_on_the_wire(serving: Sandbox) -> None:
    line = http.client.HTTPConnection(serving.origin.removeprefix("http://"), timeout=5)
    for host, status in (("evil.example", 403), (None, 200)):
        headers = {"Authorization": f"Bearer {serving.api_key}"} | ({"Host": host} if host else {})
        line.request("GET", "/v1/payouts", headers=headers)
        answer = line.getresponse()
        answer.read()
        assert answer.status == status
    line.close()
