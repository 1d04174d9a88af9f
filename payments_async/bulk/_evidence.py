"""A row's payout as it was asked for, and a payout as the list shows it, to be compared. Pure."""

from __future__ import annotations

from typing import Any, Final

from .._codec import decode
from ..models import Payout
from .protocol.identifiers import PROOF_KEY, Proof
from .protocol.matching import Detail, Expected, Found, Witness, judge
from .protocol.records import LedgerRow

_TEXTS: Final = ("type", "phone_number", "account_number", "bank_code", "address", "network", "memo_tag")


def testify(row: LedgerRow, payout: Payout) -> Witness:
    """Whether a payout that has the row's reference is the row's."""
    return judge(expected(row), shown(payout))


def expected(row: LedgerRow) -> Expected:
    """What the row's recorded bytes ask for."""
    body: dict[str, Any] = decode.parse(row.body)
    instrument: dict[str, Any] = body.get("instrument") or {}
    details: dict[str, Detail] = {"amount": row.amount, "currency": row.currency, "method": row.method}
    details |= {f"instrument.{name}": instrument.get(name) for name in (*_TEXTS, "country")}
    return Expected(details, Proof.read((body.get("metadata") or {}).get(PROOF_KEY)))


def shown(payout: Payout) -> Found:
    """What the service shows."""
    details: dict[str, Detail] = {"method": payout.method.value if payout.method else None}
    if payout.amount is not None:
        details |= {"amount": payout.amount.value, "currency": payout.amount.currency}
    instrument = payout.instrument
    if instrument is not None:
        details |= {f"instrument.{name}": getattr(instrument, name) for name in _TEXTS}
        details["instrument.country"] = instrument.country.code if instrument.country else None
    return Found(details, payout.metadata)
