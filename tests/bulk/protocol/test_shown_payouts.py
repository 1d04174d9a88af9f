"""Payouts of the list as the ledger keeps them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from payments_async.bulk._protocol.identifiers import PROOF_KEY
from payments_async.bulk._protocol.shown_payouts import read_shown, shown_text
from payments_async.models import Amount, Country, Method, Payout, PayoutInstrument


@pytest.mark.parametrize(
    "details",
    [
        {},
        {"amount": Amount(value=Decimal("10.10"))},
        {"amount": Amount(currency="XCD")},
        {"instrument": PayoutInstrument(phone_number="+2290190112233")},
        {
            "reference": "june-7",
            "status": "completed",
            "amount": Amount(value=Decimal("10.10"), currency="XCD"),
            "method": Method(value="mtn_bj"),
            "instrument": PayoutInstrument(type="mobile_money", country=Country(code="BJ")),
            "metadata": {PROOF_KEY: "1.x"},
            "completed_at": datetime(2026, 6, 1, tzinfo=UTC),
        },
    ],
)
def test_a_kept_payout_has_what_the_list_showed_and_nothing_else(details: dict[str, Any]) -> None:
    shown = Payout("po_1", **{"metadata": {}, **details})
    assert read_shown(shown_text(shown)) == shown
