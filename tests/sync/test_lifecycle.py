"""From the first call to the end of the process."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from weakref import ref

import pytest

from payments_async.errors import PaymentsError
from payments_async.events import Event, RequestSent
from payments_async.sandbox import Sandbox
from payments_sync import Payments
from tests.sync.conftest import _event_loop
from tests.sync.scenes import ADDRESS, KEY, Silence, loop_threads, payout, run


def test_a_client_starts_nothing_before_its_first_call_and_a_closed_one_opens_again(sandbox: Sandbox) -> None:
    Payments(KEY, base_url=ADDRESS).close()
    assert loop_threads() == []
    with Payments(sandbox.api_key, base_url=sandbox.base_url) as client:
        client.payouts.create(**payout("r-1"))
    assert loop_threads() == []
    found = client.payouts.find("r-1")
    assert found is not None
    assert found.reference == "r-1"
    client.close()
    client.close()
    assert loop_threads() == []


def test_a_forgotten_client_gives_its_connections_and_thread_back(sandbox: Sandbox) -> None:
    client = Payments(sandbox.api_key, base_url=sandbox.base_url)
    client.payouts.list()
    (thread,) = loop_threads()
    del client
    gc.collect()
    thread.join(300)
    assert not thread.is_alive()


def test_a_client_of_another_key_holds_the_thread_until_it_is_closed(
    sandbox: Sandbox, client: Payments
) -> None:
    merchant = client.with_options(api_key=sandbox.new_key())
    assert type(merchant) is Payments
    merchant.close()
    assert loop_threads() == []
    for each in (client, merchant):
        each.payouts.list()
    (thread,) = loop_threads()
    client.close()
    client.close()
    assert loop_threads() == [thread]
    merchant.close()
    assert loop_threads() == []


def test_the_callers_context_reaches_its_hooks(sandbox: Sandbox) -> None:
    request_id: ContextVar[str] = ContextVar("request_id")
    seen: list[str] = []

    def on_event(event: Event) -> None:
        if isinstance(event, RequestSent):
            seen.append(request_id.get("nothing"))

    with Payments(sandbox.api_key, base_url=sandbox.base_url, on_event=on_event) as client:
        client.payouts.list()
        request_id.set("web-7")
        client.payouts.list()
    assert seen == ["nothing", "web-7"]


def test_an_error_that_crosses_the_bridge_makes_no_cycle(client: Payments) -> None:
    class Refused(Exception):
        """One that can be referred to weakly."""

    async def refuse() -> None:
        raise Refused

    def call() -> ref[Exception]:
        try:
            client._bridge.call(refuse)
        except Refused as error:
            return ref(error)
        raise AssertionError("not raised")

    gc.collect()
    gc.disable()
    try:
        assert call()() is None
    finally:
        gc.enable()


def test_a_traceback_leads_from_the_callers_line_to_the_cause(client: Payments) -> None:
    with pytest.raises(PaymentsError) as failure:
        client.request("GET", "/nowhere")
    names = [entry.name for entry in failure.traceback]
    assert names[0] == "test_a_traceback_leads_from_the_callers_line_to_the_cause"
    assert names.index("request") < names.index("call") < names.index("run")


MODULE_LEVEL = """
from payments_async.sandbox import Sandbox
from payments_sync import Payments
from tests.sync.scenes import payout

sandbox = Sandbox()
sandbox.start()
client = Payments(sandbox.api_key, base_url=sandbox.base_url)
for number in range(3):
    client.payouts.create(**payout(f"r-{number}"))
items = client.payouts.iterate(page_size=1)
print(next(items).reference)
"""


def test_a_module_level_client_needs_no_with_and_the_process_ends_clean() -> None:
    assert run(MODULE_LEVEL) == "r-2\n"


HUNG_AT_EXIT = """
import logging, os, threading
from payments_sync import Payments
from tests.sync.scenes import ADDRESS, KEY, Silence, payout

logging.getLogger("payments").addHandler(logging.NullHandler())  # the payout that is cut off is logged
flying = threading.Event()
silence = Silence(flying.set, sent=True)
client = Payments(KEY, base_url=ADDRESS, transport=silence)

def pay():
    try:
        client.payouts.create(**payout("r-1"))
    except Exception as error:
        os.write(1, f"{type(error).__name__} {error.reference}\\n".encode())  # whole, or not at all

threading.Thread(target=pay, daemon=True).start()
assert flying.wait(300)
"""


def test_a_call_that_hangs_in_a_daemon_thread_does_not_keep_the_process() -> None:
    assert run(HUNG_AT_EXIT) in ("", "OutcomeUnknown r-1\n")


def test_the_end_of_the_process_stops_calls_and_says_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    loop_thread = _event_loop.LoopThread()
    monkeypatch.setattr(_event_loop, "_loop_thread", loop_thread)
    loop_thread.end()  # without a call there is nothing to end
    failures: list[PaymentsError] = []
    flying = threading.Semaphore(0)
    clients = [
        Payments(KEY, base_url=ADDRESS, transport=Silence(flying.release, sent=sent))
        for sent in (True, False)
    ]

    def pay(client: Payments) -> None:
        with pytest.raises(PaymentsError) as failure:
            client.payouts.create(**payout())
        failures.append(failure.value)

    threads = [threading.Thread(target=pay, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
        assert flying.acquire(timeout=300)
    loop_thread.end()
    for thread in threads:
        thread.join(300)
    assert sorted(failure.effect for failure in failures) == ["none", "unknown"]
    assert loop_threads() == []


def test_a_hook_that_blocks_the_loop_does_not_keep_the_process(
    monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox
) -> None:
    loop_thread = _event_loop.LoopThread()
    monkeypatch.setattr(_event_loop, "_loop_thread", loop_thread)
    monkeypatch.setattr("payments_sync._blocking_call.GRACE", 0.01)
    reached, go_on = threading.Event(), threading.Event()

    def block(_: Event) -> None:
        reached.set()
        go_on.wait(300)

    client = Payments(sandbox.api_key, base_url=sandbox.base_url, on_event=block)
    with ThreadPoolExecutor(1) as pool:
        page = pool.submit(client.payouts.list)
        assert reached.wait(300)
        loop_thread.end()
        assert len(loop_threads()) == 1
        go_on.set()
        with pytest.raises(PaymentsError, match="the process is ending"):
            page.result()
    client.close()
