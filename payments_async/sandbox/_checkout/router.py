"""Routes a payer's request, by address and method, to its page or step.

This is the only place that checks form token, Host and Origin. A form that was made at another step (number
of attempts, and state) has no effect, and an attempt begins only in `session_view.PAYABLE`: so at most one
attempt succeeds. What the payer chose is in the address; what the payer typed is in bodies only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import attrs
from msgspec.structs import replace

from .._common.values import Answer, Request
from .._records.payment_json import ACTIONS
from .._records.records import CheckoutRecord
from .._records.tenants import Tenant
from .._records.world import World
from . import attempt_pages, pages, simulated_bank, submit
from .responses import FILES
from .session_view import PAGES, SessionView

__all__ = ["ACTIONS", "PAGES", "answer_payer"]

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
        return Answer(200, *asset) if asset else _nothing()
    owned, route = find_session(world, name), _ROUTES.get(part)
    if owned is None or route is None:
        return _nothing()
    return _serve(SessionView(world, *owned, request), route)


def _answer_attempt(world: World, request: Request) -> Answer:
    name, _, part = request.path.removeprefix(ACTIONS).partition("/")
    tenant = next((tenant for tenant in world.tenants.values() if name in tenant.attempts), None)
    route = _OF_ATTEMPT.get(part)
    if tenant is None or route is None:
        return _nothing()
    attempt = tenant.attempts[name]
    replaced = attempt is not attempt.payment.active_attempt  # by the one it failed over to
    view = attempt_pages.attempt_view(world, tenant, attempt, request)
    return _serve(view, _OUTCOME if replaced else route)


def _nothing() -> Answer:
    return pages.message_page(
        404,
        "Checkout not found",
        "Check the address, or go back to the shop.",
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
        answer = pages.message_page(405, "Method not allowed", "This page cannot be opened that way.")
        return replace(answer, headers={**answer.headers, "Allow": allowed})
    if not route.foreign and not view.is_own_form():
        return pages.message_page(
            403,
            "Form not accepted",
            "This form did not come from the checkout. Open the checkout again.",
        )
    return route.post(view)
