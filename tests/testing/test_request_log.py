"""The lines of a failing test's requests: ids, references and amounts, and no account data."""

from __future__ import annotations

import json
from typing import Any

import pytest

from payments_async.sandbox import Sandbox, VirtualClock
from payments_async.testing import SandboxTenant

PAYOUT = {
    "amount": 10.25,
    "currency": "GHS",
    "method": "mobile_money",
    "instrument": {"type": "phone", "phone_number": "+233200000001", "country": "GH"},
}


def line_of(body: Any) -> str:
    tenant = SandboxTenant(Sandbox(clock=VirtualClock.frozen()))
    headers = {"Authorization": f"Bearer {tenant.api_key}", "Content-Type": "application/json"}
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    tenant.service.handle("POST", "/v1/payouts", headers, raw)
    return tenant.request_log().partition(" s  ")[2]


def test_a_creation_is_shown_with_its_id_reference_and_amount() -> None:
    line = line_of({**PAYOUT, "reference": "salary-17"})
    assert line == "req_00000001  201  POST /v1/payouts  reference 'salary-17'  GHS 10.25"


def test_a_reference_that_holds_account_data_is_masked_and_a_long_one_cut() -> None:
    assert "233200000001" not in line_of({**PAYOUT, "reference": "pay +233200000001"})
    assert "'" + 40 * "x" + "'" in line_of({**PAYOUT, "reference": 90 * "x"})


@pytest.mark.parametrize(
    ("money", "line"),
    [
        ({"amount": 5}, "GHS 5"),
        ({"amount": "0244123456"}, ""),
        ({"amount": True}, ""),
        ({"currency": "Ada Agbo"}, "10.25"),
        ({"currency": "ghs"}, "10.25"),
        ({"currency": None}, "10.25"),
        ({"amount": int("9" * 18)}, f"GHS {10**18 - 1:,}"),
    ],
)
def test_only_a_number_is_shown_as_an_amount_and_only_a_code_as_a_currency(
    money: dict[str, Any], line: str
) -> None:
    assert line_of({**PAYOUT, **money}).partition("/v1/payouts")[2].strip() == line


@pytest.mark.parametrize("body", [b"no json", b"[]", {"amount": [1], "reference": 5}, {"amount": None}])
def test_what_cannot_be_shown_is_left_out(body: Any) -> None:
    assert line_of(body).endswith("  POST /v1/payouts")
