"""What the payer typed, and what is wrong with it. A problem says where and how to mend it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import attrs

from ._catalogue import PHONE, Field

_PHONE = re.compile(r"\+?[0-9]{7,15}")
_SPACERS = str.maketrans("", "", " -.()\u00a0")
_LONGEST_NAME = 100


@attrs.frozen
class Problem:
    """What is wrong with one field; `field` is its id on the page."""

    field: str
    text: str


def problems_with(fields: Iterable[Field], typed: Mapping[str, str]) -> list[Problem]:
    """Every problem with what was typed, in the order of the page."""
    found = ((field.name, _wrong(field, typed.get(field.name, "").strip())) for field in fields)
    return [Problem(name, text) for name, text in found if text]


def plain_number(text: str) -> str:
    """A phone number without what people put between its digits."""
    return text.strip().translate(_SPACERS)


def _wrong(field: Field, value: str) -> str:
    if not value:
        return f"Enter your {field.label.lower()}" if field is PHONE else f"Enter the {field.label.lower()}"
    if field is PHONE and not _PHONE.fullmatch(plain_number(value)):
        return "Enter a phone number of 7 to 15 digits, as in +229\u00a090\u00a000\u00a000\u00a000"
    if len(value) > _LONGEST_NAME:
        return f"{field.label} must have {_LONGEST_NAME} characters or fewer"
    return ""
