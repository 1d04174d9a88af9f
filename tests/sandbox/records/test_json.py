"""The exact fields of every form (docs/interface.md, Resources and their fields)."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest

from payments_async.sandbox import Sandbox
from tests.sandbox.raw_requests import BANK, CRYPTO, PHONE, Api

AMOUNT = {"value", "formatted", "short", "currency"}
METHOD = {"value", "label", "description", "icon_url", "category", "requires_phone"}
COUNTRY = {"code", "name", "flag"}
CUSTOMER = {"id", "first_name", "last_name", "email", "avatar_url"}
TRANSACTION = {"id", "reference", "external_id", "status"}
RATE = {"value", "from_currency", "to_currency", "expression"}
ACTION = {
    "message",
    "instructions",
    "dial_code",
    "digits",
    "is_strict",
    "fields",
    "url",
    "method",
    "post_data",
    "can_auto_redirect",
    "content",
    "image_url",
    "title",
    "provider",
    "sdk_url",
    "public_key",
    "client_params",
    "container_id",
}
ATTEMPT = {
    "id",
    "method",
    "amount",
    "exchange_rate",
    "correction_rate",
    "gateway",
    "next_action",
    "failover",
    "completed_at",
    "failed_at",
    "created_at",
}
ATTEMPT_IN_LIST = ATTEMPT | {"status", "processing_at", "action_required_at", "expired_at"}
INTENT = {
    "id",
    "amount",
    "customer",
    "description",
    "return_url",
    "webhook_url",
    "statement_descriptor",
    "receipt_email",
    "metadata",
    "active_attempt",
    "completed_at",
    "created_at",
}
INTENT_CREATED = INTENT | {"refunds_summary", "expires_at"}
INTENT_IN_LIST = INTENT | {"reference", "status", "restriction", "expired_at"}
INSTRUMENT = {
    "id",
    "type",
    "phone_number",
    "account_name",
    "account_number",
    "bank_code",
    "swift_bic",
    "country",
    "address",
    "network",
    "memo_tag",
}
PAYOUT = {
    "id",
    "amount",
    "settlement_amount",
    "exchange_rate",
    "method",
    "status",
    "reference",
    "description",
    "webhook_url",
    "customer",
    "instrument",
    "gateway",
    "fee_amount",
    "failure",
    "metadata",
    "initiated_at",
    "completed_at",
    "failed_at",
    "created_at",
}
APPEARANCE = {
    "template",
    "color",
    "font",
    "border_style",
    "display_platform_badge",
    "brand",
    "icon_url",
    "lang",
}
REFUNDS = {"refunded_amount", "pending_amount", "refundable_amount", "has_pending_refund"}
PAGINATION = {
    "count",
    "path",
    "per_page",
    "next_cursor",
    "next_page_url",
    "prev_cursor",
    "prev_page_url",
    "has_more_pages",
    "has_pages",
}
ADA = {"email": "ada@example.com", "first_name": "Ada", "last_name": "Adeyemi"}
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


@pytest.fixture(params=["created", "listed", "synced"])
def payout(api: Api, request: pytest.FixtureRequest) -> Any:
    created = api.payout(customer=ADA, metadata={"a": 1})
    if request.param == "listed":
        return api.get("/payouts").data[0]
    return api.sync(created.data["id"]) if request.param == "synced" else created.data


@pytest.mark.fact(
    "form.payout", "form.amount", "form.method", "form.country", "form.customer", "form.instrument"
)
@pytest.mark.fact("form.gateway-transaction", "form.exchange-rate.object", "conventions.timestamps-iso-utc")
def test_a_payout_has_exactly_its_fields(payout: Any) -> None:
    assert set(payout) == PAYOUT
    assert all(set(payout[name]) == AMOUNT for name in ("amount", "settlement_amount", "fee_amount"))
    assert set(payout["method"]) == METHOD
    assert set(payout["customer"]) == CUSTOMER
    assert set(payout["instrument"]) == INSTRUMENT
    assert set(payout["instrument"]["country"]) == COUNTRY
    assert set(payout["gateway"]) == {"transaction"}
    assert set(payout["gateway"]["transaction"]) == TRANSACTION
    assert set(payout["exchange_rate"]) == RATE
    assert re.fullmatch(r"\d+\.\d{8}", payout["exchange_rate"]["value"])
    assert TIMESTAMP.fullmatch(payout["created_at"])
    assert payout["failure"] is None


@pytest.mark.fact("form.instrument", "service.payout-to-instrument")
@pytest.mark.parametrize("instrument", [PHONE, BANK, CRYPTO], ids=lambda instrument: instrument["type"])
def test_an_instrument_comes_back_with_null_where_its_type_has_no_field(
    api: Api, instrument: dict[str, Any]
) -> None:
    given = api.payout(instrument=instrument).data["instrument"]
    expected = {name: instrument.get(name) for name in INSTRUMENT - {"id", "country"}}
    assert {name: given[name] for name in expected} == expected
    assert (given["country"] or {}).get("code") == instrument.get("country")


@pytest.mark.fact("form.failure.payout", "error.failure.payout")
def test_a_failed_payout_says_why_with_a_category(api: Api) -> None:
    payout = api.payout(metadata={"sandbox_scenario": "fail:INSUFFICIENT_FUNDS immediate"}).data
    assert set(payout["failure"]) == {"code", "message"}
    assert payout["failure"]["code"] == {
        "value": "INSUFFICIENT_FUNDS",
        "category": "INSUFFICIENT_FUNDS",
        "message": "Insufficient funds.",
    }
    assert isinstance(payout["failure"]["message"], str)


@pytest.mark.fact("form.intent.create", "form.attempt.create", "conventions.create-message")
@pytest.mark.fact(
    "conventions.data-envelope", "response.intents.create", "response.intents.create.active-attempt"
)
@pytest.mark.fact("form.exchange-rate.number", "form.next-action", "form.failover")
def test_a_created_intent_has_exactly_the_create_form(api: Api) -> None:
    got = api.intent(customer=ADA)
    assert set(got.json) == {"message", "data"}
    assert isinstance(got.json["message"], str)
    assert set(got.data) == INTENT_CREATED
    assert set(got.data["refunds_summary"]) == REFUNDS
    attempt = got.data["active_attempt"]
    assert set(attempt) == ATTEMPT
    assert set(attempt["next_action"]) == ACTION
    assert set(attempt["failover"]) == {"is_failover", "decision"}
    assert (attempt["exchange_rate"], attempt["correction_rate"]) == (1, 1)


@pytest.mark.fact("form.intent.list", "form.attempt.list", "form.exchange-rate.object", "form.next-action")
@pytest.mark.fact("states.observed.intent-pending", "states.observed.attempt-processing")
@pytest.mark.fact("states.observed.next-action-none", "response.intents.list", "form.pagination")
def test_a_listed_intent_has_exactly_the_list_form(api: Api) -> None:
    api.intent(customer=ADA)
    got = api.get("/payment/intents")
    assert set(got.json) == {"data", "pagination"}
    assert set(got.json["pagination"]) == PAGINATION
    (intent,) = got.data
    assert set(intent) == INTENT_IN_LIST
    assert intent["status"] == "pending"
    assert set(intent["restriction"]) == {"payment_methods", "payment_method_categories"}
    assert all(set(part) == {"allow", "deny"} for part in intent["restriction"].values())
    attempt = intent["active_attempt"]
    assert set(attempt) == ATTEMPT_IN_LIST
    assert attempt["status"] == "processing"
    assert set(attempt["exchange_rate"]) == RATE
    assert set(attempt["next_action"]) == {*ACTION, "type"}
    assert attempt["next_action"]["type"] == "none"


@pytest.mark.fact("form.attempt.single", "form.failure.attempt", "response.attempts.retrieve")
@pytest.mark.fact("endpoint.attempts.retrieve", "error.failure.attempt")
def test_a_failed_attempt_says_why_and_only_the_list_adds_the_category(api: Api) -> None:
    intent = api.intent(metadata={"sandbox_scenario": "fail:CUSTOMER_DECLINED immediate"}).data
    single = api.get(f"/payment/intents/{intent['id']}/attempts/{intent['active_attempt']['id']}").data
    assert set(single) == ATTEMPT | {"failure"}
    assert set(single["failure"]) == {"code", "message"}
    assert set(single["failure"]["code"]) == {"value", "message"}
    listed = api.listed_intent()["active_attempt"]
    assert set(listed) == ATTEMPT_IN_LIST | {"failure"}
    assert listed["failure"]["code"]["category"] == "CUSTOMER_ERROR"


@pytest.mark.fact("form.checkout", "form.checkout.appearance", "form.intent.checkout", "form.country")
@pytest.mark.fact("response.checkouts.create", "response.checkouts.retrieve", "endpoint.checkouts.create")
@pytest.mark.fact("endpoint.checkouts.retrieve", "service.checkout-is-payment-and-page")
def test_a_checkout_has_exactly_its_fields_created_and_retrieved(api: Api) -> None:
    created = api.checkout(restriction={"country_code": "BJ"})
    assert set(created.json) == {"message", "data"}
    again = api.get(f"/payment/checkouts/{created.data['checkout']['id']}")
    assert set(again.json) == {"data"}
    assert again.data == created.data
    assert set(again.data) == {"checkout", "payment"}
    assert set(again.data["payment"]) == INTENT_CREATED
    session = again.data["checkout"]
    assert set(session) == {"id", "url", "restriction", "appearance", "expires_at", "created_at"}
    assert session["url"].startswith("http")
    assert session["id"] in session["url"]
    assert set(session["restriction"]) == {"country", "phone"}
    assert set(session["restriction"]["country"]) == COUNTRY
    assert set(session["appearance"]) == APPEARANCE
    assert set(session["appearance"]["color"]) == {"primary", "contrast"}
    assert all(set(part) == {"hex", "rgb"} for part in session["appearance"]["color"].values())


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


@pytest.mark.fact(
    "form.refund-availability", "response.refunds.availability", "endpoint.refunds.availability"
)
def test_refund_availability_has_exactly_its_fields(api: Api) -> None:
    got = api.get(f"/payment/intents/{api.intent().data['id']}/refunds/availability")
    assert got.status == 200
    assert set(got.data) == {
        "is_refundable",
        "refundable_amount",
        "refunded_amount",
        "pending_amount",
        "has_pending_refund",
        "available_types",
        "execution_method",
        "unavailable_reason",
    }


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
def test_a_codes_form_is_the_services_own_affair(api: Api, code: str, segment: str) -> None:
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
def test_a_requery_tells_the_statuses_before_and_after(api: Api) -> None:
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


def test_a_seed_fixes_every_identifier() -> None:
    first, second, other = (Sandbox(seed=seed) for seed in (1, 1, 2))
    assert first.api_key == second.api_key != other.api_key
