"""The rules of requests: tables that cover every field, limits that hold at their edges, and the one pass.

A request is checked and written in one pass only where the rules find nothing, as `encode` writes it.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.message import Message
from types import MappingProxyType
from typing import Any

import attrs
import pytest

from payments_async import params
from payments_async._codec.encode import checked_body, encode
from payments_async._validation import rules, tables
from payments_async.params import CustomerInput, Instrument, Params, PayoutRequest
from payments_async.sandbox._api.request_schemas import INSTRUMENT_TYPES

NOW = datetime(2026, 1, 1, tzinfo=UTC)

BLANK = "begins or ends with a blank: take it away, as nothing is trimmed"
UNSEEN = (
    "\u200b\u200d\ufeff\xad\u202e\u2028\xa0\u2003\u3164\ufe0f\u034f\u2800\ue000\u0378\U000e0041\U0010ffff"
)


@pytest.mark.parametrize("cls", tables.RULES, ids=lambda cls: cls.__name__)
def test_every_field_of_a_request_has_a_rule_and_no_other_has(cls: type) -> None:
    assert set(tables.RULES[cls]) == set(attrs.fields_dict(cls))
    assert tables.REQUIRED.get(cls, frozenset()) <= set(tables.RULES[cls])


def test_every_request_class_has_its_table() -> None:
    public = {
        value
        for value in (getattr(params, name) for name in params.__all__)
        if isinstance(value, type) and issubclass(value, Params)
    }
    assert public - {Params, params.PaymentFields} == set(tables.RULES)


@pytest.mark.parametrize(("kind", "required"), INSTRUMENT_TYPES.items())
def test_each_instrument_type_can_be_made_of_what_it_requires(kind: str, required: tuple[str, ...]) -> None:
    make = getattr(Instrument, kind)
    made = make(**{name: "229" if name == "phone_number" else "BJ" for name in required})
    assert made.type == kind
    assert all(getattr(made, name) for name in required)
    assert tables.check(_payout(instrument=made), now=NOW) == {}


def _payout(**fields: Any) -> PayoutRequest:
    given = {"amount": 5, "currency": "XOF", "method": "m", "instrument": {"type": "new"}, **fields}
    return PayoutRequest(**given)


def test_a_subclass_of_a_request_is_refused_in_words() -> None:
    class Own(PayoutRequest):
        """A caller's."""

    request = Own(amount=5, currency="XOF", method="m", instrument={"type": "new"})
    told = {"request": ["must be PayoutRequest itself, not its subclass Own"]}
    assert tables.check(request, now=NOW) == told


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
    assert tables.check(_payout(reference=reference), now=NOW) == ({"reference": [told]} if told else {})


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
    assert tables.currency(value) == f"must be three uppercase letters (ISO 4217){told}"
    assert tables.currency("GHS") is None


SURROGATE = "\udfff"


class Name(str):
    """Text of a class of its own."""

    __slots__ = ()


