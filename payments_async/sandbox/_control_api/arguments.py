"""One request to the control API: the check of its origin, and readers for its values.

Programs of this machine and the sandbox's own pages may ask; pages of other sites may not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from decimal import Decimal

import attrs

from ..._loopback.access import is_of_another_page, is_of_another_site
from .._common.json import JsonObject, decode_object
from .._common.scenario_words import MOST_TIMES, near
from .._common.values import Request, RequestRefused

LARGEST = 65_536
"""Bytes of a request body."""


class Refusal(Exception):
    """The refusal of a request: `status`, the fault, and further members of the answer."""

    def __init__(self, status: int, message: str, extra: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.extra: Mapping[str, object] = extra or {}


def check_origin(request: Request, origin: str) -> None:
    """`Refusal` 403 for a request that another site's page sent."""
    if is_of_another_page(request, origin):
        raise Refusal(403, "Another site's page may not control the sandbox (Origin).")
    if is_of_another_site(request):
        raise Refusal(403, "Another site's page may not control the sandbox (Sec-Fetch-Site).")


def read_body(request: Request) -> JsonObject:
    """The JSON object a POST carries, empty when it carries none; `Refusal` 413, 415 or 400."""
    if len(request.body) > LARGEST:
        raise Refusal(413, f"The body may be {LARGEST:,} bytes at most.")
    # JSON is asked for even of an empty body: a form of another site cannot send that type
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(415, "Send Content-Type: application/json.")
    try:
        return decode_object(request.body) if request.body.strip() else {}
    except RequestRefused as unreadable:
        raise Refusal(400, unreadable.message) from unreadable


_MOST = 500
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,9})?", re.ASCII)


@attrs.frozen
class ControlCall:
    """The arguments of a route's function: path, query, body, headers."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    body: JsonObject
    headers: Mapping[str, str] = attrs.field(repr=False)

    def only(self, *names: str) -> None:
        """`Refusal` 422 for a body member that is none of `names`."""
        for name in self.body:
            if name not in names:
                raise invalid(name, f"unknown field {name!r} ({near(name, names)})" if names else "no body")

    def text(self, name: str, default: str | None = None) -> str:
        """A text of the body; `Refusal` 422 when it is missing without a default, or no text."""
        value = self.text_or_none(name)
        value = default if value is None else value
        if value is None:
            raise invalid(name, "is required")
        return value

    def text_or_none(self, name: str) -> str | None:
        """A text of the body, None when it is null or left out."""
        value = self.body.get(name)
        if value is not None and not isinstance(value, str):
            raise invalid(name, "must be a text")
        return value

    def number(self, name: str) -> Decimal:
        """A number of the body, of at least 0, also as text."""
        value = self.body.get(name)
        if isinstance(value, str) and _NUMBER.fullmatch(value):  # exact in any language's JSON
            value = Decimal(value)
        if isinstance(value, bool) or not isinstance(value, (int, Decimal)) or value < 0:
            raise invalid(name, "must be a number of at least 0")
        return Decimal(value)

    def count_or_none(self, name: str, default: int | None) -> int | None:
        """A whole number of the body; null means every time, the default when it is left out."""
        value = self.body.get(name, default)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise invalid(name, "must be a whole number or null")
        if value is not None and value > MOST_TIMES:
            raise invalid(name, f"{MOST_TIMES:,} at most")
        return value

    def flag(self, name: str) -> bool:
        """A truth value of the body, false when it is left out."""
        value = self.body.get(name, False)
        if not isinstance(value, bool):
            raise invalid(name, "must be true or false")
        return value

    def mapping(self, name: str) -> JsonObject:
        """An object of the body, empty when it is left out."""
        value = self.body.get(name) or {}
        if not isinstance(value, dict):
            raise invalid(name, "must be an object")
        return value

    def texts_or_none(self, name: str) -> list[str] | None:
        """A list of texts of the body, None when it is null or left out."""
        value = self.body.get(name)
        if value is not None and not (isinstance(value, list) and all(isinstance(one, str) for one in value)):
            raise invalid(name, "must be a list of texts")
        return value

    def whole(self, name: str, default: int, most: int = _MOST) -> int:
        """A whole number of the query string, up to `most`."""
        text = self.query.get(name, str(default))
        if not (text.isascii() and text.isdigit() and len(text) < 12):
            raise invalid(name, "must be a whole number")
        return min(int(text), most)

    @property
    def reveals(self) -> bool:
        """True if account data is asked for as it is (`?reveal=1`)."""
        return self.query.get("reveal") == "1"


@attrs.frozen
class Created:
    """The answer of a route that created something: 201."""

    value: object


def invalid(name: str, wrong: str) -> Refusal:
    """A `Refusal` with 422 that names one field."""
    return Refusal(422, f"{name}: {wrong}", {"field": name})


def one_of(name: str, value: str, known: Collection[str]) -> str:
    """`value`, or `Refusal` 422 with what is near unless it is one of `known`."""
    if value not in known:
        raise invalid(name, f"unknown {name} {value!r} ({near(value, sorted(known))})")
    return value
