"""The fields that a rule can match: those of an operation's requests (`docs/interface.md`)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase

from .._common.operations import OPERATIONS, ServiceOperation
from .._common.scenario_words import UnknownWord
from .._records.payout_json import INSTRUMENT_TEXTS
from .request_schemas import CHECKOUT, INTENT, PAYOUT

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
_ALIKE = 0.8
"""The similarity of two names when one has a letter wrong, missing or in another place."""
_FREE = ("metadata", "gateway_options")
"""Objects whose members have names of the merchant's own."""


def check_match(operation: str, names: Collection[str]) -> None:
    """`UnknownWord` for a name that is nearly a field of `operation`.

    Requests may have other names, too: `extra_body` and `extra_query` add any.
    """
    known = fields_of(operation) if names else []
    for name in names:
        plain = name.replace("__", ".")
        near = _near(plain, known)
        if near or "" in plain.split("."):
            listed = near or [one for one in known if "." not in one]
            known_names = f"{'near' if near else 'there are'}: {', '.join(listed)}"
            raise UnknownWord(f"{operation} has no field {name!r} to match ({known_names})")


def fields_of(operation: str) -> list[str]:
    """Every name that a request of an operation, or of one that a glob matches, may have."""
    matched = (one for one in OPERATIONS if fnmatchcase(one.name, operation))
    return list(dict.fromkeys(name for one in matched for name in _fields(one)))


def _fields(operation: ServiceOperation) -> Iterator[str]:
    yield from re.findall(r"\{(\w+)\}", operation.path)
    yield from QUERIES.get(operation.name, ())
    for name in BODIES.get(operation.name, ()):
        yield name
        yield from (f"{name}.{inner}" for inner in _INSIDE.get(name, ()))


def _near(name: str, known: Collection[str]) -> list[str]:
    """The fields that a misspelt name is near to; none for a field, and for a name that is near to none."""
    parent, dot, leaf = name.rpartition(".")
    if name in known or (parent in _FREE and leaf):
        return []
    if parent and parent not in known:
        return [f"{meant}.{leaf}" for meant in _near(parent, known)]
    if parent and not leaf:
        return [parent]
    beside = [one.removeprefix(parent + dot) for one in known if one.rpartition(".")[0] == parent]
    alike = difflib.get_close_matches(leaf, beside, n=3, cutoff=_ALIKE)
    # a further word makes another name: `customer_id` is no misspelt `customer`
    return [parent + dot + one for one in alike if not set(one.split("_")) < set(leaf.split("_"))]
