"""The next action of an attempt, as its page shows it (gap K)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256

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
    """What the page of the action says and needs; `simulated` leads to who the payer deals with."""
    kind = view.attempt.plan.outcome.action
    return {
        "kind": kind,
        "api": next_action(view.attempt, in_list=True),
        "simulated": None,
        "refresh": False,
        **_ACTIONS[kind](view),
    }


def _phone_words(view: SessionView) -> str:
    """The payer's number, as much of it as he needs to know it again."""
    phone = view.attempt.phone
    return f"the number ending in {phone[-2:]}" if phone else "your phone"


def _redirect(_: SessionView) -> dict[str, object]:
    return {
        "heading": "Continue at your bank",
        "lead": "Your bank asks you to confirm, then sends you back here.",
    }


def _frame(_: SessionView) -> dict[str, object]:
    return {"heading": "Confirm with your bank", "lead": "Your bank asks you to confirm in the window below."}


def _code(view: SessionView) -> dict[str, object]:
    return {
        "heading": "Enter the code we sent",
        "lead": f"We sent a code of {CODE_DIGITS} digits to {_phone_words(view)}.",
        "simulated": ("phone", "Open the simulated phone"),
        "digits": CODE_DIGITS,
    }


def _approve(view: SessionView) -> dict[str, object]:
    return {
        "heading": "Approve on your phone",
        "lead": f"We sent a request to {_phone_words(view)}. Approve it there, and this page continues.",
        "simulated": ("phone", "Open the simulated phone"),
        "refresh": True,
    }


def _scan(view: SessionView) -> dict[str, object]:
    return {
        "heading": "Scan with your wallet app",
        "lead": "Open the app, scan the code and confirm. This page continues by itself.",
        "qr": qr_code(f"{view.world.origin}{view.address('phone')}"),
        "simulated": ("phone", "Open the simulated wallet app"),
        "refresh": True,
    }


def _instructions(view: SessionView) -> dict[str, object]:
    return {
        "heading": "Send the transfer",
        "lead": "Use these details at your bank. This page continues once the money has arrived.",
        "details": (
            ("To", view.appearance.brand),
            ("Account", "SANDBOX 0000 1111 2222"),
            ("Amount", view.amount),
            ("Reference", view.payment.reference),
        ),
        "simulated": ("bank", "Open the simulated bank"),
        "refresh": True,
    }


def _sdk(_: SessionView) -> dict[str, object]:
    return {
        "heading": "Enter your card",
        "lead": "The card form is the provider’s own. We never see the number.",
    }


_ACTIONS: Mapping[str, Callable[[SessionView], dict[str, object]]] = {
    "redirect_to_url": _redirect,
    "embed_iframe": _frame,
    "collect_otp": _code,
    "approve_on_phone": _approve,
    "scan_qr_code": _scan,
    "display_payment_instructions": _instructions,
    "complete_with_sdk": _sdk,
}
