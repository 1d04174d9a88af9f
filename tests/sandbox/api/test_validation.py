"""422 for every constraint of the request tables (docs/interface.md, Endpoints)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.sandbox.raw_requests import ATTEMPT, BANK, CRYPTO, INTENT, PAYOUT, PHONE, Api

BODIES: dict[str, dict[str, Any]] = {
    "/payment/checkouts": INTENT,
    "/payment/intents": INTENT,
    "/payouts": PAYOUT,
}
PATHS = {
    "payment": ("/payment/checkouts", "/payment/intents"),
    "payouts": ("/payouts",),
    "checkouts": ("/payment/checkouts",),
    "intents": ("/payment/intents",),
}
"""The operations that a part of the facts' names stands for."""


def field(parts: str, name: str, rules: str, bad: list[object], good: list[object]) -> list[Any]:
    """One parameter set per path: values of a field that break its `rules`, and values that keep them."""
    cases = []
    for part in parts.split():
        facts = [f"request.{part}.{name}" + (rule and f".{rule}") for rule in rules.split(" ")]
        for path in PATHS[part]:
            marks = pytest.mark.fact(*facts)
            cases.append(pytest.param(path, name, bad, good, marks=marks, id=f"{path} {name}"))
    return cases


def longest(length: int) -> tuple[str, list[object], list[object]]:
    return f"max-{length}", ["x" * (length + 1), 5], ["x" * length, "", None]


NO_AMOUNT: list[object] = [0, 0.99, -1, "50", True, [], {}, None, 10**25]
NO_LISTED_CURRENCY: list[object] = ["xof", "XO", "XOFF", "QQQ", 5, None, ""]
NO_DESCRIPTOR: list[object] = ["x" * 23, "A*B", "A_B", "50€", 5]
PAST: list[object] = ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "2025-12-31T23:59:59"]
NO_PAST: list[object] = [
    "2026-01-01T00:00:01Z",
    "2026-01-01T01:00:00+00:30",
    "2025-12-31",
    "yesterday at noon",
    5,
]
PAIRS: list[object] = [{str(n): n for n in range(10)}, {}]
NO_PAIRS: list[object] = [{str(n): n for n in range(11)}, [], "x"]
COUNTRY = {"country_code": "BJ"}
LOCKED = {"phone": {"number": "+229", "country": "BJ"}}
TABLE = [
    *field("payment payouts", "amount", "number min-1", NO_AMOUNT, [1, 1.0, 1.01, 10**24]),
    *field("payment", "currency", "iso-4217", NO_LISTED_CURRENCY, ["XOF", "USD"]),
    *field("payouts", "currency", "3-characters", ["XO", "XOFF", 5, None], ["XOF", "zzz"]),
    *field("payouts", "method", "", ["", " ", 5, None], ["mtn_bj"]),
    *field("payment payouts", "description", *longest(500)),
    *field("payment", "return_url", *longest(2048)),
    *field("payment payouts", "webhook_url", *longest(2048)),
    *field(
        "payment", "statement_descriptor", "max-22 charset", NO_DESCRIPTOR, ["x" * 22, "ACME Inc., no-7", ""]
    ),
    *field("payment", "receipt_email", *longest(255)),
    *field("payment", "entity_id", *longest(191)),
    *field("payouts", "reference", *longest(191)),
    *field("payment", "entity_created_at", "timestamp not-future", NO_PAST, PAST),
    *field("payment payouts", "metadata", "max-10", NO_PAIRS, PAIRS),
    *field("payment payouts", "customer", "", ["Ada", []], [{}, {"unknown": 1}]),
    *field("checkouts", "expires_in_minutes", "integer 30-to-1440", [29, 1441, "60", 60.5, True], [30, 1440]),
    *field("checkouts", "restriction", "exclusive", [COUNTRY | LOCKED, "BJ"], [COUNTRY, LOCKED, {}]),
    *field("intents", "attempt", "", ["mtn_bj", []], [ATTEMPT]),
]


