"""Sums that processes share: in a file of the host, or in the limit store of a fleet."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from payments_async import (
    AsyncPayments,
    ConfigurationError,
    DeadlineExceeded,
    Guard,
    GuardRefused,
    LimitStoreUnavailable,
)
from payments_async._guard import budget_client
from payments_async._guard._state.store_client import open_store
from payments_async._guard.rules import Write
from payments_async.params.operations import PAYOUTS_CREATE
from payments_async.sandbox import Sandbox
from tests.guard.test_calls import key_guard, refused
from tests.support.motion import PAYOUT
from tests.support.servers import CutProxy, ValkeyServer
from tests.sync.scenes import run_with_service

SUMS = [("XOF", 100, "hour"), ("XOF", 1_000, "day")]


@pytest.fixture(params=["sqlite", "postgresql", "valkey"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Options of a client whose guard keeps its sums there."""
    if request.param == "sqlite":
        return {"guard": Guard(most={"XOF": 100}, sums=SUMS, state=tmp_path / "guard.sqlite")}
    if request.param == "postgresql":
        address = str(request.getfixturevalue("database"))
    else:
        valkey: ValkeyServer = request.getfixturevalue("valkey")
        address = valkey.url(database=1)
    guard = Guard(most={"XOF": 100}, sums=SUMS, name=f"of {tmp_path.name}")
    return {"guard": guard, "limit_store": address}


@pytest.fixture(autouse=True)
def _threads_end() -> Iterator[None]:
    """A closed client's thread ends once all is reported."""
    yield
    end_threads()


def end_threads() -> None:
    """Wait for the threads of stores to end."""
    for thread in threading.enumerate():
        if thread.name == "payments-limits":
            thread.join(30)
            assert not thread.is_alive()


def address_of(place: dict[str, Any]) -> str:
    """The address of the store with the sums."""
    return str(place.get("limit_store") or f"sqlite:{place['guard'].state}")


async def begin(client: Any, place: dict[str, Any]) -> None:
    """What `payments guard begin` does."""
    store = open_store(address_of(place))
    await key_guard(client).client.begin(store)
    await store.aclose()


async def shown(client: AsyncPayments, place: dict[str, Any]) -> Any:
    """What `payments guard show` reads."""
    store = open_store(address_of(place))
    try:
        return await key_guard(client).client.show(store)
    finally:
        await store.aclose()


def payout(amount: int, number: int) -> dict[str, Any]:
    """A payout."""
    return {**PAYOUT, "amount": amount, "reference": f"r-{number}"}


async def test_a_state_counts_for_all_its_clients_once_it_was_begun(
    sandbox: Sandbox, place: dict[str, Any]
) -> None:
    async with AsyncPayments(sandbox.api_key, base_url=sandbox.base_url, **place) as client:
        assert (await refused(client.payouts.create(**payout(1, 0)))).rule == "begin"
        await begin(client, place)
        ends = await asyncio.gather(
            *(client.payouts.create(**payout(10, number)) for number in range(1, 16)), return_exceptions=True
        )
        assert sum(isinstance(end, GuardRefused) for end in ends) == 5
        assert len(await client.payouts.list(page_size=100)) == 10
    sums, refusals = await shown(client, place)
    while sums[0][1] != "0" or len(refusals) < 6:  # what happened is reported within a second
        sums, refusals = await shown(client, place)
    assert [(paid, held) for paid, held, *_ in sums] == [("100", "0"), ("100", "0")]
    assert [each["rule"] for each in refusals] == ["begin"] + ["sums"] * 5
    assert "22990112233" not in repr(refusals)


async def test_a_refusal_by_the_service_gives_its_amount_back(
    sandbox: Sandbox, place: dict[str, Any]
) -> None:
    async with AsyncPayments(sandbox.api_key, base_url=sandbox.base_url, **place) as client:
        await begin(client, place)
        sandbox.on("payouts.create").respond("http:422")
        with pytest.raises(Exception, match="422"):
            await client.payouts.create(**payout(100, 1))
        await client.payouts.create(**payout(100, 2))


