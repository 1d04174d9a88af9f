"""What the tests of the blocking twin share: a served sandbox, a client, a look at who is left running."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from payments_async.sandbox import Sandbox
from payments_sync import Payments
from payments_sync import _event_loop as _event_loop
from payments_sync._blocking_call import BlockingCall as BlockingCall
from payments_sync._blocking_call import CallQueue as CallQueue
from payments_sync._event_loop import Bridge as Bridge
from tests.sync.scenes import loop_threads


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Every test gives back what it took: closed or forgotten clients leave no thread behind."""
    yield
    if loop_threads():  # collecting takes a tenth of a second
        gc.collect()
    for thread in threading.enumerate():
        if thread.name == "payments-sync-closing":
            thread.join(300)
    for thread in loop_threads():
        thread.join(300)
    assert loop_threads() == []


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def client(sandbox: Sandbox) -> Iterator[Payments]:
    with Payments(sandbox.api_key, base_url=sandbox.base_url) as client:
        yield client
