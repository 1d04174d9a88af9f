"""The payer's choices and the options: a country, a method, and what the payer types for it.

Choices may be in the address, so that going back, reloading and opening a second tab just work. Typed values
(phone, name) never are.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter

import attrs

from .._common.json import object_or_null, text_or_null
from .._records.records import CheckoutRecord
from .method_catalogue import (
    CARD,
    COUNTRIES,
    METHODS,
    NUMBER,
    PHONE,
    CatalogueMethod,
    FieldProblem,
    PayerField,
)
from .practice_cards import may_be_real
from .session_view import SessionView
from .texts import country


@attrs.frozen
class Choice:
    """A country and a method, as far as chosen. `locked` when the session leaves no choice of country."""

    country: str | None
    method: CatalogueMethod | None
    locked: bool


def locked_country(session: CheckoutRecord) -> str | None:
    """The country that the session is locked to, by itself or through its phone number."""
    restriction = object_or_null(session.payment.body, "restriction") or {}
    phone = object_or_null(restriction, "phone") or {}
    code = session.country or text_or_null(phone, "country")
    return code.upper() if code else None


def offered_methods(session: CheckoutRecord) -> tuple[CatalogueMethod, ...]:
    """The methods open to the payer: with a phone number given, those that use one."""
    return tuple(method for method in METHODS if session.phone is None or method.asks_phone)


def typed_fields(session: CheckoutRecord, method: CatalogueMethod) -> tuple[PayerField, ...]:
    """List the fields that the payer types for a method; not a phone number that the session fixes."""
    return tuple(field for field in method.fields if session.phone is None or field is not PHONE)


def read_choice(session: CheckoutRecord, given: Mapping[str, str]) -> Choice:
    """The choice in an address or a form; what is not offered counts as not chosen."""
    locked = locked_country(session)
    country = locked or (given["country"] if given.get("country") in COUNTRIES else None)
    offered = offered_methods(session)
    method = next((method for method in offered if method.code == given.get("method")), None)
    return Choice(country, method, locked is not None)


def first_choice(view: SessionView) -> Choice:
    """What is chosen when the page opens: what the address says, else the payer's likely country."""
    choice = read_choice(view.session, view.query)
    return choice if choice.country else attrs.evolve(choice, country=usual_country(view))


def usual_country(view: SessionView) -> str | None:
    """The customer's own country, if the merchant sent it."""
    customer = object_or_null(view.payment.body, "customer") or {}
    own = (text_or_null(customer, "country") or "").upper()
    return own if own in COUNTRIES else None


def missing_choices(choice: Choice) -> list[FieldProblem]:
    """Find what is still to be chosen."""
    chosen = (
        ("country", choice.country, "Choose a country"),
        ("method", choice.method, "Choose a way to pay"),
    )
    return [FieldProblem(name, text) for name, value, text in chosen if value is None]


def country_options(view: SessionView) -> list[tuple[str, str]]:
    """The countries that can be chosen, code and name, by name."""
    return sorted(((code, country(code)) for code in COUNTRIES), key=itemgetter(1))


def safe_values(typed: Mapping[str, str]) -> dict[str, str]:
    """What was typed, by the input's name; nothing of a card that may be real, in any field."""
    phones = {method.input_name(PHONE) for method in METHODS}
    cards = {CARD.input_name(NUMBER)}
    return {
        name: value
        for name, value in typed.items()
        if name in cards or not may_be_real(value, phone=name in phones)
    }
