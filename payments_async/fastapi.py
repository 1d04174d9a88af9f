"""Bodies for FastAPI: a request's JSON is checked by our rules, and its limits are in the OpenAPI document.

    @app.post("/payouts")
    async def pay(body: PayoutBody) -> dict[str, Any]:
        payout = await client.payouts.create(**body.to_dict())
        return payout.to_dict()

A wrong body is a 422 with every fault at its place, in our words and without a value. An amount is text or a
whole number, never a float. A record is returned as `to_dict()`, which masks personal and account data.
Nothing else of the package imports FastAPI or pydantic.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final, TypeAlias

from ._runtime import SYSTEM
from ._validation import rules
from ._validation.tables import REQUIRED, RULES, check
from .models._masking import HIDDEN, clean
from .params import CheckoutRequest, PaymentIntentRequest, PayoutRequest

try:
    from fastapi import Body
    from pydantic import PlainValidator, WithJsonSchema
    from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError
except ImportError as _missing:
    raise ImportError("payments_async.fastapi needs fastapi: pip install fastapi") from _missing

__all__ = ["CheckoutBody", "PaymentIntentBody", "PayoutBody"]

Faults = dict[tuple[str, ...], str]
"""What is wrong, by the path to each field."""
_AMOUNT: Final = r"^[0-9]+(\.[0-9]+)?$"
"""How a text has an amount: what documents say and what is taken."""


def _checked(cls: type[Any], value: Any) -> Any:
    """Make a request of a body, and check it. Raises pydantic's error, with every fault."""
    faults: Faults = {}
    request = _read(cls, value, (), faults)
    if type(request) is cls:
        for name, problems in check(request, now=SYSTEM.now()).items():
            faults.setdefault(tuple(filter(None, name.split("."))), problems[0])
    else:
        faults[()] = str(rules.Nested(cls)(request))
    if faults:
        raise ValidationError.from_exception_data(
            cls.__name__,
            [  # no value, which may be account data
                InitErrorDetails(type=PydanticCustomError("invalid_request", problem), loc=at, input=HIDDEN)
                for at, problem in faults.items()
            ],
        )
    return request


def _read(cls: type[Any], value: Any, at: tuple[str, ...], faults: Faults) -> Any:
    """Make a request of a mapping, with objects in it; leave anything else for the rules."""
    if not isinstance(value, Mapping):
        return value
    known = RULES[cls]
    for name in value:
        if name not in known:
            near = rules.suggestion(str(name), known)
            may_show = rules.is_identifier(f"{clean(str(name))}0")  # else it may be account data
            faults[(*at, str(name) if may_show else HIDDEN)] = f"is not a field of {cls.__name__}{near}"
    fields = {name: _value(known[name], value[name], (*at, name), faults) for name in value if name in known}
    return cls(**{**dict.fromkeys(REQUIRED.get(cls, ())), **fields})


def _value(rule: rules.Rule, value: Any, at: tuple[str, ...], faults: Faults) -> Any:
    """Read a field's value from JSON."""
    if isinstance(rule, rules.Nested):
        return _read(rule.cls, value, at, faults)
    if rule is rules.timestamp and isinstance(value, str):
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            faults[at] = "must be an ISO 8601 date-time with its time zone"
            return None
    if rule is rules.amount and isinstance(value, str) and not re.fullmatch(_AMOUNT, value):
        faults[at] = 'must be a plain decimal number as text, such as "10.50": digits and a point alone'
        return None
    return value


_PAIRS: Final = {"type": "object", "additionalProperties": True}
_SHOWN: Final[Mapping[rules.Rule, Mapping[str, Any]]] = {
    rules.amount: {
        "anyOf": [
            {"type": "string", "pattern": _AMOUNT},
            {"type": "integer", "minimum": int(rules.LEAST_AMOUNT)},
        ]
    },
    rules.reference: {"type": "string", "minLength": 1, "maxLength": rules.MOST_OF_REFERENCE},
    rules.statement_descriptor: {
        "type": "string",
        "maxLength": rules.MOST_OF_DESCRIPTOR,
        "pattern": f"^{rules.STATEMENT}$",
    },
    rules.metadata: {**_PAIRS, "maxProperties": rules.MOST_PAIRS},
    rules.json_object: _PAIRS,
    rules.minutes: {"type": "integer", "minimum": rules.MINUTES[0], "maximum": rules.MINUTES[-1]},
    rules.timestamp: {"type": "string", "format": "date-time"},
    rules.color: {"type": "string", "pattern": f"^{rules.COLOR}$"},
    rules.boolean: {"type": "boolean"},
}
"""What documents say of a rule; nothing is checked by it. Other rules are of classes: `_document_of`."""


def _document(cls: type[Any]) -> dict[str, Any]:
    """The JSON schema of a request class."""
    needed = REQUIRED.get(cls, frozenset())
    fields = {name: _document_of(rule) for name, rule in RULES[cls].items()}
    return {
        "title": cls.__name__,
        "type": "object",
        "properties": {
            name: shown if name in needed else {"anyOf": [shown, {"type": "null"}]}
            for name, shown in fields.items()
        },
        "required": [name for name in fields if name in needed],
        "additionalProperties": False,
    }


def _document_of(rule: rules.Rule) -> Mapping[str, Any]:
    if isinstance(rule, rules.Nested):
        return _document(rule.cls)
    if isinstance(rule, rules.Letters):
        return {"type": "string", "pattern": f"^{rule.form}$"}
    if isinstance(rule, rules.Text):
        return {"type": "string"} if rule.maximum is None else {"type": "string", "maxLength": rule.maximum}
    return _SHOWN[rule]


def _rules(cls: type[Any]) -> PlainValidator:
    return PlainValidator(partial(_checked, cls))


def _shown(cls: type[Any]) -> WithJsonSchema:
    return WithJsonSchema(_document(cls))


# Without `Body()` FastAPI takes a class that is not a pydantic model for a query parameter.
PayoutBody: TypeAlias = Annotated[
    PayoutRequest, _rules(PayoutRequest), _shown(PayoutRequest), Body(title="PayoutRequest")
]
"""A request's JSON body as a `PayoutRequest`."""
CheckoutBody: TypeAlias = Annotated[
    CheckoutRequest, _rules(CheckoutRequest), _shown(CheckoutRequest), Body(title="CheckoutRequest")
]
"""A request's JSON body as a `CheckoutRequest`."""
PaymentIntentBody: TypeAlias = Annotated[
    PaymentIntentRequest,
    _rules(PaymentIntentRequest),
    _shown(PaymentIntentRequest),
    Body(title="PaymentIntentRequest"),
]
"""A request's JSON body as a `PaymentIntentRequest`."""
