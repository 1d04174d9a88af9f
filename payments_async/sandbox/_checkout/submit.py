"""Handles the checkout's own forms: begin an attempt, enter a code, cancel.

A form has an effect only at the step it was made at, and an attempt begins only where none is under way: so
of two tabs, a double click or a page found by going back, one pays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hmac import compare_digest

from .._common.scenario_words import ScenarioOutcome, magic_scenario
from .._common.values import Answer
from .._records.payments import settle_attempt, start_attempt
from .._records.records import AttemptRecord, Plan, plan_for
from .choices import missing_choices, read_choice, typed_fields
from .method_catalogue import (
    CARD,
    NUMBER,
    PHONE,
    CatalogueMethod,
    FieldProblem,
    plain_number,
    problems_with,
    usual_plan,
)
from .next_action import one_time_code
from .pages import action_page, choosing, not_understood
from .practice_cards import find_card
from .responses import redirect
from .session_view import CANCELLED_CODE, PAYABLE, SessionView

_CANCELLED = ScenarioOutcome("fail", code=CANCELLED_CODE)


def submit(view: SessionView) -> Answer:
    """Do what the form asks for, and redirect to the state of the payment."""
    action = _DOES.get(view.form.get("do", ""))
    if action is None:
        return not_understood()
    if view.form.get("step") != view.step:
        return show_state(view)
    return action(view)


def show_state(view: SessionView) -> Answer:
    """Redirect to the state of the payment: also for a form that came too late."""
    return redirect(view.address("" if view.state == "paid" else "payment"))


def _pay(view: SessionView) -> Answer:
    if view.state not in PAYABLE:
        return show_state(view)
    form = view.form
    choice = read_choice(view.session, form)
    method, problems = choice.method, missing_choices(choice)
    if method is not None:
        fields = typed_fields(view.session, method)
        problems += problems_with(view, method, fields)
    if method is None or problems:
        return choosing(view, choice, form, problems)
    typed = plain_number(form.get(method.input_name(PHONE), "")) if method.asks_phone else ""
    phone = view.session.phone or typed or None
    attempt = start_attempt(
        view.world,
        view.tenant,
        view.payment,
        _plan(view, method, phone),
        method=method.code,
        country=choice.country,
        phone=phone,
    )
    if method is CARD and view.payment.plan is None:
        settle_card(view, attempt)
    return redirect(view.address("payment"))


def settle_card(view: SessionView, attempt: AttemptRecord) -> None:
    """Bring an attempt to the end that its card has. All that is kept of the card is this outcome."""
    card = find_card(view.form.get(CARD.input_name(NUMBER), ""))
    settle_attempt(view.world, view.tenant, attempt, card.outcome if card else None)


def _plan(view: SessionView, method: CatalogueMethod, phone: str | None) -> Plan:
    """The plan of the creation's scenario, else of the magic number, else of the method."""
    if view.payment.plan is not None:
        return view.payment.plan
    magic = magic_scenario(phone) if phone and view.world.profile.magic else None
    if magic is not None and magic.outcome is not None:
        return plan_for(magic.outcome, magic.timing)
    return usual_plan(method.code)


def _enter_code(view: SessionView) -> Answer:
    if view.state != "action" or view.attempt.plan.outcome.action != "collect_otp":
        return show_state(view)
    given = "".join(view.form.get("code", "").split())
    if not compare_digest(given.encode(), one_time_code(view.session, view.attempt).encode()):
        wrong = "This is not the code we sent. Check it and enter it again"
        return action_page(view, [FieldProblem("code", wrong if given else "Enter the code")])
    settle_attempt(view.world, view.tenant, view.attempt)
    return redirect(view.address("payment"))


def _cancel(view: SessionView) -> Answer:
    """Cancel an attempt that waits for the payer. A running one stays, because it may still succeed."""
    if view.state == "action":
        settle_attempt(view.world, view.tenant, view.attempt, _CANCELLED)
    return show_state(view)


_DOES: Mapping[str, Callable[[SessionView], Answer]] = {
    "pay": _pay,
    "code": _enter_code,
    "cancel": _cancel,
}
