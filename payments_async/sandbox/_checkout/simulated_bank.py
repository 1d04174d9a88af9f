"""The pages that stand in for a bank, its window, a phone app and a card form.

All are clearly marked as simulated. Each takes an approval or a refusal of the attempt that waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from .._common.scenario_words import ScenarioOutcome
from .._common.values import Answer
from .._records.payments import settle_attempt
from .choices import safe_values
from .method_catalogue import CARD, FieldProblem, problems_with
from .next_action import ON_PHONE, one_time_code
from .pages import not_understood
from .practice_cards import CARDS
from .responses import page, redirect
from .session_view import SessionView
from .submit import settle_card, show_state

_CARD_ACTION = CARD.action
_DECLINED = ScenarioOutcome("fail", code="CUSTOMER_DECLINED")


@attrs.frozen
class SimulatedPage:
    """A page where the payer answers `actions`; with `returns` the answer leads back to the checkout."""

    name: str
    actions: tuple[str, ...]
    framed: bool = False
    returns: bool = True


SIMULATED_PAGES: Mapping[str, SimulatedPage] = {
    "bank": SimulatedPage("Simulated bank", ("redirect_to_url", "display_payment_instructions")),
    "frame": SimulatedPage("Simulated bank", ("embed_iframe",), framed=True),
    "phone": SimulatedPage("Simulated phone", ON_PHONE, returns=False),
    "provider": SimulatedPage("Simulated card provider", ("complete_with_sdk",)),
}

_EMBEDDED = frozenset({"frame", "provider"})
"""Pages that merchants embed in theirs, when they show the next action themselves."""


def show(view: SessionView) -> Answer:
    """The page, with the action that waits for it, if any."""
    return _show(view, [])


def _show(view: SessionView, problems: Sequence[FieldProblem]) -> Answer:
    part = _part(view)
    place = SIMULATED_PAGES[part]
    asked = _awaited_action(view, place)
    abroad = view.page is not None and part in _EMBEDDED
    context = {
        "view": view,
        "place": place,
        "name": place.name,
        "part": part,
        "asked": asked,
        "code": one_time_code(view.session, view.attempt) if asked == "collect_otp" else None,
        "method": CARD if asked == _CARD_ACTION else None,
        "values": safe_values(view.form),
        "cards": CARDS,
        "problems": problems,
        "token": view.session.form_token,
        "framed": place.framed or abroad,
        "follows": part == "phone" and view.page is None,  # it is shown beside the page that pays
    }
    beside = place.framed or context["follows"]
    frames = "*" if abroad else "'self'" if beside else "'none'"
    return page("simulated.html", context, view.appearance, frames=frames)


def take(view: SessionView) -> Answer:
    """Take the payer's approval or refusal. No effect unless an action waits for this page."""
    part, answer = _part(view), view.form.get("answer", "")
    if answer not in ("approve", "decline"):
        return not_understood()
    simulated = SIMULATED_PAGES[part]
    asked = _awaited_action(view, simulated) if view.form.get("step") == view.step else None
    if asked == _CARD_ACTION and answer == "approve":
        if problems := problems_with(view, CARD, CARD.fields):
            return _show(view, problems)
        settle_card(view, view.attempt)
    elif asked not in (None, "collect_otp"):
        settle_attempt(view.world, view.tenant, view.attempt, None if answer == "approve" else _DECLINED)
    elif simulated.returns:
        return show_state(view)
    return redirect(view.address("payment" if simulated.returns else part))


def _part(view: SessionView) -> str:
    return view.request.path.rpartition("/")[2]


def _awaited_action(view: SessionView, simulated: SimulatedPage) -> str | None:
    """The action that waits for this page; None when none does."""
    if view.state != "action":
        return None
    kind = view.attempt.plan.outcome.action
    return kind if kind in simulated.actions else None
