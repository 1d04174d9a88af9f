"""The checkout's own pages: choosing, waiting, the next action, the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from ..common.timestamps import moment
from ..common.values import Answer
from .appearance import look_of
from .choices import (
    Choice,
    country_name,
    country_offers,
    health_of,
    method_offers,
    read_choice,
    typed_fields,
    usual_country,
)
from .messages import Message, already_paid, left_words, under_way_instead, words_for
from .method_catalogue import FieldProblem, find_method, like_this
from .next_action import action_context
from .responses import page, redirect
from .session_view import MOVING, OPENINGS, SessionView, was_rerouted

LOOK_AGAIN = 3
"""Seconds after which a page that waits looks again where no script follows what happens."""

_HEADINGS: Mapping[str, str] = {
    "country": "Where do you pay from?",
    "method": "How would you like to pay?",
    "pay": "Check and pay",
}
_MISSING: Mapping[str, str] = {"country": "Choose a country", "method": "Choose a way to pay"}


def entry(visit: SessionView) -> Answer:
    """The session's address: choose, or see how the payment stands."""
    state = visit.state
    if state == "open" or (state in OPENINGS and visit.query):
        given = visit.query
        choice = read_choice(visit.session, given)
        missed = given.get("asked") == choice.step
        problems = [FieldProblem(choice.step, _MISSING[choice.step])] if missed else []
        return choosing(visit, choice, {}, problems)
    if state == "paid":
        return _state_page(visit, already_paid(visit))
    return _standing(visit)


def progress(visit: SessionView) -> Answer:
    """How the payment that was begun stands."""
    return redirect(visit.address()) if visit.state == "open" else _standing(visit)


def left(visit: SessionView) -> Answer:
    """The payer turned back before paying; nothing has changed."""
    if visit.state not in OPENINGS:
        return redirect(visit.address("payment"))
    return _state_page(visit, left_words(visit), state="cancelled")


def say(status: int, heading: str, text: str) -> Answer:
    """A page that only says something."""
    return page("message.html", {"heading": heading, "text": text}, look_of({}, ""), status=status)


def choosing(
    visit: SessionView, choice: Choice, typed: Mapping[str, str], problems: Sequence[FieldProblem]
) -> Answer:
    """The next step of choosing, with what was wrong with the last one."""
    step = choice.step
    context = {
        **_common(visit, _HEADINGS[step]),
        "choice": choice,
        "country": country_name(choice.country),
        "number": (choice.steps.index(step) + 1, len(choice.steps)),
        "typed": typed,
        "problems": problems,
        "back": f"{visit.address()}?{urlencode({'country': choice.country or ''})}",
        **_CHOOSING[step](visit, choice),
    }
    return page(f"{step}.html", context, visit.look)


def _countries(visit: SessionView, _: Choice) -> dict[str, object]:
    return {"offers": country_offers(), "ticked": usual_country(visit.session)}


def _methods(visit: SessionView, choice: Choice) -> dict[str, object]:
    return {"offers": method_offers(visit, choice.country), "ticked": None}


def _details(visit: SessionView, choice: Choice) -> dict[str, object]:
    assert choice.method is not None
    health, text = health_of(visit, choice.method, choice.country)
    fields = typed_fields(visit.session, choice.method)
    hints = {field.name: f"{field.hint}{like_this(field, choice.country)}" for field in fields}
    return {"fields": fields, "hints": hints, "health": health, "health_text": text}


_CHOOSING = {"country": _countries, "method": _methods, "pay": _details}


def _standing(visit: SessionView) -> Answer:
    if visit.state == "action":
        return action_page(visit, [])
    return _state_page(visit, words_for(visit))


def action_page(visit: SessionView, problems: Sequence[FieldProblem]) -> Answer:
    """What the payer has to do next, and what was wrong with his last try."""
    action = action_context(visit)
    context = {
        **_common(visit, str(action["heading"])),
        "action": action,
        "problems": problems,
        "refresh": LOOK_AGAIN if action["refresh"] else None,
    }
    return page("action.html", context, visit.look)


def _state_page(visit: SessionView, words: Message, state: str | None = None) -> Answer:
    context = {
        **_common(visit, words.heading),
        "words": words,
        "state": state or visit.state,
        "refresh": LOOK_AGAIN if visit.state in MOVING else None,
        "rerouted": visit.state in ("waiting", "paid") and was_rerouted(visit.payment),
        "retry": _retry(visit),
        "onward": words.tone == "good" and visit.request.path.endswith("/payment"),
    }
    return page("state.html", context, visit.look)


def _retry(visit: SessionView) -> dict[str, str]:
    """Where to try again: with the same method, and with another one."""
    active = visit.payment.active_attempt
    country = (active.country if active else None) or ""
    other = f"{visit.address()}?{urlencode({'country': country})}"
    same = find_method(active.method if active else None)
    return {"other": other, "same": f"{other}&method={same.code}" if same else other}


def _common(visit: SessionView, heading: str) -> dict[str, object]:
    """What every page of a session shows."""
    payment = visit.payment
    active = payment.active_attempt
    used = find_method(active.method) if active else None
    return {
        "visit": visit,
        "heading": heading,
        "description": payment.body.get("description"),
        "token": visit.session.form_token,
        "until": moment(payment.expires_at),
        "paid_at": moment(payment.completed_at) if payment.completed_at is not None else None,
        "method_label": used.label if used else None,
        "instead": under_way_instead(visit, visit.query.get("method")),
        "refresh": None,
        "problems": (),
    }
