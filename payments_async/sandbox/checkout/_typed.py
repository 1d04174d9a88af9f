"""What the payer typed, and what is wrong with it. A problem says where and how to mend it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import attrs

from .method_catalogue import NO_BREAK, PHONE, Field, like_this

_PHONE = re.compile(r"\+?[0-9]{7,15}")
_SPACERS = str.maketrans("", "", f" -.(){NO_BREAK}")
_LONGEST_NAME = 100


@attrs.frozen
class Problem:
    """What is wrong with one field; `field` is its id on the page."""

    field: str
    text: str


def problems_with(fields: Iterable[Field], typed: Mapping[str, str], country: str | None) -> list[Problem]:
    """Every problem with what was typed, in the order of the page; examples are the country's."""
    found = ((field.name, _wrong(field, typed.get(field.name, "").strip(), country)) for field in fields)
    return [Problem(name, text) for name, text in found if text]


def plain_number(text: str) -> str:
    """A phone number without what people put between its digits."""
    return text.strip().translate(_SPACERS)


def _wrong(field: Field, value: str, country: str | None) -> str:
    if not value:
        return f"Enter your {field.label.lower()}" if field is PHONE else f"Enter the {field.label.lower()}"
    if field is PHONE and not _PHONE.fullmatch(plain_number(value)):
        return f"Enter a phone number of 7 to 15 digits{like_this(field, country)}"
    if len(value) > _LONGEST_NAME:
        return f"{field.label} must have {_LONGEST_NAME} characters or fewer"
    return ""
