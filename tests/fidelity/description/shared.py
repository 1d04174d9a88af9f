"""Kinds of fields that records have in common."""

from __future__ import annotations

from .notation import Schema, or_null, reference

GATEWAY: Schema = {
    **or_null({"type": "object", "properties": {"transaction": reference("GatewayTransaction")}}),
    "x-gap": "AC",
}


def inside(schema: Schema, gap: str) -> Schema:
    """A field whose inside the interface does not show."""
    return {**or_null(schema), "x-gap": gap}


def word(gap: str, known: str) -> Schema:
    """A word out of an open set, of which one is known."""
    return {"type": ["string", "null"], "examples": [known], "x-gap": gap}
