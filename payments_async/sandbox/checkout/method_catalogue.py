"""The payment methods that a payer can choose, their fields, and the checks of these fields.

The interface shows no method codes, so these exist only in the sandbox. The countries are real.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import attrs

from .language import Text

NO_BREAK = "\u00a0"
"""Stands between the groups of a number."""


@attrs.frozen
class PayerField:
    """Something the payer types for a method. `name` is also the form's."""

    name: str
    label: str
    hint: str
    autocomplete: str
    kind: str
    """The input's type."""


@attrs.frozen
class CatalogueMethod:
    """A way to pay. `action` is the next action it asks for (gap K), `none` for a payment in one step."""

    code: str
    label: Text
    description: Text
    action: str
    fields: tuple[PayerField, ...] = ()


PHONE = PayerField("phone", "Phone number", "With or without the country code", "tel", "tel")
PAYER_NAME = PayerField("payer_name", "Name on the account", "As your bank knows it", "name", "text")

METHODS = (
    CatalogueMethod(
        "sandbox_mobile", Text("Mobile money"), Text("Approve on your phone"), "approve_on_phone", (PHONE,)
    ),
    CatalogueMethod(
        "sandbox_mobile_code",
        Text("Mobile money, by code"),
        Text("We text you a code"),
        "collect_otp",
        (PHONE,),
    ),
    CatalogueMethod("sandbox_card", Text("Card"), Text("Enter your card details"), "complete_with_sdk"),
    CatalogueMethod(
        "sandbox_wallet", Text("Wallet app"), Text("Scan a code with your phone"), "scan_qr_code"
    ),
    CatalogueMethod("sandbox_bank", Text("Online banking"), Text("Confirm at your bank"), "redirect_to_url"),
    CatalogueMethod(
        "sandbox_bank_window", Text("Bank window"), Text("Confirm without leaving this page"), "embed_iframe"
    ),
    CatalogueMethod(
        "sandbox_bank_transfer",
        Text("Bank transfer"),
        Text("Send the money yourself"),
        "display_payment_instructions",
        (PAYER_NAME,),
    ),
    CatalogueMethod("sandbox_wallet_balance", Text("Saved balance"), Text("Pay in one step"), "none"),
)
_NUMBERS: Mapping[str, str] = {
    "BJ": "+229 90 00 00 00",
    "CI": "+225 07 00 00 00 00",
    "FR": "+33 6 00 00 00 00",
    "GH": "+233 20 000 0000",
    "KE": "+254 700 000 000",
    "NG": "+234 800 000 0000",
    "SN": "+221 70 000 00 00",
}
"""A fictitious phone number of each country, as an example."""

COUNTRIES = tuple(_NUMBERS)


def example_for(field: PayerField, country: str | None) -> str:
    """An example for the payer's country, as the end of a sentence; empty when there is none."""
    number = _NUMBERS.get(country or "") if field is PHONE else None
    return f", as in {number.replace(' ', NO_BREAK)}" if number else ""


def find_method(code: str | None) -> CatalogueMethod | None:
    """The method of this code; None when there is none."""
    return next((method for method in METHODS if method.code == code), None)


_PHONE = re.compile(r"\+?[0-9]{7,15}")
_SPACERS = str.maketrans("", "", f" -.(){NO_BREAK}")
_LONGEST_NAME = 100


@attrs.frozen
class FieldProblem:
    """A problem with one field; `field` is its id on the page."""

    field: str
    text: str


def problems_with(
    fields: Iterable[PayerField], typed: Mapping[str, str], country: str | None
) -> list[FieldProblem]:
    """Find every problem with the typed values, in the order of the page; examples are the country's."""
    found = ((field.name, _wrong(field, typed.get(field.name, "").strip(), country)) for field in fields)
    return [FieldProblem(name, text) for name, text in found if text]


def plain_number(text: str) -> str:
    """A phone number without spaces, dots, dashes and brackets."""
    return text.strip().translate(_SPACERS)


def _wrong(field: PayerField, value: str, country: str | None) -> str:
    if not value:
        return f"Enter your {field.label.lower()}" if field is PHONE else f"Enter the {field.label.lower()}"
    if field is PHONE and not _PHONE.fullmatch(plain_number(value)):
        return f"Enter a phone number of 7 to 15 digits{example_for(field, country)}"
    if len(value) > _LONGEST_NAME:
        return f"{field.label} must have {_LONGEST_NAME} characters or fewer"
    return ""
