"""The payment methods that a payer can choose, their fields, and the checks of these fields.

The interface shows no method codes, so these exist only in the sandbox. The countries are real.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import attrs

from .language import Text
from .practice_cards import find_card, may_be_real
from .session_view import SessionView

NO_BREAK = "\u00a0"
"""Stands between the groups of a number."""


@attrs.frozen
class PayerField:
    """Something the payer types for a method, with the texts that ask for it."""

    name: str
    label: Text
    hint: Text
    missing: Text
    """The problem with a field left empty."""
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

    @property
    def asks_phone(self) -> bool:
        """True if the payer pays with a phone number."""
        return PHONE in self.fields

    def input_name(self, field: PayerField) -> str:
        """The name of a field's input, and its id on the page: each method has fields of its own."""
        return f"{self.code}-{field.name}"


PHONE = PayerField(
    "phone",
    Text("Phone number"),
    Text("With or without the country code"),
    Text("Enter your phone number"),
    "tel",
    "tel",
)
PAYER_NAME = PayerField(
    "payer_name",
    Text("Name on the account"),
    Text("As it appears at your bank"),
    Text("Enter the name on the account"),
    "name",
    "text",
)

NUMBER = PayerField(
    "number", Text("Card number"), Text("A test number"), Text("Choose a test number"), "off", "select"
)
CARD = CatalogueMethod(
    "sandbox_card", Text("Card"), Text("Practise with a test number"), "complete_with_sdk", (NUMBER,)
)
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
    CARD,
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
COUNTRIES = ("BJ", "CI", "FR", "GH", "KE", "NG", "SN")


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
    view: SessionView, method: CatalogueMethod, fields: Iterable[PayerField]
) -> list[FieldProblem]:
    """Find every problem with what was typed for a method, in the order of the page."""
    names, form = {method.input_name(field): field for field in fields}, view.form
    problems = ((name, _wrong(view, field, form.get(name, "").strip())) for name, field in names.items())
    return [FieldProblem(name, text) for name, text in problems if text]


def plain_number(text: str) -> str:
    """A phone number without spaces, dots, dashes and brackets."""
    return text.strip().translate(_SPACERS)


def _wrong(view: SessionView, field: PayerField, value: str) -> str:
    if not value:
        return view.say(field.missing)
    if field is NUMBER:
        return "" if find_card(value) else view.say(field.missing)
    if may_be_real(value, phone=field is PHONE):
        return view.say(Text("Never type a real card here. Use one of the test numbers"))
    if field is PHONE and not _PHONE.fullmatch(plain_number(value)):
        return view.say(Text("Enter a phone number of 7 to 15 digits"))
    if len(value) > _LONGEST_NAME:
        text = Text("{label} must have {count} characters or fewer")
        return view.say(text, label=view.say(field.label), count=_LONGEST_NAME)
    return ""
