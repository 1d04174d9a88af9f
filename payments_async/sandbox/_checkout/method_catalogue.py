"""The payment methods that a payer can choose, their fields, the checks of these fields, and what each asks.

The interface shows no method codes, so these exist only in the sandbox. The countries are real.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import attrs

from .._common.scenario_words import ScenarioOutcome, Timing
from .._records.payout_json import method_category
from .._records.records import USUAL_PLAN, Plan, plan_for
from .practice_cards import find_card, may_be_real
from .session_view import SessionView
from .texts import NO_BREAK


@attrs.frozen
class PayerField:
    """Something the payer types for a method, with the texts that ask for it."""

    name: str
    label: str
    hint: str
    missing: str  # the problem with a field left empty
    autocomplete: str
    kind: str


@attrs.frozen
class CatalogueMethod:
    """A way to pay. `action` is the next action it asks for (gap K), `none` for a payment in one step."""

    code: str
    label: str
    description: str
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
    "Phone number",
    "With or without the country code",
    "Enter your phone number",
    "tel",
    "tel",
)
PAYER_NAME = PayerField(
    "payer_name",
    "Name on the account",
    "As it appears at your bank",
    "Enter the name on the account",
    "name",
    "text",
)

NUMBER = PayerField("number", "Card number", "A test number", "Choose a test number", "off", "select")
CARD = CatalogueMethod("sandbox_card", "Card", "Practise with a test number", "complete_with_sdk", (NUMBER,))
METHODS = (
    CatalogueMethod("sandbox_mobile", "Mobile money", "Approve on your phone", "approve_on_phone", (PHONE,)),
    CatalogueMethod(
        "sandbox_mobile_code",
        "Mobile money, by code",
        "We text you a code",
        "collect_otp",
        (PHONE,),
    ),
    CARD,
    CatalogueMethod("sandbox_wallet", "Wallet app", "Scan a code with your phone", "scan_qr_code"),
    CatalogueMethod("sandbox_bank", "Online banking", "Confirm at your bank", "redirect_to_url"),
    CatalogueMethod(
        "sandbox_bank_window", "Bank window", "Confirm without leaving this page", "embed_iframe"
    ),
    CatalogueMethod(
        "sandbox_bank_transfer",
        "Bank transfer",
        "Send the money yourself",
        "display_payment_instructions",
        (PAYER_NAME,),
    ),
    CatalogueMethod("sandbox_wallet_balance", "Saved balance", "Pay in one step", "none"),
)
COUNTRIES = ("BJ", "CI", "FR", "GH", "KE", "NG", "SN")


def find_method(code: str | None) -> CatalogueMethod | None:
    return next((method for method in METHODS if method.code == code), None)


def usual_plan(code: str) -> Plan:
    """The plan of an attempt that no scenario decides: its payer is asked, and nothing ends by itself.

    By a code that is not ours, mobile money asks on the phone, and anything else ends as payouts do.
    """
    method = find_method(code)
    if method is None and method_category(code) != "mobile_money":
        return USUAL_PLAN
    action = method.action if method else "approve_on_phone"
    if action == "none":
        return plan_for(ScenarioOutcome("complete"), Timing("after"))
    return plan_for(ScenarioOutcome("action", action=action))


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
    problems = ((name, _wrong(field, form.get(name, "").strip())) for name, field in names.items())
    return [FieldProblem(name, text) for name, text in problems if text]


def plain_number(text: str) -> str:
    """A phone number without spaces, dots, dashes and brackets."""
    return text.strip().translate(_SPACERS)


def _wrong(field: PayerField, value: str) -> str:
    if not value:
        return field.missing
    if field is NUMBER:
        return "" if find_card(value) else field.missing
    if may_be_real(value, phone=field is PHONE):
        return "Never type a real card here. Use one of the test numbers"
    if field is PHONE and not _PHONE.fullmatch(plain_number(value)):
        return "Enter a phone number of 7 to 15 digits"
    if len(value) > _LONGEST_NAME:
        return f"{field.label} must have {_LONGEST_NAME} characters or fewer"
    return ""
