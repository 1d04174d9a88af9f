"""Of the blocking receiver alone: whose thread a handler runs in, stores that block, interruptions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from payments_async.webhooks import TrustedDelivery
from payments_sync import Payments
from payments_sync.webhooks import WebhookReceiver
from tests.support.hooks import EMPTY, listed
from tests.support.jumping import JumpingRuntime
from tests.support.receivers import HOOKS, SECRET, Handler
from tests.support.scripted import ScriptedTransport
from tests.sync.scenes import Silence, interrupt_main_thread

KEY, ADDRESS = "sk_sandbox_one", "http://127.0.0.1:9/v1"


@contextmanager
def receiving(handler: Any, *script: Any, **options: Any) -> Iterator[tuple[WebhookReceiver, str]]:
    """A blocking receiver in front of a scripted service, and a URL of it."""
    runtime, transport = JumpingRuntime(), ScriptedTransport(*script)
    with Payments(KEY, base_url=ADDRESS, runtime=runtime, transport=runtime.wrap(transport)) as client:
        receiver = WebhookReceiver(client, secrets=[SECRET], base_url=HOOKS, on_payout=handler, **options)
        yield receiver, receiver.url_for_payout("r-1")


def test_the_handler_runs_in_the_thread_that_received_and_may_call_the_client() -> None:
    threads, found = [], []

    def handler(delivery: TrustedDelivery[Any]) -> None:
        threads.append(threading.current_thread())
        found.append(client.payouts.find(delivery.reference))

    runtime, transport = JumpingRuntime(), ScriptedTransport(listed())
    with Payments(KEY, base_url=ADDRESS, runtime=runtime, transport=runtime.wrap(transport)) as client:
        receiver = WebhookReceiver(client, secrets=[SECRET], base_url=HOOKS, on_payout=handler)
        assert receiver.receive(path=receiver.url_for_payout("r-1")).status == 200
    assert threads == [threading.current_thread()]
    assert found[0] is not None
    assert found[0].id == "po_1"


class Blocking:
    """A store as a database driver would have it; it notes its threads."""

    def __init__(self) -> None:
        self.states: set[str] = set()
        self.threads: set[str] = set()

    def seen(self, state: str) -> bool:
        self.threads.add(threading.current_thread().name)
        return state in self.states

    def add(self, state: str) -> None:
        self.threads.add(threading.current_thread().name)
        self.states.add(state)


class Awaited(Blocking):
    """The same of coroutine functions."""

    async def seen(self, state: str) -> bool:  # type: ignore[override] # either form will do
        return Blocking.seen(self, state)

    async def add(self, state: str) -> None:  # type: ignore[override] # either form will do
        Blocking.add(self, state)


@pytest.mark.parametrize("make", [Blocking, Awaited])
def test_a_store_may_block_and_may_be_awaited(make: Callable[[], Blocking]) -> None:
    store, paid = make(), Handler()
    with receiving(paid, listed(), seen=store) as (receiver, url):
        assert [receiver.receive(path=url).status for _ in range(2)] == [200, 200]
    assert len(paid.given) == 1
    assert store.states == {"po_1 pending"}
    assert ("payments-sync" in store.threads) is (make is Awaited)


def test_an_interrupted_handler_has_failed_and_holds_nobody_up() -> None:
    paid = Handler(KeyboardInterrupt(), None)  # type: ignore[arg-type] # the point
    with receiving(paid, listed()) as (receiver, url):
        with pytest.raises(KeyboardInterrupt):
            receiver.receive(path=url)
        assert receiver.receive(path=url).status == 200
    assert len(paid.given) == 2


def test_an_interrupted_read_hands_nothing_over() -> None:
    paid, silence = Handler(), Silence(interrupt_main_thread, sent=True)
    with Payments(KEY, base_url=ADDRESS, transport=silence) as client:
        receiver = WebhookReceiver(client, secrets=[SECRET], base_url=HOOKS, on_payout=paid)
        with pytest.raises(KeyboardInterrupt):
            receiver.receive(path=receiver.url_for_payout("r-1"))
    assert not paid.given


def test_an_interruption_with_the_record_in_hand_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    paid = Handler()
    with receiving(paid, listed()) as (receiver, url):
        call, interrupted = receiver._bridge.call, list[Any]()

        class Interrupting:
            def call(self, *args: Any, **kwargs: Any) -> Any:
                result = call(*args, **kwargs)
                if hasattr(result, "finish") and not interrupted:
                    interrupted.append(result)
                    stopped = KeyboardInterrupt()
                    stopped.result = result  # type: ignore[attr-defined] # as `Hop.account` does
                    raise stopped
                return result

        monkeypatch.setattr(receiver, "_bridge", Interrupting())
        with pytest.raises(KeyboardInterrupt):
            receiver.receive(path=url)
        assert not paid.given
        assert receiver.receive(path=url).status == 200
    assert len(paid.given) == 1


def test_a_handler_that_outlives_the_client_s_loop_is_answered_all_the_same() -> None:
    def handler(delivery: TrustedDelivery[Any]) -> None:
        client.close()

    runtime, transport = JumpingRuntime(), ScriptedTransport(EMPTY, listed())
    with Payments(KEY, base_url=ADDRESS, runtime=runtime, transport=runtime.wrap(transport)) as client:
        receiver = WebhookReceiver(client, secrets=[SECRET], base_url=HOOKS, on_payout=handler)
        assert receiver.receive(path=receiver.url_for_payout("r-1")).status == 503
        assert receiver.receive(path=receiver.url_for_payout("r-1")).status == 200
