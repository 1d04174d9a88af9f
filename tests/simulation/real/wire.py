"""The model service's requests and payouts as HTTP bodies, and back."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

import attrs

from payments_async import Instrument, PayoutRequest
from payments_async.bulk._protocol.identifiers import PROOF_KEY, body_hash

from ..plan import Body
from ..service import EPOCH, Payment

BAD = "bad"
"""In a row's description: the service refuses it, always."""
PHONE = "+22990112233"


@attrs.frozen
class Asked(Body):
    """A row's body as its exact bytes."""

    wire: bytes = attrs.field(default=b"", repr=False)

    @property
    def content(self) -> str:
        """The hash of what it asks for, proofs aside."""
        return _content(self.wire)

    @property
    def hash(self) -> str:
        """The hash of its bytes."""
        return body_hash(self.wire)

    @property
    def fields(self) -> dict[str, Any]:
        """What it says."""
        return _read(self.wire)


@lru_cache(maxsize=4096)
def _read(wire: bytes) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(wire, parse_float=Decimal, parse_int=Decimal)
    return read


@lru_cache(maxsize=4096)
def _content(wire: bytes) -> str:
    said = {name: value for name, value in _read(wire).items() if name not in ("metadata", "reference")}
    return body_hash(json.dumps(said, default=str, sort_keys=True).encode())


def asked(wire: bytes) -> Asked:
    """The body behind these bytes."""
    fields = _read(wire)
    row, *marks = fields["description"].split()
    return Asked(row, fields["amount"], bad=BAD in marks, wire=wire)


def generation_of(reference: str) -> int:
    """The generation that a reference names."""
    return int(reference.partition("~g")[2] or 0)


def request_of(body: Body) -> PayoutRequest:
    """The payout that a row of the operator's file asks for."""
    return PayoutRequest(
        amount=body.amount,
        currency="XOF",
        method="mtn_bj",
        instrument=Instrument.phone(PHONE, "BJ"),
        description=f"{body.row} {BAD}" if body.bad else body.row,
    )


def rendered(payment: Payment, now: float) -> dict[str, Any]:
    """A payout as the service shows it."""
    over, at = payment.final <= now, _instant(payment.final)
    status = ("failed" if payment.failed else "completed") if over else "processing"
    return {
        "id": payment.id,
        "amount": {"value": payment.amount, "currency": payment.currency, "formatted": None},
        "method": {"value": "mtn_bj", "label": "MTN"},
        "status": status,
        "reference": payment.reference,
        "instrument": {"type": "phone", "phone_number": PHONE, "country": {"code": "BJ"}},
        "metadata": None if payment.proof is None else {PROOF_KEY: payment.proof},
        "completed_at": at if status == "completed" else None,
        "failed_at": at if status == "failed" else None,
        "created_at": _instant(payment.created),
    }


def encoded(said: Any) -> bytes:
    """JSON with exact amounts."""
    return json.dumps(said, default=_number).encode()


def _number(value: object) -> int | float:
    """Amounts here are so short that a float shows them exactly."""
    assert isinstance(value, Decimal)
    return int(value) if value == value.to_integral_value() else float(value)


def _instant(at: float) -> str:
    return datetime.fromtimestamp(EPOCH + at, UTC).isoformat()