@pytest.mark.fact("error.422", "request.checkouts.shared-fields", "request.intents.shared-fields")
@pytest.mark.parametrize(("path", "field", "bad", "good"), TABLE)
def test_a_field_is_held_to_its_constraint(
    api: Api, path: str, field: str, bad: list[object], good: list[object]
) -> None:
    for value in bad:
        got = api.post(path, {**BODIES[path], field: value})
        assert (got.status, list(got.json["errors"])) == (422, [field]), value
        assert all(isinstance(text, str) for text in got.json["errors"][field])
    for value in good:
        assert api.post(path, {**BODIES[path], field: value}).status == 201, value


FULL_CUSTOMER = {
    "email": "ada@example.com",
    "first_name": "Ada",
    "last_name": "Adeyemi",
    "address": "1 Rue",
    "city": "Cotonou",
    "state": "Littoral",
    "zip": "229",
    "country": "BJ",
}
FULL_INSTRUMENT = {**PHONE, **BANK, **CRYPTO, "swift_bic": "ABCDBJBJ", "memo_tag": "7", "type": "phone"}
FULL_APPEARANCE = {
    "color": "#0a0B0c",
    "display_platform_badge": True,
    "brand": "Ada",
    "icon_url": "https://a.test/i",
}


@pytest.mark.fact(*(f"request.customer.{name}" for name in FULL_CUSTOMER))
@pytest.mark.fact(*(f"request.payouts.instrument.{name}" for name in FULL_INSTRUMENT if name != "type"))
@pytest.mark.fact(*(f"request.checkouts.appearance.{name}" for name in FULL_APPEARANCE))
def test_every_nested_field_may_be_given(api: Api) -> None:
    assert api.payout(customer=FULL_CUSTOMER, instrument=FULL_INSTRUMENT).status == 201
    phone = {"number": "+22990000001", "country": "BJ"}
    attempt = {**ATTEMPT, "phone": phone, "currency": "XOF"}
    assert api.intent(customer=FULL_CUSTOMER, attempt=attempt).status == 201
    assert api.checkout(appearance=FULL_APPEARANCE, restriction={"phone": phone}).status == 201


def nested(fact: str, path: str, outer: str, base: dict[str, Any], inner: str, bad: object) -> Any:
    return pytest.param(
        path, outer, base, inner, bad, marks=pytest.mark.fact(*fact.split()), id=f"{outer}.{inner}"
    )


CUSTOMER_TEXTS = ("email", "first_name", "last_name", "address", "city", "state", "zip")
NESTED = [
    *(nested(f"request.customer.{name}", "/payouts", "customer", {}, name, 5) for name in CUSTOMER_TEXTS),
    nested("request.customer.country", "/payment/intents", "customer", {}, "country", "BEN"),
    *(
        nested(f"request.payouts.instrument.{name}", "/payouts", "instrument", base, name, 5)
        for base, names in (
            (PHONE, ["phone_number"]),
            (BANK, ["account_name", "account_number", "bank_code", "swift_bic"]),
            (CRYPTO, ["address", "network", "memo_tag"]),
        )
        for name in names
    ),
    nested("request.payouts.instrument.country", "/payouts", "instrument", PHONE, "country", "B1"),
    nested("request.payouts.instrument.required-by-type", "/payouts", "instrument", PHONE, "type", "cheque"),
    *(
        nested(f"request.checkouts.restriction.{fact}", "/payment/checkouts", "restriction", {}, name, bad)
        for fact, name, bad in (("country", "country_code", "BEN"), ("phone", "phone", "+229"))
    ),
    *(
        nested(f"request.checkouts.appearance.{name}", "/payment/checkouts", "appearance", {}, name, bad)
        for name, bad in (("color", "red"), ("display_platform_badge", "yes"), ("brand", 5), ("icon_url", 5))
    ),
    nested("request.intents.attempt", "/payment/intents", "attempt", ATTEMPT, "method_code", ""),
    nested("request.intents.attempt", "/payment/intents", "attempt", ATTEMPT, "currency", "EURO"),
]


@pytest.mark.parametrize(("path", "outer", "base", "inner", "bad"), NESTED)
def test_a_nested_field_is_reported_under_its_dotted_name(
    api: Api, path: str, outer: str, base: dict[str, Any], inner: str, bad: object
) -> None:
    got = api.post(path, {**BODIES[path], outer: {**base, inner: bad}})
    assert (got.status, list(got.json["errors"])) == (422, [f"{outer}.{inner}"])
    assert api.post(path, {**BODIES[path], outer: base}).status == 201


