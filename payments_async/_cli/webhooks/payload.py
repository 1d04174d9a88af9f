"""What a delivery claims, in words that hold no account data."""

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
_CURRENCY: Final = re.compile(r"[A-Z]{3}", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]{1,40}(?:\.[0-9]{1,10})?", re.ASCII)
_LONGEST: Final = 120
_WORD: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SHOWN: Final = 40


@attrs.frozen
class ShownDelivery:
    """One delivery without account data. Texts are as they came, cut to a line."""

    event: str = ""
    record: str = ""
    status: str = ""
    amount: str = ""
    """As we write it, `GHS 1,250.75`, if it is one."""
    reference: str = ""
    """The payout's or payment's own, when it cannot be account data."""
    is_object: bool = True
    """False when the body is no JSON object."""


def read_delivery(body: bytes) -> ShownDelivery:
    """The claims of a body; empty texts for those that it lacks."""
    try:
        tree: Any = json.loads(body, parse_float=str)
    except (ValueError, RecursionError):
        tree = None
    if not isinstance(tree, dict):
        return ShownDelivery(is_object=False)
    records = (tree.get(name) for name in ("payout", "payment"))
    record: Any = next((each for each in records if isinstance(each, dict)), {})
    amount, reference = record.get("amount"), record.get("reference")
    is_harmless = reference is None or (isinstance(reference, str) and is_identifier(reference))
    return ShownDelivery(
        event=_line(tree.get("event")),
        record=_line(record.get("id")),
        status=_line(record.get("status")),
        amount=_line(_money(amount)) if isinstance(amount, dict) else "",
        reference=_line(reference) if is_harmless else HIDDEN,
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
