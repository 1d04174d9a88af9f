"""Our requests as FastAPI bodies, our records as its responses; the program of docs/frameworks.md."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from payments_async import Checkout, Page, PaymentIntent, Payout
from payments_async.fastapi import CheckoutBody, PaymentIntentBody, PayoutBody, unmasked
from payments_async.sandbox import Sandbox
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
    folder = ROOT / "examples" / "frameworks"
    monkeypatch.syspath_prepend(str(folder))
    spec = importlib.util.spec_from_file_location("fastapi_shop", folder / "fastapi_shop.py")
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fastapi_shop", program)
    spec.loader.exec_module(program)
    with TestClient(program.app) as client:
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


def test_the_program_passes_on_what_the_service_finds_wrong(shop: TestClient, sandbox: Sandbox) -> None:
    answer = shop.post("/payouts", json={**BODY, "instrument": {"type": "phone", "country": "GH"}})
    assert answer.status_code == 422
    assert list(answer.json()["detail"]) == ["instrument.phone_number"]
    assert not sandbox.books.payouts()


def test_the_program_says_when_a_payout_may_have_been_made(shop: TestClient, sandbox: Sandbox) -> None:
    sandbox.on("payouts.create").respond("lost_response", times=3)
    answer = shop.post("/payouts", json=BODY)
    assert answer.status_code == 503
    assert "refund-7" in answer.json()["detail"]
    assert [payout.reference for payout in sandbox.books.payouts()] == ["refund-7"]


def test_the_program_shows_a_whole_checkout(shop: TestClient) -> None:
    order = shop.post("/orders").json()
    shown = shop.get(f"/checkouts/{order['checkout']}").json()
    assert shown["checkout"]["url"] == order["pay_at"]
    assert shown["payment"]["amount"]["value"] == "25.5"


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


def api() -> FastAPI:
    """Every body, and responses of all kinds."""
    app = FastAPI()

    @app.post("/checkouts")
    async def checkouts(body: CheckoutBody) -> Checkout:
        return Checkout()

    @app.post("/intents")
    async def intents(body: PaymentIntentBody) -> PaymentIntent | None:
        return None

    @app.get("/payouts")
    async def payouts() -> Page[Payout]:
        return Page((Payout("po_1", webhook_url="https://example.com/hooks/0123456789abcdef"),))

    @app.post("/payouts")
    async def pay(body: PayoutBody) -> Annotated[Payout, unmasked]:
        return Payout("po_1", metadata=dict(body.metadata or {}), extra={"new": "a"})

    return app


def test_responses() -> None:
    client = TestClient(api())
    page = client.get("/payouts").json()
    assert page["items"][0]["id"] == "po_1"
    assert page["items"][0]["webhook_url"] == "https://example.com/hooks/***"
    assert (page["is_last"], page["unread"]) == (False, [])
    paid = client.post("/payouts", json=BODY).json()
    assert (paid["metadata"], paid["new"]) == ({"row": 1}, "a")
    assert client.post("/intents", json={"amount": 1, "currency": "GHS"}).json() is None
    assert client.post("/checkouts", json={"amount": "1", "currency": "GHS"}).json()["checkout"] is None


def told_of(schema: dict[str, Any]) -> dict[str, Any]:
    """A field of a document: of one that may be null, what it is otherwise."""
    return next(each for each in schema.get("anyOf", [schema]) if each.get("type") != "null")


def test_the_document_shows_limits_and_formats() -> None:
    document = TestClient(api()).get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    body = document["paths"]["/payouts"]["post"]["requestBody"]
    assert body["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/PayoutRequest"}
    payout, checkout = schemas["PayoutRequest"], schemas["CheckoutRequest"]["properties"]
    assert payout["required"] == ["amount", "currency", "method", "instrument"]
    assert payout["additionalProperties"] is False
    assert payout["properties"]["amount"]["anyOf"] == [
        {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?$"},
        {"type": "integer", "minimum": 1},
    ]
    assert payout["properties"]["instrument"] == {"$ref": "#/components/schemas/Instrument"}
    limits: dict[str, dict[str, Any]] = {
        "currency": {"type": "string", "pattern": "^[A-Z]{3}$"},
        "description": {"type": "string", "maxLength": 500},
        "statement_descriptor": {"type": "string", "maxLength": 22, "pattern": r"^[\w\s.,-]*$"},
        "entity_created_at": {"type": "string", "format": "date-time"},
        "expires_in_minutes": {"type": "integer", "minimum": 30, "maximum": 1440},
        "metadata": {"type": "object", "additionalProperties": True, "maxProperties": 10},
        "appearance": {"$ref": "#/components/schemas/AppearanceInput"},
    }
    assert {name: told_of(checkout[name]).items() >= limit.items() for name, limit in limits.items()} == (
        dict.fromkeys(limits, True)
    )


def test_the_document_shows_responses_and_their_unmasked_form_apart() -> None:
    document = TestClient(api()).get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    assert {"Payout", "PayoutUnmasked", "Page_Payout", "Checkout", "PaymentIntent"} <= set(schemas)
    shown = document["paths"]["/payouts"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert shown == {"$ref": "#/components/schemas/PayoutUnmasked"}
    assert told_of(schemas["Amount"]["properties"]["value"])["type"] == "string"
    assert told_of(schemas["Payout"]["properties"]["created_at"])["format"] == "date-time"


def test_nothing_else_loads_pydantic() -> None:
    asked = "import sys, payments_async.client, payments_async.models; print('pydantic_core' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_what_is_missing_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    monkeypatch.delitem(sys.modules, "payments_async.fastapi")
    with pytest.raises(ImportError, match="needs fastapi: pip install fastapi"):
        importlib.import_module("payments_async.fastapi")
