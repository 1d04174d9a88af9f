"""Reads and writes JSON with exact decimals: `10.10` stays the same digit for digit."""

from __future__ import annotations

from decimal import Decimal

import msgspec

from .values import RequestRefused

JsonObject = dict[str, object]

_decoder = msgspec.json.Decoder(float_hook=Decimal)
_encoder = msgspec.json.Encoder(decimal_format="number")


def decode(body: bytes) -> object:
    """Decode the JSON value in `body`, fractions as `Decimal`; `RequestRefused` with 400 for invalid JSON."""
    try:
        return _decoder.decode(body)
    except (ValueError, ArithmeticError, RecursionError) as unreadable:
        # msgspec.DecodeError is a ValueError; an absurd exponent is an ArithmeticError of Decimal
        raise RequestRefused(400, "The request body is not readable JSON.") from unreadable


def decode_object(body: bytes) -> JsonObject:
    """Decode the JSON object in `body`; `RequestRefused` with 400 for anything else."""
    value = decode(body)
    if not isinstance(value, dict):
        raise RequestRefused(400, "The request body must be a JSON object.")
    return value


def text_or_null(body: JsonObject, name: str) -> str | None:
    """Read a validated string member; None when it was left out."""
    value = body.get(name)
    return value if isinstance(value, str) else None


def object_or_null(body: JsonObject, name: str) -> JsonObject | None:
    """Read a validated object member; None when it was left out."""
    value = body.get(name)
    return value if isinstance(value, dict) else None


def encode(value: object) -> bytes:
    """Encode `value` as JSON bytes, `Decimal` as a plain number."""
    return _encoder.encode(value)
