"""`inspect.signature`, `help()` and docstrings name every argument, on both surfaces."""

from __future__ import annotations

import inspect
import pydoc
import re
from collections.abc import Callable
from traceback import walk_tb
from typing import Any
from unittest.mock import create_autospec

import pytest

import payments_async
import payments_sync
from payments_async import InvalidRequest, arguments

CLIENTS = (payments_async.AsyncPayments, payments_sync.Payments)
KEYS: dict[str, Any] = {
    "checkouts.create": arguments.CheckoutArguments,
    "checkouts.prepare": arguments.CheckoutPreparation,
    "checkouts.retrieve": arguments.ReadOptions,
    "methods.status": arguments.ReadOptions,
    "payment_intents.create": arguments.PaymentIntentArguments,
    "payment_intents.prepare": arguments.PaymentIntentPreparation,
    "payment_intents.list": arguments.PaymentIntentFilters,
    "payment_intents.iterate": arguments.PaymentIntentIteration,
    "payment_intents.retrieve_attempt": arguments.ReadOptions,
    "payment_intents.refund_availability": arguments.ReadOptions,
    "payment_intents.requery": arguments.ReadOptions,
    "payment_intents.inspect_attempt": arguments.ReadOptions,
    "payouts.create": arguments.PayoutArguments,
    "payouts.prepare": arguments.PayoutPreparation,
    "payouts.list": arguments.PayoutFilters,
    "payouts.iterate": arguments.PayoutIteration,
    "payouts.find": arguments.Search,
    "payouts.sync": arguments.ReadOptions,
    "payouts.inspect": arguments.ReadOptions,
    "request": arguments.WriteOptions,
}


def at(owner: Any, path: str) -> Any:
    for name in path.split("."):
        owner = getattr(owner, name)
    return owner


TAKEN = [
    *((at(client, path), keys) for client in CLIENTS for path, keys in KEYS.items()),
]
EACH = pytest.mark.parametrize(
    ("taker", "keys"), TAKEN, ids=[f"{t.__module__}.{t.__qualname__}" for t, _ in TAKEN]
)


@EACH
def test_a_signature_names_every_argument(taker: Callable[..., Any], keys: Any) -> None:
    parameters = inspect.signature(taker).parameters
    named = [name for name in parameters if name in keys.__annotations__]
    assert named == list(keys.__annotations__)
    assert not [each for each in parameters.values() if each.kind is each.VAR_KEYWORD]
    for name, hint in keys.__annotations__.items():
        needed = hint.__forward_arg__.startswith("Required[")
        assert (parameters[name].default is inspect.Parameter.empty) is needed
        assert "Required" not in parameters[name].annotation


@EACH
def test_what_runs_takes_the_other_arguments_of_its_signature(taker: Callable[..., Any], keys: Any) -> None:
    *runs, rest = inspect.signature(taker, follow_wrapped=False).parameters.values()
    written = inspect.signature(taker).parameters.values()
    own = [each for each in written if each.name not in keys.__annotations__]
    # `forwarded` hands on what it is given
    assert runs == own or runs[-1].kind is rest.VAR_POSITIONAL
    assert rest.kind is rest.VAR_KEYWORD


@EACH
def test_the_docstring_has_an_entry_for_every_argument(taker: Callable[..., Any], keys: Any) -> None:
    text = inspect.getdoc(taker) or ""
    if other := re.search(r"^Takes the arguments of `(create|list)`", text, re.MULTILINE):
        assert (taker.__name__, other[1]) in {("prepare", "create"), ("iterate", "list")}
        return  # that one's docstring has an entry for each
    entries = re.findall(r"^    (\w+): ", text.partition("Args:\n")[2].partition("\n\n")[0], re.MULTILINE)
    assert entries[-len(keys.__annotations__) :] == list(keys.__annotations__)


def test_help_shows_a_resource_of_the_class_with_types_and_defaults() -> None:
    for client in CLIENTS:
        shown = pydoc.plain(pydoc.render_doc(client.payouts.create))
        for part in ("amount: 'Money',", "reference: 'str | None' = None", "major units, at least 1"):
            assert part in shown
        assert "max_pages: 'int' = Ellipsis" in pydoc.plain(pydoc.render_doc(client.payouts.find))
        assert all(name in pydoc.render_doc(client) for name in ("checkouts", "methods"))


@pytest.mark.parametrize("client", CLIENTS)
def test_the_resources_of_a_client_are_its_own(client: type[Any]) -> None:
    one, two = (client("sk_sandbox_x", base_url="http://127.0.0.1:9/v1") for _ in range(2))
    for name in ("checkouts", "methods", "payment_intents", "payouts"):
        assert isinstance(getattr(one, name), getattr(client, name))
        assert getattr(one, name) is not getattr(two, name)


def test_a_mock_of_the_client_refuses_what_the_client_would() -> None:
    mock = create_autospec(payments_sync.Payments, instance=True)
    mock.payouts.create(amount=1, currency="XOF", method="m", instrument={})
    with pytest.raises(TypeError, match="refrence"):
        mock.payouts.create(amount=1, currency="XOF", method="m", instrument={}, refrence="x")


@pytest.mark.parametrize("method", ["create", "prepare"])
def test_no_account_stands_in_the_local_variables_of_a_refused_call(method: str) -> None:
    client = payments_sync.Payments("sk_sandbox_x", base_url="http://127.0.0.1:9/v1")
    account = {"type": "phone", "phone_number": "+9876504321098", "country": "BJ"}
    with pytest.raises(InvalidRequest) as refused:
        getattr(client.payouts, method)(amount=1.5, currency="XOF", method="mtn_bj", instrument=account)
    frames = [frame for frame, _ in walk_tb(refused.value.__traceback__)][1:]  # the first is this function's
    assert len(frames) > 1
    assert not [frame for frame in frames if "9876504321098" in repr(frame.f_locals)]
