"""How the tables are written: a word for the kind of a field; `?` when the interface says it may be null."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

_WORDS: Mapping[str, Schema] = {
    "text": {"type": "string"},
    "number": {"type": "number"},
    "integer": {"type": "integer"},
    "boolean": {"type": "boolean"},
    "time": {"type": "string", "format": "date-time"},
    "object": {"type": "object"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "objects": {"type": "array", "items": {"type": "object"}},
    "any": {},
}


def reference(name: str) -> Schema:
    """A record described elsewhere in the document."""
    return {"$ref": f"#/components/schemas/{name}"}


def kind(word: str) -> Schema:
    """The schema of one word: a kind of value, `Name` for a record, `[Name]` for an array of records."""
    if word.startswith("["):
        return {"type": "array", "items": kind(word[1:-1])}
    return dict(_WORDS[word]) if word in _WORDS else reference(word)


def or_null(schema: Schema) -> Schema:
    """The same, or null."""
    if not schema:
        return {}
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def field(word: str) -> Schema:
    """A field of an answer. Any of them may be null, by the interface (`?`) or by our guess (gap AC)."""
    plain = or_null(kind(word.removesuffix("?")))
    return plain if word.endswith("?") else {**plain, "x-gap": "AC"}


def record(fields: Mapping[str, str | Schema], described: str) -> Schema:
    """A record of an answer: what is not named may come too, and what is named may be missing (gap AC)."""
    properties = {name: field(word) if isinstance(word, str) else word for name, word in fields.items()}
    return {"type": "object", "description": described, "properties": properties}


def optional(schema: Schema, described: str = "") -> Schema:
    """A field of a request that can be left out; null counts as left out (gap O)."""
    told = {"description": described} if described else {}
    return {**or_null(schema), **told, "x-gap": schema.get("x-gap", "O")}


def limited(longest: int) -> Schema:
    """A text of at most so many characters."""
    return {"type": "string", "maxLength": longest}


def body(fields: Mapping[str, Schema], required: tuple[str, ...], described: str, gap: str = "O") -> Schema:
    """An object of a request."""
    schema: Schema = {"type": "object", "description": described, "properties": dict(fields)}
    return {**schema, "required": list(required), "x-gap": gap} if required else schema
