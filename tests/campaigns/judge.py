"""What a careful client may say of an answer, decided without the client's own code."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from typing import Any

import attrs

from payments_async.errors import (
    APIStatusError,
    DecodeError,
    DuplicateReference,
    OutcomeUnknown,
    PaymentsError,
    RateLimitedError,
    ResponseMismatch,
    error_class,
)
from payments_async.models import Checkout, MethodStatus, Page, Record
from tests.campaigns.spoiling import JUNK_EMAIL, JUNK_PHONE, Spoilt
from tests.support import bodies
from tests.support.calls import PAYOUT
from tests.support.faithful import differences, number

PERSONAL = (bodies.PHONE, bodies.EMAIL, bodies.ACCOUNT, bodies.PHONE.removeprefix("+"))
ASKED = {name: PAYOUT[name] for name in ("amount", "currency", "reference")}
READ_IDS = {
    "checkouts.retrieve": ("cs_1", ("checkout", "id")),
    "payment_intents.retrieve_attempt": ("pa_1", ("id",)),
    "payment_intents.requery": ("pi_1", ("payment_intent_id",)),
    "payouts.sync": ("po_1", ("id",)),
}
"""What each read of one record asks for (`tests.support.calls`), and where its answer says whose it is."""
UNREADABLE = object()


@attrs.frozen
class Verdict:
    """The outcome in a word or two, and what is wrong with it."""

    outcome: str
    breach: str = ""


def judge(case: Spoilt, told: Any, sent: int) -> Verdict:
    """Whether the client's word is one of those that this answer allows."""
    outcome = type(told).__name__
    if isinstance(told, PaymentsError):
        outcome += f" ({told.effect})"
    if sent != 1:
        return Verdict(outcome, f"{sent} requests were sent")
    if _shows_somebody(case, told):
        return Verdict(outcome, "shows personal data")
    return Verdict(
        outcome, _error_breach(case, told) if isinstance(told, Exception) else _success_breach(case, told)
    )


def _shows_somebody(case: Spoilt, told: Any) -> bool:
    """Errors show nobody wherever the data stood; a record masks its own fields, not what was moved."""
    if not isinstance(told, Exception) and any(how.startswith("swap") for how in case.how):
        return False
    shown = f"{told!r} {told}"
    secrets = (*PERSONAL, JUNK_PHONE, JUNK_EMAIL) if isinstance(told, Exception) else PERSONAL
    return any(secret in shown for secret in secrets)


def tree_of(body: bytes) -> Any:
    """The body as the standard library reads it, or UNREADABLE."""
    try:
        return json.loads(body, parse_float=number)
    except (ValueError, RecursionError):
        return UNREADABLE


def id_in(case: Spoilt, tree: Any) -> str | None:
    """The id of what a creation made, where the answer shows one."""
    for name in case.operation.id_path:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree if isinstance(tree, str) and tree else None


def is_another(case: Spoilt, tree: Any) -> bool:
    """Whether the answer to a read is about another record than was asked for. An empty id says nothing."""
    asked, places = READ_IDS.get(case.operation.name, (None, ()))
    found = tree.get("data") if isinstance(tree, dict) else None
    for name in places:
        found = found.get(name) if isinstance(found, dict) else None
    return asked is not None and found not in (None, "", asked)


def _success_breach(case: Spoilt, value: Any) -> str:
    tree = tree_of(case.answer.body)
    if is_another(case, tree):
        return "returned another record than was asked for"
    if not 200 <= case.answer.status < 300:
        return "a success without a 2xx"
    if not isinstance(tree, dict):
        return "a success from what is no JSON object"
    if not isinstance(value, Page | Record):
        return f"returned a {type(value).__name__}"
    if case.operation.creates and (not value.id or value.id != id_in(case, tree)):  # type: ignore[union-attr] # creates make records with ids
        return "a creation without its id"
    if case.operation.creates and (other := _other_than_asked(value)):
        return f"a success with another {other}"
    if isinstance(value, Page) and any(one.raw in _listed(case) for one in value.unread):
        return "a valid record went unread"
    wrong = list(differences(_said(value, tree), value))
    if wrong:
        return f"the record differs from the answer at {wrong[:3]}"
    if pickle.loads(pickle.dumps(value)) != value:
        return "a pickle changes the record"
    return ""


def _listed(case: Spoilt) -> list[Any]:
    """The records of the answer before it was spoilt."""
    records: list[Any] = tree_of(bodies.encoded(case.operation.body))["data"]
    return records


def _said(value: Any, tree: dict[str, Any]) -> Any:
    if isinstance(value, Page):
        return tree
    if isinstance(value, MethodStatus):
        meta = tree.get("meta")
        return {**(meta if isinstance(meta, dict) else {}), **tree["data"]}
    return tree["data"]


def _other_than_asked(value: Any) -> str | None:
    payment = value.payment if isinstance(value, Checkout) else value
    amount = payment.amount if payment else None
    found = {
        "amount": amount.value if amount else None,
        "currency": amount.currency if amount else None,
        "reference": getattr(value, "reference", None) if "Payout" in type(value).__name__ else None,
    }
    for name, answered in found.items():
        same = (
            float(answered) == float(ASKED[name])
            if isinstance(answered, Decimal)
            else answered == ASKED[name]
        )
        if answered is not None and not same:
            return name
    return None


def _error_breach(case: Spoilt, error: Exception) -> str:
    if not isinstance(error, OutcomeUnknown | DecodeError | ResponseMismatch | APIStatusError):
        return f"leaked {type(error).__name__}: {error}"
    twin = pickle.loads(pickle.dumps(error))
    if (type(twin), twin.args, twin.effect) != (type(error), error.args, error.effect):
        return "a pickle changes the error"
    if case.operation.creates:
        return _create_breach(case, error)
    return _read_breach(case, error)


def _create_breach(case: Spoilt, error: PaymentsError) -> str:
    status = case.answer.status
    found = id_in(case, tree_of(case.answer.body)) if 200 <= status < 300 else None
    match error:
        case DecodeError():
            fits = error.effect == "happened" and error.record_id is not None and error.record_id == found
        case ResponseMismatch():
            fits = error.effect == "unknown" and found is not None
        case OutcomeUnknown():
            fits = error.effect == "unknown" and not (400 <= status < 500 and status not in (408, 409, 429))
        case APIStatusError():
            fits = error.status == status and _refused_by_right(status, error)
        case _:
            fits = False
    return (
        "" if fits else f"{type(error).__name__} with effect {error.effect} for HTTP {status}, id {found!r}"
    )


def _refused_by_right(status: int, error: APIStatusError) -> bool:
    """A refusal is certain for a clear 4xx alone; of conflicts only that of a reference is clear."""
    if not 400 <= status < 500 or status == 408:
        return False
    vague = status == 409 and not isinstance(error, DuplicateReference)
    return error.effect == ("unknown" if vague else "none")


def _read_breach(case: Spoilt, error: PaymentsError) -> str:
    status = case.answer.status
    if isinstance(error, APIStatusError):
        known = type(error) is error_class(status, message=error.message)
        fits = error.status == status and not 200 <= status < 300 and known
        if isinstance(error, RateLimitedError) and error.retry_after is not None:
            fits = fits and error.retry_after >= 0
    elif isinstance(error, ResponseMismatch):
        fits = 200 <= status < 300 and is_another(case, tree_of(case.answer.body))
    else:
        fits = isinstance(error, DecodeError) and 200 <= status < 300
    if not fits:
        return f"{type(error).__name__} for HTTP {status}"
    return "" if error.effect == "none" else f"a read with effect {error.effect}"
