"""Each logged request as a curl command, which sends the same again."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from payments_async.sandbox import Sandbox, VirtualClock
from tests.sandbox.raw_requests import ATTEMPT, BANK, TRIED, Api

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def serving() -> Iterator[Sandbox]:
    with Sandbox(clock=VirtualClock(speed=1000)) as sandbox:
        yield sandbox


def ask_everything(api: Api) -> None:
    """One request of each kind, with what is awkward to write down."""
    quoted = 'it\'s "quoted" – ünïcödé $HOME `x`'
    payout: dict[str, Any] = {
        "customer": {"email": "ada@example.test", "first_name": "Ada Adeyemi"},
        "webhook_url": "http://127.0.0.1:9/hook/s3cr3t",
        "metadata": {"n": [1.5, None, True], "t": quoted},
    }
    made = api.payout(reference="r-1", idempotency_key="key-00001", description=quoted, **payout).data["id"]
    api.payout(reference="r-2", amount=10.25, instrument=BANK, currency="NGN", method="bank_transfer_ng")
    api.post("/payment/intents", {**TRIED, "amount": 0.5, "currency": "USD"}, idempotency_key="key-00002")
    intent = api.intent(attempt=ATTEMPT | {"phone": {"number": "+22990000000", "country": "BJ"}}).data
    session = api.checkout(return_url="https://shop.test/back", customer={"email": "ada@example.test"}).data
    base = f"/payment/intents/{intent['id']}"
    for path in (
        f"/payment/checkouts/{session['checkout']['id']}",
        "/payment/intents?status=pending&per_page=5&created_at%5Bgte%5D=2026-01-01T00:00:00Z",
        "/payouts?unheard_of=1",
        f"/payouts/{made}/sync",
    ):
        assert api.get(path).status == 200, path
    api.post(f"{base}/requery", {})
    refused = {"amount": 0, "fraction": 0.25, "currency": "xof", "class": [], "method": quoted}
    assert api.post("/payouts", refused, idempotency_key="key-00003").status == 422
    assert api.payout(reference="r-3", note="unheard of").status == 201
    assert api.get("/nowhere?a=1").status == 404
    assert api.post("/nowhere", {"amount": 1.5, "list": [{"of": 2.5}]}).status == 404


def code_of(sandbox: Sandbox, request: str, *, reveal: bool = True) -> str:
    path = f"/_sandbox/api/requests/{request}/code{'?reveal=1' if reveal else ''}"
    return str(json.loads(sandbox.handle("GET", path).body)["code"])


def line_of(sandbox: Sandbox, request: str) -> tuple[str, str, Any]:
    """What a request asked for: method, path with its query, body."""
    said = json.loads(sandbox.handle("GET", f"/_sandbox/api/requests/{request}?reveal=1").body)
    return said["method"], said["path"].replace("%3A", ":"), said["body"] or None


def asked_again(sandbox: Sandbox, before: list[str]) -> list[tuple[str, str, Any]]:
    return [line_of(sandbox, one.request_id) for one in sandbox.requests if one.request_id not in before]


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on this machine")
def test_each_request_as_a_command_sends_the_same_again(serving: Sandbox, tmp_path: Path) -> None:
    ask_everything(Api(serving, serving.api_key))
    asked = [one.request_id for one in serving.requests]
    script = tmp_path / "all.sh"
    script.write_text("\n".join(code_of(serving, request) for request in asked))
    assert serving.api_key not in script.read_text()
    env = {**os.environ, "PAYMENTS_API_KEY": serving.api_key, "no_proxy": "127.0.0.1"}
    done = subprocess.run(["sh", "-e", script], env=env, capture_output=True, timeout=300, check=False)
    assert done.stderr == b""
    assert asked_again(serving, asked) == [line_of(serving, request) for request in asked]


def test_a_method_and_a_body_of_a_command_are_nothing_but_text(sandbox: Sandbox) -> None:
    """A shell would run `id` in backticks, and curl would send the file after an @."""
    headers = {"Authorization": f"Bearer {sandbox.api_key}"}
    sandbox.handle("`id`$HOME", "/v1/payouts", headers, b"@/etc/hostname")
    answer = sandbox.handle("GET", f"/_sandbox/api/requests/{sandbox.requests[0].request_id}/code?reveal=1")
    words = shlex.split(json.loads(answer.body)["code"])
    assert words[words.index("-X") + 1] == "`id`$HOME"
    assert "-X '`id`$HOME' " in json.loads(answer.body)["code"]
    assert words[-2:] == ["--data-raw", "@/etc/hostname"]


def test_masked_code_says_first_what_to_press(sandbox: Sandbox, api: Api) -> None:
    api.payout()
    path = f"/_sandbox/api/requests/{sandbox.requests[0].request_id}/code"
    masked = json.loads(sandbox.handle("GET", path).body)
    assert masked["masked"] is True
    assert "press Show account data first" in masked["code"].partition("\n")[0]
    whole = json.loads(sandbox.handle("GET", f"{path}?reveal=1").body)
    assert whole["masked"] is False
    assert not whole["code"].startswith("#")


def test_code_with_an_idempotency_key_says_what_it_does(sandbox: Sandbox, api: Api) -> None:
    api.payout(idempotency_key="key-00001")
    first, _, rest = code_of(sandbox, sandbox.requests[0].request_id).partition("\n")
    assert first.startswith("# It has the idempotency key of the request")
    assert "key-00001" in rest
    assert not set(first) & set("'\"`;&|<>()?*$"), "a shell may not know that it is a comment"


def test_code_for_others_to_see_has_neither_key_nor_account_data(sandbox: Sandbox, api: Api) -> None:
    secrets = ("90000000", "Adeyemi", "0011223344", "ada@", "bo@", "s3cr3t")
    ask_everything(api)
    api.get("/payouts?status=bo@example.test")
    api.post("/payouts", b'{"phone_number": "+22990000000"')
    masked = "".join(code_of(sandbox, one.request_id, reveal=False) for one in sandbox.requests)
    assert [secret for secret in (api.key, *secrets) if secret in masked] == []
    whole = "".join(code_of(sandbox, one.request_id) for one in sandbox.requests)
    assert [secret for secret in secrets if secret not in whole] == []
    assert "90000000" in code_of(sandbox, sandbox.requests[-1].request_id), "a body that is no JSON"