class Liar(str):
    """Text that compares as it likes."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        return False


class Own(params.Instrument):
    """A caller's own kind of a request's class."""


class OwnCustomer(CustomerInput):
    """The same for a customer."""


class Posing:
    """What says it is of a class that it is not of, like a mock with a spec."""

    def __init__(self, cls: type) -> None:
        self.cls = cls

    @property  # type: ignore[misc] # the point
    def __class__(self) -> type:
        return self.cls


class Redacted(dict[str, Any]):
    """A dict whose items are not what it holds."""

    def items(self) -> Any:
        return [(name, "hidden") for name in self]


def row_of_a_database() -> sqlite3.Row:
    """What has keys and items, and is no mapping."""
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    try:
        return connection.execute("select 1 as order_id, 2 as order_id").fetchone()  # type: ignore[no-any-return]
    finally:
        connection.close()


TEXTS = [
    *("", " ", "\t", "x", "x ", " x", "x\xa0", "x\u200by", "BJ", "B1", "XOF", "xof", "é", "XÖF"),
    *("a_b", "a,b.", "a\nb", "a\x9f", "2026-01-01"),
    *("#0a7d4f", "#0a7d4", SURROGATE, Name("BJ"), Name(""), Liar("x" * 999), Liar("")),
    *(letter * size for letter in "xé " for size in (22, 23, 191, 192, 255, 256, 500, 501, 2048, 2049)),
]
NUMBERS = [
    *(0, 1, True, False, 29, 30, 1440, 1441, 2**70, 1.5, float("nan")),
    *map(Decimal, ("1", "0.999", "1E+20", "1E+30", "1E+31", "-5", "0", "inf", "NaN", "sNaN")),
    *(Decimal(f"1.{'0' * digits}") for digits in (38, 39, 40)),
]
MOMENTS = [
    *(NOW, NOW + timedelta(microseconds=1), NOW - timedelta(days=1), NOW.replace(tzinfo=None), NOW.date()),
]


WALLET = {"type": "phone", "phone_number": "+2290190000000", "country": "BJ"}


def deep(levels: int, value: Any) -> Any:
    return deep(levels - 1, {"k": value}) if levels else value


LOOP: dict[str, Any] = {}
LOOP.update(a=LOOP, b=LOOP, c=LOOP)
MAPPINGS: list[Any] = [
    *(deep(levels, "v") for levels in (2, 8, 9, 10, 32, 33, 34)),
    *(deep(levels, value) for levels in (2, 9) for value in (SURROGATE, object(), {7: 1}, [SURROGATE], {})),
    LOOP,
    *({str(number): number for number in range(size)} for size in (0, 1, 10, 11)),
    *({key: "v"} for key in ("é", SURROGATE, 7, Name("k"), None)),
    *(
        {"k": value}
        for value in (*TEXTS[:20], *NUMBERS, *MOMENTS, object(), [object()], ["a"], {"b": 1}, {7: 1})
    ),
    *({"country_code": code, "phone": phone} for code in ("BJ", "", None) for phone in ("1", None)),
    *({**WALLET, **more} for more in ({}, {"memo_tag": None}, {"carrier": "x"}, {"country": "bj"})),
    MappingProxyType({"k": "v"}),
    MappingProxyType({"k": None}),
    *([], ["k"], ("k",), object(), params.Instrument, b"x"),
    *(row_of_a_database(), Message(), array("i", [1]), range(2), Redacted(a="secret")),
]
OBJECTS: list[Any] = [
    *(params.Instrument(), params.Instrument(type=""), params.Instrument(network="\udfff")),
    *(params.CustomerInput(), params.CustomerInput(country="Benin"), OwnCustomer("a@b.test")),
    *(params.PhoneInput(number=""), params.PhoneInput(number="1"), params.AppearanceInput()),
    *(params.CheckoutRestriction("BJ"), params.CheckoutRestriction("BJ", {"number": "1"})),
    *(params.AttemptInput(method_code="m", phone=each) for each in ({}, params.PhoneInput("1", "Benin"))),
    Own(type="t"),
    *map(Posing, (params.Instrument, params.PhoneInput, params.CheckoutRestriction)),
]
ODD = [None, *TEXTS, *NUMBERS, *MOMENTS, *MAPPINGS, *OBJECTS]

FULL: dict[str, Any] = {
    "amount": Decimal("250.50"),
    "currency": "GHS",
    "method": "mtn_momo_gh",
    "instrument": Instrument("phone", "+233241234567", "José", country="GH"),
    "reference": "riders-2026-W47-0042",
    "description": "Règlement de la semaine 47",
    "webhook_url": "https://merchant.test/hooks/payouts",
    "metadata": {"depot": "Accra", "row": 7, "nested": {"paid": False, "left": None}},
    "gateway_options": {},
    "customer": CustomerInput("ama@example.com", "Ama", "Müller", city="Accra", country="GH"),
}
REQUIRED = {"amount": Decimal(5), "currency": "XOF", "method": "m", "instrument": Instrument("t")}


def wrongly_passed(requests: Iterable[PayoutRequest]) -> list[PayoutRequest]:
    """Those written in one pass that the rules refuse or doubt, or that `encode` writes otherwise."""
    return [
        one
        for one in requests
        if (body := checked_body(one, NOW)) is not None
        and (tables.check(one, now=NOW) or tables.doubts(one) or body != encode(one))
    ]


MAPPED = {**REQUIRED, "instrument": WALLET, "customer": {"last_name": "A"}, "gateway_options": deep(3, 1)}


@pytest.mark.parametrize("fields", [REQUIRED, FULL, MAPPED], ids=["required", "full", "mapped"])
def test_a_payout_in_order_never_meets_the_tables(fields: dict[str, Any]) -> None:
    """Otherwise the quick way would only be one more."""
    flat = {**fields, "metadata": {"depot": "Accra", "row": 7, "paid": False, "left": None}}
    assert checked_body(PayoutRequest(**flat)) == encode(PayoutRequest(**flat))
    assert checked_body(PayoutRequest(**{**flat, "amount": None})) is None


PAYMENT = {"amount": Decimal(5), "currency": "XOF", "customer": FULL["customer"], "metadata": {"a": "b"}}
APPEARANCE, ATTEMPT = (
    params.AppearanceInput("#fff", True),
    params.AttemptInput("m", phone=params.PhoneInput("1")),
)
GIVEN: list[tuple[type[Any], dict[str, Any]]] = [
    (PayoutRequest, REQUIRED),
    (params.CheckoutRequest, {**PAYMENT, "expires_in_minutes": 30, "appearance": APPEARANCE}),
    (params.CheckoutRequest, {**PAYMENT, "restriction": {"country_code": "GH"}, "entity_created_at": NOW}),
    (params.PaymentIntentRequest, {**PAYMENT, "attempt": ATTEMPT}),
]


@pytest.mark.parametrize(("cls", "given"), GIVEN)
def test_no_value_of_any_field_is_passed_that_its_rule_refuses(cls: type[Any], given: dict[str, Any]) -> None:
    assert checked_body(cls(**given), NOW) == encode(cls(**given))
    for name, rule in tables.RULES[cls].items():
        assert wrongly_passed(cls(**{**given, name: value}) for value in ODD) == []
        for field in tables.RULES[rule.cls] if isinstance(rule, rules.Nested) else ():
            needed = dict.fromkeys(
                tables.REQUIRED.get(rule.cls, ["type"] if name == "instrument" else []), "1"
            )
            nested = (rule.cls(**{**needed, field: value}) for value in ODD)
            assert wrongly_passed(cls(**{**given, name: value}) for value in nested) == []
