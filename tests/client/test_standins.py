"""What stands in for a service in tests, or records it, works as it does with plain aiohttp.

`nox -s standins` shows them; aioresponses is in tests/standins. The recipe that keeps keys out of
cassettes is in docs/testing.md.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from payments_async.sandbox import Sandbox
from tests.conftest import KEY
from tests.support.creations import create
from tests.support.scripted import EMPTY_PAGE, ScriptedTransport
from tests.support.surfaces import Connect

URL = "https://api.test/v1"
EMPTY: dict[str, Any] = {"data": [], "pagination": {}}


async def plain(base_url: str) -> Any:
    headers = {"Authorization": f"Bearer {KEY}"}
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{base_url}/payouts", headers=headers) as found,
    ):
        return found.status, await found.json()


async def test_aiointercept(connect: Connect) -> None:
    """It replaces methods of aiohttp's connector, and adds a header to the request."""
    from aiointercept import aiointercept

    async with aiointercept(mock_external_urls=True) as service:
        service.get(f"{URL}/payouts", payload=EMPTY, repeat=True)
        assert await plain(URL) == (200, EMPTY)
        client = connect(base_url=URL)
        for _ in range(2):
            assert list(await client.payouts.list()) == []


async def test_pytest_httpserver(connect: Connect) -> None:
    from pytest_httpserver import HTTPServer

    with HTTPServer(host="127.0.0.1") as server:
        server.expect_request("/v1/payouts").respond_with_json(EMPTY)
        url = server.url_for("/v1")
        assert await plain(url) == (200, EMPTY)
        assert list(await connect(base_url=url).payouts.list()) == []
        server.check()


def without_keys(response: dict[str, Any]) -> dict[str, Any]:
    body = response["body"]["string"]
    response["body"]["string"] = re.sub(rb"sk_(live|sandbox)_[\w-]+", rb"sk_\1_hidden", body)
    return response


async def test_vcrpy_and_its_cassette(connect: Connect, sandbox: Sandbox, tmp_path: Path) -> None:
    """The recipe of docs/testing.md. What was recorded is played when the service is gone."""
    import vcr

    recorder = vcr.VCR(
        filter_headers=["authorization"],
        before_record_response=without_keys,
        match_on=["method", "path", "query", "body"],
    )
    cassette = tmp_path / "payout.yaml"
    url = sandbox.base_url
    with recorder.use_cassette(cassette):
        created = await create(connect(sandbox), "payouts", reference="r-1")
    sandbox.stop()
    with recorder.use_cassette(cassette, record_mode="none") as played:
        again = await create(connect(api_key=sandbox.api_key, base_url=url), "payouts", reference="r-1")
        assert (again, played.play_count) == (created, 1)
    written = cassette.read_text(encoding="utf-8")
    assert str(created.id) in written
    assert sandbox.api_key not in written
    assert "uthorization" not in written


async def test_a_cassette_that_would_hold_the_key_is_refused_and_names_the_filter(connect: Connect) -> None:
    """What vcrpy does at the cassette's end. An error there leaves its patches in the process."""
    from vcr.request import Request
    from vcr.serialize import serialize
    from vcr.serializers import yamlserializer

    transport = ScriptedTransport(EMPTY_PAGE)
    await connect(transport=transport).payouts.list()
    sent_key = transport.requests[0].headers["Authorization"]
    request = Request("GET", URL, None, {"Authorization": sent_key})
    answer = {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": b"{}"}}
    with pytest.raises(TypeError, match=r"filter_headers=\['authorization'\].*docs/testing.md"):
        serialize({"requests": [request], "responses": [answer]}, yamlserializer)
