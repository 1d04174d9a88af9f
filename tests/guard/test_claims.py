"""What is held stays held in the cases that the campaign found, and windows end no earlier than they must."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from payments_async import LimitStoreUnavailable
from payments_async._guard.budget_client import BudgetClient
from payments_async._guard.budgets import LEASE, SETTLING, BudgetRule, WriteAmount, limits_of
from payments_async._guard.key_guard import Admission, KeyGuard
from payments_async._rate_limit.store import LimitRow
from payments_async._runtime import SYSTEM

SUMS = [("GHS", 60, "100")]
ROW = LimitRow("http://127.0.0.1/v1", "fingerprint", "guard")


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Rows:
    """A store; `takes` seconds pass before a request is carried out."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.takes, self.rows = clock, 0.0, dict[str, Any]()

    async def change(self, row: LimitRow, rule: BudgetRule, kind: str, values: Any) -> tuple[Any, float]:
        self.clock.now += self.takes
        state, answer = rule.change(rule.read(self.rows.get(row.kind)), kind, values, self.clock.now, 0.0)
        self.rows[row.kind] = rule.write(state)
        return answer, self.clock.now


class Process:
    """One process's client of the sums; exchanges happen when a test says so."""

    outage = None
    address = "redis://127.0.0.1:9/0"

    def __init__(self, store: Any, name: str) -> None:
        self.worker, self.store, self.clock = name, store, store.clock
        self.client = BudgetClient(self, ROW, SYSTEM)  # type: ignore[arg-type] # what it uses of one
        self.client.limits = limits_of(SUMS)

    def call(self, _: object) -> None:
        """Exchanges are the test's."""

    async def exchange(self) -> None:
        await self.client.exchange(self.store, self.clock)

    async def reserve(self, name: str, value: int, claim: int = 1) -> bool:
        """Whether there is room."""
        asked = asyncio.ensure_future(self.client.reserve([amount(name, value, claim)], 60.0))
        await asyncio.sleep(0)
        await self.exchange()
        return (await asked)[0] == 1

    async def settle(self, name: str, outcome: Any, claim: int = 1) -> None:
        self.client.settle(amount(name, 100, claim), outcome)
        await self.exchange()


def amount(name: str, value: int, claim: int = 1) -> WriteAmount:
    return WriteAmount(name, "GHS", Decimal(value), claim)


async def begun(*names: str) -> tuple[Any, ...]:
    """Processes of one store whose windows are trusted."""
    store: Any = Rows(Clock())
    found = [Process(store, name) for name in names]
    await found[0].client.begin(store)
    return (store, *found)


async def test_a_refusal_to_one_process_does_not_free_what_another_has_reserved_since() -> None:
    _, one, two = await begun("one", "two")
    assert await two.reserve("first", 100)
    await one.settle("first", "unpaid")
    assert not await one.reserve("second", 1)


async def test_a_refusal_to_a_later_reservation_of_a_forgotten_write_proves_nothing() -> None:
    _, one = await begun("one")
    assert await one.reserve("first", 100, claim=1)
    assert await one.reserve("first", 100, claim=2)
    await one.settle("first", "unpaid", claim=2)
    assert not await one.reserve("second", 1)


async def test_a_call_that_is_cancelled_leaves_what_is_reserved_meanwhile() -> None:
    _, one, two = await begun("one", "two")
    asked = asyncio.ensure_future(one.client.reserve([amount("first", 60, 1)], 60.0))
    await asyncio.sleep(0)
    await one.exchange()
    asked.cancel()  # just before its answer comes
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert not await two.reserve("second", 41)


async def test_a_slow_exchange_is_no_clock_that_was_set_back() -> None:
    store, one, two = await begun("one", "two")
    assert await one.reserve("first", 100)
    await one.settle("first", "paid")
    store.takes = 20.0
    await two.reserve("second", 1)
    store.takes = 0.0
    await two.reserve("second", 1)
    store.clock.now += 39.0
    assert not await one.reserve("third", 1)


async def test_windows_of_a_client_that_has_asked_before_are_begun_and_shown_by_the_same_clock() -> None:
    store, one = await begun("one")
    assert await one.reserve("first", 100)
    one.client._runtime = SimulatedTime(store.clock)  # type: ignore[assignment] # what it uses of one
    await one.client.begin(store)
    (paid, held, _, _), *_ = (await one.client.show(store))[0]
    assert (paid, held, store.rows["guard"]["born"]) == ("0", "100", 1_000_000.0)


async def test_a_state_that_replaced_a_lost_one_waits_for_what_that_had_reserved() -> None:
    store, one = await begun("one")
    assert await one.reserve("first", 100)
    carried_out_at_last = store.clock.now + LEASE + SETTLING
    store.rows.clear()
    assert not await one.reserve("second", 1)
    store.clock.now = carried_out_at_last + 59.0
    assert not await one.reserve("second", 1)
    store.clock.now += 2.0
    assert await one.reserve("second", 1)


class SimulatedTime:
    def __init__(self, monotonic: Clock) -> None:
        self.monotonic, self.now = monotonic, SYSTEM.now


@pytest.mark.parametrize(("is_reserved", "given_back"), [(False, ["first"]), (True, [])])
async def test_a_renewal_that_gets_no_answer_gives_nothing_back(is_reserved: bool, given_back: Any) -> None:
    class Away:
        def __init__(self) -> None:
            self.settled: list[str] = []

        async def reserve(self, *_: Any) -> Any:
            raise LimitStoreUnavailable("away", retry_after=5.0)

        def settle(self, amount: WriteAmount, outcome: str) -> None:
            assert outcome == "unpaid"
            self.settled.append(amount.name)

    guard, away = KeyGuard(("http://127.0.0.1/v1", "fingerprint"), SYSTEM), Away()
    guard.limits = limits_of(SUMS)
    guard.client = away  # type: ignore[assignment] # what it uses of one
    admission = Admission(guard, amount("first", 1), 0.0)
    admission.is_reserved = is_reserved
    with pytest.raises(LimitStoreUnavailable):
        await admission.renew(None)
    assert away.settled == given_back
