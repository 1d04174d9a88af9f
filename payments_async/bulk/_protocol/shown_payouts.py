"""A payout of the list as text, and a row's own as the list would show it: what decides about it. Pure."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, Final

from ..._codec import decode
from ..._request.comparison import ACCOUNT
from ...models import Amount, Method, Payout, PayoutInstrument
from ...models.statuses import PayoutEnd
from .identifiers import PROOF_KEY
from .records import LedgerRow

_PLAIN: Final = ("id", "reference", "status", "amount", "method", "completed_at", "failed_at", "created_at")
_plain: Final = attrgetter(*_PLAIN)
_TYPED: Final = ("type", "country", *ACCOUNT)


def shown_text(payout: Payout) -> str:
    """Write a payout that the list shows: all that decides about it."""
    proof, shown = (payout.metadata or {}).get(PROOF_KEY), payout.instrument
    account = None if shown is None else {name: getattr(shown, name) for name in _TYPED}
    return Payout(
        **dict(zip(_PLAIN, _plain(payout), strict=True)),
        instrument=None if account is None else PayoutInstrument(**account),
        metadata={} if proof is None else {PROOF_KEY: proof},
    ).to_json()


def read_shown(text: str) -> Payout:
    """Read the payout that `shown_text` wrote."""
    return decode.structure(decode.parse_answer(text.encode()), Payout)


def own_payout(row: LedgerRow) -> Payout:
    """Make a row's own payout as the ledger knows it: as it was asked for, with the last word about it."""
    asked: Any = json.loads(row.body)
    account: Any = asked.get("instrument") or {}
    at = datetime.fromtimestamp(row.service_at, UTC) if row.service_at is not None else None
    return Payout(
        row.payout_id or "",
        reference=row.reference,
        status=row.service_status,
        amount=Amount(value=row.amount, currency=row.currency),
        method=Method(value=row.method),
        instrument=PayoutInstrument(**{name: account[name] for name in ACCOUNT if name in account}),
        metadata={PROOF_KEY: (asked.get("metadata") or {}).get(PROOF_KEY)},
        completed_at=at if row.payout_end is PayoutEnd.ARRIVED else None,
        failed_at=at if row.payout_end is PayoutEnd.FAILED else None,
    )