def test_a_phone_without_a_number_is_reported_three_levels_deep(api: Api) -> None:
    got = api.intent(attempt={**ATTEMPT, "phone": {"country": "Benin"}})
    assert set(got.json["errors"]) == {"attempt.phone.number", "attempt.phone.country"}


@pytest.mark.fact("request.payouts.instrument.required-by-type")
@pytest.mark.parametrize("instrument", [PHONE, BANK, CRYPTO], ids=lambda instrument: instrument["type"])
def test_each_type_of_instrument_requires_its_own_fields(api: Api, instrument: dict[str, Any]) -> None:
    bare = api.payout(instrument={"type": instrument["type"]})
    assert set(bare.json["errors"]) == {f"instrument.{name}" for name in instrument if name != "type"}
    untyped = {name: value for name, value in instrument.items() if name != "type"}
    assert api.payout(instrument=untyped).data["instrument"]["type"] == instrument["type"]


@pytest.mark.parametrize("instrument", [{}, {"country": "BJ"}, None, "phone"])
def test_an_instrument_that_leads_nowhere_is_refused(api: Api, instrument: object) -> None:
    assert list(api.payout(instrument=instrument).json["errors"]) == ["instrument"]


@pytest.mark.fact("error.422.fixed-message", "error.422")
def test_all_breaches_come_together_under_one_fixed_message(api: Api) -> None:
    got = api.payout(
        amount=0, currency="XO", description="x" * 501, customer={"email": 1}, instrument={"type": 4}
    )
    assert got.status == 422
    assert set(got.json["errors"]) == {
        "amount",
        "currency",
        "description",
        "customer.email",
        "instrument.type",
    }
    assert got.json["message"] == api.checkout(amount="x").json["message"]


def test_one_field_can_break_two_rules_at_once(api: Api) -> None:
    got = api.intent(statement_descriptor="*" * 23)
    assert len(got.json["errors"]["statement_descriptor"]) == 2


@pytest.mark.fact(
    "request.payment.gateway_options.keyed-by-gateway",
    "request.payment.gateway_options.declared-only",
    "request.payment.gateway_options.unknown-code",
    "request.payment.gateway_options.unsupported-option",
    "request.payouts.gateway_options",
)
@pytest.mark.parametrize(
    ("options", "errors"),
    [
        ({"sandbox_card": {"three_d_secure": True}, "sandbox_mobile": {"ussd_menu": 3}}, []),
        ({}, []),
        ({"nobody": {}}, ["gateway_options.nobody"]),
        ({"sandbox_card": {"colour": 1}}, ["gateway_options.sandbox_card.colour"]),
        ({"sandbox_card": {"three_d_secure": "no"}}, ["gateway_options.sandbox_card.three_d_secure"]),
        ({"sandbox_card": []}, ["gateway_options.sandbox_card"]),
        ([], ["gateway_options"]),
    ],
)
def test_gateway_options_are_held_to_what_each_gateway_declares(
    api: Api, options: object, errors: list[str]
) -> None:
    for path, body in BODIES.items():
        got = api.post(path, {**body, "gateway_options": options})
        assert (got.status, list(got.json.get("errors", []))) == (422 if errors else 201, errors)


@pytest.mark.parametrize("path", BODIES)
def test_fields_that_no_table_names_are_let_through(api: Api, path: str) -> None:
    assert api.post(path, {**BODIES[path], "x_new": 1}).status == 201


def test_a_whole_number_may_be_written_with_a_fraction_of_zero(api: Api) -> None:
    made = api.post(
        "/payment/checkouts", b'{"amount": 1, "currency": "EUR", "expires_in_minutes": 3.00E1}'
    ).data["checkout"]
    assert made["expires_at"] > made["created_at"]
    start, end = (datetime.fromisoformat(made[name]) for name in ("created_at", "expires_at"))
    assert end - start == timedelta(minutes=30)
    for wrong in (b"30.5", b"1E400", b"true", b'"30"'):
        body = b'{"amount": 1, "currency": "EUR", "expires_in_minutes": ' + wrong + b"}"
        assert set(api.post("/payment/checkouts", body).json["errors"]) == {"expires_in_minutes"}
