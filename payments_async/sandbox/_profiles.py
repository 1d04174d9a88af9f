"""Gap profiles: what the sandbox does where the interface is silent, each as one switch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs


@attrs.frozen
class Profile:
    """One way to fill the gaps, which have letters. `attrs.evolve` makes a variant."""

    name: str
    create_status: int = 201
    """Gap E: the status of a successful creation."""
    page_size: int = 10
    """Gap D: records on a page when `per_page` is not given."""
    max_page_size: int = 100
    """Gap D: a larger `per_page` is a 422."""
    reused_key: Literal["conflict", "replay", "invalid"] = "conflict"
    """Gap R, one idempotency key under two bodies: 409, the first answer again, or 422."""
    keeps_refusals: bool = True
    """Gap S: 404, 409 and 422 answers are replayed as well as successful ones."""
    magic: bool = True
    """Whether phone and account numbers that end in `9900NN` choose a scenario."""
    shown_statuses: Mapping[str, str] = attrs.field(factory=dict)
    """Gaps F to K: words shown in place of the usual statuses and action types."""
    extra_fields: bool = False
    """Gap AC: records carry fields that nobody has described."""
    null_fields: bool = False
    """Gap AC: descriptive fields are null."""
    bare_codes: bool = False
    """Gap AC: a method or country is its bare code."""
    swapped_rates: bool = False
    """Gap AC: an exchange rate is a number where an object is usual, and the reverse."""
    rate_headers: bool = True
    """Whether a 429 carries `X-RateLimit-Limit` and `X-RateLimit-Remaining`."""
    request_ids: bool = True
    """Gap AE: whether answers carry `X-Request-Id`."""
    retry_after: Literal["seconds", "date"] = "seconds"
    """The form of `Retry-After`."""

    @property
    def distorts(self) -> bool:
        """Whether successful bodies differ from the interface's tables."""
        return bool(
            self.shown_statuses
            or self.extra_fields
            or self.null_fields
            or self.bare_codes
            or self.swapped_rates
        )


OBSERVED = Profile("observed")
"""What the service is thought to do: the default for every gap."""

HOSTILE = Profile(
    "hostile",
    create_status=200,
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

PROFILES: Mapping[str, Profile] = {profile.name: profile for profile in (OBSERVED, HOSTILE)}


def profile_named(name: str) -> Profile:
    """The profile of this name; `ValueError` listing the names when there is none."""
    try:
        return PROFILES[name]
    except KeyError:
        raise ValueError(f"no profile {name!r}; there are {', '.join(PROFILES)}") from None
