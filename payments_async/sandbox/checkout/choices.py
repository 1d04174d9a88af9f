"""The payer's choices so far, and the options: country, then method, then the method's fields.

Choices are in the address, so that going back, reloading and opening a second tab just work. Typed values
(phone, name) never are.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..common.iso_codes import country_form
from ..records.payments import method_health
from ..records.payouts import object_or_null, text_or_null
from ..records.records import CheckoutRecord
from .method_catalogue import COUNTRIES, METHODS, PHONE, CatalogueMethod, PayerField
from .session_view import SessionView

_RANKS: Mapping[str, int] = {"operational": 0, "available": 0, "degraded": 1, "unavailable": 2}
_HEALTH_TEXTS: Mapping[str, str] = {
    "operational": "Working well",
    "available": "",
    "degraded": "Some payments fail",
    "unavailable": "Not working right now",
}


@attrs.frozen
class Choice:
    """A country and a method, as far as chosen. `locked` when the session leaves no choice of country."""

    country: str | None
    method: CatalogueMethod | None
    locked: bool

    @property
    def step(self) -> str:
        """The next step: `country`, `method` or `pay`."""
        if self.country is None:
            return "country"
        return "pay" if self.method else "method"

    @property
    def steps(self) -> tuple[str, ...]:
        """All the steps of this payer."""
        return ("method", "pay") if self.locked else ("country", "method", "pay")


@attrs.frozen
class ChoiceOption:
    """One option of a list."""

    value: str
    label: str
    description: str = ""
    mark: str = ""
    """A flag."""
    health: str = "available"
    health_text: str = ""


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
    offered = offered_methods(session) if country else ()
    method = next((method for method in offered if method.code == given.get("method")), None)
    return Choice(country, method, locked is not None)


def usual_country(session: CheckoutRecord) -> str | None:
    """The country that is selected at first: the customer's own, if the merchant sent it."""
    customer = object_or_null(session.payment.body, "customer") or {}
    return (text_or_null(customer, "country") or "").upper() or None


def country_name(code: str | None) -> str:
    """The name of a country; empty when it is not known."""
    form = country_form(code)
    return str(form["name"]) if form else ""


def country_offers() -> list[ChoiceOption]:
    """The countries by name."""
    forms = [country_form(code) for code in COUNTRIES]
    offers = [
        ChoiceOption(str(form["code"]), str(form["name"]), mark=str(form["flag"])) for form in forms if form
    ]
    return sorted(offers, key=lambda offer: offer.label)


def health_of(view: SessionView, method: CatalogueMethod, country: str | None) -> tuple[str, str]:
    """The health of a method, as the API calls it and in words."""
    health = method_health(view.tenant, view.world.now, method.code, country)
    return health, _HEALTH_TEXTS[health]


def method_offers(view: SessionView, country: str | None) -> list[ChoiceOption]:
    """List the methods, working ones first."""
    offers = []
    for method in offered_methods(view.session):
        health, text = health_of(view, method, country)
        offers.append(ChoiceOption(method.code, method.label, method.description, "", health, text))
    return sorted(offers, key=lambda offer: _RANKS[offer.health])
