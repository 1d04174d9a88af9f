"""Reads from a write's bytes what it would pay, for a guard. What leaves room for doubt cannot be read."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any, Final, NamedTuple

import msgspec

from .fast_path import Parsed

_PLAIN_AMOUNT: Final = re.compile(r"[0-9]{1,40}(?:\.[0-9]{1,40})?")


class Payment(NamedTuple):
    """What the bytes of a write say."""

    amount: Decimal
    currency: str
    method: str | None
    country: str | None  # that of the instrument
    reference: str | None


class _Instrument(Parsed, gc=False):
    country: Any = None


class _PaymentBody(Parsed, gc=False):
    """The fields of a write that a guard judges; a number that is no integer stays text."""

    amount: Any = None
    currency: Any = None
    method: Any = None
    instrument: _Instrument | None = None
    reference: Any = None


_parse: Final = msgspec.json.Decoder(_PaymentBody, float_hook=str).decode


def read_payment(body: bytes, *, is_ours: bool) -> Payment | str:
    """Read a body; returns why it cannot be read, in words that show no value.

    `is_ours`: this package wrote it from a request object, so that no name is in it twice.
    """
    if not is_ours and (problem := _doubt(body)):
        return problem
    try:
        found = _parse(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return "is no JSON object that can be read"
    instrument, amount = found.instrument, found.amount
    if type(amount) not in (int, str) or not _PLAIN_AMOUNT.fullmatch(str(amount)):
        return "has no amount that is a plain number or decimal text"
    value = Decimal(amount)
    if not value:
        return "has an amount of nothing"
    country = None if instrument is None else instrument.country
    texts = {"currency": found.currency, "method": found.method, "country": country}
    for name, text in texts.items():
        if not (type(text) is str or (text is None and name != "currency")):
            return f"has no text as {name}"
    return Payment(value, found.currency, found.method, country, found.reference)


def _doubt(body: bytes) -> str | None:
    """Why two readers could take the body for different requests; None if they cannot."""
    try:
        json.loads(body.decode(), object_pairs_hook=_without_twins)
    except _Twice:
        return "has a name twice in one object"
    except (ValueError, RecursionError):
        return "is no JSON text in UTF-8"
    return None


class _Twice(Exception):
    """A name stands twice in one object."""


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise _Twice
    return fields
