"""Raw requests to a sandbox in this process, and the bodies the tests start from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import attrs

from payments_async.sandbox import Answer, Sandbox
from payments_async.sandbox._checkout.method_catalogue import METHODS as METHODS
from payments_async.sandbox._common.scenario_words import ACTION_TYPES as ACTION_TYPES
from payments_async.sandbox._control_api.routes import ROUTES as ROUTES
from payments_async.sandbox._journal import Journal as Journal
from payments_async.sandbox._journal import LoggedExchange as LoggedExchange
from payments_async.sandbox._journal import WebhookTried as WebhookTried

PHONE: dict[str, Any] = {"type": "phone", "phone_number": "+22990000000", "country": "BJ"}
BANK: dict[str, Any] = {
    "type": "bank_account",
    "account_name": "Ada Adeyemi",
    "account_number": "0011223344",
    "bank_code": "058",
    "country": "NG",
}
CRYPTO: dict[str, Any] = {"type": "crypto_address", "address": "addr1", "network": "testnet"}
PAYOUT: dict[str, Any] = {"amount": 50, "currency": "XOF", "method": "mtn_bj", "instrument": PHONE}
INTENT: dict[str, Any] = {"amount": 50, "currency": "XOF"}
ATTEMPT: dict[str, Any] = {"method_code": "mtn_bj", "country": "BJ"}
BY_CARD: dict[str, Any] = {**ATTEMPT, "method_code": "visa_card"}
"""An attempt that asks nobody."""
TRIED: dict[str, Any] = {**INTENT, "attempt": ATTEMPT}


@attrs.frozen
class Got:
    """An answer with its JSON read, fractions as Decimal."""

    answer: Answer

    @property
    def status(self) -> int:
        return self.answer.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self.answer.headers

    @property
    def json(self) -> Any:
        return json.loads(self.answer.body, parse_float=Decimal)

    @property
    def data(self) -> Any:
        return self.json["data"]

    @property
    def replayed(self) -> bool:
        return self.headers.get("X-Idempotent-Replayed") == "true"


@attrs.frozen
class Api:
    """Sends requests with one key."""

    sandbox: Sandbox
    key: str

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        idempotency_key: str | None = None,
        scenario: str | None = None,
    ) -> Got:
        headers = {"Authorization": f"Bearer {self.key}"}
        if idempotency_key is not None:
            headers["X-Idempotency-Key"] = idempotency_key
        if scenario is not None:
            headers["X-Sandbox-Scenario"] = scenario
        raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        return Got(self.sandbox.handle(method, f"/v1{path}", headers, raw))

    def get(self, path: str, **options: Any) -> Got:
        return self.send("GET", path, **options)

    def post(self, path: str, body: object = None, **options: Any) -> Got:
        return self.send("POST", path, body, **options)

    def create(self, path: str, base: Mapping[str, Any], fields: dict[str, Any]) -> Got:
        options = {name: fields.pop(name, None) for name in ("idempotency_key", "scenario")}
        return self.post(path, {**base, **fields}, **options)

    def payout(self, **fields: Any) -> Got:
        return self.create("/payouts", PAYOUT, fields)

    def intent(self, **fields: Any) -> Got:
        return self.create("/payment/intents", TRIED, fields)

    def checkout(self, **fields: Any) -> Got:
        return self.create("/payment/checkouts", INTENT, fields)

    def sync(self, payout_id: str) -> Any:
        return self.get(f"/payouts/{payout_id}/sync").data

    def listed_intent(self) -> Any:
        """The newest intent in its list form."""
        return self.get("/payment/intents?per_page=1").data[0]
