"""Every assumption about what the interface does not show, in one place.

The letters are those of the last section of `docs/interface.md`. A caller can override each without a
fork: open strings, mappings passed through, `extra_query`, `extra_body`, `extra_headers`, `client.request`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# A, B: query names of the two lists, by the name of our argument.
INTENT_FILTERS: Final[Mapping[str, str]] = {
    "status": "status",
    "channel": "channel",
    "customer_id": "customer_id",
    "created_on_or_after": "created_at[gte]",
    "created_on_or_before": "created_at[lte]",
    "page_size": "per_page",
    "cursor": "cursor",
}
PAYOUT_FILTERS: Final[Mapping[str, str]] = {
    "status": "status",
    "method": "method",
    "currency": "currency",
    "customer_id": "customer_id",
    "created_on_or_after": "created_at[gte]",
    "created_on_or_before": "created_at[lte]",
    "page_size": "per_page",
    "cursor": "cursor",
}

# C: `models.lists.proves_end` decides where a list ends; this is the message for a page that does not say.
NO_END: Final = "the service gave no cursor for a next page, and did not say that the list ends"

# D: page sizes accepted locally; nothing is sent unless asked for.
PAGE_SIZE: Final = range(1, 101)

# F, G, H: statuses after which a record does not change. Any other word means "not final".
FINAL_INTENT_STATUSES: Final = frozenset({"completed", "failed", "expired", "refunded", "partially_refunded"})
FINAL_ATTEMPT_STATUSES: Final = frozenset({"completed", "failed", "cancelled", "expired"})
FINAL_PAYOUT_STATUSES: Final = frozenset({"completed", "failed", "cancelled", "reversed"})

# J: method statuses under which a method is worth offering.
USABLE_METHOD_STATUSES: Final = frozenset({"available", "operational", "degraded"})

# L, the fields of each instrument type, is in the signatures of `params.Instrument`'s constructors.

# O: request fields required before anything is sent; the rest is the service's to refuse.
REQUIRED_OF_PAYMENTS: Final = frozenset({"amount", "currency"})
REQUIRED_OF_PAYOUTS: Final = frozenset({"amount", "currency", "method", "instrument"})

# Q: statuses never retried although they are 5xx.
NEVER_RETRIED: Final = frozenset({501})

# Z: of the two figures for refund availability the stricter one, requests a minute per key.
REFUND_AVAILABILITY_LIMIT: Final = 100

# Limits, Idempotency: seconds for which a key protects, and the safety margin before that (clocks differ).
KEY_LIFETIME: Final = 24 * 3600.0
KEY_TRUSTED_FOR: Final = 23 * 3600.0

# Seconds after which an abandoned request can no longer be carried out.
ABANDONED_AFTER: Final = 15 * 60.0
