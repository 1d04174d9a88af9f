"""The interface's limits on requests, as tables of rules. Pure: a request in, its faults out.

A text names the rule and the kind of the value, never the value: it may be somebody's account.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import attrs

from . import _gaps, params

Rule = Callable[[Any], str | None]
"""What is wrong with a value, as the end of a sentence that starts with the field; None when nothing is."""
Errors = dict[str, list[str]]

_STATEMENT = re.compile(r"[\w\s.,-]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_COLOR = re.compile(r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})")
_MAX_DEPTH = 32


def kind(value: object) -> str:
    """A value's type, in words fit for a message."""
    return "nothing" if value is None else type(value).__name__


def described(value: object) -> str:
    """A value's type and, of a text, its length."""
    return f"text of {len(value)} characters" if isinstance(value, str) else kind(value)


def is_unicode(value: str) -> bool:
    """Whether UTF-8 can carry the text: no lone surrogates."""
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


def text(maximum: int | None = None) -> Rule:
    """A string of at most so many characters."""

    def rule(value: Any) -> str | None:
        if not isinstance(value, str):
            return f"must be text, not {kind(value)}"
        if not is_unicode(value):
            return "holds a lone surrogate, which is not text"
        if maximum is not None and len(value) > maximum:
            return f"has {len(value)} characters, at most {maximum} are allowed"
        return None

    return rule


def matching(pattern: str, wanted: str) -> Rule:
    """A string of a given form."""
    compiled = re.compile(pattern)

    def rule(value: Any) -> str | None:
        fits = isinstance(value, str) and compiled.fullmatch(value)
        return None if fits else f"must be {wanted}, not {described(value)}"

    return rule


def amount(value: Any) -> str | None:
    """Major units, exact, at least 1 (Endpoints, Shared body fields). No upper bound but a sane one."""
    if isinstance(value, float):
        return 'is a float, which is not exact: write Decimal("10.10"), an int or decimal text'
    if isinstance(value, str):
        return "is text that is not a decimal number"
    if not isinstance(value, Decimal):
        return f"must be a Decimal, an int or decimal text, not {kind(value)}"
    if not value.is_finite():
        return "must be a finite number"
    if value < 1:
        return "must be at least 1, in major units"
    if value.adjusted() > 30 or len(value.as_tuple().digits) > 40:
        return "has more digits than any amount of money"
    return None


def reference(value: Any) -> str | None:
    """At most 191 characters that can be found again: not blank, and on one line."""
    if problem := text(191)(value):
        return problem
    if not value.strip():
        return "must not be blank: leave it out, or give your own identifier"
    return "holds a control character" if _CONTROL.search(value) else None


def statement_descriptor(value: Any) -> str | None:
    """At most 22 letters, digits, whitespace, periods, commas and hyphens."""
    problem = text(22)(value)
    if problem or (_STATEMENT.fullmatch(value) and "_" not in value):
        return problem
    return "may hold only letters, digits, whitespace, period, comma and hyphen"


def metadata(value: Any) -> str | None:
    """Up to 10 pairs, JSON throughout."""
    if isinstance(value, Mapping) and len(value) > 10:
        return f"has {len(value)} pairs, at most 10 are allowed"
    return json_object(value)


def minutes(value: Any) -> str | None:
    """A session's life, 30 to 1440 minutes."""
    if not isinstance(value, int) or isinstance(value, bool):
        return f"must be a whole number of minutes, not {kind(value)}"
    return None if 30 <= value <= 1440 else "must be 30 to 1440 minutes"


def timestamp(value: Any) -> str | None:
    """An aware moment."""
    if not isinstance(value, datetime):
        return f"must be a datetime, not {kind(value)}"
    return None if value.utcoffset() is not None else "must say its time zone: use an aware datetime"


def color(value: Any) -> str | None:
    """A hex colour."""
    fits = isinstance(value, str) and _COLOR.fullmatch(value)
    return None if fits else f"must be a hex colour such as #0a7d4f, not {described(value)}"


def boolean(value: Any) -> str | None:
    """True or False."""
    return None if isinstance(value, bool) else f"must be True or False, not {kind(value)}"


def json_object(value: Any) -> str | None:
    """A mapping that JSON can carry unchanged."""
    return json_problem(value) if isinstance(value, Mapping) else f"must be a mapping, not {kind(value)}"


def json_problem(value: Any, path: str = "", depth: int = 0) -> str | None:
    """Why a value cannot go into a JSON body exactly as it is, after the keys that lead there."""
    problem: str | None = None
    if depth > _MAX_DEPTH:
        return f"is nested more than {_MAX_DEPTH} deep"
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and is_unicode(key) for key in value):
            return _first_problem(value.items(), path, depth)
        problem = "must have text keys throughout"
    elif isinstance(value, list | tuple):
        return _first_problem(enumerate(value), path, depth)
    elif isinstance(value, float | Decimal):
        problem = None if Decimal(value).is_finite() else "is a number that is not finite"
    elif isinstance(value, str):
        problem = None if is_unicode(value) else "holds a lone surrogate, which is not text"
    elif value is not None and not isinstance(value, int):
        article = "an" if kind(value)[0].lower() in "aeiou" else "a"
        problem = f"is {article} {kind(value)}, which JSON cannot carry"
    return f"{path} {problem}" if problem and path else problem


def _first_problem(items: Iterable[tuple[Any, Any]], path: str, depth: int) -> str | None:
    for key, item in items:
        step = str(key) if str(key).isprintable() else ascii(key)
        if problem := json_problem(item, f"{path}.{step}"[:200] if path else step[:200], depth + 1):
            return problem
    return None


