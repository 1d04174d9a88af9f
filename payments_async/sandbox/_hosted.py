"""The hosted page's address, `/checkout/{id}`: shows a session and takes the payer's choice.

It is no part of the API: it needs no key, counts against no limit and is not in the request log. A POST pays
or declines as `Sandbox.pay` does. The payer then lands on the session's `return_url` as the merchant gave it,
whatever the outcome: nothing is appended that could pass for proof, because arrival proves nothing
(`docs/interface.md`, What the service does); the outcome is read back through the API. Without a web address
there, or while an action still waits for the payer, the answer leads back to the page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hmac import compare_digest
from urllib.parse import parse_qsl, quote, urlsplit

from ._control import USUAL_METHOD, pay
from ._page import Document, awaits_payer, message_page, session_page, state_of, step_of
from ._payouts import text_or_null
from ._records import Payment, Session
from ._values import Answer, Request
from ._world import World

PAGES = "/checkout/"

_OUTCOMES: Mapping[str, str | None] = {"pay": None, "decline": "fail:CUSTOMER_DECLINED"}
"""The scenario words behind each button; None leaves it to the scenario of the creation."""

_WEB_ADDRESS = re.compile("https?://[^/?#]", re.IGNORECASE)
_KEPT = "%!#$&'()*+,/:;=?@[]~"
"""What stands for itself in an address; the rest is percent-encoded, so that no text can break a header."""


def answer_payer(world: World, request: Request) -> Answer:
    """Answer a request under `/checkout/`."""
    session = _find_session(world, request.path.removeprefix(PAGES))
    if session is None:
        return _say(404, "No such checkout", "Check the address, or go back to where you came from.")
    if request.method in ("GET", "HEAD"):
        landing = _landing(session.payment)
        # Chromium applies form-action to every redirect behind a form, and those are the merchant's to choose
        targets = "'self' http: https:" if landing else "'self'"
        return _answer(200, session_page(session, landing), targets)
    if request.method == "POST":
        return _submit(world, request, session)
    return _say(405, "Not possible", "This page can be read and submitted.", {"Allow": "GET, HEAD, POST"})


def _find_session(world: World, session_id: str) -> Session | None:
    found = (tenant.sessions.get(session_id) for tenant in world.tenants.values())
    return next(filter(None, found), None)


def _submit(world: World, request: Request, session: Session) -> Answer:
    form = dict(parse_qsl(request.body.decode("latin-1")))
    token = form.get("token", "")
    if not _is_own(request, world.origin) or not compare_digest(token.encode(), session.form_token.encode()):
        return _say(403, "Not accepted", "This form was not made by this page. Open the checkout again.")
    choice = form.get("choice", "")
    if choice not in _OUTCOMES:
        return _say(400, "Not understood", "Choose one of the buttons of the page.")
    payment = session.payment
    if awaits_payer(payment) and form.get("step") == step_of(payment):
        pay(world, session.id, method=USUAL_METHOD, phone=None, country=None, outcome=_OUTCOMES[choice])
    landing = None if state_of(payment) == "action" else _landing(payment)
    return Answer(303, {"Location": landing or PAGES + session.id, "Cache-Control": "no-store"}, b"")


def _is_own(request: Request, origin: str) -> bool:
    """Whether a form was sent from this server's own page, and not by another site or a rebound name.

    Browsers always send Host, and Origin with a POST; what sends neither is a program, not a lured payer.
    """
    own = urlsplit(origin).netloc
    host = request.headers.get("host", own)
    sender = request.headers.get("origin", f"http://{host}")
    return host in (own, own.replace("127.0.0.1", "localhost")) and sender == f"http://{host}"


def _landing(payment: Payment) -> str | None:
    """Where the payer goes when the page is done: the `return_url`, or None without a web address there."""
    given = text_or_null(payment.body, "return_url") or ""
    return quote(given, safe=_KEPT) if _WEB_ADDRESS.match(given) else None


def _say(status: int, heading: str, text: str, headers: Mapping[str, str] | None = None) -> Answer:
    return _answer(status, message_page(heading, text), "'none'", headers)


def _answer(status: int, page: Document, targets: str, headers: Mapping[str, str] | None = None) -> Answer:
    policy = f"default-src 'none'; style-src {page.style}; form-action {targets}; base-uri 'none'"
    return Answer(
        status,
        {
            "Content-Type": "text/html; charset=utf-8",
            "Content-Security-Policy": f"{policy}; frame-ancestors 'none'",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",  # not no-referrer, which would make the form's Origin `null`
            "Cache-Control": "no-store",
            **(headers or {}),
        },
        page.html,
    )
