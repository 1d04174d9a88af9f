"""Routes a payer's request, by address and method, to its page or step, or to its session's event stream.

This is the only place that checks form token, Host and Origin. A form that was made at another step (number
of attempts, and state) has no effect, and an attempt begins only in `session_view.PAYABLE`: so at most one
attempt succeeds. What the payer chose is in the address; what the payer typed is in bodies only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import attrs
from msgspec.structs import replace

from .._common.values import Answer, Request, Stream
from .._http.event_stream import EventSource, News, event_stream
from .._records.payment_json import ACTIONS
from .._records.records import CheckoutRecord
from .._records.tenants import Tenant
from .._records.world import World
from . import attempt_pages, pages, simulated_bank, submit
from .language import Text, language_of
from .responses import FILES
from .session_view import PAGES, SessionView, doubt_at, step_of

__all__ = ["ACTIONS", "EVENTS", "PAGES", "answer_payer", "answer_stream"]

EVENTS = "/events"
"""The end of the address of a session's stream."""
Handler = Callable[[SessionView], Answer]


@attrs.frozen
class _Route:
    """A page, and the handler of its form."""

    get: Handler
    post: Handler | None = None
    foreign: bool = False
    """True if the form may be another page's."""


_SIMULATED: Mapping[str, _Route] = {
    name: _Route(simulated_bank.show, simulated_bank.take) for name in simulated_bank.SIMULATED_PAGES
}
_ROUTES: Mapping[str, _Route] = {
    "": _Route(pages.entry, submit.submit),
    "payment": _Route(pages.progress),
    "cancelled": _Route(pages.turned_back),
    **_SIMULATED,
}
_OUTCOME: Final = _Route(attempt_pages.outcome)
_OF_ATTEMPT: Mapping[str, _Route] = {
    "": _OUTCOME,
    "payment": _OUTCOME,
    "code": _Route(attempt_pages.outcome, attempt_pages.enter_code, foreign=True),
    "qr.svg": _Route(attempt_pages.picture),
    "sdk.js": _Route(attempt_pages.provider_sdk),
    **_SIMULATED,
}


def answer_payer(world: World, request: Request) -> Answer:
    """Answer a request under `/checkout/` or `/actions/`."""
    if request.path.startswith(ACTIONS):
        return _answer_attempt(world, request)
    name, _, part = request.path.removeprefix(PAGES).partition("/")
    if name == "assets":
        asset = FILES.asset(part)
        return Answer(200, *asset) if asset else _nothing(request)
    owned, route = find_session(world, name), _ROUTES.get(part)
    if owned is None or route is None:
        return _nothing(request)
    return _serve(SessionView(world, *owned, request), route)


def _answer_attempt(world: World, request: Request) -> Answer:
    name, _, part = request.path.removeprefix(ACTIONS).partition("/")
    tenant = next((tenant for tenant in world.tenants.values() if name in tenant.attempts), None)
    route = _OF_ATTEMPT.get(part)
    if tenant is None or route is None:
        return _nothing(request)
    attempt = tenant.attempts[name]
    replaced = attempt is not attempt.payment.active_attempt  # by the one it failed over to
    view = attempt_pages.attempt_view(world, tenant, attempt, request)
    return _serve(view, _OUTCOME if replaced else route)


def _nothing(request: Request) -> Answer:
    return pages.message_page(
        language_of(accepted=request.headers.get("accept-language", "")),
        404,
        Text("Checkout not found"),
        Text("Check the address, or go back to the shop."),
    )


def find_session(world: World, session_id: str) -> tuple[Tenant, CheckoutRecord] | None:
    """The tenant and the session of this id; None when there is none."""
    for tenant in world.tenants.values():
        if session_id in tenant.sessions:
            return tenant, tenant.sessions[session_id]
    return None


def _serve(view: SessionView, route: _Route) -> Answer:
    method = view.request.method
    if method in ("GET", "HEAD"):
        return route.get(view)
    if method != "POST" or route.post is None:
        allowed = "GET, HEAD, POST" if route.post else "GET, HEAD"
        answer = pages.message_page(
            view.language, 405, Text("Method not allowed"), Text("This page cannot be opened that way.")
        )
        return replace(answer, headers={**answer.headers, "Allow": allowed})
    if not route.foreign and not view.is_own_form():
        return pages.message_page(
            view.language,
            403,
            Text("Form not accepted"),
            Text("This form did not come from the checkout. Open the checkout again."),
        )
    return route.post(view)


# The stream of a session's steps: the one it is at, now and whenever that changes, until the end


def answer_stream(sandbox: EventSource, request: Request) -> Stream | None:
    """The stream that a request asks for; None when it asks for anything else."""
    if not (request.path.startswith(PAGES) and request.path.endswith(EVENTS) and request.method == "GET"):
        return None
    session_id = request.path.removeprefix(PAGES).removesuffix(EVENTS)
    return event_stream(sandbox, _SessionSteps(sandbox, session_id).read)


@attrs.define
class _SessionSteps:
    """The steps of a session; `sent` is the last one that the reader got."""

    sandbox: EventSource
    session_id: str
    sent: str | None = None

    def read(self) -> News:
        with self.sandbox.reading() as world:
            step, is_last, due_in = _status(world, self.session_id)
        events = b"" if step == self.sent else b"data: %s\n\n" % step.encode()
        self.sent = step
        return News(events, is_last, due_in)


def _status(world: World, session_id: str) -> tuple[str, bool, float | None]:
    """The session's step, whether it is the last, and the seconds until time alone may change it."""
    owned = find_session(world, session_id)
    if owned is None:  # the sandbox was started anew, or reset
        return "gone", True, None
    payment = owned[1].payment
    moments = [moment for moment in (world.next_at, doubt_at(payment, world.now)) if moment is not None]
    due_in = min(moments) - world.now if moments else None
    return step_of(payment, world.now), not payment.is_open, due_in