def query(value: Any) -> str | None:
    """A mapping of query parameters: plain values, or lists of them."""
    if not isinstance(value, Mapping):
        return f"must be a mapping, not {kind(value)}"
    items = [one for item in value.values() for one in (item if isinstance(item, list | tuple) else [item])]
    if any(isinstance(item, Mapping | list | tuple) for item in items):
        return "holds a nested value, which a query cannot carry"
    return json_problem(value)


def not_both(country_code: object, phone: object) -> str | None:
    """A restriction is to one country or to one phone number (Endpoints, POST /payment/checkouts)."""
    return "takes a country_code or a phone, not both" if country_code and phone else None


@attrs.frozen
class Nested:
    """A nested object: of its params class, whose own rules apply, or a mapping passed on as it is."""

    cls: type[params.Params]

    def __call__(self, value: Any) -> str | None:
        """What is wrong with a value that is not of the class."""
        if not isinstance(value, Mapping):
            return f"must be {self.cls.__name__} or a mapping, not {kind(value)}"
        if self.cls is params.CheckoutRestriction and (
            problem := not_both(value.get("country_code"), value.get("phone"))
        ):
            return problem
        return json_problem(value)


_country = matching("[A-Za-z]{2}", "a two-letter country code")
_currency = matching("[A-Z]{3}", "three uppercase letters (ISO 4217)")
_any_text = text()
_customer = Nested(params.CustomerInput)
_phone = Nested(params.PhoneInput)

_PAYMENT_FIELDS: Mapping[str, Rule] = {
    "amount": amount,
    "currency": _currency,
    "description": text(500),
    "customer": _customer,
    "return_url": text(2048),
    "webhook_url": text(2048),
    "statement_descriptor": statement_descriptor,
    "receipt_email": text(255),
    "entity_id": text(191),
    "entity_created_at": timestamp,
    "gateway_options": json_object,
    "metadata": metadata,
}

RULES: Mapping[type, Mapping[str, Rule]] = {
    params.CustomerInput: {
        **dict.fromkeys(("email", "first_name", "last_name", "address", "city", "state", "zip"), _any_text),
        "country": _country,
    },
    params.PhoneInput: {"number": _any_text, "country": _country},
    params.Instrument: {
        **dict.fromkeys([field.name for field in attrs.fields(params.Instrument)], _any_text),
        "country": _country,
    },
    params.AttemptInput: {
        "method_code": _any_text,
        "country": _country,
        "phone": _phone,
        "currency": _currency,
    },
    params.CheckoutRestriction: {"country_code": _country, "phone": _phone},
    params.AppearanceInput: {
        "color": color,
        "display_platform_badge": boolean,
        "brand": _any_text,
        "icon_url": _any_text,
    },
    params.CheckoutRequest: {
        **_PAYMENT_FIELDS,
        "expires_in_minutes": minutes,
        "restriction": Nested(params.CheckoutRestriction),
        "appearance": Nested(params.AppearanceInput),
    },
    params.PaymentIntentRequest: {**_PAYMENT_FIELDS, "attempt": Nested(params.AttemptInput)},
    params.PayoutRequest: {
        "amount": amount,
        "currency": _currency,
        "method": _any_text,
        "instrument": Nested(params.Instrument),
        "reference": reference,
        "description": text(500),
        "customer": _customer,
        "webhook_url": text(2048),
        "metadata": metadata,
        "gateway_options": json_object,
    },
}

REQUIRED: Mapping[type, frozenset[str]] = {
    params.CheckoutRequest: _gaps.REQUIRED_OF_PAYMENTS,
    params.PaymentIntentRequest: _gaps.REQUIRED_OF_PAYMENTS,
    params.PayoutRequest: _gaps.REQUIRED_OF_PAYOUTS,
    params.AttemptInput: frozenset({"method_code"}),
    params.PhoneInput: frozenset({"number"}),
}

_NOTHING: frozenset[str] = frozenset()


def check(request: params.Params, *, now: datetime) -> Errors:
    """Every fault of a request, nested objects included, by dotted field name (Endpoints)."""
    errors: Errors = {}
    _check_into(errors, request, "")
    created = getattr(request, "entity_created_at", None)
    if created is not None and "entity_created_at" not in errors and created > now:
        errors["entity_created_at"] = ["must not be in the future"]
    return errors


def _check_into(errors: Errors, request: params.Params, prefix: str) -> None:
    cls = type(request)
    required = REQUIRED.get(cls, _NOTHING)
    for name, rule in RULES[cls].items():
        value = getattr(request, name)
        if name in required and _is_empty(value):
            errors[prefix + name] = ["is required"]
        elif isinstance(rule, Nested) and isinstance(value, rule.cls):
            _check_into(errors, value, f"{prefix}{name}.")
        elif value is None or (value == "" and rule is not reference):
            continue
        elif problem := rule(value):
            errors[prefix + name] = [problem]
    if isinstance(request, params.CheckoutRestriction) and (
        problem := not_both(request.country_code, request.phone)
    ):
        errors[prefix.rstrip(".")] = [problem]


def _is_empty(value: Any) -> bool:
    """Whether nothing was given: None, no text, or an object of nothing else."""
    if isinstance(value, params.Params):
        value = {name: getattr(value, name) for name in RULES[type(value)]}
    if isinstance(value, Mapping):
        return all(item is None or item == "" for item in value.values())
    return value is None or value == ""
