"""The payer's choices and the options: a country, a method, and what the payer types for it.

Choices may be in the address, so that going back, reloading and opening a second tab just work. Typed values
(phone, name) never are.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from .._common.iso_codes import countries_of
from .._common.json import object_or_null, text_or_null
from .._common.timestamps import date_of
from .._records.payments import method_health
from .._records.records import CheckoutRecord
from .language import Text
from .method_catalogue import (
    CARD,
    COUNTRIES,
    METHODS,
    NUMBER,
    PHONE,
    CatalogueMethod,
    FieldProblem,
    PayerField,
    number_in,
)
from .practice_cards import may_be_real, without_other_cards
from .session_view import SessionView

_RANKS: Mapping[str, int] = {"operational": 0, "available": 0, "degraded": 1, "unavailable": 2}
_HEALTH_TEXTS: Mapping[str, Text] = {
    "operational": Text("Working well"),
    "degraded": Text("Some payments fail"),
    "unavailable": Text("Not working right now"),
}


@attrs.frozen
class Choice:
    """A country and a method, as far as chosen. `locked` when the session leaves no choice of country."""

    country: str | None
    method: CatalogueMethod | None
    locked: bool


@attrs.frozen
class FieldOption:
    """A field of an offered method; `id` is its id on the page and its name in the form."""

    id: str
    name: str
    label: str
    hint: str
    autocomplete: str
    kind: str
    value: str


@attrs.frozen
class MethodOption:
    """A method as it is offered."""

    code: str
    label: str
    description: str
    health: str
    health_text: str
    fields: tuple[FieldOption, ...]
    asks_phone: bool


def locked_country(session: CheckoutRecord) -> str | None:
    """The country that the session is locked to, by itself or through its phone number."""
    restriction = object_or_null(session.payment.body, "restriction") or {}
    phone = object_or_null(restriction, "phone") or {}
    code = session.country or text_or_null(phone, "country")
    return code.upper() if code else None


def offered_methods(session: CheckoutRecord) -> tuple[CatalogueMethod, ...]:
    """The methods open to the payer: with a phone number given, those that use one."""
    return tuple(method for method in METHODS if session.phone is None or PHONE in method.fields)


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
    """The customer's own country if the merchant sent it, else the currency's if that has exactly one."""
    customer, homes = object_or_null(view.payment.body, "customer") or {}, _homes(view)
    own = (text_or_null(customer, "country") or "").upper()
    likely = (own, *homes) if len(homes) == 1 else (own,)
    return next((code for code in likely if code in COUNTRIES), None)


def _homes(view: SessionView) -> tuple[str, ...]:
    """The countries of the payment's currency."""
    return countries_of(view.payment.currency, date_of(view.world.now).date())


def missing_choices(view: SessionView, choice: Choice) -> list[FieldProblem]:
    """Find what is still to be chosen."""
    chosen = (
        ("country", choice.country, Text("Choose a country")),
        ("method", choice.method, Text("Choose a way to pay")),
    )
    return [FieldProblem(name, view.say(text)) for name, value, text in chosen if value is None]


def country_options(view: SessionView) -> list[tuple[str, str]]:
    """The countries that can be chosen, code and name, by name: those of the currency first."""
    names, homes = [(code, view.language.country(code)) for code in COUNTRIES], _homes(view)
    return sorted(names, key=lambda option: (option[0] not in homes, option[1]))


def method_options(view: SessionView, country: str | None, typed: Mapping[str, str]) -> list[MethodOption]:
    """List the methods, working ones first, with what was typed for them."""
    offered = offered_methods(view.session)
    healths = {method: method_health(view.tenant, view.world.now, method.code, country) for method in offered}
    ranked = sorted(offered, key=lambda method: _RANKS[healths[method]])
    return [_method_option(view, method, healths[method], country, typed) for method in ranked]


def _method_option(
    view: SessionView, method: CatalogueMethod, health: str, country: str | None, typed: Mapping[str, str]
) -> MethodOption:
    return MethodOption(
        code=method.code,
        label=view.say(method.label),
        description=view.say(method.description),
        health=health,
        health_text=view.say(_HEALTH_TEXTS[health]) if health in _HEALTH_TEXTS else "",
        fields=field_options(view, method, country, typed),
        asks_phone=PHONE in method.fields,
    )


def field_options(
    view: SessionView, method: CatalogueMethod, country: str | None, typed: Mapping[str, str]
) -> tuple[FieldOption, ...]:
    """The fields of a method, with what was typed; nothing of a card that may be real."""
    safe = without_other_cards(typed, CARD.input_name(NUMBER).removesuffix(NUMBER.name))
    return tuple(
        _field_option(view, method, field, country, safe) for field in typed_fields(view.session, method)
    )


def _field_option(
    view: SessionView,
    method: CatalogueMethod,
    field: PayerField,
    country: str | None,
    typed: Mapping[str, str],
) -> FieldOption:
    input_id, number = method.input_name(field), number_in(country)
    value = typed.get(input_id, "")
    hint = view.say(field.example, number=number) if field.example and number else view.say(field.hint)
    return FieldOption(
        input_id,
        field.name,
        view.say(field.label),
        hint,
        field.autocomplete,
        field.kind,
        "" if may_be_real(value, phone=field is PHONE) else value,
    )


def typed_before(view: SessionView) -> dict[str, str]:
    """What a payer who tries again typed the last time: the phone number."""
    active = view.payment.active_attempt
    if active is None or active.phone is None:
        return {}
    return {method.input_name(PHONE): active.phone for method in METHODS if PHONE in method.fields}
