"""What a payer can choose from here. All of it is fiction of the sandbox's own.

The interface shows no method codes, and its discovery endpoints are not described: these methods exist in no
service. The countries are real, so that names and restrictions can be tried; what they offer is not.
"""

from __future__ import annotations

import attrs


@attrs.frozen
class Field:
    """Something the payer types for a method. `name` is also the form's."""

    name: str
    label: str
    hint: str
    autocomplete: str
    kind: str
    """The input's type."""


@attrs.frozen
class Method:
    """A way to pay. `action` is the next action it asks for (gap K), `none` for a payment in one step."""

    code: str
    label: str
    description: str
    action: str
    fields: tuple[Field, ...] = ()


PHONE = Field(
    "phone", "Phone number", "With the country code, as in +229\u00a090\u00a000\u00a000\u00a000", "tel", "tel"
)
PAYER_NAME = Field("payer_name", "Name on the account", "As your bank knows it", "name", "text")

METHODS = (
    Method("sandbox_mobile", "Mobile money", "Approve on your phone", "approve_on_phone", (PHONE,)),
    Method("sandbox_mobile_code", "Mobile money, by code", "We text you a code", "collect_otp", (PHONE,)),
    Method("sandbox_card", "Card", "Enter your card details", "complete_with_sdk"),
    Method("sandbox_wallet", "Wallet app", "Scan a code with your phone", "scan_qr_code"),
    Method("sandbox_bank", "Online banking", "Confirm at your bank", "redirect_to_url"),
    Method("sandbox_bank_window", "Bank window", "Confirm without leaving this page", "embed_iframe"),
    Method(
        "sandbox_bank_transfer",
        "Bank transfer",
        "Send the money yourself",
        "display_payment_instructions",
        (PAYER_NAME,),
    ),
    Method("sandbox_wallet_balance", "Saved balance", "Pay in one step", "none"),
)
COUNTRIES = ("BJ", "CI", "FR", "GH", "KE", "NG", "SN")


def find_method(code: str | None) -> Method | None:
    """The method of this code; None when there is none."""
    return next((method for method in METHODS if method.code == code), None)
