"""What the checkout's own forms do: begin an attempt, enter a code, cancel.

A form has an effect only at the step it was made at, and an attempt begins only where none is under way: so
of two tabs, a double click or a page found by going back, one pays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hmac import compare_digest
from urllib.parse import urlencode

from ..common.magic_numbers import magic_scenario
from ..common.scenario_words import ScenarioOutcome, Timing
from ..common.values import Answer
from ..records.payments import settle_attempt, start_attempt
from ..records.records import Plan, plan_for
from .choices import read_choice, typed_fields
from .messages import under_way_instead
from .method_catalogue import PHONE, CatalogueMethod, FieldProblem, plain_number, problems_with
from .next_action import one_time_code
from .pages import action_page, choosing, say
from .responses import redirect
from .session_view import CANCELLED_CODE, OPENINGS, SessionView

_CANCELLED = ScenarioOutcome("fail", code=CANCELLED_CODE)


def submit(visit: SessionView) -> Answer:
    """Do what the form asks for, and lead to how the payment then stands."""
    action = _DOES.get(visit.form.get("do", ""))
    if action is None:
        return say(400, "Not understood", "Use one of the buttons of the page.")
    if visit.form.get("step") != visit.step:
        return where_it_stands(visit)
    return action(visit)


def where_it_stands(visit: SessionView) -> Answer:
    """A form that came too late: what it asked for has been done, or can no longer be."""
    if visit.state == "paid":
        return redirect(visit.address())
    wanted = visit.form.get("method")
    told = f"?{urlencode({'method': wanted})}" if under_way_instead(visit, wanted) else ""
    return redirect(f"{visit.address('payment')}{told}")


def _pay(visit: SessionView) -> Answer:
    if visit.state not in OPENINGS:
        return where_it_stands(visit)
    form = visit.form
    choice = read_choice(visit.session, form)
    if choice.method is None:
        return choosing(visit, choice, {}, [FieldProblem(choice.step, "Choose again: this is not offered")])
    problems = problems_with(typed_fields(visit.session, choice.method), form, choice.country)
    if problems:
        return choosing(visit, choice, form, problems)
    typed = plain_number(form.get("phone", "")) if PHONE in choice.method.fields else ""
    phone = visit.session.phone or typed or None
    start_attempt(
        visit.world,
        visit.tenant,
        visit.payment,
        _plan(visit, choice.method, phone),
        method=choice.method.code,
        country=choice.country,
        phone=phone,
    )
    return redirect(visit.address("payment"))


def _plan(visit: SessionView, method: CatalogueMethod, phone: str | None) -> Plan:
    """What the creation's scenario says, else the number's, else what the method usually asks for."""
    if visit.payment.plan is not None:
        return visit.payment.plan
    magic = magic_scenario(phone) if phone and visit.world.profile.magic else None
    if magic is not None and magic.outcome is not None:
        return plan_for(magic.outcome, magic.timing)
    if method.action == "none":
        return plan_for(ScenarioOutcome("complete"), Timing("after"))
    return plan_for(ScenarioOutcome("action", action=method.action))


def _enter_code(visit: SessionView) -> Answer:
    if visit.state != "action" or visit.attempt.plan.outcome.action != "collect_otp":
        return where_it_stands(visit)
    given = "".join(visit.form.get("code", "").split())
    if not compare_digest(given.encode(), one_time_code(visit.session, visit.attempt).encode()):
        text = "This is not the code we sent. Check it and enter it again" if given else "Enter the code"
        return action_page(visit, [FieldProblem("code", text)])
    settle_attempt(visit.world, visit.tenant, visit.attempt)
    return redirect(visit.address("payment"))


def _cancel(visit: SessionView) -> Answer:
    """Only what waits for the payer can be cancelled: what is under way may still succeed."""
    if visit.state == "action":
        settle_attempt(visit.world, visit.tenant, visit.attempt, _CANCELLED)
    return where_it_stands(visit)


_DOES: Mapping[str, Callable[[SessionView], Answer]] = {"pay": _pay, "code": _enter_code, "cancel": _cancel}
