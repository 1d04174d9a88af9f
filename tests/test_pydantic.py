"""Requests and records in pydantic: models, adapters, their JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

import attrs
import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from payments_async import (
    AppearanceInput,
    CheckoutRequest,
    CheckoutRestriction,
    Customer,
    CustomerInput,
    ExchangeRate,
    Instrument,
    InvalidRequest,
    NextAction,
    Page,
    PaymentAttempt,
    PaymentIntent,
    PaymentIntentRequest,
    Payout,
    PayoutRequest,
    PhoneInput,
)
from payments_async import models as records
from payments_async.fastapi import unmasked
from payments_async.models.lists import Unread
from payments_async.params import PaymentFields
from payments_sync import Payments

SECRET = "+9876504321098"
PAYOUT: dict[str, Any] = {
    "amount": 50,
    "currency": "XOF",
    "method": "mtn_bj",
    "instrument": {"type": "phone", "phone_number": SECRET, "country": "BJ"},
}
PAYMENT: dict[str, Any] = {"amount": "10.10", "currency": "XOF"}
FULL = {
    **PAYMENT,
    "entity_created_at": "2026-01-01T10:00:00Z",
    "expires_in_minutes": 30,
    "restriction": {"phone": {"number": SECRET, "country": "BJ"}},
    "appearance": {"color": "#0a7d4f", "display_platform_badge": True},
    "gateway_options": {"a": {"b": [1, 2.5]}},
}


def faults(cls: Any, value: Any) -> dict[tuple[Any, ...], str]:
    """What pydantic says of a JSON value, by place. No value is shown."""
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(cls).validate_json(json.dumps(value))
    assert SECRET not in str(caught.value)
    assert {fault["input"] for fault in caught.value.errors()} == {"***"}
    return {fault["loc"]: fault["msg"] for fault in caught.value.errors()}


def test_a_body_becomes_a_request_with_its_objects() -> None:
    request = TypeAdapter(CheckoutRequest).validate_json(json.dumps(FULL))
    assert request == CheckoutRequest(
        amount=Decimal("10.10"),
        currency="XOF",
        entity_created_at=datetime(2026, 1, 1, 10, tzinfo=UTC),
        expires_in_minutes=30,
        restriction=CheckoutRestriction(phone=PhoneInput(SECRET, "BJ")),
        appearance=AppearanceInput("#0a7d4f", True),
        gateway_options={"a": {"b": [1, 2.5]}},
    )


AMOUNTS = ("1e3", "+50", "-50", " 50", "50\n", "1_000", "1,000", ".5", "5.", "٥٠", "NaN", "", SECRET)
BOTH = {"country_code": "BJ", "phone": {"number": SECRET}}
WHOLE = {PayoutRequest: PAYOUT, CheckoutRequest: PAYMENT, PaymentIntentRequest: PAYMENT}


@pytest.mark.parametrize(
    ("cls", "changed", "where", "told"),
    [
        (PayoutRequest, {"amount": None}, "amount", "is required"),
        (PayoutRequest, {"amount": True}, "amount", "must be a Decimal, an int or decimal text"),
        (PayoutRequest, {"amount": "0.5"}, "amount", "must be at least 1"),
        (PayoutRequest, {"amount": 10.0}, "amount", "is a float, which is not exact"),
        *((PayoutRequest, {"amount": text}, "amount", "must be a plain decimal number") for text in AMOUNTS),
        (PayoutRequest, {"instrument": [SECRET]}, "instrument", "must be Instrument or a mapping"),
        (PayoutRequest, {"metadata": dict.fromkeys("abcdefghijk", 1)}, "metadata", "has 11 pairs"),
        (PayoutRequest, {"reference": " r"}, "reference", "begins or ends with a blank"),
        (PayoutRequest, {"refrence": 1}, "refrence", "; did you mean 'reference'?"),
        (PayoutRequest, {"zzz\x1b[0m": 1}, "***", "is not a field of PayoutRequest"),
        (PayoutRequest, {SECRET: 1}, "***", "is not a field of PayoutRequest"),
        (PayoutRequest, {"+233200000001": 1}, "***", "is not a field of PayoutRequest"),
        (PayoutRequest, {"sk_live_abcdefgh": 1}, "***", "is not a field of PayoutRequest"),
        (PayoutRequest, {"instrument": {"Ama Mensah": 1}}, "instrument.***", "is not a field of Instrument"),
        (CheckoutRequest, {"expires_in_minutes": 5}, "expires_in_minutes", "30 to 1440"),
        (CheckoutRequest, {"appearance": {"color": SECRET}}, "appearance.color", "a hex colour"),
        (CheckoutRequest, {"restriction": BOTH}, "restriction", "not both"),
        (CheckoutRestriction, BOTH, "", "not both"),
        (PaymentIntentRequest, {"attempt": {}}, "attempt.method_code", "is required"),
        (PaymentIntentRequest, {"attempt": {"phone": {"country": 1}}}, "attempt.phone.country", "not int"),
        (PaymentIntentRequest, {"entity_created_at": "soon"}, "entity_created_at", "must be an ISO 8601"),
        (PaymentIntentRequest, {"entity_created_at": "2026-01-01T10:00"}, "entity_created_at", "time zone"),
        (PaymentIntentRequest, {"entity_created_at": "2999-01-01T10:00Z"}, "entity_created_at", "the future"),
    ],
)
def test_a_fault_has_its_place_and_our_words(cls: Any, changed: Any, where: str, told: str) -> None:
    found = faults(cls, {**WHOLE.get(cls, {}), **changed})
    assert told in found[tuple(filter(None, where.split(".")))]


@pytest.mark.parametrize(("value", "told"), [([SECRET], "list"), (None, "nothing"), (SECRET, "str")])
def test_what_is_no_object_is_no_request(value: Any, told: str) -> None:
    assert faults(PayoutRequest, value) == {(): f"must be PayoutRequest or a mapping, not {told}"}
    assert () not in faults(list[PayoutRequest], [PAYOUT, value])


def test_the_faults_are_those_of_a_call() -> None:
    wrong = {**PAYOUT, "amount": 0, "currency": "x", "description": "d" * 501, "customer": {"country": "B"}}
    with (
        Payments("sk_sandbox_x", base_url="http://127.0.0.1:9/v1") as client,
        pytest.raises(InvalidRequest) as caught,
    ):
        client.payouts.prepare(**{**wrong, "customer": CustomerInput(country="B")})
    told = {".".join(place): problem for place, problem in faults(PayoutRequest, wrong).items()}
    assert told == {name: problem for name, (problem,) in caught.value.errors.items()}


class Order(BaseModel):
    """A model of a user's."""

    number: int
    payout: PayoutRequest
    paid: Payout | None = None