FORKED = """
import asyncio, logging
logging.disable()  # each refusal is a warning
from payments_async import Guard, GuardRefused
from tests.guard.test_calls import key_guard
from tests.guard.test_states import begin

place = {{"guard": Guard(most={{"XOF": 100}}, sums=[("XOF", 400, "hour")], state={state!r})}}
client = Payments(key, base_url=base_url, **place)
asyncio.run(begin(client, place))
client.payouts.create(**payout("before"))
children = []
for worker in range(8):
    pid = os.fork()
    if pid == 0:
        made = 0
        for number in range(2):
            try:
                client.payouts.create(**payout(f"{{worker}}-{{number}}"))
                made += 1
            except GuardRefused:
                pass
        sys.exit(made)
    children.append(pid)
print(sum(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children))
client.close()
"""


@pytest.mark.slow
def test_eight_forked_workers_do_not_exceed_what_they_share(sandbox: Sandbox, tmp_path: Path) -> None:
    script = FORKED.format(state=str(tmp_path / "guard.sqlite"))
    assert run_with_service(sandbox, script) == "7\n"  # of 16, each of 50, and one before the forks


ENDS = """
from payments_async import Guard
client = Payments(key, base_url=base_url, guard=Guard(most={{"XOF": 100}}, sums={sums!r}, state={state!r}))
client.payouts.create(**payout("r-1"))
"""


async def test_a_program_that_ends_reports_what_it_paid(sandbox: Sandbox, tmp_path: Path) -> None:
    place: dict[str, Any] = {"guard": Guard(most={"XOF": 100}, sums=SUMS, state=tmp_path / "guard.sqlite")}
    async with AsyncPayments(sandbox.api_key, base_url=sandbox.base_url, **place) as client:
        await begin(client, place)
        script = ENDS.format(sums=SUMS, state=str(tmp_path / "guard.sqlite"))
        await asyncio.to_thread(run_with_service, sandbox, script)
        sums, _ = await shown(client, place)
    assert [(paid, held) for paid, held, *_ in sums] == [("50", "0"), ("50", "0")]


async def test_a_store_that_is_stopped_gets_what_was_paid(sandbox: Sandbox, tmp_path: Path) -> None:
    place: dict[str, Any] = {"guard": Guard(most={"XOF": 100}, sums=SUMS, state=tmp_path / "guard.sqlite")}
    async with AsyncPayments(sandbox.api_key, base_url=sandbox.base_url, **place) as client:
        await begin(client, place)
        await client.payouts.create(**payout(50, 1))
        await asyncio.to_thread(key_guard(client).client._store.stop)  # as at the end of a program
        sums, _ = await shown(client, place)
    assert [(paid, held) for paid, held, *_ in sums] == [("50", "0"), ("50", "0")]


