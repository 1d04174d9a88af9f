"""The same forty requests through every door of a client: what the guard refuses is sent by none."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any

import attrs
import pytest

from payments_async import (
    Guard,
    GuardRefused,
    Instrument,
    InvalidRequest,
    OutcomeUnknown,
    PreparedRequest,
    ResponseMismatch,
)
from tests.guard.test_calls import key_guard, under
from tests.support.motion import Played, payout_answer, play
from tests.support.scripted import EMPTY_PAGE, Step
from tests.support.surfaces import Connect

GUARD = Guard(
    most={"GHS": "5000", "XOF": "400000", "KWD": "100"},
    sums=[("GHS", "6000", "day")],
    methods=["mobile_money", "bank"],
    countries=["GH", "CI"],
    budgets="process",
)
WALLET = Instrument.phone("+233200000001", "GH")
BASE: Mapping[str, Any] = {"currency": "GHS", "method": "mobile_money", "instrument": WALLET}


@attrs.frozen
class Case:
    """A request, and the rule that refuses it; None for one that is sent."""

    rule: str | None
    fields: Mapping[str, Any]
    extra: Mapping[str, Any] | None = None


def case(rule: str | None, amount: Any, extra: Mapping[str, Any] | None = None, **fields: Any) -> Case:
    return Case(rule, {**BASE, "amount": amount, **fields}, extra)


CASES = [
    *[case(None, amount) for amount in (1, "50", Decimal("50.10"), "4999.99", 5000, "5E+3")],
    case(None, "400000", currency="XOF"),
    case(None, "99.999", currency="KWD"),
    case(None, 10, method="bank"),
    case(None, 10, instrument={"type": "phone", "phone_number": "+233200000001", "country": "GH"}),
    case(None, 10, instrument=Instrument.phone("+2250700000001", "CI")),
    case(None, 10, metadata={"amount": "999999", "currency": "USD"}),
    case(None, 10, {"amount": 20}),
    case(None, 10, {"amount": "20.50"}),
    case(None, 10, {"description": "amount"}),
    *[case("most", amount) for amount in ("5000.01", 5001, 100_000_000, "1E+6")],
    case("most", "400001", currency="XOF"),
    case("most", "100.001", currency="KWD"),
    case("most", 10, {"amount": 5001}),
    case("most", 10, {"amount": "5001"}),
    *[case("decimals", amount) for amount in (Decimal("1.999"), Decimal("50.005"), "10.0001")],
    case("decimals", "10.5", currency="XOF"),
    case("decimals", "9.9999", currency="KWD"),
    case("currency", 10, currency="USD"),
    case("currency", 10, {"currency": "USD"}),
    case("body", 10, {"currency": 7}),
    case("body", 10, {"amount": "10,00"}),
    case("body", 10, {"amount": None}),
    case("body", 10, {"amount": -100_000}),
    case("body", 10, {"method": ["mobile_money"]}),
    case("body", 10, {"instrument": ["GH"]}),
    case("methods", 10, method="crypto"),
    case("methods", 10, {"method": None}),
    case("countries", 10, instrument=Instrument.phone("+2348000000001", "NG")),
    case("countries", 10, {"instrument": {"type": "phone", "phone_number": "+233200000001"}}),
]
assert len(CASES) == 40
Door = Callable[[Any, Case, Any], Awaitable[Any]]


async def creating(client: Any, of: Case, _: Any) -> Any:
    return await client.payouts.create(**of.fields, reference="r-1", extra_body=of.extra)


async def requesting(client: Any, of: Case, _: Any) -> Any:
    fields = dict(of.fields)
    if isinstance(fields["instrument"], Instrument):
        pairs = attrs.asdict(fields["instrument"])
        fields["instrument"] = {name: value for name, value in pairs.items() if value is not None}
    fields["amount"] = str(
        Decimal(fields["amount"]).quantize(Decimal(1)) if "E" in str(fields["amount"]) else fields["amount"]
    )
    json = {**fields, "reference": "r-1", **(of.extra or {})}
    return await client.request("POST", "/payouts", json=json)


async def sending(client: Any, of: Case, _: Any) -> Any:
    return await client.send(prepared(client, of))


async def sending_what_was_stored(client: Any, of: Case, advance: Any) -> Any:
    text = prepared(client, of).to_json()
    advance(48 * 3600.0)
    return await client.send(PreparedRequest.from_json(text))


async def resolving(client: Any, of: Case, _: Any) -> Any:
    return await client.resolve(PreparedRequest.from_json(prepared(client, of).to_json()))


def prepared(client: Any, of: Case) -> PreparedRequest:
    made: PreparedRequest = client.payouts.prepare(**of.fields, reference="r-1", extra_body=of.extra)
    return made


def answer(request: Any) -> Any:
    """What the service says to any creation: it echoes the request, as the client compares the two."""
    asked = json.loads(request.body)
    money = {"value": float(asked["amount"]), "currency": asked["currency"]}
    return payout_answer(amount=money)


def asked_for(played: Played) -> list[str]:
    return [request.method for request in played.transport.requests]


@pytest.mark.parametrize("door", [creating, requesting, sending, sending_what_was_stored])
async def test_a_door_sends_what_the_rules_allow_and_nothing_else(connect: Connect, door: Door) -> None:
    for of in CASES:
        played = play(connect, answer, guard=GUARD)
        if of.rule is None:
            with suppress(ResponseMismatch):  # an amount that was sent as text does not come back as text
                await door(played.client, of, played.runtime.advance)
            assert asked_for(played)[-1:] == ["POST"]
            continue
        with pytest.raises(GuardRefused) as caught:
            await door(played.client, of, played.runtime.advance)
        assert (caught.value.rule, caught.value.effect, caught.value.attempts) == (of.rule, "none", ())
        assert asked_for(played) == []


async def test_resolving_what_the_rules_refuse_only_looks_it_up(connect: Connect) -> None:
    for of in CASES:
        steps: list[Step] = [answer] if of.rule is None else [EMPTY_PAGE]
        played = play(connect, *steps, guard=GUARD)
        if of.rule is None:
            with suppress(ResponseMismatch):
                await resolving(played.client, of, None)
            assert asked_for(played) == ["POST"]
            continue
        with pytest.raises(OutcomeUnknown) as caught:
            await resolving(played.client, of, None)
        cause = caught.value.__cause__
        assert isinstance(cause, GuardRefused)
        assert cause.rule == of.rule
        assert asked_for(played) == ["GET"]


@pytest.mark.parametrize(
    ("method", "path", "rule"),
    [
        ("PUT", "/payouts", "other_writes"),
        ("DELETE", "/payouts/po_1", "other_writes"),
        ("POST", "/refunds", "other_writes"),
        ("POST", "/payouts", "most"),
    ],
)
async def test_other_writes_of_request_are_refused(
    connect: Connect, method: str, path: str, rule: str
) -> None:
    played = play(connect, payout_answer(), guard=GUARD)
    body = {"amount": 9000, **BASE, "instrument": {"country": "GH"}}
    with pytest.raises(GuardRefused) as caught:
        await played.client.request(method, path, json=body, extra_query={"a": "b"})
    assert caught.value.rule == rule
    opened = play(connect, payout_answer(), guard=attrs.evolve(GUARD, other_writes="allow"))
    if rule == "other_writes":
        await opened.client.request(method, path, json=body)


@pytest.mark.parametrize(
    "path",
    ["/Payouts", "/%70ayouts", "/%2570ayouts", "/v1/payouts", "/V1/PAYOUTS", "/payouts;a=b", "/payouts%3Fa"],
)
async def test_a_path_that_may_be_taken_for_the_payouts_is_judged_as_theirs(
    connect: Connect, path: str
) -> None:
    body = {"amount": 9000, **BASE, "instrument": {"country": "GH"}}
    for other_writes, rule in (("refuse", "other_writes"), ("allow", "most")):
        played = play(connect, payout_answer(), guard=attrs.evolve(GUARD, other_writes=other_writes))
        with pytest.raises(GuardRefused) as caught:
            await played.client.request("POST", path, json=body)
        assert caught.value.rule == rule
        assert not asked_for(played)


@pytest.mark.parametrize(
    "path",
    ["//payouts", "/payouts/", "/x/../payouts", "/./payouts", "/x/%2e%2e/payouts", "/x%5C..%5Cpayouts"],
)
async def test_a_path_whose_segments_servers_read_differently_is_not_sent(
    connect: Connect, path: str
) -> None:
    played = play(connect, payout_answer(), guard=attrs.evolve(GUARD, other_writes="allow"))
    with pytest.raises(InvalidRequest, match="must start with a slash and hold plain segments"):
        await played.client.request("POST", path, json={})
    assert not asked_for(played)


async def test_reads_and_operations_that_move_nothing_are_not_judged(connect: Connect) -> None:
    played = play(connect, payout_answer(200), guard=GUARD)
    await played.client.request("GET", "/anything")
    await played.client.request("POST", "/payment/intents/pi_1/requery")
    await played.client.payouts.sync("po_1")
    assert asked_for(played) == ["GET", "POST", "GET"]


@pytest.mark.parametrize(
    "changes",
    [
        {"headers": {"Content-Encoding": "gzip"}},
        {"body": b'{"amount": 10, "currency": "GHS", "amount": 9000}'},
        {"body": b'{"amount": 10, "currency": "GHS", "\\u0061mount": 9000}'},
        {"body": b'{"amount": 10, "currency": "GHS", "instrument": {"country": "GH", "country": "NG"}}'},
        {"body": b'\xef\xbb\xbf{"amount": 10, "currency": "GHS"}'},
        {"body": b'{"amount": 1e1, "currency": "GHS"}'},
        {"body": b"amount=10&currency=GHS"},
        {"body": b"[]"},
        {"body": b'{"amount": true, "currency": "GHS"}'},
        {"body": b'{"amount": [10], "currency": "GHS"}'},
        {"body": b'{"amount": 0.00, "currency": "GHS"}'},
        {"body": b'{"amount": "-5", "currency": "GHS"}'},
        {"body": b'{"amount": 1%s, "currency": "GHS"}' % (b"0" * 60)},
        {"body": b'{"amount": 10, "currency": "GHS", "instrument": {"country": ["GH"]}}'},
        {"body": b"\xff"},
        {"body": b"[" * 100_000},
    ],
)
async def test_a_stored_request_that_two_readers_may_read_differently_is_refused(
    connect: Connect, changes: Any
) -> None:
    played = play(connect, payout_answer(), guard=GUARD)
    made = attrs.evolve(prepared(played.client, CASES[0]), **changes)
    with pytest.raises(GuardRefused) as caught:
        await played.client.send(made)
    assert caught.value.rule == "body"
    assert asked_for(played) == []


@pytest.mark.parametrize(("collecting", "refused"), [(True, True), (False, False)])
async def test_what_is_collected_is_judged_only_if_the_guard_says_so(
    connect: Connect, collecting: bool, refused: bool
) -> None:
    guard = Guard(most={"GHS": 100}, countries=["GH"], collecting=collecting)
    for create in ("checkouts", "payment_intents"):
        played = play(connect, payout_answer(), guard=guard)
        error: Any = None
        try:
            await getattr(played.client, create).create(amount=101, currency="GHS")
        except Exception as caught:
            error = caught
        assert isinstance(error, GuardRefused) is refused
        assert (asked_for(played) == []) is refused
        under_both = play(connect, payout_answer(), guard=guard)
        key_guard(under(under_both.client)).join(attrs.evolve(guard, collecting=not collecting))
        error = None
        try:
            await getattr(under_both.client, create).create(amount=100, currency="GHS")
        except Exception as caught:  # the answer is no checkout, which is no concern of the guard
            error = caught
        assert not isinstance(error, GuardRefused)
        assert asked_for(under_both)
