"""The values of every form (docs/interface.md, Resources and their fields).

That each form has exactly its fields is in tests/fidelity/test_document_and_sandbox.py.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest

from tests.sandbox.raw_requests import BANK, BY_CARD, CRYPTO, PHONE, Api

ADA = {"email": "ada@example.com", "first_name": "Ada", "last_name": "Adeyemi"}


@pytest.mark.fact("conventions.timestamps-iso-utc", "form.exchange-rate.object", "response.payouts.create")
def test_a_payout_is_the_same_created_listed_and_read(api: Api) -> None:
    created = api.payout(customer=ADA, metadata={"a": 1}).data
    assert api.get("/payouts").data == [created]
    assert api.sync(created["id"]) == created
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", created["created_at"])
    assert re.fullmatch(r"\d+\.\d{8}", created["exchange_rate"]["value"])


@pytest.mark.fact("form.instrument", "service.payout-to-instrument")
@pytest.mark.parametrize("instrument", [PHONE, BANK, CRYPTO], ids=lambda instrument: instrument["type"])
def test_an_instrument_comes_back_with_null_where_its_type_has_no_field(
    api: Api, instrument: dict[str, Any]
) -> None:
    given = api.payout(instrument=instrument).data["instrument"]
    names = {*PHONE, *BANK, *CRYPTO, "swift_bic", "memo_tag"} - {"country"}
    expected = {name: instrument.get(name) for name in names}
    assert {name: given[name] for name in expected} == expected
    assert (given["country"] or {}).get("code") == instrument.get("country")


@pytest.mark.fact("form.failure.payout", "error.failure.payout")
@pytest.mark.parametrize(
    ("code", "category", "message"),
    [
        ("INSUFFICIENT_FUNDS", "INSUFFICIENT_FUNDS", "Insufficient funds."),
        ("INVALID_RECIPIENT", "RECIPIENT_ERROR", "Invalid recipient."),
    ],
)
def test_a_failed_payout_says_why_with_a_category(api: Api, code: str, category: str, message: str) -> None:
    payout = api.payout(metadata={"sandbox_scenario": f"fail:{code} immediate"}).data
    assert payout["failure"]["code"] == {"value": code, "category": category, "message": message}


@pytest.mark.fact("states.observed.intent-pending", "states.observed.attempt-processing")
@pytest.mark.fact("states.observed.next-action-none", "form.exchange-rate.number", "response.intents.list")
@pytest.mark.fact("response.intents.create", "response.intents.create.active-attempt")
@pytest.mark.fact("conventions.data-envelope", "conventions.create-message")
def test_an_intent_is_pending_and_its_attempt_processing(api: Api) -> None:
    created = api.intent(customer=ADA, attempt=BY_CARD)
    assert set(created.json) == {"message", "data"}
    attempt = created.data["active_attempt"]
    assert (attempt["exchange_rate"], attempt["correction_rate"]) == (1, 1)
    listed = api.listed_intent()
    assert (listed["id"], listed["status"]) == (created.data["id"], "pending")
    active = listed["active_attempt"]
    assert (active["id"], active["status"], active["next_action"]["type"]) == (
        attempt["id"],
        "processing",
        "none",
    )


@pytest.mark.fact("form.attempt.single", "form.failure.attempt", "response.attempts.retrieve")
@pytest.mark.fact("endpoint.attempts.retrieve", "error.failure.attempt")
def test_a_failed_attempt_says_why_and_only_the_list_adds_the_category(api: Api) -> None:
    intent = api.intent(metadata={"sandbox_scenario": "fail:CUSTOMER_DECLINED immediate"}).data
    single = api.get(f"/payment/intents/{intent['id']}/attempts/{intent['active_attempt']['id']}").data
    assert set(single["failure"]["code"]) == {"value", "message"}
    listed = api.listed_intent()["active_attempt"]
    assert listed["failure"]["code"]["category"] == "CUSTOMER_ERROR"


@pytest.mark.fact("response.checkouts.create", "response.checkouts.retrieve", "endpoint.checkouts.create")
@pytest.mark.fact("endpoint.checkouts.retrieve", "service.checkout-is-payment-and-page")
def test_a_checkout_is_the_same_created_and_retrieved(api: Api) -> None:
    created = api.checkout(restriction={"country_code": "BJ"})
    assert set(created.json) == {"message", "data"}
    session = created.data["checkout"]
    again = api.get(f"/payment/checkouts/{session['id']}")
    assert again.json == {"data": created.data}
    assert (session["url"][:4], session["url"].count(session["id"])) == ("http", 1)


@pytest.mark.fact("request.checkouts.appearance.overrides-project", "request.checkouts.restriction.phone")
def test_a_session_shows_its_own_appearance_and_leaves_the_others_alone(api: Api) -> None:
    given = {
        "color": "#FfD",
        "display_platform_badge": False,
        "brand": "Ada & Co",
        "icon_url": "https://a.test/i",
    }
    phone = {"phone": {"number": "+22990000001", "country": "BJ"}}
    session = api.checkout(appearance=given, restriction=phone).data["checkout"]
    shown = session["appearance"]
    assert (shown["display_platform_badge"], shown["brand"]) == (False, "Ada & Co")
    assert shown["icon_url"] == "https://a.test/i"
    assert shown["color"]["primary"] == {"hex": "#ffffdd", "rgb": "255, 255, 221"}
    assert shown["color"]["contrast"]["hex"] == "#000000"
    assert session["restriction"] == {"country": None, "phone": "+22990000001"}
    see_through = api.checkout(appearance={"color": "#ffffdd80"}).data["checkout"]["appearance"]
    assert see_through["color"] == shown["color"], "a page has nothing behind it"
    other = api.checkout().data["checkout"]["appearance"]
    assert (other["display_platform_badge"], other["brand"]) == (True, None)
    assert other["color"]["contrast"]["hex"] == "#ffffff"


@pytest.mark.fact("form.method-status", "response.methods.status", "endpoint.methods.status")
def test_a_method_status_has_exactly_its_fields(api: Api) -> None:
    got = api.get("/utils/status/payment/method/mtn_bj/BJ")
    assert set(got.json) == {"data", "meta"}
    assert got.data == {"method": "mtn_bj", "country": "BJ", "status": "available"}
    assert got.json["meta"] == {
        "environment": "sandbox",
        "window_minutes": 15,
        "generated_at": "2026-01-01T00:00:00.000000Z",
        "ttl_seconds": 60,
    }


@pytest.mark.parametrize(
    ("code", "segment"), [("mtn.momo", "mtn.momo"), ("a/b é", "a%2Fb%20%C3%A9"), ("x" * 300, "x" * 300)]
)
def test_any_code_and_any_id_is_taken_as_it_is(api: Api, code: str, segment: str) -> None:
    assert api.get(f"/utils/status/payment/method/{segment}/BJ").data["method"] == code
    assert api.get(f"/payouts/{segment}/sync").json["message"] == "There is no such payout."


@pytest.mark.fact("response.methods.status.error-message")
@pytest.mark.parametrize("country", ["bj", "ZZ", "EU", "XXX", "1A"])
def test_a_method_status_for_no_country_is_refused_with_a_message(api: Api, country: str) -> None:
    got = api.get(f"/utils/status/payment/method/mtn_bj/{country}")
    assert (got.status, isinstance(got.json["message"], str)) == (404, True)


@pytest.mark.fact(
    "conventions.amounts-major-units", "request.payouts.amount.number", "request.payment.amount.number"
)
@pytest.mark.parametrize(
    ("sent", "value"),
    [
        (b"50", "50"),
        (b"10.10", "10.10"),
        (b"1E+2", "100"),
        (b"12345678901234567.89", "12345678901234567.89"),
        (b"1.123456789012345678901234567890123", "1.123456789012345678901234567890123"),
        (b"123456789012345678901234", "123456789012345678901234"),
    ],
)
def test_an_amount_comes_back_digit_for_digit_as_a_number(api: Api, sent: bytes, value: str) -> None:
    body = b'{"amount": %s, "currency": "USD", "method": "m", "instrument": {"address": "a", "network": "n"}}'
    assert f'"amount":{{"value":{value},'.encode() in api.post("/payouts", body % sent).answer.body
    intent = api.post("/payment/intents", b'{"amount": %s, "currency": "USD"}' % sent)
    assert str(intent.data["amount"]["value"]) == value


@pytest.mark.fact("form.amount")
@pytest.mark.parametrize(
    ("amount", "currency", "formatted", "short"),
    [
        (1234.5, "USD", "$1,234.50", "$1,234"),
        (50, "XOF", "F\u202fCFA\u00a050", "F\u202fCFA\u00a050"),
        (7.125, "KWD", "KWD\u00a07.125", "KWD\u00a07"),
        (50, "JPY", "\u00a550", "\u00a550"),
        (10.5, "XOF", "F\u202fCFA\u00a010.5", "F\u202fCFA\u00a010"),
        (10.125, "USD", "$10.125", "$10"),
    ],
)
def test_an_amount_is_shown_as_its_currency_is_written(
    api: Api, amount: float, currency: str, formatted: str, short: str
) -> None:
    shown = api.payout(amount=amount, currency=currency).data["amount"]
    assert (shown["formatted"], shown["short"], shown["currency"]) == (formatted, short, currency)


def test_the_fee_is_one_percent_in_the_smallest_unit_of_the_currency(api: Api) -> None:
    assert api.payout(amount=123.45, currency="USD").data["fee_amount"]["value"] == Decimal("1.23")
    assert api.payout(amount=150, currency="XOF").data["fee_amount"]["value"] == 2


@pytest.mark.fact("request.payouts.metadata.unchanged", "request.payment.metadata.unchanged")
def test_metadata_comes_back_unchanged(api: Api) -> None:
    given = {"text": "é", "none": None, "deep": {"list": [1, True, {"x": None}]}, "big": 12345678901234567890}
    assert api.payout(metadata=given).data["metadata"] == given
    assert api.intent(metadata=given).data["metadata"] == given
    assert api.checkout(metadata=given).data["payment"]["metadata"] == given
    raw = b'{"amount": 5, "currency": "XOF", "metadata": {"rate": 0.100000000000000000001}}'
    assert b'"metadata":{"rate":0.100000000000000000001}' in api.post("/payment/intents", raw).answer.body


def test_one_email_address_is_one_customer_of_its_key(api: Api, stranger: Api) -> None:
    first = api.payout(customer=ADA).data["customer"]["id"]
    assert api.intent(customer=ADA).data["customer"]["id"] == first
    assert api.payout(customer={"first_name": "Bob"}).data["customer"]["id"] != first
    assert stranger.payout(customer=ADA).data["customer"]["id"] != first


@pytest.mark.fact("endpoint.intents.requery")
def test_a_requery_has_the_statuses_before_and_after(api: Api) -> None:
    intent = api.intent(scenario="reads=1").data
    got = api.post(f"/payment/intents/{intent['id']}/requery", {})
    assert got.status == 200
    assert got.data["payment_intent_id"] == intent["id"]
    assert got.data["payment_attempt_id"] == intent["active_attempt"]["id"]
    assert got.data["before"] == {"intent_status": "pending", "attempt_status": "processing"}
    assert got.data["after"] == {"intent_status": "completed", "attempt_status": "completed"}
    assert got.data["attempts"] == {"count": 1, "requeried": 1}
    again = api.post(f"/payment/intents/{intent['id']}/requery")
    assert again.data["attempts"] == {"count": 1, "requeried": 0}
    assert set(got.data) >= {"id", "status", "completed_at", "created_at"}


def test_a_requery_without_an_attempt_names_none(api: Api) -> None:
    intent_id = api.checkout().data["payment"]["id"]
    got = api.post(f"/payment/intents/{intent_id}/requery")
    assert got.data["payment_attempt_id"] is None
    assert got.data["before"] == {"intent_status": "pending", "attempt_status": None}


@pytest.mark.fact("endpoint.attempts.inspect", "endpoint.payouts.inspect")
def test_an_inspection_shows_the_gateways_side(api: Api) -> None:
    payout, intent = api.payout().data, api.intent().data
    attempt = intent["active_attempt"]
    for path, gateway in (
        (f"/payouts/{payout['id']}/inspect", payout["gateway"]),
        (f"/payment/intents/{intent['id']}/attempts/{attempt['id']}/inspect", attempt["gateway"]),
    ):
        data = api.get(path).data
        assert set(data) == {"gateway", "gateway_transaction_id", "retrieved_at", "payload"}
        assert data["gateway_transaction_id"] == gateway["transaction"]["id"]