async def test_the_refusal_of_a_rotated_key_frees_nothing_that_the_old_one_left_in_doubt(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    guard = Guard(most={"XOF": 100}, sums=SUMS, state=tmp_path / "guard.sqlite", name="payroll")
    write = Write(PAYOUTS_CREATE, "/payouts", {}, b'{"amount": 100, "currency": "XOF"}', is_ours=True)
    place: dict[str, Any] = {"guard": guard}
    async with (
        AsyncPayments(sandbox.api_key, base_url=sandbox.base_url, **place) as old,
        AsyncPayments("sk_sandbox_rotated", base_url=sandbox.base_url, **place) as new,
    ):
        await begin(old, place)
        for client, outcome in ((old, None), (new, "unpaid")):
            admission = await key_guard(client).admit(write, "the-same-key", None, may_ask=True)
            admission.settle(outcome)
        assert (await refused(old.payouts.create(**payout(1, 1)))).rule == "sums"


async def test_a_state_that_cannot_be_used_refuses_at_once_and_says_why(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    path = tmp_path / "guard.sqlite"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE theirs (a)")
    path.chmod(0o600)
    guard = Guard(most={"XOF": 100}, sums=SUMS, state=path)
    async with AsyncPayments(sandbox.api_key, base_url=sandbox.base_url, guard=guard) as client:
        with pytest.raises(ConfigurationError, match=r"guard's sums cannot be read.*another application"):
            await client.payouts.create(**payout(1, 1))


async def test_a_state_that_is_away_refuses_and_comes_back(
    sandbox: Sandbox, valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with CutProxy(valkey.address) as proxy:
        guard = Guard(most={"XOF": 100}, sums=SUMS, name="away")
        options: Any = {
            "guard": guard,
            "limit_store": f"redis://127.0.0.1:{proxy.port}/2",
            "expected_workers": 1,
        }
        async with AsyncPayments(sandbox.api_key, base_url=sandbox.base_url, **options) as client:
            await begin(client, options)
            await client.payouts.create(**payout(1, 1))
            proxy.cut()
            with monkeypatch.context() as impatient:
                impatient.setattr(budget_client, "PATIENCE", 0.05)
                with pytest.raises(LimitStoreUnavailable, match="guard's sums cannot be read") as caught:
                    await client.payouts.create(**payout(1, 2))
            assert (caught.value.effect, caught.value.attempts) == ("none", ())
            proxy.heal()
            while True:
                try:
                    await client.payouts.create(**payout(99, 3))
                    break
                except LimitStoreUnavailable:
                    pass
        await asyncio.to_thread(end_threads)  # while its store is there


async def test_a_deadline_that_passes_while_the_sums_are_read_is_what_the_error_says(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    place: dict[str, Any] = {"guard": Guard(most={"XOF": 100}, sums=SUMS, state=tmp_path / "guard.sqlite")}
    async with AsyncPayments(sandbox.api_key, base_url=sandbox.base_url, **place) as client:
        await begin(client, place)
        with closing(sqlite3.connect(tmp_path / "guard.sqlite")) as busy, busy:
            busy.execute("BEGIN EXCLUSIVE")
            with pytest.raises(DeadlineExceeded) as caught:
                await client.payouts.create(**payout(1, 1), deadline=0.2)
        assert (caught.value.effect, caught.value.attempts) == ("none", ())
        await client.payouts.create(**payout(100, 2))


PUT_BACK = """
import logging
from payments_async import Guard, GuardRefused
logging.disable()  # each refusal is a warning
guard = Guard(most={{"XOF": 100}}, sums={sums!r}, state={state!r})
try:
    Payments(key, base_url=base_url, guard=guard).payouts.create(**payout({name!r}))
except GuardRefused as error:
    print(error.rule)
"""


async def test_a_state_that_was_put_back_is_not_trusted_by_the_next_process(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    path, copy = tmp_path / "guard.sqlite", tmp_path / "copy.sqlite"
    place: dict[str, Any] = {"guard": Guard(most={"XOF": 100}, sums=SUMS, state=path)}
    async with AsyncPayments(sandbox.api_key, base_url=sandbox.base_url, **place) as client:
        await begin(client, place)
        with closing(sqlite3.connect(path)) as one, closing(sqlite3.connect(copy)) as other:
            one.backup(other)
        await client.payouts.create(**payout(50, 1))
    await asyncio.to_thread(end_threads)
    said = []
    for name in ("as it is", "put back"):
        script = PUT_BACK.format(sums=SUMS, state=str(path), name=name)
        said.append(await asyncio.to_thread(run_with_service, sandbox, script))
        with closing(sqlite3.connect(copy)) as one, closing(sqlite3.connect(path)) as other:
            one.backup(other)
    assert said == ["", "begin\n"]


@pytest.mark.parametrize(
    "spoil", [Path.mkdir, lambda path: path.write_text("x y"), lambda path: path.write_text("1.0 x")]
)
async def test_a_note_that_cannot_be_used_refuses_and_says_where_it_is(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path], object]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    place: dict[str, Any] = {"guard": Guard(most={"XOF": 100}, sums=SUMS, state=tmp_path / "guard.sqlite")}
    async with AsyncPayments(sandbox.api_key, base_url=sandbox.base_url, **place) as client:
        await begin(client, place)
        (note,) = (tmp_path / "home" / "payments-sdk").iterdir()
        note.unlink()
        spoil(note)
        with pytest.raises(ConfigurationError, match=r"cannot note in .*payments-sdk/guard-.*XDG_STATE_HOME"):
            await client.payouts.create(**payout(50, 1))
    assert not sandbox.books.payouts()
