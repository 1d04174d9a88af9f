"""What is on the wire in every benchmark: a payout with every field. Standard library only."""

from __future__ import annotations

import json
from typing import Any

KEY = "sk_sandbox_benchmark"
HEAD = {"Authorization": f"Bearer {KEY}"}

REFERENCE = "riders-2026-W47-0042"


def body() -> dict[str, Any]:
    """A creation as somebody writes it by hand, made anew for each call."""
    return {
        "amount": 250.5,
        "currency": "GHS",
        "method": "mtn_momo_gh",
        "instrument": {
            "type": "phone",
            "phone_number": "+233241234567",
            "account_name": "Ama Mensah",
            "country": "GH",
        },
        "reference": REFERENCE,
        "description": "Weekly rider settlement, week 47",
        "webhook_url": "https://merchant.test/hooks/payouts",
        "metadata": {"batch": "2026-W47", "depot": "accra-central"},
    }


BODY = body()
"""The same, made once."""


def call_body() -> dict[str, Any]:
    """The creation of `call`, the usual program's: a customer, and no reference."""
    return {
        "amount": 250.5,
        "currency": "GHS",
        "method": "mtn_momo_gh",
        "instrument": {"type": "phone", "phone_number": "+233241234567", "country": "GH"},
        "customer": {"first_name": "Ama", "last_name": "Mensah", "email": "ama@example.test"},
        "metadata": {"batch": "2026-W47", "depot": "accra-central"},
    }


HEADERS = (
    "Date: Fri, 20 Nov 2026 10:00:00 GMT",
    "Server: nginx",
    "Connection: keep-alive",
    "Cache-Control: no-cache, private",
    "X-RateLimit-Limit: 60000",
    "X-RateLimit-Remaining: 59999",
    "X-Request-Id: 5f0c3f0e-6f5b-4a35-9d0e-2f7c1d9e4b8a",
)
"""Headers of an answer besides its type and length: nine together, as many as a service sends."""

REFUSAL = json.dumps(
    {
        "message": "The given data was invalid.",
        "errors": {"instrument.phone_number": ["The phone number is not valid for this method."]},
    }
).encode()
"""The body of a 422."""


def _amount(value: float) -> dict[str, Any]:
    return {"value": value, "formatted": f"GHS {value:.2f}", "short": f"GHS {value:.0f}", "currency": "GHS"}


PAYOUT_ID = "po_2f7c1d9e4b8a4c6f9d3e"

_PAYOUT: dict[str, Any] = {
    "id": PAYOUT_ID,
    "amount": _amount(250.5),
    "settlement_amount": _amount(250.5),
    "exchange_rate": {
        "value": "1.00000000",
        "from_currency": "GHS",
        "to_currency": "GHS",
        "expression": "1 GHS = 1.00000000 GHS",
    },
    "method": {
        "value": "mtn_momo_gh",
        "label": "MTN Mobile Money",
        "description": "Payouts to MTN wallets",
        "icon_url": "https://cdn.service.test/methods/mtn_momo_gh.svg",
        "category": "mobile_money",
        "requires_phone": True,
    },
    "status": "pending",
    "reference": REFERENCE,
    "description": BODY["description"],
    "webhook_url": BODY["webhook_url"],
    "customer": {
        "id": "cus_1",
        "first_name": "Ama",
        "last_name": "Mensah",
        "email": "ama@example.test",
        "avatar_url": "https://cdn.service.test/avatars/1.png",
    },
    "instrument": {
        "id": "ins_1",
        "type": "phone",
        "phone_number": "+233241234567",
        "account_name": "Ama Mensah",
        "account_number": None,
        "bank_code": None,
        "swift_bic": None,
        "country": {"code": "GH", "name": "Ghana", "flag": "GH"},
        "address": None,
        "network": None,
        "memo_tag": None,
    },
    "gateway": {"transaction": {"id": "g1", "reference": "g2", "external_id": "g3", "status": "pending"}},
    "fee_amount": _amount(1.25),
    "failure": None,
    "metadata": BODY["metadata"],
    "initiated_at": "2026-11-20T10:00:00Z",
    "completed_at": None,
    "failed_at": None,
    "created_at": "2026-11-20T10:00:00Z",
}

PAYOUT_ANSWER = json.dumps({"message": "Payout created.", "data": _PAYOUT}).encode()
_LATER = {**{name: value for name, value in _PAYOUT.items() if name != "description"}, "carrier": "MTN"}
LATER_ANSWER = json.dumps({"message": "Payout created.", "data": _LATER}).encode()
"""With a field that the SDK does not know, and without one that it knows."""
_BARE = {**_PAYOUT, "method": _PAYOUT["method"]["value"], "metadata": []}  # type: ignore[index] # a mapping
_BARE["instrument"] = {**_PAYOUT["instrument"], "country": "GH"}  # type: ignore[dict-item] # a mapping
BARE_ANSWER = json.dumps({"message": "Payout created.", "data": _BARE}).encode()
"""With codes where the interface shows objects, and a list for pairs."""
_PAGINATION = {
    "count": 100,
    "path": "https://api.service.test/v1/payouts",
    "per_page": 100,
    "next_cursor": "eyJpZCI6MTAwfQ",
    "next_page_url": "https://api.service.test/v1/payouts?cursor=eyJpZCI6MTAwfQ",
    "prev_cursor": None,
    "prev_page_url": None,
    "has_more_pages": True,
    "has_pages": True,
}
CURSOR = b"eyJpZCI6MTAwfQ"
PAGE_ANSWER = json.dumps({"data": [_PAYOUT] * 100, "pagination": _PAGINATION}).encode()


def _completion(size: int) -> bytes:
    """A chat completion of so many bytes: what openai's client is made to read."""
    message = {"role": "assistant", "content": "", "refusal": None, "annotations": []}
    tokens = {"prompt_tokens": 19, "completion_tokens": 10, "total_tokens": 29}
    completion = {
        "id": "chatcmpl_1",
        "object": "chat.completion",
        "created": 1_795_000_000,
        "model": "model-1",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": tokens,
        "service_tier": "default",
    }
    message["content"] = "a" * (size - len(json.dumps(completion)))
    return json.dumps(completion).encode()


COMPLETION_ANSWER = _completion(len(PAYOUT_ANSWER))
"""As long as a payout's answer, and cheaper to decode: most of it is one text."""
