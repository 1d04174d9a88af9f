"""An attempt's own pages at `/actions/{attempt id}/`, for merchants who show the next action themselves.

They are the simulated pages of the checkout, an address for the one-time code, and the files that
`next_action` names. Afterwards a session's payer returns to its checkout, any other sees the outcome here.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest

import attrs

from .._common.values import Answer, Request
from .._records.payment_json import ACTIONS
from .._records.payments import settle_attempt
from .._records.records import AttemptRecord, CheckoutRecord
from .._records.tenants import Tenant
from .._records.world import World
from .messages import EXPIRED_IN_DOUBT, UNKNOWN, Message
from .next_action import one_time_code
from .pages import message_page
from .responses import FILES, page, qr_image, redirect
from .session_view import SessionView

_AFTER: Mapping[str, Message] = {
    "completed": Message("Payment complete", "good", ("Your payment went through.",)),
    "failed": Message(
        "Payment failed",
        "bad",
        ("The payment was declined or failed. You have not been charged.",),
    ),
    "expired": attrs.evolve(EXPIRED_IN_DOUBT, heading="Payment expired"),
    "action_required": Message("Not confirmed yet", "calm", ("The payment is still waiting for you.",)),
}
"""By the status of the attempt."""

_UNDER_WAY = Message("Payment in progress", "busy", ("Your payment is being processed.",))


def attempt_view(world: World, tenant: Tenant, attempt: AttemptRecord, request: Request) -> SessionView:
    """A view of an attempt's own pages, with a made-up session where it has none."""
    payment = attempt.payment
    session = payment.session or CheckoutRecord(
        attempt.id, payment, None, None, {}, sha256(f"{attempt.gateway}:{attempt.id}".encode()).hexdigest()
    )
    return SessionView(world, tenant, session, request, ACTIONS + attempt.id)


def outcome(view: SessionView) -> Answer:
    """The outcome of the attempt: at the session's checkout, else here with a link to the merchant."""
    if view.payment.session is not None:
        return redirect(attrs.evolve(view, page=None).address("payment"))
    status = view.attempt.status
    message = _AFTER.get(status, UNKNOWN if view.state == "unknown" else _UNDER_WAY)
    context = {
        "view": view,
        "heading": message.heading,
        "lines": message.said_to(view),
    }
    return page("after.html", context, view.appearance)


def enter_code(view: SessionView) -> Answer:
    """Take the one-time code, `otp`, from the merchant's form; the right one proves that the payer has it."""
    if view.state != "action" or view.attempt.plan.outcome.action != "collect_otp":
        return redirect(view.address("payment"))
    given = "".join(view.form.get("otp", "").split())
    if not compare_digest(given.encode(), one_time_code(view.session, view.attempt).encode()):
        return message_page(
            422,
            "Wrong code",
            "Go back, check the code and enter it again.",
        )
    settle_attempt(view.world, view.tenant, view.attempt)
    return redirect(view.address("payment"))


def picture(view: SessionView) -> Answer:
    """The QR code of the page where the payer's wallet app would confirm."""
    return qr_image(f"{view.world.pages}{view.address('phone')}")


def provider_sdk(_: SessionView) -> Answer:
    asset = FILES.asset("sdk.js")
    assert asset is not None
    return Answer(200, *asset)
