"""The people and machines a payer deals with besides us: a bank, its window, a phone, a card form.

All are clearly marked as simulated. Each takes an approval or a refusal of the attempt that waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..common.scenario_words import ScenarioOutcome
from ..common.values import Answer
from ..records.payments import settle_attempt
from .next_action import one_time_code
from .pages import say
from .responses import page, redirect
from .session_view import SessionView
from .submit import where_it_stands

_DECLINED = ScenarioOutcome("fail", code="CUSTOMER_DECLINED")


@attrs.frozen
class SimulatedPage:
    """Where the payer answers. `actions` are those it is for; `returns` when the answer leads back to us."""

    name: str
    actions: tuple[str, ...]
    framed: bool = False
    returns: bool = True


PLACES: Mapping[str, SimulatedPage] = {
    "bank": SimulatedPage("Simulated bank", ("redirect_to_url", "display_payment_instructions")),
    "frame": SimulatedPage("Simulated bank", ("embed_iframe",), framed=True),
    "phone": SimulatedPage(
        "Simulated phone", ("approve_on_phone", "collect_otp", "scan_qr_code"), returns=False
    ),
    "provider": SimulatedPage("Simulated card provider", ("complete_with_sdk",)),
}

_EMBEDDED = frozenset({"frame", "provider"})
"""What a merchant shows within a page of his own, when he shows the next action himself."""


def show(visit: SessionView) -> Answer:
    """The place, with what it asks for, if anything."""
    part = _part(visit)
    place = PLACES[part]
    asked = _asked(visit, place)
    abroad = visit.page is not None and part in _EMBEDDED
    context = {
        "visit": visit,
        "place": place,
        "part": part,
        "asked": asked,
        "code": one_time_code(visit.session, visit.attempt) if asked == "collect_otp" else None,
        "token": visit.session.form_token,
        "framed": place.framed or abroad,
        "follows": part == "phone" and visit.page is None,  # it lies beside the page that pays
    }
    frames = "*" if abroad else "'self'" if place.framed else "'none'"
    return page("simulated.html", context, visit.look, frames=frames)


def take(visit: SessionView) -> Answer:
    """The payer approves or refuses there. Without effect unless the place is being waited for."""
    part, answer = _part(visit), visit.form.get("answer", "")
    if answer not in ("approve", "decline"):
        return say(400, "Not understood", "Use one of the buttons of the page.")
    if visit.form.get("step") != visit.step or _asked(visit, PLACES[part]) in (None, "collect_otp"):
        return where_it_stands(visit)
    settle_attempt(visit.world, visit.tenant, visit.attempt, None if answer == "approve" else _DECLINED)
    return redirect(visit.address("payment" if PLACES[part].returns else part))


def _part(visit: SessionView) -> str:
    return visit.request.path.rpartition("/")[2]


def _asked(visit: SessionView, place: SimulatedPage) -> str | None:
    """The action that waits for this place; None when none does."""
    if visit.state != "action":
        return None
    kind = visit.attempt.plan.outcome.action
    return kind if kind in place.actions else None
