"""The kept OpenAPI document, and ways to look into it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

FILE = Path(__file__).parents[2] / "docs" / "openapi.json"
WRITTEN: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
"""The document as it is."""


def _inlined(value: Any) -> Any:
    """A part of the document with its parameters, headers and responses in place; schemas stay references."""
    if isinstance(value, list):
        return [_inlined(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind, _, name = value.get("$ref", "").removeprefix("#/components/").partition("/")
    if kind in ("parameters", "headers", "responses"):
        return _inlined(WRITTEN["components"][kind][name])
    return {key: _inlined(inner) for key, inner in value.items()}


DOCUMENT: dict[str, Any] = _inlined(WRITTEN)
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
_FORMATS = FormatChecker(formats=())


def _is_a_time(value: object) -> bool:
    """ISO 8601 in UTC, as every timestamp of the service is."""
    if not isinstance(value, str):
        return True
    try:
        return value.endswith("Z") and datetime.fromisoformat(value) is not None
    except ValueError:
        return False


_FORMATS.checks("date-time")(_is_a_time)


def properties(name: str) -> dict[str, Any]:
    """The fields of a record or of a request, of all its forms."""
    forms = [target_of(form) for form in SCHEMAS[name].get("oneOf", ())]
    found: dict[str, Any] = SCHEMAS[name].get("properties", {})
    return found | {field: schema for form in forms if form for field, schema in properties(form).items()}


def resolved(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without its null and without its reference."""
    plain = next((one for one in schema.get("anyOf", ()) if one != {"type": "null"}), schema)
    target = plain.get("$ref")
    found: dict[str, Any] = {**(SCHEMAS[target.rsplit("/", 1)[1]] if target else plain)}
    return found


def target_of(schema: Mapping[str, Any]) -> str | None:
    """The record that a field holds."""
    plain = next((one for one in schema.get("anyOf", ()) if "$ref" in one), schema)
    return plain["$ref"].rsplit("/", 1)[1] if "$ref" in plain else None


def types(schema: Mapping[str, Any]) -> set[str]:
    """The JSON types that a field can have, null left out."""
    plain = resolved(schema)
    named = plain.get("type", [])
    found = {named} if isinstance(named, str) else set(named)
    found |= {"string" for value in plain.get("enum", ()) if isinstance(value, str)}
    return found - {"null"}


def everything(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a part of the document."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from everything(inner)


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of every operation."""
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


@cache
def _closed() -> dict[str, Any]:
    """The document with nothing left open: every field there, and no other. For answers as observed."""
    document = copy.deepcopy(DOCUMENT)
    responses = [
        answer for *_, operation in _operations_of(document) for answer in operation["responses"].values()
    ]
    for schema in (*document["components"]["schemas"].values(), *responses):
        _close(schema)
    return document


def _operations_of(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


_SOMETIMES = frozenset({"failure"})
"""Of attempts: there only when one did not succeed."""


def _close(schema: Any) -> None:
    if isinstance(schema, list):
        for item in schema:
            _close(item)
    if not isinstance(schema, dict):
        return
    for name, inner in schema.items():
        if name not in ("if", "then", "else"):
            _close(inner)
    if isinstance(schema.get("properties"), dict) and "not" not in schema:
        schema["additionalProperties"] = False
        schema["required"] = sorted(set(schema["properties"]) - _SOMETIMES)


def described(status: int) -> str:
    """The name of a status among the answers of an operation."""
    return "5XX" if status >= 500 else str(status)


def validator(operation: str, status: int) -> Draft202012Validator:
    """What an answer of an operation has to be; `KeyError` for a status it does not have."""
    document = _closed()
    (answers,) = [one["responses"] for *_, one in _operations_of(document) if one["operationId"] == operation]
    schema = answers[described(status)]["content"]["application/json"]["schema"]
    return Draft202012Validator({**schema, "components": document["components"]}, format_checker=_FORMATS)
