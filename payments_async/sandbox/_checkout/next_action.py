"""The next action of an attempt, as its page shows it (gap K)."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import attrs

from .._records.payment_json import ACTIONS, next_action
from .._records.records import AttemptRecord, CheckoutRecord
from .session_view import SessionView

CODE_DIGITS = 6
ON_PHONE = ("approve_on_phone", "collect_otp", "scan_qr_code")
"""The actions that the payer answers on a phone."""


def one_time_code(session: CheckoutRecord, attempt: AttemptRecord) -> str:
    """The code in the message on the simulated phone."""
    digest = sha256(f"{session.form_token}:{attempt.id}".encode()).hexdigest()
    return f"{int(digest, 16) % 10**CODE_DIGITS:0{CODE_DIGITS}d}"


def action_context(view: SessionView) -> dict[str, object]:
    """Make the context of the action's page; `simulated` leads to the page where the payer answers."""
    kind = view.attempt.plan.outcome.action
    texts = _ACTIONS[kind]
    return {
        "kind": kind,
        "api": next_action(view.attempt, in_list=True),
        "heading": texts.heading,
        "lead": texts.lead,
        "simulated": texts.simulated,
        "refresh": texts.refresh,
        "digits": CODE_DIGITS,
        "qr": f"{ACTIONS}{view.attempt.id}/qr.svg",
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
        f"We sent a {CODE_DIGITS}-digit code to your phone.",
        ("phone", "Open the simulated phone"),
    ),
    "approve_on_phone": _ActionTexts(
        "Approve on your phone",
        "We sent a request to your phone. Approve it, and this page updates by itself.",
        ("phone", "Open the simulated phone"),
        refresh=True,
    ),
    "scan_qr_code": _ActionTexts(
        "Scan with your wallet app",
        "Open the app, scan the code and confirm. This page updates by itself.",
        ("phone", "Open the simulated wallet app"),
        refresh=True,
    ),
    "display_payment_instructions": _ActionTexts(
        "Send the transfer",
        "Use these details at your bank. This page updates once the money has arrived.",
        ("bank", "Open the simulated bank"),
        refresh=True,
    ),
    "complete_with_sdk": _ActionTexts(
        "Enter your card", "The card form belongs to the provider. We never see the number."
    ),
}
