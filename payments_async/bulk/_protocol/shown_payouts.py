"""A payout of the list as text, and a row's own as the list would show it: what decides about it. Pure."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from ...models import Amount, Country, Method, Payout, PayoutInstrument
from ...models.statuses import PayoutEnd
from .identifiers import PROOF_KEY
from .records import LedgerRow

_TIMES: Final = ("created_at", "completed_at", "failed_at")
_ACCOUNT: Final = ("type", "phone_number", "account_number", "bank_code", "address", "network", "memo_tag")


def shown_text(payout: Payout) -> str:
    """Write a payout that the list shows: all that decides about it."""
    amount = payout.amount or Amount()
    facts = {
        "id": payout.id,
        "reference": payout.reference,
        "status": payout.status,
        "amount": None if amount.value is None else str(amount.value)[:80],
        "currency": amount.currency,
        "method": None if payout.method is None else payout.method.value,
        "proof": (payout.metadata or {}).get(PROOF_KEY),
        **_instrument_facts(payout.instrument),
        **{name: at.isoformat() for name in _TIMES if isinstance(at := getattr(payout, name), datetime)},
    }
    return json.dumps({name: value for name, value in facts.items() if value is not None})


def _instrument_facts(instrument: PayoutInstrument | None) -> dict[str, Any]:
    if instrument is None:
        return {}
    facts = {f"instrument.{name}": getattr(instrument, name) for name in _ACCOUNT}
    country = None if instrument.country is None else instrument.country.code
    return {**facts, "instrument.country": country}


def read_shown(text: str) -> Payout:
    """Read the payout that `shown_text` wrote."""
    facts = json.loads(text)
    amount = None
    if "amount" in facts or "currency" in facts:
        value = Decimal(facts["amount"]) if "amount" in facts else None
        amount = Amount(value=value, currency=facts.get("currency"))
    times: Any = {name: datetime.fromisoformat(facts[name]) for name in _TIMES if name in facts}
    return Payout(
        facts["id"],
        reference=facts.get("reference"),
        status=facts.get("status"),
        amount=amount,
        method=Method(value=facts["method"]) if "method" in facts else None,
        instrument=_instrument(
            {
                name.removeprefix("instrument."): facts[name]
                for name in facts
                if name.startswith("instrument.")
            }
        ),
        metadata={PROOF_KEY: facts["proof"]} if "proof" in facts else {},
        **times,
    )


def _instrument(facts: dict[str, Any]) -> PayoutInstrument | None:
    if not facts:
        return None
    known = {name: facts[name] for name in _ACCOUNT if name in facts}
    country = Country(code=facts["country"]) if "country" in facts else None
    return PayoutInstrument(**known, country=country)


def own_payout(row: LedgerRow) -> Payout:
    """Make a row's own payout as the ledger knows it: as it was asked for, with the last word about it."""
    asked: Any = json.loads(row.body)
    at = datetime.fromtimestamp(row.service_at, UTC) if row.service_at is not None else None
    return Payout(
        row.payout_id or "",
        reference=row.reference,
        status=row.service_status,
        amount=Amount(value=row.amount, currency=row.currency),
        method=Method(value=row.method),
        instrument=_instrument(asked.get("instrument") or {}),
        metadata={PROOF_KEY: (asked.get("metadata") or {}).get(PROOF_KEY)},
        completed_at=at if row.payout_end is PayoutEnd.ARRIVED else None,
        failed_at=at if row.payout_end is PayoutEnd.FAILED else None,
    )
