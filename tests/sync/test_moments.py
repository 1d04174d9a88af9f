"""First calls at awkward moments: within a signal handler, and when the process ends."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from anyio.from_thread import BlockingPortalProvider

from payments_async.errors import PaymentsError
from payments_async.sandbox import Sandbox
from payments_sync import Payments
from tests.sync.conftest import _event_loop
from tests.sync.scenes import loop_threads, payout, run_with_service

SIGNALLED = """
import signal
from payments_sync import _event_loop

began, client, other = threading.Event(), *(Payments(key, base_url=base_url) for _ in range(2))

def handle(*_):
    began.set()
    {handler}

def interrupted():
    os.kill(os.getpid(), signal.SIGUSR1)
    began.wait()
    return _event_loop._new_loop()

signal.signal(signal.SIGUSR1, handle)
_event_loop._loop_thread._provider.backend_options["loop_factory"] = interrupted
try:
    client.payouts.create(**payout("first"))
except ZeroDivisionError as error:
    print(type(error).__name__)
client.payouts.create(**payout("second"))
client.close()
other.close()
print([thread.name for thread in threading.enumerate() if thread.name == "payments-sync"])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals on this system")
@pytest.mark.parametrize("name", ["client", "other"])
def test_a_signal_handler_may_call_while_the_first_call_starts_the_loop(sandbox: Sandbox, name: str) -> None:
    script = SIGNALLED.format(handler=f'{name}.payouts.create(**payout("handler"))')
    assert run_with_service(sandbox, script) == "[]\n"
    assert {payment.reference for payment in sandbox.books.payouts()} == {"first", "handler", "second"}


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals on this system")
def test_a_signal_handler_may_raise_while_the_first_call_starts_the_loop(sandbox: Sandbox) -> None:
    script = SIGNALLED.format(handler="1 / 0")
    assert run_with_service(sandbox, script).startswith("ZeroDivisionError\n")
    assert [payment.reference for payment in sandbox.books.payouts()] == ["second"]


ENDING = """
import atexit, weakref

class Kept:
    def __del__(self):
        if self.at_the_very_end:
            use()

def use(create=Payments.__init__, PaymentsError=__import__("payments_async").PaymentsError, payout=payout):
    try:
        print(client.payouts.create(**payout()).status, flush=True)
    except PaymentsError as error:
        print(type(error).__name__, error.effect, "nothing was sent" in str(error), flush=True)

client, kept = Payments(key, base_url=base_url), Kept()
kept.at_the_very_end = {at_the_very_end}
{before}
"""


@pytest.mark.parametrize(
    "before",
    [
        "threading.Thread(target=lambda: (threading.main_thread().join(), use())).start()",
        "atexit.register(use)",
        "weakref.finalize(kept, use)",
        "",
    ],
    ids=["a thread after the main one", "atexit", "a finalizer", "the interpreter's own end"],
)
def test_the_first_call_of_a_process_that_ends_is_made_or_refused_in_our_own_words(
    sandbox: Sandbox, before: str
) -> None:
    """Which, depends on the Python."""
    said = run_with_service(sandbox, ENDING.format(before=before, at_the_very_end=not before))
    assert said in ("pending\n", "PaymentsError none True\n")
    assert len(sandbox.books.payouts()) == (said == "pending\n")


def test_without_a_thread_for_it_a_call_is_refused_and_a_later_one_is_made(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def no_memory(provider: object) -> None:
        raise MemoryError

    with Payments(sandbox.api_key, base_url=sandbox.base_url) as client:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", start)
            with pytest.raises(
                PaymentsError, match=r"nothing was sent.*\(can't start new thread\)"
            ) as refused:
                client.payouts.create(**payout())
        assert refused.value.effect == "none"
        with monkeypatch.context() as patched:
            patched.setattr(BlockingPortalProvider, "__enter__", no_memory)
            with pytest.raises(MemoryError):
                client.payouts.create(**payout())
        with monkeypatch.context() as patched:
            patched.setattr(sys, "is_finalizing", lambda: True)
            with pytest.raises(PaymentsError, match="the process is ending"):
                client.payouts.create(**payout())
        client.payouts.create(**payout())
    assert len(sandbox.books.payouts()) == 1
    assert loop_threads() == []


def test_a_call_that_comes_between_shares_the_lease_of_the_first(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a signal handler's does."""
    start, between = _event_loop._uninterrupted, iter([lambda: client.payouts.create(**payout("between"))])

    def interrupted(func: Callable[[], Any]) -> Any:
        next(between, bool)()
        return start(func)

    monkeypatch.setattr(_event_loop, "_uninterrupted", interrupted)
    with Payments(sandbox.api_key, base_url=sandbox.base_url) as client:
        client.payouts.create(**payout("first"))
        assert len(loop_threads()) == 1
    assert loop_threads() == []
    assert {payment.reference for payment in sandbox.books.payouts()} == {"first", "between"}
