"""What a creation sends, field by field: how each arrives, and what is refused before anything leaves."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_async import (
    AppearanceInput,
    AttemptInput,
    CheckoutRestriction,
    CustomerInput,
    Instrument,
    PhoneInput,
)
from payments_async.errors import InvalidRequest
from tests.fidelity.document import SCHEMAS, properties
from tests.support.creations import PAYMENTS, SMALLEST, create
from tests.support.jumping import EPOCH
from tests.support.motion import jumping
from tests.support.surfaces import Connect, error_of
from tests.support.watched import WatchedSandbox

one_surface = pytest.mark.parametrize("surface", ["async"], indirect=True)
"""The mirror makes and checks no request itself."""
KNOWN = {fact["id"] for fact in tomllib.loads((Path(__file__).parents[1] / "facts.toml").read_text())["fact"]}
REQUESTS = {
    "payment_intents": ("PaymentIntentRequest", "intents"),
    "checkouts": ("CheckoutRequest", "checkouts"),
    "payouts": ("PayoutRequest", "payouts"),
}
"""{resource: what the document and what the facts call its request}."""
MISSING = (None, "is required")
ISO = "three uppercase letters"
COUNTRY = "must be a two-letter country code, not "
NOT_TEXT = "must be text, not int"


@attrs.frozen
class Labelled(Instrument):
    label: str | None = None


class Ours(CustomerInput):
    """With nothing added."""


@attrs.frozen
class Sent:
    """A value, and what arrives of it."""

    value: Any
    wire: Any


def sent(value: Any) -> Sent:
    """A value that arrives as it is, unless it says how."""
    return value if isinstance(value, Sent) else Sent(value, value)


def of(cls: Any, **fields: Any) -> Sent:
    """A nested object with these fields, which arrives with them and no other."""
    return Sent(cls(**fields), fields)


CUSTOMER = {
    "email": "ada@example.test",
    "first_name": "Ada",
    "last_name": "Adéyèmi",
    "address": "1 Rue du Port",
    "city": "Cotonou",
    "state": "Littoral",
    "zip": "01 BP 1",
    "country": "BJ",
}
CUSTOMERS: tuple[list[Any], list[Any]] = (
    [*(Sent(CustomerInput(**{name: CUSTOMER[name]}), {name: CUSTOMER[name]}) for name in CUSTOMER), CUSTOMER],
    [
        ("Ada Adeyemi", "CustomerInput or a mapping"),
        *((CustomerInput(**{name: 7777}), {f"customer.{name}": NOT_TEXT}) for name in [*CUSTOMER][:-1]),
        *((CustomerInput(country=bad), {"customer.country": COUNTRY}) for bad in ("Benin", "BJ\n", "ВJ", 12)),
        *(({"country": bad}, {"customer.country": COUNTRY}) for bad in ("Ghana", "G1", 12)),
        ({"a": {"b": {3: "c"}}}, "text keys"),
        ({"a": ["x", "\udc80"]}, "lone surrogate"),
        (Ours(email="e"), "must be CustomerInput itself or a mapping, not its subclass Ours"),
    ],
)
PAIRS: list[Any] = [{f"k{n}": f"v{n}" for n in range(10)}, {"a": {"b": [1, None, True, "é"]}}]
TOO_MANY = [
    ({str(n): n for n in range(11)}, "at most 10"),
    ("text", "must be a mapping, not str"),
    ({"a": float("nan")}, "not finite"),
    ({"a": {1, 2}}, "a is a set, which JSON cannot carry"),
]
GATEWAYS = {"sandbox_card": {"three_d_secure": True}, "sandbox_mobile": {"ussd_menu": 1}}
NO_GATEWAYS = [
    (["card"], "must be a mapping, not list"),
    ({7: {"a": 1}}, "text keys"),
    ({"a": [Decimal("Infinity")]}, "a.0 is a number that is not finite"),
    ({"a": b"bytes"}, "bytes, which JSON cannot carry"),
]
BANK = {
    "account_name": "Ada Adeyemi",
    "account_number": "0011223344",
    "bank_code": "058",
    "swift_bic": "GTBINGLA",
}
DESTINATIONS = [
    of(Instrument, type="phone", phone_number="+22990000000", country="BJ", account_name="Ada A."),
    of(Instrument, type="bank_account", country="NG", **BANK),
    of(Instrument, type="crypto_address", address="addr1", network="testnet", memo_tag="77"),
]
TEXTS = sorted({name for each in DESTINATIONS for name in each.wire} - {"type", "country"})

ARRIVE: dict[str, list[Any]] = {
    "payment.currency": ["XOF", "GHS", "EUR"],
    "payment.description": ["é" * 500],
    "payment.customer": CUSTOMERS[0],
    "payment.statement_descriptor": ["Ab 1,2.3-é"],
    "payment.entity_created_at": [
        Sent(datetime(2025, 6, 1, 8, 30, tzinfo=timezone(timedelta(hours=2))), "2025-06-01T06:30:00Z"),
        Sent(datetime(2025, 6, 1, 8, 30, 0, 250_000, tzinfo=UTC), "2025-06-01T08:30:00.250000Z"),
        Sent(EPOCH, "2026-01-01T00:00:00Z"),
    ],
    "payment.gateway_options": [GATEWAYS],
    "payment.metadata": PAIRS,
    "checkouts.expires_in_minutes": [30, 1440],
    "checkouts.restriction": [
        of(CheckoutRestriction, country_code="BJ"),
        Sent(
            CheckoutRestriction(phone=PhoneInput("+22990000000", "BJ")),
            {"phone": {"number": "+22990000000", "country": "BJ"}},
        ),
    ],
    "checkouts.appearance": [
        of(AppearanceInput, **{name: value})
        for name, value in {
            "color": "#0a7d4f",
            "display_platform_badge": False,
            "brand": "Chez Ada",
            "icon_url": "https://shop.test/i.png",
        }.items()
    ],
    "intents.attempt": [
        Sent(
            AttemptInput("mtn_bj", country="BJ", phone=PhoneInput("+22990000000", "BJ"), currency="XOF"),
            {
                "method_code": "mtn_bj",
                "country": "BJ",
                "phone": {"number": "+22990000000", "country": "BJ"},
                "currency": "XOF",
            },
        )
    ],
    "payouts.currency": ["GHS"],
    "payouts.method": ["orange_sn"],
    "payouts.description": ["é" * 500],
    "payouts.instrument": [*DESTINATIONS, DESTINATIONS[1].wire],
    "payouts.customer": CUSTOMERS[0],
    "payouts.metadata": PAIRS,
    "payouts.gateway_options": [{"sandbox_mobile": {"ussd_menu": 9}}],
}
"""{a field, as the facts call it: values that arrive}; also a text of the length that the document allows."""
REFUSED: dict[str, list[tuple[Any, Any]]] = {
    "payment.currency": [MISSING, *((bad, ISO) for bad in ("xof", "XOFX", "X0F", "XÖF", "XOF\n", 952))],
    "payment.description": [(7777, NOT_TEXT), ("bad \ud800 text", "lone surrogate")],
    "payment.customer": CUSTOMERS[1],
    "payment.statement_descriptor": [(f"SHOP{sign}7", "letters") for sign in ("_", "*", "#", " 💸", "'")],
    "payment.entity_created_at": [
        (datetime(2026, 1, 1), "time zone"),
        ("2026-01-01T00:00:00Z", "must be a datetime"),
        (date(2026, 1, 1), "must be a datetime, not date"),
        (EPOCH + timedelta(seconds=1), "must not be in the future"),
    ],
    "payment.gateway_options": NO_GATEWAYS,
    "payment.metadata": TOO_MANY,
    "checkouts.expires_in_minutes": [
        *((bad, "must be a whole number of minutes") for bad in (30.0, "60", True)),
        *((bad, "must be 30 to 1440 minutes") for bad in (29, 1441)),
    ],
    "checkouts.restriction": [
        *(
            (bad, {"restriction.country_code": COUNTRY})
            for bad in (CheckoutRestriction("BEN"), {"country_code": 12})
        ),
        (
            CheckoutRestriction(phone=PhoneInput("", country="BEN")),
            {"restriction.phone.number": "is required", "restriction.phone.country": "two-letter"},
        ),
        (CustomerInput(country="BJ"), "must be CheckoutRestriction or a mapping, not CustomerInput"),
        *(
            (both, "takes a country_code or a phone, not both")
            for both in (
                CheckoutRestriction("BJ", PhoneInput("+22990000000")),
                {"country_code": "BJ", "phone": {"number": "+22990000000"}},
            )
        ),
    ],
    "checkouts.appearance": [
        *(
            (AppearanceInput(**{name: bad}), {f"appearance.{name}": rule})
            for name, bad, rule in (
                *(("color", bad, "must be a hex colour") for bad in ("green", "#12345g", "0a7d4f\n")),
                ("display_platform_badge", "yes", "must be True or False, not str"),
                *((name, 7, "must be text") for name in ("brand", "icon_url")),
            )
        ),
    ],
    "intents.attempt": [
        ("mtn_bj", "must be AttemptInput or a mapping, not str"),
        (
            AttemptInput("", country="BEN", phone=PhoneInput("", "B"), currency="xof"),
            {
                "attempt.method_code": "is required",
                "attempt.country": COUNTRY,
                "attempt.phone.number": "is required",
                "attempt.phone.country": COUNTRY,
                "attempt.currency": ISO,
            },
        ),
    ],
    "payouts.currency": [MISSING, *((bad, ISO) for bad in ("xof", "XO", "XOFX"))],
    "payouts.method": [MISSING, ("", "is required"), (1234, "must be text")],
    "payouts.instrument": [
        *((bad, "is required") for bad in (None, {}, Instrument())),
        ("+22990000000", "Instrument or a mapping"),
        *((Instrument("phone", **{text: 7777}), {f"instrument.{text}": NOT_TEXT}) for text in TEXTS),
        (Instrument.phone("+22990000000", "BEN"), {"instrument.country": COUNTRY + "text of 3"}),
        (
            Labelled("phone", phone_number="1"),
            "must be Instrument itself or a mapping, not its subclass Labelled",
        ),
    ],
    "payouts.customer": CUSTOMERS[1],
    "payouts.reference": [
        (1234, NOT_TEXT),
        ("", "must not be blank"),
        ("inv\n7890", "holds a control character"),
        ("inv-7890 ", "begins or ends with a blank"),
        ("\u3000inv-7890", "begins or ends with a blank"),
        ("inv\u200b-7890", "holds U+200B, which is invisible or unassigned"),
    ],
    "payouts.metadata": TOO_MANY,
    "payouts.gateway_options": NO_GATEWAYS,
}
"""{a field: values that are refused, and why}; also a text that is longer."""


def proving(key: str) -> Any:
    """All facts about a field of a request."""
    starts = f"request.{key}.", f"request.{key.partition('.')[2]}."
    return pytest.mark.fact(*sorted(fact for fact in KNOWN if f"{fact}.".startswith(starts)))


def text_of(name: str, length: int) -> str:
    start = "https://x.test/" if name.endswith("_url") else ""
    return start + "x" * (length - len(start))


def check_refused(error: InvalidRequest, field: str, value: Any, rule: Any) -> None:
    """The error names exactly these fields and rules, and shows no value."""
    rules = rule if isinstance(rule, dict) else {field: rule}
    assert set(error.errors) == set(rules), value
    for name, words in rules.items():
        (told,) = error.errors[name]
        assert words in told
        assert f"{name}: " in str(error)
        assert words in str(error)
    assert (error.effect, error.attempts) == ("none", ())
    shown = str(value)
    if len(shown) > 3:
        assert shown not in str(error) + repr(error) + repr(error.errors)


def fields() -> Iterator[Any]:
    """(resource, field, the facts' name of both) for each field of the document but the amount."""
    for resource, (schema, group) in REQUESTS.items():
        for name in properties(schema).keys() - {"amount"}:
            is_shared = group != "payouts" and f"{group}.{name}" not in ARRIVE
            key = f"payment.{name}" if is_shared else f"{group}.{name}"
            yield pytest.param(resource, name, key, marks=proving(key), id=f"{resource} {name}")


@one_surface
@pytest.mark.fact("conventions.timestamps-iso-utc")
@pytest.mark.parametrize(("resource", "name", "key"), sorted(fields(), key=lambda row: str(row.id)))
@pytest.mark.observed("descriptions are not null")
async def test_a_field_arrives_unchanged_or_is_refused(
    connect: Connect, watched: WatchedSandbox, resource: str, name: str, key: str
) -> None:
    client = jumping(connect, watched)
    most = 0 if name == "currency" else properties(REQUESTS[resource][0])[name].get("maxLength", 0)
    for value in [*ARRIVE.get(key, ()), *([text_of(name, most)] if most else ())]:
        given = sent(value)
        await create(client, resource, **{name: given.value})
        assert watched.body[name] == given.wire
        assert set(watched.body) == {*SMALLEST[resource], name}
    before = len(watched.arrived)
    assert before
    for value, rule in [
        *REFUSED.get(key, ()),
        *([(text_of(name, most + 1), f"at most {most}")] if most else ()),
    ]:
        caught = await error_of(InvalidRequest, create(client, resource, **{name: value}))
        check_refused(caught, name, value, rule)
    assert len(watched.arrived) == before


@pytest.mark.fact(
    "service.payout-to-instrument", "service.codes-are-configuration", "service.intent-may-start-attempt"
)
async def test_what_a_creation_is_about_goes_with_it(connect: Connect, watched: WatchedSandbox) -> None:
    client = connect(watched)
    payout = await create(client, "payouts", method="orange_sn", customer=CustomerInput(first_name="Ada"))
    assert (payout.instrument.type, payout.method.value) == ("phone", "orange_sn")
    assert payout.customer.first_name == "Ada"
    intent = await create(client, "payment_intents", attempt={"method_code": "mtn_bj"})
    assert intent.active_attempt.method.value == "mtn_bj"
    assert (await create(client, "payment_intents")).active_attempt is None


@one_surface
@pytest.mark.parametrize(
    "resource",
    [
        pytest.param("payment_intents", marks=pytest.mark.fact("request.intents.shared-fields")),
        pytest.param("checkouts", marks=pytest.mark.fact("request.checkouts.shared-fields")),
    ],
)
async def test_shared_fields_go_together(connect: Connect, watched: WatchedSandbox, resource: str) -> None:
    names = (properties("CheckoutRequest").keys() & properties("PaymentIntentRequest")) - {"amount"}
    given = {name: sent(ARRIVE.get(f"payment.{name}", [text_of(name, 20)])[0]) for name in names}
    await create(jumping(connect, watched), resource, **{name: each.value for name, each in given.items()})
    assert watched.body == {"amount": 50, **{name: each.wire for name, each in given.items()}}


@one_surface
@pytest.mark.parametrize("resource", SMALLEST)
async def test_what_is_none_is_left_out(connect: Connect, watched: WatchedSandbox, resource: str) -> None:
    schema = REQUESTS[resource][0]
    required = set(SCHEMAS[schema]["required"])
    await create(connect(watched), resource, **dict.fromkeys(properties(schema).keys() - required))
    assert set(watched.body) == required


DIGITS: list[tuple[Any, str]] = [
    (1, "1"),
    (Decimal("1.000"), "1"),
    ("10.10", "10.1"),
    (Decimal("12345678901234567.89"), "12345678901234567.89"),
    (Decimal("0.3") + Decimal("0.8"), "1.1"),
    (Decimal("1E+2"), "100"),
    ("1.5e3", "1500"),
]
NO_MONEY: list[tuple[Any, str]] = [
    *((bad, "is a float") for bad in (77.77, 50.0, float("nan"), float("inf"))),
    *((Decimal(bad), "finite") for bad in ("NaN", "sNaN", "Infinity", "-Infinity")),
    *((bad, "at least 1") for bad in (0, -5, Decimal("0.99"), Decimal("0.9999999999999999999999"))),
    *((bad, "must be a Decimal") for bad in (True, b"50", [50])),
    *((bad, "is required") for bad in (None, "")),
    *((bad, "begins with a sign") for bad in ("-5", "+5", "--5")),
    *(
        (bad, "is text that is not a decimal number")
        for bad in (*("1_0", "١٢٣٤", "５０００", " 5 ", "5000\n", "1,000.00", "50 XOF", "NaN", "9" * 101),)
    ),
    *((bad, "more digits") for bad in (10**31, Decimal("1E+5000"), Decimal("1." + "1" * 40))),
]


@pytest.mark.fact("conventions.amounts-major-units")
@pytest.mark.parametrize(
    "resource",
    [
        *(pytest.param(resource, marks=proving("payment.amount")) for resource in PAYMENTS),
        pytest.param("payouts", marks=proving("payouts.amount")),
    ],
)
async def test_an_amount_is_exact_money(connect: Connect, watched: WatchedSandbox, resource: str) -> None:
    client = connect(watched)
    for given, digits in DIGITS:
        record = await create(client, resource, amount=given)
        assert b'"amount":' + digits.encode() + b"," in watched.arrived[-1].body
        assert getattr(record, "payment", record).amount.value == Decimal(digits)
    kept = watched.books.payouts() if resource == "payouts" else watched.books.payments()
    assert [entry.amount for entry in kept] == [Decimal(digits) for _, digits in DIGITS]
    for value, rule in NO_MONEY:
        caught = await error_of(InvalidRequest, create(client, resource, amount=value))
        check_refused(caught, "amount", value, rule)
    assert len(watched.arrived) == len(DIGITS)
