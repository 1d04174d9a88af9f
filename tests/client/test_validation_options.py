"""Ids, filters, options, unknown arguments: what is bad is refused, all at once, and nothing is sent."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from itertools import cycle
from typing import Any

import pytest

from payments_async import CheckoutRestriction, CustomerInput, Instrument, PhoneInput
from payments_async.errors import InvalidRequest
from payments_async.params.operations import OPERATIONS
from tests.support.creations import SMALLEST, create, row
from tests.support.scripted import ScriptedTransport, answer
from tests.support.surfaces import Connect, error_of

pytestmark = pytest.mark.parametrize("surface", ["async"], indirect=True)  # the mirror checks nothing itself

ID_RULE = "must be an id: text other than . and .., without control characters or lone surrogates"
COUNTRY_RULE = "must be a two-letter country code"
BY_ID = {
    "checkouts.retrieve": ("checkout_id",),
    "payment_intents.retrieve_attempt": ("payment_intent_id", "attempt_id"),
    "payment_intents.refund_availability": ("payment_intent_id",),
    "payment_intents.requery": ("payment_intent_id",),
    "payment_intents.inspect_attempt": ("payment_intent_id", "attempt_id"),
    "payouts.sync": ("payout_id",),
    "payouts.inspect": ("payout_id",),
}
SELF: list[Any] = []
SELF.append(SELF)
BAD_IDS = ["", ".", "..", "a\n", "\x9f", "a\ud800", 7, None]
OPAQUE_IDS = {
    "pi_1.2:3": "pi_1.2%3A3",
    "...": "...",
    "../payouts": "..%2Fpayouts",
    "a b+c": "a%20b%2Bc",
    "a%2Fb": "a%252Fb",
    "a?b=c&d#e": "a%3Fb%3Dc%26d%23e",
    "{payout_id}": "%7Bpayout_id%7D",
    "ä١": "%C3%A4%D9%A1",
}


def method_of(client: Any, name: str) -> Callable[..., Any]:
    resource, method = name.split(".")
    found: Callable[..., Any] = getattr(getattr(client, resource), method)
    return found


async def faults(connect: Connect, name: str, *args: Any, **options: Any) -> Any:
    """What the client says of these arguments; nothing may leave."""
    transport = ScriptedTransport(answer(500))
    client = connect(transport=transport)
    caught = await error_of(InvalidRequest, method_of(client, name)(*args, **options))
    assert transport.requests == []
    assert caught.effect == "none"
    return caught.errors


@pytest.mark.parametrize(("name", "bad"), list(zip(cycle(BY_ID), BAD_IDS, strict=False)), ids=ascii)
async def test_an_id_that_is_no_part_of_a_path_is_refused(connect: Connect, name: str, bad: Any) -> None:
    errors = await faults(connect, name, *[bad for _ in BY_ID[name]])
    assert errors == {parameter: [ID_RULE] for parameter in BY_ID[name]}


@pytest.mark.parametrize(
    ("name", "given", "written"),
    [(name, *ids) for name, ids in zip(cycle([*BY_ID, "methods.status"]), OPAQUE_IDS.items(), strict=False)],
    ids=lambda text: ascii(text)[:20],
)
async def test_an_id_is_one_part_of_the_path(connect: Connect, name: str, given: str, written: str) -> None:
    transport = ScriptedTransport(answer(200, {"data": {}}))
    ids = [given, "BJ"] if name == "methods.status" else [given for _ in BY_ID[name]]
    await method_of(connect(transport=transport), name)(*ids)
    parts = iter([written, "BJ"] if name == "methods.status" else [written for _ in BY_ID[name]])
    path = re.sub(r"{\w+}", lambda _: next(parts), OPERATIONS[name].path)
    assert transport.requests[0].url.partition("/v1")[2] == path


@pytest.mark.fact("request.methods.status.country-alpha-2")
@pytest.mark.parametrize("bad", ["BEN", "", "B1", "..", "ÄB", "BJ\n", None], ids=ascii)
async def test_a_country_in_a_path_has_two_letters(connect: Connect, bad: Any) -> None:
    assert await faults(connect, "methods.status", "mtn_bj", bad) == {"country_code": [COUNTRY_RULE]}
    both = await faults(connect, "methods.status", "..", bad)
    assert both == {"method_code": [ID_RULE], "country_code": [COUNTRY_RULE]}


FILTERS: list[Any] = [
    *(("page_size", bad, "must be a whole number from 1 to 100") for bad in (0, 101, 1.0, "10", True)),
    *(("cursor", bad, "printable") for bad in ("", "a\nb", "\ud800", "c" * 4097, 7)),
    ("status", ["pending"], "printable"),
    ("customer_id", "a\x00b", "printable"),
    ("created_on_or_after", datetime(2026, 1, 1), "time zone"),
    ("created_on_or_before", 1767225600, "printable"),
    ("created_on_or_after", "", "printable"),
    ("status", date(2026, 1, 1), "printable"),
]


@pytest.mark.parametrize(
    ("name", "argument", "bad", "rule"),
    [
        (name, *each)
        for name, each in zip(cycle(["payouts.list", "payment_intents.list"]), FILTERS, strict=False)
    ],
)
async def test_filters_are_checked(connect: Connect, name: str, argument: str, bad: Any, rule: str) -> None:
    errors = await faults(connect, name, **{argument: bad})
    assert list(errors) == [argument]
    assert rule in errors[argument][0]


OPTIONS: list[Any] = [
    *(
        row("idempotency_key", bad, rule, facts="idempotency.length-8-to-128")
        for bad, rule in [("k" * 7, "7 characters"), ("k" * 129, "129 characters"), ("", "0 characters")]
    ),
    *(row("idempotency_key", bad, "printable ASCII") for bad in ("12345\n78", "clé-12345678", "12345678 ")),
    row("idempotency_key", 12345678, "must be text, not int"),
    *(row("extra_headers", {"X-A": bad}, "ASCII text on one line") for bad in ("b\r\nX-Evil: 1", "é", 7)),
    *(row("extra_headers", {bad: "v"}, "not a header's") for bad in ("", "X:A", "X-A\r\n", 7)),
    *(
        row("extra_headers", {name: "v"}, "the client does")
        for name in ("AUTHORIZATION", "Host", "Content-Length", "Connection", "Expect", "X-Idempotency-Key")
    ),
    row("extra_headers", [("X-A", "b")], "must be a mapping, not list"),
    row("extra_query", "a=b", "must be a mapping, not str"),
    row("extra_query", {"a": [["b"]]}, "nested"),
    row("extra_query", {"a": "\ud800"}, "lone surrogate"),
    row("extra_query", {"a": float("nan")}, "not finite"),
    row("extra_query", {"a": object()}, "JSON cannot carry"),
    row("extra_body", "a", "must be a mapping, not str"),
    row("extra_body", {"a": datetime(2026, 1, 1, tzinfo=UTC)}, "datetime, which JSON cannot carry"),
    row("extra_body", {"\ud800": "a"}, "text keys"),
    row("extra_body", {"a": SELF}, "nested more than 32 deep"),
    *(row("timeout", bad, "positive number of seconds") for bad in (0, float("inf"), "30", True)),
    row("deadline", -1, "positive number of seconds"),
    *(row("max_retries", bad, "whole number") for bad in (-1, 1.0, True)),
]


@pytest.mark.parametrize(
    ("resource", "option", "bad", "rule"),
    [
        pytest.param(resource, *each.values, marks=each.marks)
        for resource, each in zip(cycle(SMALLEST), OPTIONS, strict=False)
    ],
)
async def test_an_option_of_a_creation_that_cannot_be_used_is_refused(
    connect: Connect, resource: str, option: str, bad: Any, rule: str
) -> None:
    errors = await faults(connect, f"{resource}.create", **SMALLEST[resource], **{option: bad})
    assert list(errors) == [option]
    assert rule in errors[option][0]


@pytest.mark.fact("idempotency.length-8-to-128")
@pytest.mark.parametrize("key", ["12345678", "k" * 128, "a b~!/:;,.", "{inv} 7\"'"])
async def test_a_key_of_8_to_128_characters_is_sent_as_it_is(connect: Connect, key: str) -> None:
    transport = ScriptedTransport(answer(201, {"data": {"id": "po_1"}}))
    await create(connect(transport=transport), "payouts", idempotency_key=key)
    assert transport.requests[0].headers["X-Idempotency-Key"] == key


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
async def test_small_letters_warn(connect: Connect, resource: str, field: str, given: Any, name: str) -> None:
    prepare = getattr(connect(transport=ScriptedTransport()), resource).prepare
    with pytest.warns(RuntimeWarning, match=f"{resource}.create: {name} is a country code in lower case"):
        prepare(**{**SMALLEST[resource], field: given})


async def test_all_faults_of_a_request_are_reported_together(connect: Connect) -> None:
    faulty: dict[str, Any] = {
        "amount": 0.5,
        "currency": "xof",
        "description": "d" * 501,
        "customer": CustomerInput(email=1, country="BEN"),  # type: ignore[arg-type] # the point
        "statement_descriptor": "_" * 23,
        "expires_in_minutes": 5,
        "restriction": CheckoutRestriction("BEN", PhoneInput("1")),
        "idempotency_key": "short",
        "extra_headers": {"Host": "x"},
        "extra_query": [],
        "extra_body": [],
        "timeout": -1,
        "deadline": "soon",
        "max_retries": 1.5,
    }
    caught = await error_of(
        InvalidRequest, create(connect(transport=ScriptedTransport(answer(500))), "checkouts", **faulty)
    )
    nested = {"customer.email", "customer.country", "restriction.country_code"}
    assert set(caught.errors) == nested | faulty.keys() - {"customer"}
    assert all(len(texts) == 1 for texts in caught.errors.values())
