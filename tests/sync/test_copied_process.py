"""A process that C's `fork` has copied: no hook of Python's runs, as under uWSGI, and nothing is shared."""

from __future__ import annotations

from pathlib import Path

import pytest

from payments_async.sandbox import Sandbox
from tests.sync.scenes import run_with_service

COPIED = """
import asyncio, ctypes, gc, logging, platform
from pathlib import Path
from payments_async import AsyncPayments
from tests.sync.scenes import loop_threads, payout

LOCKS = {"x86_64": "202", "aarch64": "98"}  # the number of the system call futex

def rest():
    # A thread that waits for the interpreter's lock while C forks leaves its copy a waiter that never comes.
    for thread in loop_threads():
        place = Path(f"/proc/self/task/{thread.native_id}/syscall")
        while place.read_text().split()[0] in ("running", LOCKS[platform.machine()]):
            os.sched_yield()

def copied(work):
    rest()
    pid = copy()
    if pid == 0:
        work()
        sys.stdout.flush()
        os._exit(0)
    return pid

def ended(*pids):
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]

copy = ctypes.PyDLL(None).fork  # as CDLL's, but no other thread can have the interpreter's lock meanwhile
client = Payments(key, base_url=base_url)
other = AsyncPayments(key, base_url=base_url)
"""
WORKERS = """
def pay():
    for _ in range(3):
        {call}

{before}
pids = [copied(pay) for _ in range(2)]
pay()
print(ended(*pids))
{call}
client.close()
"""
CALLS = {
    "sync": "client.payouts.create(**payout())",
    "async": "asyncio.run(other.payouts.create(**payout()))",
    "both": "client.payouts.create(**payout()); asyncio.run(other.payouts.create(**payout()))",
}


@pytest.mark.parametrize("has_called", [False, True])
@pytest.mark.parametrize("surface", CALLS)
def test_each_copy_makes_its_own_payouts(sandbox: Sandbox, surface: str, has_called: bool) -> None:
    """Before the copying a client was made, and may have made a call."""
    call = CALLS[surface]
    script = WORKERS.format(call=call, before=call if has_called else "")
    assert run_with_service(sandbox, COPIED + script) == "[0, 0]\n"
    paid = (10 + has_called) * (2 if surface == "both" else 1)
    keys = {request.headers["x-idempotency-key"] for request in sandbox.requests}
    assert len(sandbox.books.payouts()) == len(keys) == len(sandbox.requests) == paid


ENDS = """
from payments_sync import _blocking_call
_blocking_call.GRACE = 1e6  # who waits for a thread of the parent's is seen to
loop = asyncio.new_event_loop()

def call():
    client.payouts.create(**payout())
    loop.run_until_complete(other.payouts.create(**payout()))

call()
rest()
pid = copy()
if pid == 0:
    {ends}
    sys.exit(0)
print(ended(pid))
call()
loop.run_until_complete(other.aclose())
loop.close()
client.close()
"""


@pytest.mark.parametrize(
    "ends", ["pass", "del other, client; gc.collect()", "client.close(); asyncio.run(other.aclose())"]
)
def test_a_copy_that_calls_nothing_leaves_its_parents_connections_alone(sandbox: Sandbox, ends: str) -> None:
    assert run_with_service(sandbox, COPIED + ENDS.format(ends=ends)) == "[0]\n"
    assert len(sandbox.books.payouts()) == 4


STORE = """
from payments_async import Guard, GuardRefused
from payments_async._guard import state

state.FAREWELL = 1e6  # who waits for a thread of the parent's is seen to
logging.disable()  # a refusal is a warning
guard = Guard(most={{"XOF": 100}}, state={state!r}, sums=[("XOF", 150, "hour")])
client = AsyncPayments(key, base_url=base_url, guard=guard)
try:
    asyncio.run(client.payouts.create(**payout()))
except GuardRefused:
    pass  # its state has not been begun; the thread that asks for it goes on
pid = copy()
if pid == 0:
    sys.exit(0)
print(ended(pid))
asyncio.run(client.aclose())
"""


def test_a_copy_that_ends_waits_for_no_thread_of_its_parents_store(sandbox: Sandbox, tmp_path: Path) -> None:
    assert run_with_service(sandbox, COPIED + STORE.format(state=f"{tmp_path}/state")) == "[0]\n"


SHARED = """
from payments_sync import _event_loop

def hold():
    with _event_loop._loop_thread.lock:
        held.set()
        free.wait()

held, free = threading.Event(), threading.Event()
client.payouts.create(**payout())
thread = threading.Thread(target=hold)
thread.start()
held.wait()
pid = copied(lambda: client.with_options(api_key=lambda: another).payouts.create(**payout()))
print(ended(pid))
free.set()
thread.join()
client.close()
"""


def test_a_client_for_another_key_is_made_in_a_copy_whatever_locks_were_held(sandbox: Sandbox) -> None:
    another = f"another = {sandbox.new_key()!r}\n"
    assert run_with_service(sandbox, another + COPIED + SHARED) == "[0]\n"


UNDER_WAY = """
async def begun():
    sending = asyncio.ensure_future(other.send(prepared))
    await asyncio.sleep(0)
    return sending

prepared = other.payouts.prepare(**payout("r-1"))
loop = asyncio.new_event_loop()
sending = loop.run_until_complete(begun())
print(ended(copied(lambda: asyncio.run(other.send(prepared)))))
loop.run_until_complete(sending)
loop.run_until_complete(other.aclose())
loop.close()
"""


def test_a_copy_waits_for_no_request_of_its_parent(sandbox: Sandbox) -> None:
    assert run_with_service(sandbox, COPIED + UNDER_WAY) == "[0]\n"
    assert [request.replayed for request in sandbox.requests] == [False, True]
    assert len(sandbox.books.payouts()) == 1


GUARDED = """
from payments_async import Guard, GuardRefused

logging.disable()  # a refusal is a warning
guard = Guard(most={"XOF": 100}, budgets="process", sums=[("XOF", 150, "hour")])
client = Payments(key, base_url=base_url, guard=guard)
client.payouts.create(**payout())

def pay():
    used = client.limits_snapshot()["write"].used
    client.payouts.create(**payout())
    client.payouts.create(**payout())
    try:
        client.payouts.create(**payout())
    except GuardRefused:
        print(used, client.limits_snapshot()["write"].used)

print(ended(copied(pay)))
pay()
client.close()
"""


def test_a_copy_has_limits_of_its_own_and_the_sums_of_its_parent(sandbox: Sandbox) -> None:
    assert run_with_service(sandbox, COPIED + GUARDED).splitlines() == ["0 2", "[0]", "1 3"]
