"""Calls, arguments and objects that are not ours: told in words, with what to do instead."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from asyncio import CancelledError
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import payments_async
from payments_async.errors import ConfigurationError, InvalidRequest, OutcomeUnknown, ResponseMismatch
from payments_async.resources._signatures import ABSENT
from tests.support.creations import PAYOUT, SMALLEST
from tests.support.scripted import EMPTY_PAGE, ScriptedTransport, answer
from tests.support.surfaces import Connect, error_of


async def outcome(client: Any, name: str, *args: Any, **arguments: Any) -> Any:
    """What a method gives; a walk as a list, and what is plain as it is."""
    target = client
    for part in name.split("."):
        target = getattr(target, part)
    called = target(*args, **arguments)
    if hasattr(called, "__await__"):
        return await called
    return [item async for item in called] if hasattr(called, "__aiter__") else called


@pytest.mark.parametrize(
    ("name", "args", "wrong", "told"),
    [
        ("payouts.create", (), "refrence", "; did you mean 'reference'?"),
        ("payouts.create", (), "max_retry", "; did you mean 'max_retries'?"),
        ("payouts.create", (), "foo", ""),
        ("payouts.prepare", (), "refrence", "; did you mean 'reference'?"),
        ("payouts.prepare", (), "timeout", ": it belongs to the sending"),
        ("checkouts.create", (), "restrictions", "; did you mean 'restriction'?"),
        ("payouts.list", (), "max_items", ""),
        ("payouts.list", (), "channel", ""),
        ("payment_intents.iterate", (), "chanel", "; did you mean 'channel'?"),
        ("payouts.find", ("r-1",), "max_page", "; did you mean 'max_pages'?"),
        ("checkouts.retrieve", ("ch_1",), "time_out", "; did you mean 'timeout'?"),
        ("payouts.sync", ("po_1",), "foo", ""),
        ("payment_intents.requery", ("pi_1",), "dead_line", "; did you mean 'deadline'?"),
        ("request", ("POST", "/refunds"), "extra_bodi", "; did you mean 'extra_body'?"),
        ("request", ("GET", "/refunds"), "extra_body", ""),
    ],
)
async def test_an_unknown_argument_is_told_with_its_method_and_the_nearest_name(
    connect: Connect, name: str, args: Any, wrong: str, told: str
) -> None:
    transport = ScriptedTransport(EMPTY_PAGE)
    caught = await error_of(TypeError, outcome(connect(transport=transport), name, *args, **{wrong: "x"}))
    message = f"{name}() got an unexpected keyword argument {wrong!r}"
    assert str(caught).startswith(message)
    if told or wrong in ("foo", "status"):
        assert str(caught) == message + told
    assert transport.requests == []


@pytest.mark.parametrize("name", ["payouts.iterate", "payouts.find", "payment_intents.iterate"])
async def test_what_goes_wrong_in_a_walk_names_the_method_that_walks(connect: Connect, name: str) -> None:
    client = connect(transport=ScriptedTransport(answer(400, {"message": "no"})))
    args = ["r-1"] if name == "payouts.find" else []
    for arguments in ({}, {"cursor": ""}):
        caught = await error_of(Exception, outcome(client, name, *args, **arguments), match=name)
        assert vars(caught)["operation"] == name


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (-1, "must be a whole number, 0 or more"),
        (1.0, "must be a whole number, 0 or more, not float"),
        ("3", "must be a whole number, 0 or more, not str"),
        (True, "must be a whole number, 0 or more, not bool"),
    ],
)
async def test_a_senseless_max_items_is_told(connect: Connect, bad: Any, told: str) -> None:
    transport = ScriptedTransport(EMPTY_PAGE)
    caught = await error_of(
        InvalidRequest, outcome(connect(transport=transport), "payouts.iterate", max_items=bad)
    )
    assert caught.errors == {"max_items": [told]}
    assert (caught.operation, transport.requests) == ("payouts.iterate", [])


OWNERS = {
    "Payments": "",
    "Payouts": "payouts",
    "PaymentIntents": "payment_intents",
    "Checkouts": "checkouts",
    "Methods": "methods",
}


@pytest.mark.parametrize(
    ("owner", "name", "instead"),
    [(owner, name, instead) for owner, names in ABSENT.items() for name, instead in names.items()],
)
def test_an_absent_call_says_what_to_do(connect: Connect, owner: str, name: str, instead: str) -> None:
    client = connect(transport=ScriptedTransport())
    found = getattr(client, OWNERS[owner]) if OWNERS[owner] else client
    with pytest.raises(AttributeError) as caught:
        getattr(found, name)
    assert str(caught.value).endswith(f"has no attribute {name!r}: the interface has no such call; {instead}")
    assert not hasattr(found, name)


def test_any_other_slip_is_python_s_own_error(connect: Connect) -> None:
    client = connect(transport=ScriptedTransport())
    with pytest.raises(AttributeError, match=r"object has no attribute 'craete'$") as caught:
        client.payouts.craete  # noqa: B018 # the point
    assert (caught.value.name, caught.value.obj is None) == ("craete", False)


async def test_whoever_guesses_close_is_told_how_an_async_client_is_closed() -> None:
    client = payments_async.AsyncPayments("sk_sandbox_x", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(
        AttributeError, match=r"it is closed by `await client.aclose\(\)`, or by `async with`$"
    ):
        await client.close()  # type: ignore[attr-defined] # the point
    await client.aclose()


SOURCE = Path(payments_async.__file__).read_text(encoding="utf-8")


MODULES = ("arguments", "errors", "events", "guard", "models", "params")


def test_the_list_is_what_type_checkers_see() -> None:
    """What the module imports `as` itself, and the version."""
    assert {*payments_async.__all__, *MODULES} == set(re.findall(r"\b(\w+) as \1\b", SOURCE))
    assert len(payments_async.__all__) == len(set(payments_async.__all__))


@pytest.mark.parametrize("name", MODULES)
def test_a_public_module_is_an_attribute_in_a_fresh_process(name: str) -> None:
    code = f"import payments_async as p; print(p.{name}.__name__, {name!r} in dir(p))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"payments_async.{name}", "True"]
    assert payments_async.__getattr__(name) is importlib.import_module(f"payments_async.{name}")
    assert name in dir(payments_async)


@pytest.mark.parametrize(
    ("name", "field", "value", "told"),
    [
        ("checkouts", "restriction", {"CountryCode": "GH"}, "did you mean 'country_code'?"),
        ("checkouts", "restriction", {"country_code": "GH", "anything": 1}, "has an unknown field anything"),
        ("checkouts", "restriction", {"+233 20 000 0001": 1}, r"has an unknown field \*\*\*"),
        *(
            ("checkouts", "restriction", {**empty}, "restricts nothing: give a country_code or a phone")
            for empty in ({}, {"country_code": None}, {"country_code": ""})
        ),
        ("checkouts", "restriction", {"phone": {"num": "+233200000001"}}, "needs the number of its phone"),
        ("checkouts", "appearance", {"colour": "#fff"}, "did you mean 'color'?"),
        ("payouts", "instrument", {"phone_numbr": "+229", "country": "BJ"}, "did you mean 'phone_number'?"),
        ("payouts", "customer", {"firstname": "A"}, "did you mean 'first_name'?"),
    ],
)
async def test_a_slip_in_a_mapping(connect: Connect, name: str, field: str, value: Any, told: str) -> None:
    transport = ScriptedTransport(EMPTY_PAGE)
    caught = await error_of(
        InvalidRequest,
        getattr(connect(transport=transport), name).create(**{**SMALLEST[name], field: value}),
        match=told.replace("?", r"\?"),
    )
    assert list(caught.errors) == [field]
    assert not transport.requests


async def test_another_field_of_a_mapping_is_sent_with_a_warning(connect: Connect) -> None:
    wallet = {"phone_number": "+22990112233", "country": "BJ", "branch": "north"}
    with pytest.warns(RuntimeWarning, match=r"payouts\.create: instrument has the unknown field branch"):
        prepared = connect().payouts.prepare(**{**SMALLEST["payouts"], "instrument": wallet})
    assert json.loads(prepared.body)["instrument"] == wallet


class Changing(Mapping[str, Any]):
    """Holds a text when it is checked, and what JSON cannot carry when it is written."""

    def __init__(self) -> None:
        self._values: Any = iter(["text", object()])

    def __getitem__(self, key: str) -> Any:
        return next(self._values)

    def __iter__(self) -> Iterator[str]:
        return iter(["name"])

    def __len__(self) -> int:
        return 1


async def test_what_changes_under_the_check_is_not_sent(connect: Connect) -> None:
    transport = ScriptedTransport(answer(500))
    with pytest.raises(InvalidRequest, match=r"cannot be written as JSON \(TypeError\)"):
        await connect(transport=transport).request("POST", "/refunds", json={"deep": Changing()})
    assert transport.requests == []


@pytest.mark.parametrize("wrong", ['{"version": 1}', None, PAYOUT, 7])
async def test_send_takes_a_prepared_request_only(connect: Connect, wrong: Any) -> None:
    transport = ScriptedTransport(answer(500))
    caught = await error_of(ConfigurationError, connect(transport=transport).send(wrong))
    told = f"send() takes a PreparedRequest, not {type(wrong).__name__}; PreparedRequest.from_json(text)"
    assert str(caught) == f"{told} reads one"
    assert transport.requests == []


def interrupted(cls: type[BaseException], **facts: Any) -> BaseException:
    """A cancellation, with what the client put on it."""
    stopped = cls()
    vars(stopped).update(facts)
    return stopped


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (InvalidRequest({"amount": ["is required"]}), "the error's effect is known (none)"),
        (interrupted(CancelledError, outcome=7), "pass error.outcome"),
        (interrupted(KeyboardInterrupt, outcome=7), "pass error.outcome"),
        (interrupted(CancelledError), "nothing to resolve: CancelledError tells of no write in doubt"),
        (
            ResponseMismatch("other", record=None, differences={}),
            "takes an OutcomeUnknown or a PreparedRequest",
        ),
        (None, "takes an OutcomeUnknown or a PreparedRequest"),
    ],
)
async def test_resolve_says_what_it_takes_instead(connect: Connect, wrong: Any, told: str) -> None:
    transport = ScriptedTransport(answer(500))
    caught = await error_of(ConfigurationError, connect(transport=transport).resolve(wrong))
    assert told in str(caught)
    assert not isinstance(caught, OutcomeUnknown)
    assert transport.requests == []
