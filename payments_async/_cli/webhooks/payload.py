"""Masks a delivery for printing, except for the words about its event."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import attrs

from ..._validation.rules import is_identifier
from ...models._masking import clean
from ...models.common import amount_text

HIDDEN: Final = "•••"

_KINDS: Final = frozenset({"id", "type"})
_PRIVATE: Final = {
    "customer": _KINDS,
    "instrument": _KINDS | {"country"},
    "phone": _KINDS | {"country"},
    "next_action": _KINDS,
    "metadata": frozenset[str](),
}
"""Members of which only these names are shown."""

_PLAIN: Final = _KINDS | {
    "event",
    "timestamp",
    "status",
    "channel",
    "currency",
    "formatted",
    "short",
    "value",
    "code",
    "category",
    "label",
    "from_currency",
    "to_currency",
}
_FIGURES: Final = frozenset(
    {"amount", "correction_rate", "digits", "exchange_rate", "fee_amount", "settlement_amount"}
)
"""Names whose numbers are shown; a text under them is masked."""

_CURRENCY: Final = re.compile(r"[A-Z]{3}", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]{1,40}(?:\.[0-9]{1,10})?", re.ASCII)
_COUNTRY_CODE: Final = re.compile(r"[A-Z]{2}", re.ASCII)
_FLAG: Final = re.compile(r"[\U0001f1e6-\U0001f1ff]{2}")
_NAMES: Final = frozenset({"reference", "external_id"})
"""Names that a merchant or a gateway gave to a record: shown when they cannot be account data."""

_LONGEST: Final = 120
_WORD: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SHOWN: Final = 40


class Figure(str):
    """A number with a point, exactly as it was written."""


@attrs.frozen
class ShownDelivery:
    """One delivery without account data. Texts are as they came, cut to a line."""

    event: str
    record: str
    status: str
    amount: str
    money: str
    """The amount for people: `GHS 1,250.75`."""
    reference: str
    """The payout's or payment's own, when it cannot be account data."""
    body: object
    """Masked; None when it is not JSON."""


def read_delivery(body: bytes) -> ShownDelivery:
    """The claims of a body; empty texts for those that it lacks."""
    try:
        tree: Any = json.loads(body, parse_float=Figure)
    except (ValueError, RecursionError):
        tree = None
    if not isinstance(tree, dict):
        return ShownDelivery("", "", "", "", "", "", None)
    records = (tree.get(name) for name in ("payout", "payment"))
    record: Any = next((each for each in records if isinstance(each, dict)), {})
    amount = record.get("amount")
    is_form = isinstance(amount, dict)
    shown = amount.get("formatted") or amount.get("value") if is_form else masked(amount, "amount")
    return ShownDelivery(
        event=_line(tree.get("event")),
        record=_line(record.get("id")),
        status=_line(record.get("status")),
        amount=_line(shown),
        money=_line(_money(amount) if is_form else shown),
        reference=_line(masked(record.get("reference"), "reference")),
        body=masked(tree),
    )


def _money(amount: Mapping[str, Any]) -> object:
    """An amount as we write it, if it is one; else as the delivery does."""
    value, currency = str(amount.get("value")), amount.get("currency")
    if _NUMBER.fullmatch(value) and isinstance(currency, str) and _CURRENCY.fullmatch(currency):
        return amount_text(currency, Decimal(value))
    return amount.get("formatted") or amount.get("value")


def _line(value: object) -> str:
    """A short text without control characters, which could move a terminal's cursor."""
    text = "" if value is None or isinstance(value, dict | list) else str(value)
    return clean(text[:_LONGEST])[:_LONGEST]


def quoted(text: str) -> str:
    """A word as it is; any other text in quotes and short, so that it cannot pass for more words."""
    if not text or _WORD.fullmatch(text):
        return text
    return f'"{text}"' if len(text) <= _SHOWN else f'"{text[:_SHOWN]}…"'


def masked(value: object, name: str = "", shown: frozenset[str] | None = None) -> object:
    """A JSON value in which account data, and any text that may hold some, is replaced by dots.

    `shown` names the only members whose values stay, where not all harmless ones do.
    """
    if name == "country" and (shown is None or name in shown):
        return _country(value)
    if isinstance(value, Mapping):
        inside = shown if shown is not None else _PRIVATE.get(name)
        return {key: masked(item, key, inside) for key, item in value.items()}
    if isinstance(value, list):
        return [masked(item, name, shown) for item in value]
    if value is None or isinstance(value, bool):
        return value
    if shown is not None:
        return value if name in shown else HIDDEN
    if name in _NAMES and isinstance(value, str):
        return value if is_identifier(value) else HIDDEN
    is_figure = name in _FIGURES and isinstance(value, Figure | int)
    is_plain = name in _PLAIN or name.endswith("_at") or is_figure
    return value if is_plain else HIDDEN


def _country(value: object) -> object:
    """A country's code, or an object with code and flag. Its name is masked: it could be any text."""
    if isinstance(value, Mapping):
        known = {"code": _COUNTRY_CODE, "flag": _FLAG}
        return {key: _matching(item, known.get(key)) for key, item in value.items()}
    return _matching(value, _COUNTRY_CODE)


def _matching(value: object, form: re.Pattern[str] | None) -> object:
    if value is None:
        return None
    return value if form is not None and isinstance(value, str) and form.fullmatch(value) else HIDDEN
