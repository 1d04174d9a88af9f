"""The next action of an attempt, as its page shows it (gap K)."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import attrs

from ..records.payment_json import next_action
from ..records.records import AttemptRecord, CheckoutRecord
from .responses import qr_code
from .session_view import SessionView

CODE_DIGITS = 6


def one_time_code(session: CheckoutRecord, attempt: AttemptRecord) -> str:
    """The code that the simulated phone shows for an attempt."""
    digest = sha256(f"{session.form_token}:{attempt.id}".encode()).hexdigest()
    return f"{int(digest, 16) % 10**CODE_DIGITS:0{CODE_DIGITS}d}"


def action_context(view: SessionView) -> dict[str, object]:
    """Make the context of the action's page; `simulated` leads to the page where the payer answers."""
    kind = view.attempt.plan.outcome.action
    texts = _ACTIONS[kind]
    phone = view.attempt.phone
    # only as much of the number as the payer needs to recognise it
    place = f"the number ending in {phone[-2:]}" if phone else "your phone"
    return {
        "kind": kind,
        "api": next_action(view.attempt, in_list=True),
        "heading": texts.heading,
        "lead": texts.lead.format(phone=place, digits=CODE_DIGITS),
        "simulated": texts.simulated,
        "refresh": texts.refresh,
        "digits": CODE_DIGITS,
        "qr": qr_code(f"{view.world.origin}{view.address('phone')}") if kind == "scan_qr_code" else None,
        "details": (
            ("To", view.appearance.brand),
            ("Account", "SANDBOX 0000 1111 2222"),
            ("Amount", view.amount),
            ("Reference", view.payment.reference),
        ),
    }


@attrs.frozen
class _ActionTexts:
    """The texts of an action's page; `refresh` where the payer acts on another device."""

    heading: str
    lead: str
    simulated: tuple[str, str] | None = None
    """A part of the address and the text of the link to it."""
    refresh: bool = False


_ACTIONS: Mapping[str, _ActionTexts] = {
    "redirect_to_url": _ActionTexts(
        "Continue at your bank", "Your bank asks you to confirm, then sends you back here."
    ),
    "embed_iframe": _ActionTexts(
        "Confirm with your bank", "Your bank asks you to confirm in the window below."
    ),
    "collect_otp": _ActionTexts(
        "Enter the code we sent",
        "We sent a code of {digits} digits to {phone}.",
        ("phone", "Open the simulated phone"),
    ),
    "approve_on_phone": _ActionTexts(
        "Approve on your phone",
        "We sent a request to {phone}. Approve it there, and this page continues.",
        ("phone", "Open the simulated phone"),
        refresh=True,
    ),
    "scan_qr_code": _ActionTexts(
        "Scan with your wallet app",
        "Open the app, scan the code and confirm. This page continues by itself.",
        ("phone", "Open the simulated wallet app"),
        refresh=True,
    ),
    "display_payment_instructions": _ActionTexts(
        "Send the transfer",
        "Use these details at your bank. This page continues once the money has arrived.",
        ("bank", "Open the simulated bank"),
        refresh=True,
    ),
    "complete_with_sdk": _ActionTexts(
        "Enter your card", "The card form is the provider’s own. We never see the number."
    ),
}
