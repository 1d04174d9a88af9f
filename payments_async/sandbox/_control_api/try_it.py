"""Try it: what a first program would do, done by the sandbox itself, under its own key."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from .._common.clock import real_secret
from .._common.json import JsonObject, encode
from .._common.operations import CONSOLE, PREFIX
from .._common.values import Answer
from .._controls import SandboxControls
from .values import Refusal

_PHONE = "+233200000001"


def checkout(sandbox: SandboxControls) -> JsonObject:
    """Make a checkout whose payer is asked on the phone; `open` is the payer's page, the phone beside it."""
    wanted = {
        "amount": 50,
        "currency": "GHS",
        "description": "Two tickets",
        "customer": {"email": "ada@example.test"},
        "return_url": f"{sandbox.origin}{CONSOLE}",
    }
    made = _send(sandbox, "/payment/checkouts", wanted, {})
    if made.status >= 300 or made.fault is not None:
        raise Refusal(409, "The sandbox did not answer as the service would: see its faults, and the log.")
    session = msgspec.json.decode(made.body)["data"]["checkout"]["id"]
    sandbox.pay(session, phone=_PHONE, country="GH", outcome="action:approve_on_phone")
    return {"open": f"/checkout/{session}/payment"}


def payout(sandbox: SandboxControls) -> JsonObject:
    """Make a payout whose answer is lost, and repeat it under its key; `open` is a page with its timeline."""
    reference = f"try-{real_secret()[:8]}"
    wanted = {
        "amount": 25,
        "currency": "GHS",
        "method": "mobile_money",
        "instrument": {"type": "phone", "phone_number": _PHONE, "country": "GH"},
        "reference": reference,
    }
    headers = {"X-Idempotency-Key": reference, "X-Sandbox-Scenario": "lost_response"}
    for _ in range(2):  # the scenario is that of the first request alone
        _send(sandbox, "/payouts", wanted, headers)
    return {"open": f"{CONSOLE}?try={reference}"}


def _send(sandbox: SandboxControls, path: str, body: JsonObject, headers: Mapping[str, str]) -> Answer:
    given = {"Authorization": f"Bearer {sandbox.api_key}", "Content-Type": "application/json", **headers}
    return sandbox.handle("POST", PREFIX + path, given, encode(body))
