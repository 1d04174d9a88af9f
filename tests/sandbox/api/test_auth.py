"""Who is let in (docs/interface.md, Authentication)."""

from __future__ import annotations

import pytest

from payments_async.sandbox import Sandbox
from tests.sandbox.raw_requests import PAYOUT, Api, Got


def ask(sandbox: Sandbox, authorization: str | None, *, address: str = "127.0.0.1") -> Got:
    headers = {} if authorization is None else {"Authorization": authorization}
    return Got(sandbox.handle("GET", "/v1/payouts", headers, address=address))


@pytest.mark.fact("auth.bearer-header", "auth.prefix.sandbox", "conventions.base-url-v1")
def test_a_sandbox_key_as_bearer_token_is_let_in(sandbox: Sandbox) -> None:
    assert sandbox.api_key.startswith("sk_sandbox_")
    assert ask(sandbox, f"Bearer {sandbox.api_key}").status == 200
    assert ask(sandbox, f"bearer {sandbox.api_key}").status == 200


@pytest.mark.parametrize(
    "authorization",
    [
        pytest.param(None, marks=pytest.mark.fact("auth.401.missing", "error.401")),
        pytest.param("", marks=pytest.mark.fact("auth.401.missing")),
        pytest.param("Bearer ", marks=pytest.mark.fact("auth.401.missing")),
        pytest.param("Basic c2s6", marks=pytest.mark.fact("auth.bearer-header")),
        pytest.param("Bearer pk_sandbox_1", marks=pytest.mark.fact("auth.prefix.sk")),
        pytest.param("Bearer sk_sandbox_nobody", marks=pytest.mark.fact("auth.401.invalid")),
        pytest.param("Bearer sk_live_1", marks=pytest.mark.fact("service.environments-are-separate")),
    ],
)
def test_a_missing_malformed_unknown_or_live_key_gets_401(
    sandbox: Sandbox, authorization: str | None
) -> None:
    got = ask(sandbox, authorization)
    assert got.status == 401
    assert isinstance(got.json["message"], str)


def test_a_revoked_key_gets_401_with_the_reason_and_its_records_stay(sandbox: Sandbox) -> None:
    key = sandbox.new_key()
    assert Api(sandbox, key).payout().status == 201
    sandbox.revoke_key(key, "The key was found in a repository.")
    sandbox.revoke_key(sandbox.api_key)
    got = Api(sandbox, key).payout()
    assert (got.status, got.json["message"]) == (401, "The key was found in a repository.")
    assert ask(sandbox, f"Bearer {sandbox.api_key}").json["message"] == "The API key was revoked."
    assert len(sandbox.books.payouts()) == 1
    sandbox.reset()
    assert Api(sandbox, key).payout().status == 401
    with pytest.raises(LookupError, match="no such API key"):
        sandbox.revoke_key("sk_sandbox_nobody")


@pytest.mark.fact("service.environments-are-separate")
def test_a_live_key_is_refused_as_such(sandbox: Sandbox) -> None:
    assert "never accepts a live key" in ask(sandbox, "Bearer sk_live_1").json["message"]


@pytest.mark.parametrize(
    "status",
    [
        pytest.param("inactive", marks=pytest.mark.fact("auth.401.inactive")),
        pytest.param("expired", marks=pytest.mark.fact("auth.401.expired")),
    ],
)
def test_a_key_that_is_no_longer_active_gets_401_that_says_so(sandbox: Sandbox, status: str) -> None:
    got = ask(sandbox, f"Bearer {sandbox.new_key(status=status)}")  # type: ignore[arg-type] # parametrised
    assert (got.status, status in got.json["message"]) == (401, True)


@pytest.mark.fact("auth.403.allowlist", "error.403")
@pytest.mark.parametrize(
    ("address", "status"), [("10.1.2.3", 200), ("127.0.0.1", 200), ("11.0.0.1", 403), ("::1", 403), ("", 403)]
)
def test_only_addresses_on_the_allowlist_may_use_the_key(sandbox: Sandbox, address: str, status: int) -> None:
    key = sandbox.new_key(allowlist=["10.0.0.0/8", "127.0.0.1"])
    got = ask(sandbox, f"Bearer {key}", address=address)
    assert got.status == status
    assert status == 200 or isinstance(got.json["message"], str)


@pytest.mark.fact("error.404")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/nothing"),
        ("DELETE", "/v1/payouts"),
        ("GET", "/payouts"),
        ("GET", "/v1/payouts/po_1"),
        ("GET", "/v1/payouts/po_1/sync"),
        ("GET", "/v1/payouts/po%2F1/inspect"),
        ("GET", "/v1/payouts/po%0A1/inspect"),
        ("GET", "/v1/payment/checkouts/cs_1"),
        ("POST", "/v1/payment/intents/pi_1/requery"),
        ("GET", "/v1/payment/intents/pi_1/attempts/pa_1"),
        ("GET", "/v1/payment/intents/pi_1/refunds/availability"),
    ],
)
def test_what_is_not_there_gets_404_with_a_message(api: Api, method: str, path: str) -> None:
    got = Got(api.sandbox.handle(method, path, {"Authorization": f"Bearer {api.key}"}))
    assert got.status == 404
    assert isinstance(got.json["message"], str)


@pytest.mark.fact("request.payouts.reference.unique")
def test_each_key_has_records_and_references_of_its_own(api: Api, stranger: Api) -> None:
    payout_id = api.payout(reference="r-1").data["id"]
    intent = api.intent().data
    session = api.checkout().data["checkout"]
    assert stranger.payout(reference="r-1").status == 201
    assert stranger.get(f"/payouts/{payout_id}/sync").status == 404
    attempt = f"/payment/intents/{intent['id']}/attempts/{intent['active_attempt']['id']}"
    assert stranger.get(attempt).status == 404
    assert stranger.get(f"/payment/checkouts/{session['id']}").status == 404
    assert stranger.get("/payment/intents").data == []


def test_an_attempt_is_found_under_its_own_payment_only(api: Api) -> None:
    first, second = api.intent().data, api.intent().data
    attempt_id = first["active_attempt"]["id"]
    assert api.get(f"/payment/intents/{first['id']}/attempts/{attempt_id}").status == 200
    assert api.get(f"/payment/intents/{second['id']}/attempts/{attempt_id}").status == 404


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"\xff", b'{"amount": 1e99999999999999999999}', b"[" * 9999]
)
def test_a_body_that_is_no_readable_json_object_gets_400(api: Api, body: bytes) -> None:
    got = api.post("/payouts", body)
    assert got.status == 400
    assert isinstance(got.json["message"], str)


@pytest.mark.fact("conventions.json-bodies")
def test_answers_are_json(api: Api) -> None:
    for got in (api.post("/payouts", PAYOUT), api.get("/nothing")):
        assert got.headers["Content-Type"] == "application/json"
        assert isinstance(got.json, dict)
