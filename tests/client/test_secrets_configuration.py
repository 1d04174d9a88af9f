"""A client that cannot be built: its traceback, locals and all, does not show the key it was given."""

from __future__ import annotations

from typing import Any

import pytest

from payments_async.errors import ConfigurationError
from tests.conftest import BASE_URL
from tests.support.canary import LONG_CANARY_KEY, NEEDLE, pickled, shown_by, told_by
from tests.support.creations import PAYOUT
from tests.support.scripted import ScriptedTransport, answer
from tests.support.surfaces import Connect, make_client

pytestmark = pytest.mark.fact("auth.key-stays-secret")

FAULTS: list[dict[str, Any]] = [
    {"base_url": "http://pay.test/v1"},
    {"base_url": None},
    {"environment": "live"},
    {"max_retries": -1},
    {"limits": 7},
    {"api_key": LONG_CANARY_KEY + "\r\n"},
    {"api_key": " " + LONG_CANARY_KEY},
    {"api_key": LONG_CANARY_KEY.encode()},
    {"api_key": bytearray(LONG_CANARY_KEY.encode())},
    {"api_key": LONG_CANARY_KEY.replace("sandbox", "live")},
]


def check(error: BaseException) -> None:
    """Nothing of the error shows the key."""
    assert NEEDLE not in told_by(error)
    assert NEEDLE not in shown_by(error)
    assert NEEDLE not in pickled(error)


@pytest.mark.parametrize("name", ["environment", "timeout", "on_limit", "base_url", "app_info", "limits"])
def test_a_key_in_the_wrong_place_is_not_repeated(surface: str, name: str) -> None:
    options = {"base_url": BASE_URL, name: LONG_CANARY_KEY}
    if name == "app_info":
        options[name] += "\n"
    with pytest.raises(ConfigurationError) as caught:
        make_client(surface, LONG_CANARY_KEY, **options)
    assert NEEDLE not in shown_by(caught.value) + pickled(caught.value)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: next(iter(fault)))
def test_a_refused_option_shows_no_key(surface: str, fault: dict[str, Any]) -> None:
    options = {"api_key": LONG_CANARY_KEY, "base_url": BASE_URL, **fault}
    with pytest.raises(ConfigurationError) as caught:
        make_client(surface, options.pop("api_key"), **options)
    check(caught.value)


@pytest.mark.parametrize(
    ("given", "environment"),
    [
        (LONG_CANARY_KEY + "\n", None),
        (LONG_CANARY_KEY, "live"),
        (LONG_CANARY_KEY.replace("sandbox", "live"), None),
        (LONG_CANARY_KEY.encode(), None),
    ],
)
async def test_a_callables_refused_key_shows_nowhere(connect: Connect, given: str, environment: Any) -> None:
    transport = ScriptedTransport(answer(200, {"data": []}))
    client = connect(transport=transport, api_key=lambda: given, environment=environment)
    for call in (client.payouts.list, lambda: client.payouts.create(**PAYOUT)):
        with pytest.raises(ConfigurationError) as caught:
            await call()
        check(caught.value)
    assert transport.requests == []
