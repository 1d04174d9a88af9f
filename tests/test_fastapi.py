"""Our requests as FastAPI bodies; the program of docs/frameworks.md."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import TypeAdapter, ValidationError

from payments_async import (
    AppearanceInput,
    CheckoutRequest,
    CheckoutRestriction,
    CustomerInput,
    InvalidRequest,
    PhoneInput,
)
from payments_async.fastapi import CheckoutBody, PaymentIntentBody, PayoutBody
from payments_async.sandbox import Sandbox
from payments_sync import Payments
from tests.docs.pages import ROOT

PHONE = "+233200000009"
BODY: dict[str, Any] = {
    "amount": "10.50",
    "currency": "GHS",
    "method": "mobile_money",
    "instrument": {"type": "phone", "phone_number": PHONE, "country": "GH"},
    "customer": {"email": "ama@example.com"},
    "reference": "refund-7",
    "metadata": {"row": 1},
}


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def shop(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[TestClient]:
    """The program of the docs, with its own client of the sandbox."""
    for name, value in {
        "PAYMENTS_API_KEY": sandbox.api_key,
        "PAYMENTS_BASE_URL": sandbox.base_url,
        "SHOP_ADDRESS": "http://127.0.0.1:9",
        "SHOP_DATABASE": str(tmp_path / "shop.db"),
        "WEBHOOK_SECRET": "for the tests alone, and more than 32 bytes",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "frameworks"))
    monkeypatch.delitem(sys.modules, "fastapi_shop", raising=False)
    with TestClient(importlib.import_module("fastapi_shop").app) as client:
        yield client


def test_the_program_pays_and_shows_the_payout_masked(shop: TestClient, sandbox: Sandbox) -> None:
    answer = shop.post("/payouts", json=BODY)
    assert answer.status_code == 201
    paid = answer.json()
    assert paid["amount"]["value"] == "10.5"
    assert paid["instrument"]["phone_number"] == "***"
    assert paid["metadata"] is None
    assert PHONE not in answer.text
    assert "ama@example.com" not in answer.text
    assert [payout.id for payout in sandbox.books.payouts()] == [paid["id"]]
    assert shop.post("/payouts", json={**BODY, "amount": 11}).status_code == 409


def test_the_program_says_when_a_payout_may_have_been_made(shop: TestClient, sandbox: Sandbox) -> None:
    sandbox.on("payouts.create").respond("lost_response", times=3)
    answer = shop.post("/payouts", json=BODY)
    assert answer.status_code == 503
    assert "refund-7" in answer.json()["detail"]
    assert [payout.reference for payout in sandbox.books.payouts()] == ["refund-7"]


def test_a_wrong_body_names_every_fault_and_sends_nothing(shop: TestClient, sandbox: Sandbox) -> None:
    wrong = {
        **BODY,
        "amount": 10.5,
        "refrence": "refund-7",
        "instrument": {"phone_numbr": PHONE, "country": "Ghana"},
        "customer": {"email": 7},
    }
    answer = shop.post("/payouts", json=wrong)
    assert answer.status_code == 422
    told = {tuple(fault["loc"]): fault["msg"] for fault in answer.json()["detail"]}
    assert told == {
        (
            "body",
            "amount",
        ): 'is a float, which is not exact: write decimal text ("10.10"), an int or a Decimal',
        ("body", "refrence"): "is not a field of PayoutRequest; did you mean 'reference'?",
        ("body", "instrument", "phone_numbr"): "is not a field of Instrument; did you mean 'phone_number'?",
        ("body", "instrument", "country"): "must be a two-letter country code, not text of 5 characters",
        ("body", "customer", "email"): "must be text, not int",
    }
    assert PHONE not in answer.text
    assert not sandbox.books.payouts()


def faults(cls: Any, value: Any) -> dict[tuple[Any, ...], str]:
    """What is said of a JSON value, by place. No value is shown."""
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(cls).validate_json(json.dumps(value))
    assert SECRET not in str(caught.value)
    assert {fault["input"] for fault in caught.value.errors()} == {"***"}
    return {fault["loc"]: fault["msg"] for fault in caught.value.errors()}


def test_a_body_becomes_a_request_with_its_objects() -> None:
    full = {
        **PAYMENT,
        "entity_created_at": "2026-01-01T10:00:00Z",
        "expires_in_minutes": 30,
        "restriction": {"phone": {"number": SECRET, "country": "BJ"}},
        "appearance": {"color": "#0a7d4f", "display_platform_badge": True},
        "gateway_options": {"a": {"b": [1, 2.5]}},
    }
    assert TypeAdapter(CheckoutBody).validate_json(json.dumps(full)) == CheckoutRequest(
        amount=Decimal("10.10"),
        currency="XOF",
        entity_created_at=datetime(2026, 1, 1, 10, tzinfo=UTC),
        expires_in_minutes=30,
        restriction=CheckoutRestriction(phone=PhoneInput(SECRET, "BJ")),
        appearance=AppearanceInput("#0a7d4f", True),
        gateway_options={"a": {"b": [1, 2.5]}},
    )


SECRET = "+9876504321098"
PAYMENT: dict[str, Any] = {"amount": "10.10", "currency": "XOF"}
AMOUNTS = ("1e3", "+50", "-50", " 50", "50\n", "1_000", "1,000", ".5", "5.", "٥٠", "NaN", "", SECRET)
BOTH = {"country_code": "BJ", "phone": {"number": SECRET}}


@pytest.mark.parametrize(
    ("cls", "changed", "where", "told"),
    [
        (PayoutBody, {"amount": None}, "amount", "is required"),
        (PayoutBody, {"amount": "0.5"}, "amount", "must be at least 1"),
        (PayoutBody, {"amount": 10.0}, "amount", "is a float, which is not exact"),
        *((PayoutBody, {"amount": text}, "amount", "must be a plain decimal number") for text in AMOUNTS),
        (PayoutBody, {"instrument": [SECRET]}, "instrument", "must be Instrument or a mapping"),
        (PayoutBody, {"metadata": dict.fromkeys("abcdefghijk", 1)}, "metadata", "has 11 pairs"),
        (PayoutBody, {"reference": " r"}, "reference", "begins or ends with a blank"),
        (PayoutBody, {"refrence": 1}, "refrence", "; did you mean 'reference'?"),
        (PayoutBody, {"zzz\x1b[0m": 1}, "***", "is not a field of PayoutRequest"),
        (PayoutBody, {SECRET: 1}, "***", "is not a field of PayoutRequest"),
        (PayoutBody, {"sk_live_abcdefgh": 1}, "***", "is not a field of PayoutRequest"),
        (PayoutBody, {"instrument": {"Ama Mensah": 1}}, "instrument.***", "is not a field of Instrument"),
        (CheckoutBody, {"expires_in_minutes": 5}, "expires_in_minutes", "30 to 1440"),
        (CheckoutBody, {"restriction": BOTH}, "restriction", "not both"),
        (PaymentIntentBody, {"attempt": {}}, "attempt.method_code", "is required"),
        (PaymentIntentBody, {"attempt": {"phone": {"country": 1}}}, "attempt.phone.country", "not int"),
        (PaymentIntentBody, {"entity_created_at": "soon"}, "entity_created_at", "must be an ISO 8601"),
    ],
)
def test_a_fault_has_its_place_and_our_words(cls: Any, changed: Any, where: str, told: str) -> None:
    found = faults(cls, {**(BODY if cls is PayoutBody else PAYMENT), **changed})
    assert told in found[tuple(where.split("."))]


@pytest.mark.parametrize(("value", "told"), [([SECRET], "list"), (None, "nothing"), (SECRET, "str")])
def test_what_is_no_object_is_no_request(value: Any, told: str) -> None:
    assert faults(PayoutBody, value) == {(): f"must be PayoutRequest or a mapping, not {told}"}


def test_the_faults_are_those_of_a_call() -> None:
    wrong = {**BODY, "amount": 0, "currency": "x", "description": "d" * 501, "customer": {"country": "B"}}
    with (
        Payments("sk_sandbox_x", base_url="http://127.0.0.1:9/v1") as client,
        pytest.raises(InvalidRequest) as caught,
    ):
        client.payouts.prepare(**{**wrong, "customer": CustomerInput(country="B")})
    told = {".".join(place): problem for place, problem in faults(PayoutBody, wrong).items()}
    assert told == {name: problem for name, (problem,) in caught.value.errors.items()}


def limit_of(schema: dict[str, Any]) -> dict[str, Any]:
    """What a document says of a field: of one that may be null, what it is otherwise."""
    return next(each for each in schema.get("anyOf", [schema]) if each.get("type") != "null")


def test_the_document_shows_limits_and_formats() -> None:
    app = FastAPI()

    @app.post("/checkouts")
    async def checkouts(body: CheckoutBody) -> None: ...

    @app.post("/payouts")
    async def pay(body: PayoutBody) -> None: ...

    paths = TestClient(app).get("/openapi.json").json()["paths"]
    payout, checkout = (
        paths[path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        for path in ("/payouts", "/checkouts")
    )
    assert (payout["title"], payout["additionalProperties"]) == ("PayoutRequest", False)
    assert payout["required"] == ["amount", "currency", "method", "instrument"]
    assert payout["properties"]["instrument"]["title"] == "Instrument"
    assert payout["properties"]["amount"]["anyOf"] == [
        {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?$"},
        {"type": "integer", "minimum": 1},
    ]
    limits: dict[str, dict[str, Any]] = {
        "currency": {"type": "string", "pattern": "^[A-Z]{3}$"},
        "description": {"type": "string", "maxLength": 500},
        "statement_descriptor": {"type": "string", "maxLength": 22, "pattern": r"^[\w\s.,-]*$"},
        "entity_created_at": {"type": "string", "format": "date-time"},
        "expires_in_minutes": {"type": "integer", "minimum": 30, "maximum": 1440},
        "metadata": {"type": "object", "additionalProperties": True, "maxProperties": 10},
    }
    assert {name: limit_of(checkout["properties"][name]) for name in limits} == limits


def test_nothing_else_loads_pydantic() -> None:
    asked = "import sys, payments_async.client, payments_async.models; print('pydantic_core' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_what_is_missing_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    monkeypatch.delitem(sys.modules, "payments_async.fastapi")
    with pytest.raises(ImportError, match="needs fastapi: pip install fastapi"):
        importlib.import_module("payments_async.fastapi")
