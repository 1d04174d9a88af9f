"""From an address and a method to the page or the step behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from .._records import Session
from .._tenants import Tenant
from .._values import Answer, Request
from .._world import World
from . import _pages, _simulated, _submit
from ._answers import asset
from ._visit import PAGES, Visit

__all__ = ["PAGES", "answer_payer"]

Handler = Callable[[Visit], Answer]


@attrs.frozen
class _Route:
    """A page, and what it does with its form."""

    show: Handler
    take: Handler | None = None


_ROUTES: Mapping[str, _Route] = {
    "": _Route(_pages.entry, _submit.submit),
    "payment": _Route(_pages.progress),
    "cancelled": _Route(_pages.left),
    "status": _Route(_pages.status),
    **{name: _Route(_simulated.show, _simulated.take) for name in _simulated.PLACES},
}


def answer_payer(world: World, request: Request) -> Answer:
    """Answer a request under `/checkout/`."""
    name, _, part = request.path.removeprefix(PAGES).partition("/")
    if name == "assets":
        return asset(part) or _nothing()
    found, route = _find_session(world, name), _ROUTES.get(part)
    if found is None or route is None:
        return _nothing()
    return _serve(Visit(world, *found, request), route)


def _nothing() -> Answer:
    return _pages.say(404, "No such checkout", "Check the address, or go back to where you came from.")


def _find_session(world: World, session_id: str) -> tuple[Tenant, Session] | None:
    return next(
        (
            (tenant, session)
            for tenant in world.tenants.values()
            if (session := tenant.sessions.get(session_id)) is not None
        ),
        None,
    )


def _serve(visit: Visit, route: _Route) -> Answer:
    method = visit.request.method
    if method in ("GET", "HEAD"):
        return route.show(visit)
    if method != "POST" or route.take is None:
        allowed = "GET, HEAD, POST" if route.take else "GET, HEAD"
        answer = _pages.say(405, "Not possible", "This page cannot be used that way.")
        return attrs.evolve(answer, headers={**answer.headers, "Allow": allowed})
    if not visit.is_genuine():
        return _pages.say(
            403, "Not accepted", "This form was not made by this page. Open the checkout again."
        )
    return route.take(visit)
