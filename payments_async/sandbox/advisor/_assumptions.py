"""The list of assumptions: each gap of the interface by its letter, and how the profile in use fills it."""

from __future__ import annotations

import attrs

from .._common.profiles import OBSERVED, Profile


@attrs.frozen
class Switch:
    """One field of the profile: its value, and the default if that differs."""

    name: str
    value: str
    usual: str | None


@attrs.frozen
class Assumption:
    """One gap: its letter, what the interface does not show, what is assumed, and its switches."""

    letter: str
    gap: str
    assumed: str
    switches: tuple[Switch, ...]

    @property
    def differs(self) -> bool:
        """True if the profile fills this gap differently from `observed`."""
        return any(switch.usual is not None for switch in self.switches)


_GAPS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (
        "A",
        "query names of the intents list",
        "status, channel, customer_id, created_at[gte], …",
        ("unknown_query",),
    ),
    (
        "B",
        "query names of the payouts list",
        "status, method, currency, created_at[gte], …",
        ("unknown_query",),
    ),
    ("C", "how to turn the page", "the same filters with next_cursor as cursor", ("last_cursor",)),
    ("D", "page size", "10 unless asked, 100 at most", ("page_size", "max_page_size", "oversized_page")),
    ("E", "success status of creations", "201; 200 otherwise", ("create_status",)),
    ("F", "statuses of intents", "pending, completed, failed, expired, refunded, …", ("shown_statuses",)),
    ("G", "statuses of attempts", "processing, action_required, completed, failed, …", ("shown_statuses",)),
    ("H", "statuses of payouts", "pending, processing, completed, failed", ("shown_statuses",)),
    ("I", "finality without a known status", "the timestamps tell", ()),
    ("J", "statuses of methods", "unavailable, available, operational, degraded, down", ("shown_statuses",)),
    ("K", "types of next action", "redirect_to_url, collect_otp, approve_on_phone, …", ("shown_statuses",)),
    ("L", "instrument types and their fields", "phone, bank_account, crypto_address", ("required",)),
    (
        "M",
        "inside of attempt when creating an intent",
        "method_code, country, phone, currency",
        ("required",),
    ),
    ("N", "phone in a checkout restriction", "restriction.phone {number, country}", ()),
    (
        "O",
        "required request fields, and further rules for them",
        "amount, currency; payouts also method, instrument; lengths only",
        ("required", "bad_addresses", "fine_amounts", "odd_receivers"),
    ),
    ("P", "inside of a 422's errors", "a list of texts by dotted field", ("errors",)),
    (
        "Q",
        "other statuses",
        "400 for what cannot be read, 428 for a bad idempotency key",
        ("bad_key_status",),
    ),
    ("R", "the same idempotency key with another body", "409", ("reused_key", "in_flight")),
    ("S", "which answers are kept for replay", "the first once the operation ran", ("keeps_refusals",)),
    ("T", "requery", "a POST of {}; statuses before and after", ()),
    ("U", "inspect", "gateway, its transaction id, the payload", ()),
    ("V", "payout sync", "the payout; a final one unchanged", ()),
    ("W", "names of webhook events", "payment.completed, payout.failed, … payout.created is a guess", ()),
    ("X", "body of a delivery", "event with payment, attempt, customer; or with payout", ()),
    ("Y", "how deliveries are tried", "0 s, 30 s, 2 min, 10 min, 1 h; each given up after 10 s", ()),
    ("Z", "limit of refund availability", "10,000 a minute with the other reads, or 100", ("refund_limit",)),
    ("AA", "inside of failover.decision", "any JSON value", ()),
    ("AB", "inside of appearance.font", "value, display_name, category, url", ()),
    (
        "AC",
        "shapes that vary in practice",
        "objects, no further fields, nulls where the interface says so",
        ("extra_fields", "null_fields", "omits_nulls", "bare_codes", "swapped_rates", "null_rates"),
    ),
    ("AD", "failure categories", "CUSTOMER_ERROR, GATEWAY_ERROR, RECIPIENT_ERROR, …", ()),
    ("AE", "X-Request-Id on answers", "sent", ("request_ids",)),
    ("AF", "Date on answers", "sent, with the sandbox's time", ("dates",)),
)
_OTHER = ("–", "what has no letter", "limits as headers, messages, magic numbers")


def assumptions(profile: Profile) -> list[Assumption]:
    """Every gap with its switches as `profile` sets them; switches without a letter come last."""
    explained = {name for _, _, _, names in _GAPS for name in names}
    listed = [
        Assumption(letter, gap, assumed, _switches(profile, names)) for letter, gap, assumed, names in _GAPS
    ]
    rest = tuple(one.name for one in attrs.fields(Profile) if one.name not in explained | {"name"})
    return [*listed, Assumption(*_OTHER, _switches(profile, rest))]


def _switches(profile: Profile, names: tuple[str, ...]) -> tuple[Switch, ...]:
    # a profile may have grown, or lost, a switch since this list was written
    return tuple(_switch(profile, name) for name in names if hasattr(profile, name))


def _switch(profile: Profile, name: str) -> Switch:
    value, usual = getattr(profile, name), getattr(OBSERVED, name)
    return Switch(name, _words(value), None if value == usual else _words(usual))


def _words(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value == {}:
        return "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} → {_words(item)}" for key, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
