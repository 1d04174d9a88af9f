"""In a thread that runs an event loop: another one is blocked with a warning, our own is refused."""

from __future__ import annotations

import asyncio
import warnings

import pytest

from payments_async.errors import ConfigurationError
from payments_async.events import Event
from payments_async.sandbox import Sandbox
from payments_sync import Payments, _event_loop
from tests.sync.scenes import payout


def test_inside_a_running_loop_it_works_and_warns_once(
    client: Payments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_event_loop, "_warned", False)

    async def cell() -> list[str | None]:
        client.payouts.create(**payout("r-1"))
        client.payouts.create(**payout("r-2"))
        return [one.reference for one in client.payouts.iterate()]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert asyncio.run(cell()) == ["r-2", "r-1"]
    (warning,) = caught
    assert warning.category is RuntimeWarning
    assert "await AsyncPayments" in str(warning.message)
    assert warning.filename == __file__


def test_called_on_its_own_loop_it_raises_instead_of_waiting_for_itself(sandbox: Sandbox) -> None:
    refused: list[str] = []

    def on_event(_: Event) -> None:
        for call in (client.payouts.list, client.close, lambda: list(client.payouts.iterate())):
            with pytest.raises(ConfigurationError) as failure:
                call()
            refused.append(str(failure.value))

    client = Payments(sandbox.api_key, base_url=sandbox.base_url, on_event=on_event)
    assert len(client.payouts.list()) == 0
    client.close()
    assert len(refused) == 3 * 4, "three calls at each of the four events of a call"
    assert "its own event loop" in refused[0]


def test_another_client_is_refused_on_that_loop_too(sandbox: Sandbox) -> None:
    refused: list[ConfigurationError] = []
    other = Payments(sandbox.api_key, base_url=sandbox.base_url)

    def on_event(_: Event) -> None:
        try:
            other.payouts.list()
        except ConfigurationError as error:
            refused.append(error)

    with Payments(sandbox.api_key, base_url=sandbox.base_url, on_event=on_event) as client:
        client.payouts.list()
    assert [error.effect for error in refused] == ["none"] * 4
