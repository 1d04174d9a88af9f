"""Rows of a ledger for tests of pure rules: made from payouts as an import makes them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import attrs

from payments_async import Instrument, PayoutRequest
from payments_async.bulk._loading.new_rows import RowIdentifiers as RowIdentifiers
from payments_async.bulk._protocol.records import Binding, LedgerRow
from payments_async.bulk.sources import Row

BINDING: Final = Binding("june", "sandbox", "http://localhost/v1", "key", "input", "{}")


def ledger_row(*, reference: str | None = None, **changes: Any) -> LedgerRow:
    fields: dict[str, Any] = {
        "amount": Decimal("10.10"),
        "currency": "XCD",
        "method": "mtn_bj",
        "instrument": Instrument.phone("+2290190112233", "BJ"),
    }
    request = PayoutRequest(**{**fields, **changes})
    read = Row(number=7, line=8, row_key="seven", reference=reference, request=request)
    made = RowIdentifiers("sandbox", "june").new_row(read)
    return LedgerRow(**attrs.asdict(made, recurse=False), id=7)
