"""The checkout's own pages: the one to pay on, and what follows: waiting, the next action, the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .._common.values import Answer
from .appearance import appearance_of
from .choices import Choice, country_options, first_choice, offered_methods, safe_values, typed_fields
from .messages import ALREADY_PAID, NOT_PAID, Message, message_for
from .method_catalogue import FieldProblem, find_method
from .next_action import ON_PHONE, action_context
from .practice_cards import CARDS
from .responses import page, redirect
from .session_view import PAYABLE, UNFINISHED, SessionView, was_rerouted
from .texts import country, time

RELOAD_AFTER = 3
"""Seconds after which a page that waits reloads, where no script does it."""


def entry(view: SessionView) -> Answer:
    """The page at the session's address: choose, or see the state of the payment."""
    state = view.state
    if state == "open" or (state in PAYABLE and view.query):
        return choosing(view, first_choice(view), {}, [])
    if state == "paid":
        return _state_page(view, ALREADY_PAID)
    return _standing(view)


def progress(view: SessionView) -> Answer:
    """The state of the payment."""
    return redirect(view.address()) if view.state == "open" else _standing(view)


def turned_back(view: SessionView) -> Answer:
    """The page for a payer who turned back before paying."""
    if view.state not in PAYABLE:
        return redirect(view.address("payment"))
    return _state_page(view, NOT_PAID, state="cancelled")


def message_page(status: int, heading: str, text: str) -> Answer:
    """A page with a heading and a text."""
    context = {"heading": heading, "text": text}
    return page("message.html", context, appearance_of({}, ""), status=status)


def not_understood() -> Answer:
    """The page for a form that the checkout's pages do not have."""
    return message_page(400, "Something went wrong", "Use one of the buttons on the page.")


def choosing(
    view: SessionView, choice: Choice, typed: Mapping[str, str], problems: Sequence[FieldProblem]
) -> Answer:
    """The page where everything is chosen and paid, with what was typed and the problems with it."""
    methods = offered_methods(view.session)
    context = {
        **_common(view, "How would you like to pay?"),
        "choice": choice,
        "country": country(choice.country),
        "countries": country_options(view),
        "methods": methods,
        "ticked": choice.method or (methods[0] if len(methods) == 1 else None),
        "fields": {method.code: typed_fields(view.session, method) for method in methods},
        "values": safe_values(typed),
        "cards": CARDS,
        "problems": problems,
    }
    return page("checkout.html", context, view.appearance)


def _standing(view: SessionView) -> Answer:
    if view.state == "action":
        return action_page(view, [])
    return _state_page(view, message_for(view))


def action_page(view: SessionView, problems: Sequence[FieldProblem]) -> Answer:
    """The page of the next action, with the problems of the last try."""
    action = action_context(view)
    context = {
        **_common(view, str(action["heading"])),
        "action": action,
        "problems": problems,
        "refresh": RELOAD_AFTER if action["refresh"] else None,
    }
    return page("action.html", context, view.appearance)


def _state_page(view: SessionView, message: Message, state: str | None = None) -> Answer:
    context = {
        **_common(view, message.heading),
        "message": message,
        "lines": message.said_to(view),
        "state": state or view.state,
        "refresh": RELOAD_AFTER if view.state in UNFINISHED else None,
        "rerouted": view.state in ("waiting", "paid") and was_rerouted(view.payment),
        "retry": _retry(view),
    }
    return page("state.html", context, view.appearance)


def _retry(view: SessionView) -> dict[str, str]:
    """The addresses to try again: with the same method, and with another one."""
    active = view.payment.active_attempt
    country = (active.country if active else None) or ""
    other = view.address(country=country)
    same = find_method(active.method if active else None)
    return {"other": other, "same": view.address(country=country, method=same.code) if same else other}


def _common(view: SessionView, heading: str) -> dict[str, object]:
    """The context of every page of a session."""
    payment = view.payment
    active = payment.active_attempt
    used = find_method(active.method) if active else None
    return {
        "view": view,
        "heading": heading,
        "description": payment.body.get("description"),
        "token": view.session.form_token,
        "until": time(payment.expires_at),
        "paid_at": time(payment.completed_at) if payment.completed_at is not None else None,
        "method_label": used.label if used else None,
        "beside": active and active.plan.outcome.action in ON_PHONE and payment.is_open,
        "refresh": None,
        "problems": (),
    }
