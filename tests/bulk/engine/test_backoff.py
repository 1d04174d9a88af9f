"""The back-off of rows whose posts failed: how long each waits, and when the list is asked instead."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

from payments_async._assumptions import ABANDONED_AFTER
from payments_async.bulk.engine.backoff import BackOff
from payments_async.bulk.engine.claims import RowClaims
from payments_async.bulk.engine.doubts import UnresolvedRow
from payments_async.bulk.protocol.clocks import Timestamps
from payments_async.bulk.protocol.decisions import post_again_after
from payments_async.bulk.protocol.records import LedgerRow
from payments_async.bulk.protocol.stop_rules import StopRules
from tests.support.jumping import JumpingRuntime


def test_the_pauses_double_up_to_the_wait_for_the_next_key() -> None:
    pauses = [post_again_after(times) for times in range(9)]
    assert pauses == [10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, None, None]
    assert max(pause for pause in pauses if pause) < ABANDONED_AFTER


def test_a_row_that_was_settled_begins_anew_when_it_comes_back() -> None:
    runtime, looked = JumpingRuntime(), list[UnresolvedRow]()
    backoff = BackOff(runtime, looked.append)
    for due in (10.0, 30.0, 40.0):
        backoff.add(7)
        assert (backoff.due, len(backoff)) == (due, 1)
        runtime.advance(due - runtime.monotonic())
        assert list(backoff.take(5)) == [[7]]
        if due == 30.0:
            backoff.settled(7)
    backoff.add(7)
    backoff.end()
    assert (looked, backoff.due) == ([UnresolvedRow(7)], None)


class Records:
    """A ledger, and all else that claims stand on: it keeps which rows it was asked for."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []
        self.draining = False

    async def flush(self) -> None: ...

    async def numbered(self, numbers: Iterable[int]) -> dict[int, LedgerRow]:
        self.asked.append([*numbers])
        return {}

    async def moments(self, _: object) -> dict[int, Timestamps]:
        return {}

    async def unfinished(self) -> AsyncIterator[LedgerRow]:
        for row in list[LedgerRow]():
            yield row

    def moment(self) -> Timestamps:
        return Timestamps(0.0, 0.0, "")


async def test_rows_that_are_due_are_taken_group_by_group_until_a_stop() -> None:
    runtime, records = JumpingRuntime(), Records()
    backoff = BackOff(runtime, list[UnresolvedRow]().append)
    for number in range(1, 6):
        backoff.add(number)
    runtime.advance(11.0)
    parts: Any = (records, records, records, records, None, backoff)
    claims = RowClaims(*parts, rules=StopRules(), size=2)
    assert await claims.next() is not None
    assert await claims.waiting() is not None
    records.draining = True
    assert await claims.waiting() is None
    records.draining = False
    assert [await claims.waiting() is None for _ in range(2)] == [False, True]
    assert records.asked == [[1, 2], [3, 4], [5]]
    await claims.aclose()
