"""An attempt's own pages at `/actions/{attempt id}/`, for merchants who show the next action themselves.

They are the simulated places of the checkout, a door for the one-time code, and what `next_action` names
besides pages. A session's payer comes back to its checkout, any other to what became of the payment.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest

from ..common.values import Answer, Request
from ..records.payment_json import ACTIONS
from ..records.payments import settle_attempt
from ..records.records import AttemptRecord, CheckoutRecord
from ..records.tenants import Tenant
from ..records.world import World
from .next_action import one_time_code
from .pages import say
from .responses import FILES, page, qr_image, redirect
from .session_view import PAGES, SessionView

_AFTER: Mapping[str, tuple[str, str]] = {
    "completed": ("Payment complete", "The payment is done."),
    "failed": ("Payment not made", "The payment was declined or failed. Nothing was taken."),
    "expired": ("Too late", "The time to pay is over. Nothing was taken."),
    "action_required": ("Not confirmed yet", "The payment still waits for you."),
}
_UNDER_WAY = ("On its way", "The payment is being worked on.")


def visit_of(world: World, tenant: Tenant, attempt: AttemptRecord, request: Request) -> SessionView:
    """A visit to an attempt's own pages, as if it had a session where it has none."""
    payment = attempt.payment
    session = payment.session or CheckoutRecord(
        attempt.id, payment, None, None, {}, sha256(f"{attempt.gateway.id}:{attempt.id}".encode()).hexdigest()
    )
    return SessionView(world, tenant, session, request, ACTIONS + attempt.id)


def outcome(visit: SessionView) -> Answer:
    """What became of it: at the session's checkout, else here, with the way back to the merchant."""
    if visit.payment.session is not None:
        return redirect(f"{PAGES}{visit.session.id}/payment")
    status = visit.attempt.status
    heading, text = _AFTER.get(status, _UNDER_WAY)
    context = {
        "visit": visit,
        "heading": heading,
        "text": text,
        "onward": status in ("completed", "failed", "expired"),
    }
    return page("after.html", context, visit.look)


def enter_code(visit: SessionView) -> Answer:
    """The merchant's form sends the one-time code, as `otp`; the right one proves that the payer has it."""
    if visit.state != "action" or visit.attempt.plan.outcome.action != "collect_otp":
        return redirect(visit.address("payment"))
    given = "".join(visit.form.get("otp", "").split())
    if not compare_digest(given.encode(), one_time_code(visit.session, visit.attempt).encode()):
        return say(422, "Not the code we sent", "Go back, check the code and enter it again.")
    settle_attempt(visit.world, visit.tenant, visit.attempt)
    return redirect(visit.address("payment"))


def picture(visit: SessionView) -> Answer:
    """The QR code of the page where the payer's wallet app would confirm."""
    return qr_image(f"{visit.world.origin}{visit.address('phone')}")


def kit(_: SessionView) -> Answer:
    """The provider's kit."""
    found = FILES.asset("sdk.js")
    assert found is not None
    return found
