"""Asked under another name, it refuses: a web page may have rebound a name of its own to this machine."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator

import pytest

from payments_async.sandbox import Sandbox
from tests.sandbox.raw_requests import INTENT, PAYOUT, Api

EVERYWHERE = ["/v1/payouts", "/v1/nothing", "/checkout/{session}", "/checkout/{session}/phone"] + [
    f"/{path}"
    for path in ("actions/x", "checkout/assets/checkout.css", "_sandbox/", "_sandbox/api/state", "x")
]


@pytest.fixture
def serving() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.mark.parametrize("path", EVERYWHERE)
@pytest.mark.parametrize(
    "name",
    ["evil.example:{port}", "evil.example", "127.0.0.1.evil.test:{port}", "127.0.0.1:x", "localhost:1:2", ""],
)
def test_another_name_is_refused_at_every_address(serving: Sandbox, path: str, name: str) -> None:
    session = Api(serving, serving.api_key).checkout().data["checkout"]["id"]
    before = len(serving.requests)
    headers = {
        "Host": name.format(port=serving.origin.rpartition(":")[2]),
        "Authorization": f"Bearer {serving.api_key}",
    }
    got = serving.handle("GET", path.format(session=session), headers)
    assert got.status == 403
    assert "Host" in json.loads(got.body)["message"]
    assert session.encode() not in got.body
    assert len(serving.requests) == before


def test_a_payout_asked_for_under_another_name_is_not_made(serving: Sandbox) -> None:
    headers = {"Host": "evil.example", "Authorization": f"Bearer {serving.api_key}"}
    assert serving.handle("POST", "/v1/payouts", headers, json.dumps(PAYOUT).encode()).status == 403
    assert serving.books.payouts() == []


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LocalHost", "[::1]", None])
@pytest.mark.parametrize("path", ["/v1/payouts", "/checkout/{session}/phone", "/_sandbox/"])
def test_our_own_names_are_answered_at_every_address(serving: Sandbox, path: str, name: str | None) -> None:
    api = Api(serving, serving.api_key)
    session = api.post("/payment/checkouts", INTENT).data["checkout"]["id"]
    headers = {"Authorization": f"Bearer {serving.api_key}"}
    if name is not None:
        headers["Host"] = f"{name}:{serving.origin.rpartition(':')[2]}"
    assert serving.handle("GET", path.format(session=session), headers).status == 200


@pytest.mark.parametrize("host", ["127.0.0.1:9000", "localhost:9000", "localhost", "[::1]", "[::1]:9000"])
def test_a_forwarded_port_is_no_other_name(serving: Sandbox, host: str) -> None:
    headers = {"Authorization": f"Bearer {serving.api_key}", "Host": host}
    assert serving.handle("GET", "/v1/payouts", headers).status == 200


def test_it_is_so_on_the_wire(serving: Sandbox) -> None:
    line = http.client.HTTPConnection(serving.origin.removeprefix("http://"), timeout=5)
    for host, status in (("evil.example", 403), (None, 200)):
        headers = {"Authorization": f"Bearer {serving.api_key}"} | ({"Host": host} if host else {})
        line.request("GET", "/v1/payouts", headers=headers)
        answer = line.getresponse()
        answer.read()
        assert answer.status == status
    line.close()
