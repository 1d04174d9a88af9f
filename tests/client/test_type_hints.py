"""Signatures can be read at run time: every annotation of a public method resolves, in both packages."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any

import pytest

import payments_async
import payments_sync
from payments_async.resources.checkouts import AsyncCheckouts
from payments_async.resources.methods import AsyncMethods
from payments_async.resources.payment_intents import AsyncPaymentIntents
from payments_async.resources.payouts import AsyncPayouts
from payments_sync.resources.checkouts import Checkouts
from payments_sync.resources.methods import Methods
from payments_sync.resources.payment_intents import PaymentIntents
from payments_sync.resources.payouts import Payouts

CLASSES: tuple[type, ...] = (
    payments_async.AsyncPayments,
    payments_sync.Payments,
    AsyncCheckouts,
    AsyncMethods,
    AsyncPaymentIntents,
    AsyncPayouts,
    Checkouts,
    Methods,
    PaymentIntents,
    Payouts,
)


def methods(cls: type) -> dict[str, Callable[..., Any]]:
    """The public methods, and what `with` and a call of the class go through."""
    found = dict(inspect.getmembers(cls, inspect.isfunction))
    return {name: found[name] for name in found if not name.startswith("_") or name == "__init__"}


PUBLIC = [
    pytest.param(cls, method, id=method.__qualname__)
    for cls in CLASSES
    for name, method in methods(cls).items()
    if name != "__init__" or cls.__name__.endswith("Payments")
]


@pytest.mark.parametrize(("cls", "method"), PUBLIC)
def test_every_annotation_of_a_public_method_resolves(cls: type, method: Callable[..., Any]) -> None:
    hints = typing.get_type_hints(method)
    assert hints.keys() == inspect.signature(method).parameters.keys() - {"self"} | {"return"}
