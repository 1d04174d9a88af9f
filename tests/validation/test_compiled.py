"""The quick test of a request says yes exactly where the walk through its table finds no fault."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_async import params
from payments_async._validation import compiled
from payments_async._validation import rules as rules
from payments_async._validation import tables as validation
from payments_async.params import Params

NOW = datetime(2026, 1, 1, tzinfo=UTC)
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


class Posing:
    """What says it is of a class that it is not of, like a mock with a spec."""

    def __init__(self, cls: type) -> None:
        self.cls = cls

    @property  # type: ignore[misc] # the point
    def __class__(self) -> type:
        return self.cls


TEXTS = [
    *(
        "",
        " ",
        "\t",
        "x",
        "x ",
        " x",
        "x\xa0",
        "x\u200by",
        "BJ",
        "B1",
        "XOF",
        "xof",
        "é",
        "XÖF",
        "a_b",
        "a,b.",
        "a\nb",
        "a\x9f",
        "2026-01-01",
    ),
    *("#0a7d4f", "#0a7d4", SURROGATE, Name("BJ"), Name(""), Liar("x" * 999), Liar("")),
    *(letter * size for letter in "xé " for size in (22, 23, 191, 192, 255, 256, 500, 501, 2048, 2049)),
]
NUMBERS = [
    *(0, 1, True, False, 29, 30, 1440, 1441, 2**70, 1.5, float("nan")),
    *map(
        Decimal, ("1", "0.999", "99.99", "1E+19", "1E+20", "1E+30", "1E+31", "-5", "0", "inf", "NaN", "sNaN")
    ),
    *(Decimal(f"1.{'0' * digits}") for digits in (37, 38, 39, 40)),
]
MOMENTS = [
    NOW,
    NOW + timedelta(microseconds=1),
    NOW - timedelta(days=1),
    NOW.replace(tzinfo=None),
    NOW.date(),
]


def deep(levels: int, value: Any) -> Any:
    """Pairs in pairs in pairs."""
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
    MappingProxyType({"k": "v"}),
    MappingProxyType({"k": None}),
    *([], ["k"], ("k",), object(), params.Instrument, b"x"),
]
OBJECTS: list[Any] = [
    *(
        params.Instrument(),
        params.Instrument(type=""),
        params.Instrument(memo_tag="m"),
        params.CustomerInput(),
    ),
    *(
        params.Instrument(network="\udfff"),
        params.CustomerInput(country="Benin"),
        params.PhoneInput(number=""),
    ),
    *(
        params.PhoneInput(number="1"),
        params.AttemptInput(method_code="m", phone={}),
        params.AppearanceInput(),
    ),
    *(params.CheckoutRestriction("BJ"), params.CheckoutRestriction("BJ", {"number": "1"})),
    params.AttemptInput(method_code="m", phone=params.PhoneInput(number="1", country="Benin")),
    Own(type="t"),
    *map(Posing, (params.Instrument, params.PhoneInput, params.CheckoutRestriction)),
]
ODD = [None, *TEXTS, *NUMBERS, *MOMENTS, *MAPPINGS, *OBJECTS]


COUNTRY = validation.all_rules()[params.PhoneInput]["country"]


def agree(request: Params) -> bool:
    """Whether both judge a request alike."""
    return validation.test_of(type(request))(request, NOW) is (validation.faults(request, now=NOW) == {})


def required(cls: type[Params]) -> dict[str, Any]:
    """The least that a request needs."""
    values = {"amount": Decimal(5), "currency": "XOF", "instrument": {"type": "t"}}
    return {name: values.get(name, "x") for name in validation.REQUIRED.get(cls, frozenset())}


@pytest.mark.parametrize("cls", validation.all_rules(), ids=lambda cls: cls.__name__)
def test_any_value_of_any_field_is_judged_alike(cls: type[Params]) -> None:
    sound = dict.fromkeys(validation.all_rules()[cls]) | required(cls)
    assert validation.test_of(cls)(cls(**sound), NOW)
    cases = [(name, value) for name in sound for value in ODD]
    assert [case for case in cases if not agree(cls(**{**sound, case[0]: case[1]}))] == []


@pytest.mark.parametrize("rule", [validation.all_rules()[params.PayoutRequest]["currency"], COUNTRY])
def test_a_form_without_its_expression_takes_the_same_texts(rule: rules.Matching) -> None:
    quick = eval(f"lambda v: {compiled._FORMS[rule.form]}")
    texts = ["".join(letters) for size in range(5) for letters in itertools.product("aZ1_ \n", repeat=size)]
    assert [text for text in texts if quick(text) is not (rule(text) is None)] == []


def test_every_form_has_its_quick_test() -> None:
    forms = {rule for table in validation.all_rules().values() for rule in table.values()}
    assert {rule.form for rule in forms if isinstance(rule, rules.Matching)} == {*compiled._FORMS}


GOOD: Mapping[str, st.SearchStrategy[Any]] = {
    "amount": st.decimals(1, 10**6, places=2),
    "currency": st.sampled_from(["XOF", "GHS"]),
    "country": st.sampled_from(["BJ", "gh"]),
    "country_code": st.just("GH"),
    "color": st.sampled_from(["#0a7d4f", "fff"]),
    "display_platform_badge": st.booleans(),
    "expires_in_minutes": st.integers(30, 1440),
    "entity_created_at": st.just(NOW),
    "metadata": st.dictionaries(st.text("abc"), st.text("xyzé"), max_size=10),
    "gateway_options": st.just({"gate": {"a": [1, "b"]}}),
}
"""What will do where plain text will not."""


def _field(name: str, rule: rules.Rule) -> st.SearchStrategy[Any]:
    """Mostly in order, so that whole requests are, now and then nothing, and anything at all."""
    good = made(rule.cls) if isinstance(rule, rules.Nested) else GOOD.get(name, st.text("abcé.", max_size=9))
    return st.one_of(*[good] * 5, st.none(), st.sampled_from(ODD))


def made(cls: type[Params]) -> st.SearchStrategy[Any]:
    """Requests of one class."""
    return st.builds(cls, **{name: _field(name, rule) for name, rule in validation.all_rules()[cls].items()})


@pytest.mark.no_cover  # heavy under a tracer; what it runs is covered without it
@pytest.mark.parametrize("cls", validation.all_rules(), ids=lambda cls: cls.__name__)
@given(data=st.data())
@settings(deadline=None, max_examples=60)
def test_a_request_is_sound_exactly_when_no_fault_is_found(cls: type[Params], data: st.DataObject) -> None:
    assert agree(data.draw(made(cls)))


def test_requests_in_order_never_meet_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the quick test would only be one more test."""
    requests = [cls(**required(cls)) for cls in validation.all_rules()]

    def walk(*_: object, **__: object) -> None:
        raise AssertionError("walked the table")

    monkeypatch.setattr(validation, "faults", walk)
    for request in requests:
        assert validation.check(request, now=NOW) == {}
    with pytest.raises(AssertionError, match="walked"):
        validation.check(attrs.evolve(requests[-1], amount=None), now=NOW)
