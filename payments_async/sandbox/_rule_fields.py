"""What a rule can match: the values that requests of an operation may have (`docs/interface.md`)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase

from ._operations import OPERATIONS, Operation
from ._scenarios import UnknownWord
from ._schemas import CHECKOUT, INSTRUMENT_TEXTS, INTENT, PAYOUT

BODIES: Mapping[str, Collection[str]] = {
    "checkouts.create": CHECKOUT,
    "payment_intents.create": INTENT,
    "payouts.create": PAYOUT,
}
"""The members of each creation's body."""

_FILTERS = ("status", "customer_id", "cursor", "per_page", "created_at[gte]", "created_at[lte]")
QUERIES: Mapping[str, Collection[str]] = {
    "payment_intents.list": (*_FILTERS, "channel"),
    "payouts.list": (*_FILTERS, "method", "currency"),
}
"""The query names of each list."""

_INSIDE: Mapping[str, Collection[str]] = {
    "customer": ("email", "first_name", "last_name", "address", "city", "state", "zip", "country"),
    "instrument": ("type", "country", *INSTRUMENT_TEXTS),
    "attempt": ("method_code", "country", "currency", "phone", "phone.number", "phone.country"),
    "restriction": ("country_code", "phone", "phone.number", "phone.country"),
    "appearance": ("color", "display_platform_badge", "brand", "icon_url"),
}
_FREE = ("metadata", "gateway_options")
"""Objects whose members have names of the merchant's own."""


def check_match(operation: str, names: Collection[str]) -> None:
    """`UnknownWord`, naming what is near, for a name that no request of `operation` can have."""
    known = fields_of(operation) if names else []
    for name in names:
        plain = name.replace("__", ".")
        inside = plain.partition(".")
        if plain not in known and not (inside[0] in _FREE and inside[0] in known and inside[2]):
            raise UnknownWord(f"{operation} has no field {name!r} to match ({_near(plain, known)})")


def fields_of(operation: str) -> list[str]:
    """Every name that a request of an operation, or of one that a glob matches, may have."""
    matched = (one for one in OPERATIONS if fnmatchcase(one.name, operation))
    return list(dict.fromkeys(name for one in matched for name in _fields(one)))


def _fields(operation: Operation) -> Iterator[str]:
    yield from re.findall(r"\{(\w+)\}", operation.path)
    yield from QUERIES.get(operation.name, ())
    for name in BODIES.get(operation.name, ()):
        yield name
        yield from (f"{name}.{inner}" for inner in _INSIDE.get(name, ()))


def _near(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.65)
    listed = close or [one for one in known if "." not in one]
    return f"{'near' if close else 'there are'}: {', '.join(listed)}"
