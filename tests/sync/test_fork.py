"""A forked worker has its own thread, loop and connections, and the parent never notices."""

from __future__ import annotations

import gc
import socket
from types import SimpleNamespace

import pytest

from payments_async.errors import ConfigurationError
from payments_async.sandbox import Sandbox
from payments_sync import Payments
from tests.sync.conftest import _event_loop
from tests.sync.scenes import loop_threads, payout, run_with_service

PREFORK = """
client = Payments(key, base_url=base_url)
client.payouts.create(**payout("before"))
items = client.payouts.iterate()

workers = []
for number in range(3):
    pid = os.fork()
    if pid == 0:
        for call in range(5):
            client.payouts.create(**payout(f"{number}-{call}"))
        if number:
            client.close()
        sys.exit(0)
    client.payouts.create(**payout(f"parent-{number}"))
    workers.append(pid)
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in workers])
client.payouts.create(**payout("after"))
print(len(list(items)), len({thread.name for thread in threading.enumerate()}))
"""


def test_workers_forked_after_the_first_call_make_their_own_calls(sandbox: Sandbox) -> None:
    assert run_with_service(sandbox, PREFORK) == "[0, 0, 0]\n20 2\n"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_forked_child_that_never_calls_ends_well(sandbox: Sandbox, host: str) -> None:
    """libuv would wait at its exit for threads that only the parent has."""
    pytest.importorskip("uvloop", reason="uvloop is not made for Windows")
    script = f"""
client = Payments(key, base_url=base_url.replace("127.0.0.1", {host!r}))
client.payouts.create(**payout("before"))
pid = os.fork()
if pid == 0:
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    assert run_with_service(sandbox, script) == "0\n"


def test_the_loop_resolves_names_and_numbers() -> None:
    """In this process: children and threads of a parent are not measured."""
    pytest.importorskip("uvloop", reason="uvloop is not made for Windows")
    loop = _event_loop._new_loop()
    try:
        for host in ("127.0.0.1", "localhost"):
            ((*_, place), *_) = loop.run_until_complete(
                loop.getaddrinfo(host, 443, family=socket.AF_INET, type=socket.SOCK_STREAM)
            )
            assert place == ("127.0.0.1", 443)
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


@pytest.mark.usefixtures("fork")
def test_the_loop_is_asyncios_where_uvloop_is_not_installed(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_event_loop, "find_spec", lambda name: None)
    with Payments(sandbox.api_key, base_url=sandbox.base_url) as client:
        client.payouts.create(**payout("r-1"))
        loop = client._bridge._queue().loop
        assert type(loop).__module__.startswith("asyncio.")


@pytest.fixture
def fork(monkeypatch: pytest.MonkeyPatch) -> list[_event_loop.LoopThread]:
    """What a child's first moments do to this module, undone afterwards; calling it is the test's part."""
    kept: list[_event_loop.LoopThread] = []
    monkeypatch.setattr(_event_loop, "_INHERITED", kept)
    monkeypatch.setattr(_event_loop, "_loop_thread", _event_loop.LoopThread())
    return kept


def test_a_child_leaves_everything_of_the_parents_alone(
    sandbox: Sandbox, fork: list[_event_loop.LoopThread]
) -> None:
    client = Payments(sandbox.api_key, base_url=sandbox.base_url)
    forgotten = Payments(sandbox.api_key, base_url=sandbox.base_url)
    items = client.payouts.iterate(page_size=1)
    client.payouts.create(**payout("r-1"))
    client.payouts.create(**payout("r-2"))
    forgotten.payouts.list()
    next(items)
    (parents,) = loop_threads()
    queue = client._bridge._queue()
    touched: list[object] = []
    loop = queue.loop
    queue.loop = SimpleNamespace(call_soon_threadsafe=touched.append)  # type: ignore[assignment] # what a queue uses of it

    _event_loop._after_fork()
    assert fork[0].queue is queue
    client.close()
    del forgotten
    gc.collect()
    assert [entry.reference for entry in client.payouts.list()] == ["r-2", "r-1"]
    assert len(loop_threads()) == 2
    with pytest.raises(ConfigurationError, match="begin it again"):
        list(items)
    client.close()
    assert loop_threads() == [parents]
    assert touched == []

    queue.loop = loop
    fork[0].give_back()
    fork[0].give_back()


def test_a_fork_before_the_first_call_has_nothing_to_leave(fork: list[_event_loop.LoopThread]) -> None:
    _event_loop._after_fork()
    assert [loop_thread.queue for loop_thread in fork] == [None]


@pytest.mark.usefixtures("fork")
def test_the_end_of_a_process_closes_what_is_open(sandbox: Sandbox) -> None:
    client = Payments(sandbox.api_key, base_url=sandbox.base_url)
    client.payouts.list()
    assert len(loop_threads()) == 1
    _event_loop._at_exit()
    assert loop_threads() == []
