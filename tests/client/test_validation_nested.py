"""Nested objects are checked by their dotted names, and all breaches of a request come together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import cycle
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
from tests.support.creations import PAYMENT, SMALLEST, create, row
from tests.support.scripted import ScriptedTransport, answer

pytestmark = pytest.mark.parametrize("surface", ["async"], indirect=True)  # the mirror checks nothing itself

CUSTOMER_TEXTS = ("email", "first_name", "last_name", "address", "city", "state", "zip")
INSTRUMENT_TEXTS = (
    "phone_number",
    "account_name",
    "account_number",
    "bank_code",
    "swift_bic",
    "address",
    "network",
    "memo_tag",
)
BOTH = {"country_code": "BJ", "phone": {"number": "+22990000000"}}
LOCK = "takes a country_code or a phone, not both"


async def faults(connect: Callable[..., Any], resource: str, **fields: Any) -> Mapping[str, list[str]]:
    """What the client says of these fields; nothing may leave."""
    transport = ScriptedTransport(answer(500))
    with pytest.raises(InvalidRequest) as caught:
        await create(connect(transport=transport), resource, **fields)
    assert transport.requests == []
    errors: Mapping[str, list[str]] = caught.value.errors
    return errors


@pytest.mark.parametrize(
    ("resource", "name"),
    [
        row(resource, name, facts=f"request.customer.{name}")
        for resource, name in zip(cycle(SMALLEST), CUSTOMER_TEXTS, strict=False)
    ],
)
async def test_a_customers_field_must_be_text(connect: Callable[..., Any], resource: str, name: str) -> None:
    told = await faults(connect, resource, customer=CustomerInput(**{name: 1234}))  # type: ignore[arg-type] # the point
    assert told == {f"customer.{name}": ["must be text, not int"]}


@pytest.mark.fact("request.customer.country")
@pytest.mark.parametrize("country", ["Benin", "B", "B1", "BJ\n", "ВJ", 12])
async def test_a_customers_country_has_two_letters(connect: Callable[..., Any], country: Any) -> None:
    told = await faults(connect, "payouts", customer=CustomerInput(country=country))
    ((rule),) = told["customer.country"]
    assert rule.startswith("must be a two-letter country code, not ")
    assert list(told) == ["customer.country"]


@pytest.mark.parametrize("code", ["Ghana", "GHA", "G1", 12])
@pytest.mark.parametrize(
    ("resource", "field", "name"),
    [("payouts", "customer", "country"), ("checkouts", "restriction", "country_code")],
)
async def test_a_country_code_in_a_mapping_has_two_letters(
    connect: Callable[..., Any], resource: str, field: str, name: str, code: Any
) -> None:
    told = await faults(connect, resource, **{field: {name: code}})
    ((rule),) = told[f"{field}.{name}"]
    assert rule.startswith("must be a two-letter country code, not ")
    assert list(told) == [f"{field}.{name}"]


@pytest.mark.parametrize(
    ("resource", "field", "given", "name"),
    [
        ("payouts", "customer", CustomerInput(country="gh"), "customer.country"),
        ("checkouts", "customer", {"country": "Gh"}, "customer.country"),
        ("payouts", "instrument", Instrument.phone("+233200000001", "gh"), "instrument.country"),
        ("checkouts", "restriction", CheckoutRestriction("gh"), "restriction.country_code"),
        ("checkouts", "restriction", {"country_code": "gh"}, "restriction.country_code"),
    ],
)
async def test_a_country_code_in_lower_case_is_a_warning(
    connect: Callable[..., Any], resource: str, field: str, given: Any, name: str
) -> None:
    client = connect(transport=ScriptedTransport())
    prepare = getattr(client, resource).prepare
    with pytest.warns(RuntimeWarning, match=f"{resource}.create: {name} is a country code in lower case"):
        prepare(**{**SMALLEST[resource], field: given})


@pytest.mark.parametrize(
    "name", [row(name, facts=f"request.payouts.instrument.{name}") for name in INSTRUMENT_TEXTS]
)
async def test_a_destinations_field_must_be_text(connect: Callable[..., Any], name: str) -> None:
    told = await faults(connect, "payouts", instrument=Instrument("phone", **{name: 1234}))  # type: ignore[arg-type] # the point
    assert told == {f"instrument.{name}": ["must be text, not int"]}


@pytest.mark.fact("request.payouts.instrument.country")
async def test_a_destinations_country_has_two_letters(connect: Callable[..., Any]) -> None:
    told = await faults(connect, "payouts", instrument=Instrument.phone("+22990000000", "BEN"))
    assert told == {"instrument.country": ["must be a two-letter country code, not text of 3 characters"]}


@pytest.mark.fact("request.checkouts.restriction.exclusive")
@pytest.mark.parametrize(
    "restriction",
    [CheckoutRestriction("BJ", PhoneInput("+22990000000")), BOTH],
    ids=["params", "mapping"],
)
async def test_a_session_is_locked_to_a_country_or_a_phone(
    connect: Callable[..., Any], restriction: Any
) -> None:
    assert await faults(connect, "checkouts", restriction=restriction) == {"restriction": [LOCK]}


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        row(
            "restriction",
            CheckoutRestriction("BEN"),
            {"restriction.country_code": "two-letter country code"},
            facts="request.checkouts.restriction.country",
        ),
        row(
            "restriction",
            CheckoutRestriction(phone=PhoneInput("", country="BEN")),
            {"restriction.phone.number": "is required", "restriction.phone.country": "two-letter"},
            facts="request.checkouts.restriction.phone",
        ),
        row(
            "restriction",
            CustomerInput(country="BJ"),
            {"restriction": "must be CheckoutRestriction or a mapping, not CustomerInput"},
            id="another params class",
        ),
        *(
            row(
                "appearance",
                AppearanceInput(color=color),
                {"appearance.color": "must be a hex colour"},
                facts="request.checkouts.appearance.color",
            )
            for color in ("green", "#12", "#12345g", "0a7d4f\n")
        ),
        row(
            "appearance",
            AppearanceInput(display_platform_badge="yes"),  # type: ignore[arg-type] # the point
            {"appearance.display_platform_badge": "must be True or False, not str"},
            facts="request.checkouts.appearance.display_platform_badge",
        ),
        row(
            "appearance",
            AppearanceInput(brand=7),  # type: ignore[arg-type] # the point
            {"appearance.brand": "must be text"},
            facts="request.checkouts.appearance.brand",
        ),
        row(
            "appearance",
            AppearanceInput(icon_url=7),  # type: ignore[arg-type] # the point
            {"appearance.icon_url": "must be text"},
            facts="request.checkouts.appearance.icon_url",
        ),
        *(
            row(
                "expires_in_minutes",
                value,
                {"expires_in_minutes": "must be a whole number of minutes"},
                facts="request.checkouts.expires_in_minutes.integer",
            )
            for value in (30.0, 45.5, "60", True)
        ),
        *(
            row(
                "expires_in_minutes",
                value,
                {"expires_in_minutes": "must be 30 to 1440 minutes"},
                facts="request.checkouts.expires_in_minutes.30-to-1440",
            )
            for value in (29, 1441, 0, -30)
        ),
    ],
)
async def test_what_only_a_checkout_takes_is_checked(
    connect: Callable[..., Any], field: str, value: Any, told: Mapping[str, str]
) -> None:
    errors = await faults(connect, "checkouts", **{field: value})
    assert list(errors) == list(told)
    for name, rule in told.items():
        assert rule in errors[name][0]


@pytest.mark.fact("request.intents.attempt")
async def test_an_attempt_is_checked_to_its_leaves(connect: Callable[..., Any]) -> None:
    attempt = AttemptInput("", country="BEN", phone=PhoneInput("", "B"), currency="xof")
    errors = await faults(connect, "payment_intents", attempt=attempt)
    assert set(errors) == {f"attempt.{name}" for name in ("method_code", "country", "currency")} | {
        "attempt.phone.number",
        "attempt.phone.country",
    }
    assert await faults(connect, "payment_intents", attempt="mtn_bj") == {
        "attempt": ["must be AttemptInput or a mapping, not str"]
    }


async def test_all_faults_of_a_request_are_reported_together(connect: Callable[..., Any]) -> None:
    errors = await faults(
        connect,
        "checkouts",
        amount=0.5,
        currency="xof",
        description="d" * 501,
        customer=CustomerInput(email=1, country="BEN"),  # type: ignore[arg-type] # the point
        statement_descriptor="_" * 23,
        expires_in_minutes=5,
        restriction=CheckoutRestriction("BEN", PhoneInput("1")),
        idempotency_key="short",
        extra_headers={"Host": "x"},
        extra_query=[],
        extra_body=[],
        timeout=-1,
        deadline="soon",
        max_retries=1.5,
    )
    assert set(errors) == {
        *("amount", "currency", "description", "customer.email", "customer.country"),
        *("statement_descriptor", "expires_in_minutes", "restriction.country_code", "restriction"),
        *("idempotency_key", "extra_headers", "extra_query", "extra_body"),
        *("timeout", "deadline", "max_retries"),
    }
    assert all(len(texts) == 1 for texts in errors.values())


async def test_prepare_refuses_what_create_refuses(connect: Callable[..., Any]) -> None:
    client = connect(transport=ScriptedTransport(answer(500)))
    with pytest.raises(InvalidRequest) as caught:
        client.payment_intents.prepare(**{**PAYMENT, "amount": 0}, idempotency_key="short")
    assert set(caught.value.errors) == {"amount", "idempotency_key"}
    assert caught.value.operation == "payment_intents.create"


@attrs.frozen
class Labelled(Instrument):
    label: str | None = None


class Ours(CustomerInput):
    """With nothing added."""


@pytest.mark.parametrize(
    ("name", "value"), [("instrument", Labelled("phone", phone_number="1")), ("customer", Ours(email="e"))]
)
async def test_a_callers_subclass_is_refused_in_words(
    connect: Callable[..., Any], name: str, value: Any
) -> None:
    """What it adds has no rule, and none of it could be sent."""
    own = type(value).__mro__[1].__name__
    told = await faults(connect, "payouts", **{name: value})
    assert told == {name: [f"must be {own} itself or a mapping, not its subclass {type(value).__name__}"]}
