"""The tables of limits: they cover every field, and each rule holds at its edges."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import attrs
import pytest

from payments_async import params
from payments_async._validation import rules
from payments_async._validation import tables as validation
from payments_async.params import Instrument, Params, PayoutRequest
from payments_async.sandbox._api.request_schemas import INSTRUMENT_TYPES

NOW = datetime(2026, 1, 1, tzinfo=UTC)

BLANK = "begins or ends with a blank: take it away, as nothing is trimmed"
UNSEEN = (
    "\u200b\u200d\ufeff\xad\u202e\u2028\xa0\u2003\u3164\ufe0f\u034f\u2800\ue000\u0378\U000e0041\U0010ffff"
)


@pytest.mark.parametrize("cls", validation.RULES, ids=lambda cls: cls.__name__)
def test_every_field_of_a_request_has_a_rule_and_no_other_has(cls: type) -> None:
    assert set(validation.RULES[cls]) == set(attrs.fields_dict(cls))
    assert validation.REQUIRED.get(cls, frozenset()) <= set(validation.RULES[cls])


def test_every_request_class_has_its_table() -> None:
    public = {
        value
        for value in (getattr(params, name) for name in params.__all__)
        if isinstance(value, type) and issubclass(value, Params)
    }
    assert public - {Params, params.PaymentFields} == set(validation.RULES)


@pytest.mark.parametrize(("kind", "required"), INSTRUMENT_TYPES.items())
def test_each_instrument_type_can_be_made_of_what_it_requires(kind: str, required: tuple[str, ...]) -> None:
    make = getattr(Instrument, kind)
    made = make(**{name: "229" if name == "phone_number" else "BJ" for name in required})
    assert made.type == kind
    assert all(getattr(made, name) for name in required)
    assert validation.check(_payout(instrument=made), now=NOW) == {}


def _payout(**fields: Any) -> PayoutRequest:
    given = {"amount": 5, "currency": "XOF", "method": "m", "instrument": {"type": "new"}, **fields}
    return PayoutRequest(**given)


def test_a_subclass_of_a_request_is_refused_in_words() -> None:
    class Own(PayoutRequest):
        """A caller's."""

    request = Own(amount=5, currency="XOF", method="m", instrument={"type": "new"})
    told = {"request": ["must be PayoutRequest itself, not its subclass Own"]}
    assert validation.check(request, now=NOW) == told


def test_json_is_told_from_what_is_not() -> None:
    deep: Any = "leaf"
    for _ in range(32):
        deep = [deep]
    good = {"a": [None, True, 1, 1.5, Decimal("2.5"), "é💸", ("t",), {}], "big": 2**70}
    assert rules.json_object({**good, "deep": deep[0]}) is None
    assert rules.json_object({"deep": deep}) == "is nested more than 32 deep"
    assert rules.json_problem({"a": {"b": [{1: "c"}]}}) == "a.b.0 must have text keys throughout"
    assert rules.json_problem(complex(1)) == "is a complex, which JSON cannot carry"
    assert rules.json_problem({"a\n": [object()]}) == "***.0 is an object, which JSON cannot carry"


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("", "must not be blank: leave it out, or give your own identifier"),
        (" \t", "must not be blank: leave it out, or give your own identifier"),
        ("a\nb", "holds a control character"),
        ("a\x9f", "holds a control character"),
        ("r" * 192, "has 192 characters, at most 191 are allowed"),
        *((text, BLANK) for text in ("a ", " a", "a\xa0", "\u2003a", "\u3000a")),
        *(
            (f"a{letter}b", f"holds U+{ord(letter):04X}, which is invisible or unassigned")
            for letter in UNSEEN
        ),
        *((text, None) for text in ("inv 7/é", "e\u0301", "社員", "직원", "😀", "‘7’", "i\u0307", "नमस्ते")),
    ],
)
def test_a_reference_of_any_script_can_be_found_again(reference: str, told: str | None) -> None:
    assert validation.check(_payout(reference=reference), now=NOW) == ({"reference": [told]} if told else {})


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("ghs", ": write it in capitals"),
        ("Ghs", ": write it in capitals"),
        ("cedis", ", not text of 5 characters"),
        ("gh5", ", not text of 3 characters"),
        (5, ", not int"),
    ],
)
def test_a_currency_in_small_letters_is_named_as_such(value: Any, told: str) -> None:
    assert validation.currency(value) == f"must be three uppercase letters (ISO 4217){told}"
    assert validation.currency("GHS") is None
