"""Gap profiles: the sandbox's behaviour where the interface is silent, as switches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs


@attrs.frozen
class Profile:
    """One way to fill the gaps, which are named by letters. `attrs.evolve` makes a variant."""

    name: str
    create_status: int = 201
    """Gap E: the status of a successful creation."""
    page_size: int = 10
    """Gap D: records on a page when `per_page` is not given."""
    max_page_size: int = 100
    """Gap D: the largest `per_page`."""
    oversized_page: Literal["refuse", "clamp"] = "refuse"
    """Gap D: a larger `per_page` is a 422, or is taken for the largest."""
    unknown_query: Literal["ignore", "refuse"] = "ignore"
    """Gaps A and B: an unknown query name of a list is ignored, or is a 422."""
    last_cursor: Literal["null", "empty", "kept"] = "null"
    """Gap C: `next_cursor` of the last page; of a `kept` one, only `has_more_pages` says that it ends."""
    reused_key: Literal["conflict", "replay", "invalid"] = "conflict"
    """Gap R, one idempotency key under two bodies: 409, the first answer again, or 422."""
    keeps_refusals: bool = True
    """Gap S: 404, 409 and 422 answers are replayed as well as successful ones."""
    in_flight: Literal["replay", "conflict"] = "replay"
    """A repeat while the first request is still being answered (`slow`): its answer, or a 409."""
    bad_key_status: int = 428
    """Gap Q: the status for an idempotency key that is too short or too long."""
    required: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """Gaps L, M and O: further required fields of an operation; a dotted one where its parent is given."""
    bad_addresses: Literal["take", "refuse"] = "take"
    """Gap O: a `return_url` or `webhook_url` that is no http or https address is kept, or is a 422."""
    fine_amounts: Literal["take", "refuse"] = "take"
    """Gap O: an amount finer than its currency's smallest unit (10.5 XOF) is kept, or is a 422."""
    odd_receivers: Literal["take", "refuse"] = "take"
    """Gap O: an account with a sign that is not seen, a blank at an end, or a spreadsheet's mark."""
    errors: Literal["lists", "texts", "nested"] = "lists"
    """Gap P: the structure of `errors`: lists by dotted name, one text by dotted name, or nested objects."""
    refund_limit: int | None = None
    """Gap Z: the limit of refund availability, requests a minute, unless the limits name one."""
    sliding_windows: bool = False
    """True if the limits count the minute before each request, whatever the limits say."""
    magic: bool = True
    """True if phone and account numbers that end in `9900NN` choose a scenario."""
    shown_statuses: Mapping[str, str] = attrs.field(factory=dict)
    """Gaps F to K: words shown in place of the usual statuses and action types."""
    extra_fields: bool = False
    """Gap AC: records carry fields that are not described."""
    null_fields: bool = False
    """Gap AC: descriptive fields are null."""
    omits_nulls: bool = False
    """Gap AC: null fields are left out."""
    bare_codes: bool = False
    """Gap AC: a method or country is its bare code."""
    swapped_rates: bool = False
    """Gap AC: an exchange rate is a number where an object is usual, and the reverse."""
    null_rates: bool = False
    """Gap AC: an exchange rate is null."""
    messages: bool = True
    """True if the answer to a creation has a `message`."""
    rate_headers: bool = True
    """True if a 429 carries `X-RateLimit-Limit` and `X-RateLimit-Remaining`."""
    request_ids: bool = True
    """Gap AE: answers carry `X-Request-Id`."""
    dates: bool = True
    """Gap AF: `Date` has the sandbox's time; else it is empty."""
    retry_after: Literal["seconds", "date", "absent"] = "seconds"
    """The format of `Retry-After`."""

    @property
    def distorts(self) -> bool:
        """True if successful bodies differ from the interface's tables."""
        return bool(
            self.shown_statuses
            or self.extra_fields
            or self.null_fields
            or self.omits_nulls
            or self.bare_codes
            or self.swapped_rates
            or self.null_rates
            or not self.messages
        )


OBSERVED = Profile("observed")
"""The behaviour that the service is thought to have: the default for every gap."""

STRICT = Profile(
    "strict",
    page_size=5,
    unknown_query="refuse",
    reused_key="invalid",
    in_flight="conflict",
    required={
        "checkouts.create": ("return_url", "customer", "customer.email"),
        "payment_intents.create": ("attempt.country", "attempt.phone"),
        "payouts.create": ("reference", "instrument.type"),
    },
    bad_addresses="refuse",
    fine_amounts="refuse",
    odd_receivers="refuse",
    errors="nested",
    refund_limit=100,
    sliding_windows=True,
)
"""Every gap filled strictly: it refuses all it can."""

ALTERNATE = Profile(
    "alternate",
    create_status=200,
    page_size=25,
    max_page_size=50,
    oversized_page="clamp",
    last_cursor="kept",
    reused_key="replay",
    keeps_refusals=False,
    bad_key_status=400,
    shown_statuses={"operational": "available"},
    errors="texts",
    bare_codes=True,
    omits_nulls=True,
    null_rates=True,
    messages=False,
    rate_headers=False,
    request_ids=False,
    dates=False,
    retry_after="absent",
)
"""Every gap filled the other way, with sparse answers."""

HOSTILE = Profile(
    "hostile",
    create_status=200,
    last_cursor="empty",
    shown_statuses={
        "processing": "under_review",
        "action_required": "awaiting_payer",
        "completed": "settled",
        "operational": "fluctuating",
        "embed_iframe": "future_action",
    },
    extra_fields=True,
    null_fields=True,
    bare_codes=True,
    swapped_rates=True,
    rate_headers=False,
    request_ids=False,
    retry_after="date",
)
"""Everything a careful client must survive, all at once."""

PROFILES: Mapping[str, Profile] = {
    profile.name: profile for profile in (OBSERVED, STRICT, ALTERNATE, HOSTILE)
}


def profile_named(name: str) -> Profile:
    """The profile of this name; `ValueError` listing the names when there is none."""
    try:
        return PROFILES[name]
    except KeyError:
        raise ValueError(f"no profile {name!r}; there are {', '.join(PROFILES)}") from None
