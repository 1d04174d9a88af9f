"""One request to a session's pages, and the state of its payment for the payer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hmac import compare_digest
from unicodedata import decimal
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import attrs

from .._common.iso_codes import currency
from .._common.json import text_or_null
from .._common.values import Request
from .._records.records import AttemptRecord, CheckoutRecord, PaymentRecord
from .._records.tenants import Tenant
from .._records.world import World
from .appearance import PageAppearance, appearance_of
from .texts import NO_BREAK

DOUBT_AFTER = 60.0
"""Seconds of an attempt under way after which the page says that the outcome is not known."""

CANCELLED_CODE = "CUSTOMER_CANCELLED"
"""The failure of an attempt that the payer gave up."""

PAYABLE = frozenset({"open", "failed", "cancelled"})
"""The states in which an attempt may begin; in every other one it could be a second payment."""

UNFINISHED = frozenset({"waiting", "unknown", "action"})
"""The states that change without the payer's doing on this page."""

_PAID = frozenset({"completed", "refunded", "partially_refunded"})
_BY_ATTEMPT: Mapping[str, str] = {"processing": "waiting", "action_required": "action", "failed": "failed"}


def state_of(payment: PaymentRecord, now: float) -> str:
    """`open`, `waiting`, `action`, `failed`, `cancelled`, `paid`, `expired` or `unknown`.

    An attempt that takes long, or has a status not known here, is `unknown` and never `failed`. One that
    failed over to another is not looked at: the newest attempt stands for the payment.
    """
    if payment.status in _PAID:
        return "paid"
    if not payment.is_open:
        return "expired" if payment.status == "expired" else "unknown"
    active = payment.active_attempt
    return _state_of_attempt(active, now) if active else "open"


def _state_of_attempt(attempt: AttemptRecord, now: float) -> str:
    state = _BY_ATTEMPT.get(attempt.status, "unknown")
    if state == "waiting" and now - attempt.created_at >= DOUBT_AFTER:
        return "unknown"
    if state == "failed" and attempt.failure is not None and attempt.failure.code == CANCELLED_CODE:
        return "cancelled"
    return state


def was_rerouted(payment: PaymentRecord) -> bool:
    """True if the newest attempt took over from one that failed on the gateway's side."""
    return payment.active_attempt is not None and payment.active_attempt.is_failover


PAGES = "/checkout/"

_CHOICES = frozenset({"country", "method"})

_WEB_ADDRESS = re.compile("https?://[^/?#]", re.IGNORECASE)
_KEPT = "%!#$&'()*+,/:;=?@[]~"
"""Characters kept in an address; others are percent-encoded, so that no text can break a header."""


@attrs.frozen(eq=False)
class SessionView:
    """One request to a session's pages, with what the pages show of the payment."""

    world: World
    tenant: Tenant
    session: CheckoutRecord
    request: Request
    page: str | None = None
    """The path of the pages when they are an attempt's own, not the session's."""

    @property
    def payment(self) -> PaymentRecord:
        return self.session.payment

    @property
    def attempt(self) -> AttemptRecord:
        """The newest attempt, in the states that have one."""
        assert self.payment.active_attempt is not None
        return self.payment.active_attempt

    @property
    def state(self) -> str:
        """The state of the payment now."""
        return state_of(self.payment, self.world.now)

    @property
    def step(self) -> str:
        """The step of the payment. A form made at another one has no effect, so none is submitted twice."""
        return f"{len(self.payment.attempts)}-{self.state}"

    @property
    def query(self) -> dict[str, str]:
        """What is chosen in the address: nothing else of it is read, nor kept in a link."""
        given = parse_qsl(self.request.query, keep_blank_values=True)
        return {name: value for name, value in given if name in _CHOICES}

    @property
    def form(self) -> dict[str, str]:
        """The values of the submitted form, with the digits of every script as 0 to 9."""
        given = parse_qsl(self.request.body.decode("latin-1"), keep_blank_values=True)
        return {
            name: "".join(str(decimal(sign)) if sign.isdecimal() else sign for sign in value)
            for name, value in given
        }

    @property
    def appearance(self) -> PageAppearance:
        return appearance_of(self.session.appearance, self.world.origin)

    @property
    def amount(self) -> str:
        """The amount with its currency and all its decimals."""
        return currency(self.payment.currency).plain(self.payment.amount).replace(" ", NO_BREAK)

    @property
    def return_url(self) -> str | None:
        """The payer's last address: the `return_url`, or None when it is not a web address."""
        given = text_or_null(self.payment.body, "return_url") or ""
        return quote(given, safe=_KEPT) if _WEB_ADDRESS.match(given) else None

    def address(self, part: str = "", **query: str) -> str:
        """One of the session's pages, or of the attempt's."""
        values = urlencode(query)
        path = f"{self.page or PAGES + self.session.id}/{part}".removesuffix("/")
        return f"{path}?{values}" if values else path

    def is_own_form(self) -> bool:
        """True if a form was made for this session and sent by one of its pages.

        Browsers always send Host, and Origin with a POST; what sends neither is a program, not a lured payer.
        Another name for this machine (a rebound one) is no page of ours, unless it knows the server's secret.
        """
        own = urlsplit(self.world.origin).netloc
        host = self.request.headers.get("host", own)
        sender = self.request.headers.get("origin", f"http://{host}")
        known = self.request.root or host in (own, own.replace("127.0.0.1", "localhost"))
        token = self.form.get("token", "")
        return (
            bool(known)
            and sender == f"http://{host}"
            and compare_digest(token.encode(), self.session.form_token.encode())
        )