def test_a_request_in_a_model_is_written_and_read_again() -> None:
    order = Order.model_validate({"number": 7, "payout": PayoutRequest(**PAYOUT)})
    read = Order.model_validate_json(order.model_dump_json())
    assert read.payout == attrs.evolve(order.payout, instrument=Instrument(**PAYOUT["instrument"]))
    assert order.model_dump()["payout"]["amount"] == Decimal(50)
    with pytest.raises(ValidationError) as caught:
        Order.model_validate({"number": 7, "payout": {**PAYOUT, "amount": None}})
    assert [fault["loc"] for fault in caught.value.errors()] == [("payout", "amount")]


@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_a_model_has_a_document(mode: Any) -> None:
    document = Order.model_json_schema(mode=mode)
    assert document["properties"]["payout"] == {"$ref": "#/$defs/PayoutRequest"}
    assert {"Amount", "Customer", "CustomerInput", "Instrument", "Payout"} <= set(document["$defs"])


def test_a_record_is_taken_as_it_is_and_made_of_nothing_else() -> None:
    payout = Payout("po_1")
    assert TypeAdapter(Payout).validate_python(payout) is payout
    assert faults(Payout, {"id": SECRET}) == {(): "must be a Payout, not dict"}


@pytest.mark.parametrize("rate", [None, Decimal("1.5"), ExchangeRate(value=Decimal("1.50000000"))])
def test_a_rate_of_either_form_is_text(rate: Any) -> None:
    written = json.loads(TypeAdapter(PaymentAttempt).dump_json(PaymentAttempt(exchange_rate=rate)))
    found = written["exchange_rate"]
    assert (found["value"] if isinstance(found, dict) else found) == (
        rate and str(getattr(rate, "value", rate))
    )


def test_masked_values_keep_the_types_of_the_document() -> None:
    customer = Customer("cus_1", email=SECRET, extra={"phone": SECRET})
    payout = TypeAdapter(Payout).dump_python(Payout("po_1", metadata={"a": SECRET}))
    assert (payout["id"], payout["metadata"]) == ("po_1", None)
    masked = TypeAdapter(Customer).dump_python(customer)
    assert (masked["id"], masked["email"], "phone" in masked) == ("cus_1", "***", False)
    shown = TypeAdapter(Annotated[Customer, unmasked]).dump_python(customer)
    assert (shown["email"], shown["phone"]) == (SECRET, SECRET)


def test_the_payer_sees_the_whole_next_action_and_nobody_else() -> None:
    pairs, texts = {"a": "b"}, ("Dial *170#",)
    asked = {"fields": (pairs,), "post_data": pairs, "content": "<p>", "client_params": pairs}
    action = NextAction(message="m", instructions=texts, url="https://x/?t=7", **asked, extra={"new": SECRET})
    payment = PaymentIntent("pi_1", metadata={"a": SECRET}, active_attempt=PaymentAttempt(next_action=action))
    written = TypeAdapter(PaymentIntent).dump_json(payment).decode()
    shown = json.loads(written)["active_attempt"]["next_action"]
    whole = json.loads(TypeAdapter(Annotated[NextAction, unmasked]).dump_json(action))
    assert {**shown, "new": SECRET} == whole
    assert whole["post_data"] == pairs
    assert SECRET not in written


PAID = Payout("po_1", customer=Customer(email=SECRET))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (list[Payout], [PAID]),
        (Payout | None, PAID),
        (Page[Payout], Page((PAID,), unread=(Unread(0, "id", raw={"phone": "hidden-too"}),))),
    ],
)
def test_unmasked_reaches_into_what_holds_records(kind: Any, value: Any) -> None:
    assert SECRET not in TypeAdapter(kind).dump_json(value).decode()
    shown = TypeAdapter(Annotated[kind, unmasked]).dump_json(value).decode()
    assert SECRET in shown
    assert "hidden-too" not in shown


# by name, as attrs makes each class twice, and the first one stays until it is collected
RECORDS = {cls.__name__: cls for cls in records.Record.__subclasses__()}


@pytest.mark.parametrize("cls", [*RECORDS.values(), Page[Payout]])
def test_every_record_has_a_schema(cls: Any) -> None:
    kinds: tuple[Any, ...] = (cls, Annotated[cls, unmasked])
    for kind in kinds:
        adapter = TypeAdapter(kind)
        assert adapter.json_schema(mode="serialization")["type"] == "object"
        assert adapter.dump_python(cls())


def test_a_class_without_rules_is_refused_when_the_schema_is_made() -> None:
    class Mine(PayoutRequest):
        """A user's own."""

    for cls in (Mine, PaymentFields):
        with pytest.raises(TypeError, match=f"{cls.__name__} has no rules: use a class of"):
            TypeAdapter(cls)
