"""What a payout's creation sends: every field under its wire name, its value unchanged, as it arrives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from payments_async import CustomerInput, Instrument
from tests.support.creations import create, row
from tests.support.watched import WatchedSandbox

PHONE = Instrument.phone("+22990000000", "BJ", account_name="Ada A.")
BANK = Instrument.bank_account("0011223344", "058", "NG", account_name="Ada Adeyemi", swift_bic="GTBINGLA")
CRYPTO = Instrument.crypto_address("addr1", "testnet", memo_tag="77")
ON_THE_WIRE = {
    "phone": {"type": "phone", "phone_number": "+22990000000", "account_name": "Ada A.", "country": "BJ"},
    "bank_account": {
        "type": "bank_account",
        "account_name": "Ada Adeyemi",
        "account_number": "0011223344",
        "bank_code": "058",
        "swift_bic": "GTBINGLA",
        "country": "NG",
    },
    "crypto_address": {
        "type": "crypto_address",
        "address": "addr1",
        "network": "testnet",
        "memo_tag": "77",
    },
}
CARRIED = [
    row(instrument, name, facts=f"request.payouts.instrument.{name}")
    for instrument, names in [
        (PHONE, ("phone_number", "country")),
        (BANK, ("account_name", "account_number", "bank_code", "swift_bic", "country")),
        (CRYPTO, ("address", "network", "memo_tag")),
    ]
    for name in names
]


@pytest.mark.parametrize(("instrument", "name"), CARRIED)
async def test_a_destinations_field_arrives_and_comes_back(
    connect: Callable[..., Any], watched: WatchedSandbox, instrument: Instrument, name: str
) -> None:
    payout = await create(connect(watched), "payouts", instrument=instrument)

    value = getattr(instrument, name)
    assert watched.body["instrument"][name] == value
    shown = getattr(payout.instrument, name)
    assert getattr(shown, "code", shown) == value


@pytest.mark.fact("service.payout-to-instrument", "request.payouts.instrument.required-by-type")
@pytest.mark.parametrize("instrument", [PHONE, BANK, CRYPTO], ids=lambda each: each.type)
async def test_each_kind_of_destination_carries_its_type_and_fields_and_nothing_else(
    connect: Callable[..., Any], watched: WatchedSandbox, instrument: Instrument
) -> None:
    payout = await create(connect(watched), "payouts", instrument=instrument)
    assert watched.body["instrument"] == ON_THE_WIRE[str(instrument.type)]
    assert payout.instrument.type == instrument.type


async def test_a_destination_may_be_a_plain_mapping(
    connect: Callable[..., Any], watched: WatchedSandbox
) -> None:
    await create(connect(watched), "payouts", instrument=ON_THE_WIRE["bank_account"])
    assert watched.body["instrument"] == ON_THE_WIRE["bank_account"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        row("currency", "GHS", facts="request.payouts.currency.3-characters"),
        row("method", "orange_sn", facts="request.payouts.method service.codes-are-configuration"),
        row("description", "d" * 500, facts="request.payouts.description.max-500"),
        row("reference", "r" * 191, facts="request.payouts.reference.max-191"),
        row("webhook_url", "https://x.test/" + "w" * 2033, facts="request.payouts.webhook_url.max-2048"),
        row("metadata", {f"k{n}": str(n) for n in range(10)}, facts="request.payouts.metadata.max-10"),
        row("metadata", {"a": {"b": [1, "é", None]}}, facts="request.payouts.metadata.unchanged"),
        row(
            "gateway_options",
            {"sandbox_mobile": {"ussd_menu": 9}},
            facts="request.payouts.gateway_options",
        ),
    ],
)
@pytest.mark.observed("descriptions are not null")
async def test_a_payouts_field_arrives_unchanged(
    connect: Callable[..., Any], watched: WatchedSandbox, name: str, value: Any
) -> None:
    payout = await create(connect(watched), "payouts", **{name: value})

    assert watched.body[name] == value
    if name == "method":
        assert payout.method.value == value
    elif name == "currency":
        assert payout.amount.currency == value
    elif name != "gateway_options":
        assert getattr(payout, name) == value


@pytest.mark.fact("request.payouts.customer")
@pytest.mark.parametrize(
    "customer",
    [CustomerInput(first_name="Ada", country="BJ"), {"first_name": "Ada", "country": "BJ"}],
    ids=["params", "mapping"],
)
async def test_a_payouts_customer_arrives(
    connect: Callable[..., Any], watched: WatchedSandbox, customer: Any
) -> None:
    payout = await create(connect(watched), "payouts", customer=customer)
    assert watched.body["customer"] == {"first_name": "Ada", "country": "BJ"}
    assert payout.customer.first_name == "Ada"


async def test_what_is_none_is_left_out(connect: Callable[..., Any], watched: WatchedSandbox) -> None:
    optional = ("reference", "description", "customer", "webhook_url", "metadata", "gateway_options")
    await create(connect(watched), "payouts", **dict.fromkeys(optional))
    assert set(watched.body) == {"amount", "currency", "method", "instrument"}
