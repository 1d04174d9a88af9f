"""Request objects: exact money in, masked reprs out."""

from __future__ import annotations

import copy
import pickle
import typing
from typing import Any

import attrs
import pytest

from payments_async import (
    AppearanceFields,
    AppearanceInput,
    AttemptInput,
    CheckoutRequest,
    CheckoutRestriction,
    CustomerFields,
    CustomerInput,
    Instrument,
    PaymentIntentRequest,
    PayoutRequest,
    PhoneInput,
    RestrictionFields,
)
from payments_async.params import Params

PERSONAL = "canary-9876504321098"
SHOWN = [
    CustomerInput(**{name: PERSONAL for name in attrs.fields_dict(CustomerInput) if name != "country"}),
    PhoneInput(PERSONAL),
    Instrument.phone(PERSONAL, "BJ", account_name=PERSONAL),
    Instrument.bank_account(PERSONAL, "058", "NG", account_name=PERSONAL),
    Instrument.crypto_address(PERSONAL, "testnet", memo_tag=PERSONAL),
    AttemptInput("mtn_bj", phone={"number": PERSONAL}),
    CheckoutRestriction(phone={"number": PERSONAL}),
    PayoutRequest(
        amount=5,
        currency="XOF",
        method="mtn_bj",
        instrument={"account_number": PERSONAL},
        customer={"email": PERSONAL},
        metadata={"note": PERSONAL},
        gateway_options={"a": PERSONAL},
    ),
    CheckoutRequest(amount=5, currency="XOF", receipt_email=PERSONAL, restriction={"phone": PERSONAL}),
    PaymentIntentRequest(amount=5, currency="XOF", attempt={"phone": PERSONAL}, customer={"email": PERSONAL}),
]


@pytest.mark.parametrize("value", SHOWN, ids=lambda each: type(each).__name__)
def test_a_repr_says_what_is_set_and_masks_what_is_personal(value: Params) -> None:
    for shown in (repr(value), str(value), repr([value])):
        assert PERSONAL not in shown
        assert "***" in shown
        assert f"{type(value).__name__}(" in shown
        assert "=None" not in shown


class Own(Instrument):
    """A caller's own kind of instrument."""


@pytest.mark.parametrize("cls", [Instrument, Own])
def test_an_instrument_made_by_its_kind_is_what_its_constructor_makes(cls: type[Instrument]) -> None:
    made = [
        cls.phone("+229", "BJ", account_name="A"),
        cls.bank_account("1", "058", "NG", account_name="A", swift_bic="S"),
        cls.crypto_address("0x", "testnet", memo_tag="7"),
    ]
    assert made == [
        cls("phone", phone_number="+229", country="BJ", account_name="A"),
        cls("bank_account", None, "A", "1", "058", "S", "NG"),
        cls("crypto_address", address="0x", network="testnet", memo_tag="7"),
    ]
    assert {type(each) for each in made} == {cls}


@pytest.mark.parametrize("value", SHOWN, ids=lambda each: type(each).__name__)
def test_request_objects_are_values(value: Params) -> None:
    for other in (copy.deepcopy(value), pickle.loads(pickle.dumps(value)), attrs.evolve(value)):  # type: ignore[misc] # all are attrs classes
        assert other == value
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        value.currency = "EUR"  # type: ignore[attr-defined] # the point


@pytest.mark.parametrize(
    ("cls", "keys"),
    [
        (CustomerInput, CustomerFields),
        (CheckoutRestriction, RestrictionFields),
        (AppearanceInput, AppearanceFields),
    ],
)
def test_a_dict_has_the_fields_of_its_class(cls: type[Params], keys: Any) -> None:
    assert typing.get_type_hints(cls) == typing.get_type_hints(keys)
