"""Rows in doubt by the hundred thousand: how long each waits, one walk for all, pages of the ledger."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from payments_async._assumptions import ABANDONED_AFTER, LIST_SETTLES
from payments_async.bulk._engine.claims import RowClaims
from payments_async.bulk._engine.doubt_queue import BackOff, UnresolvedQueue, UnresolvedRow, in_groups
from payments_async.bulk._engine.recorder import Recorder
from payments_async.bulk._engine.resolver import Resolver
from payments_async.bulk._engine.stopping import Stopping
from payments_async.bulk._ledger.sqlite.ledger import SqliteLedger
from payments_async.bulk._protocol.clocks import INTENT_LIFETIME, Timestamps
from payments_async.bulk._protocol.records import IntentTimes, LedgerRow, RowOutcome
from payments_async.bulk._protocol.row_state import RowState, doubt
from payments_async.bulk._protocol.rows_in_doubt import post_again_after
from payments_async.bulk._protocol.stop_rules import StopRules
from payments_async.models import Amount, Page, Pagination, Payout
from tests.support.jumping import JumpingRuntime
from tests.support.ledgers import Clock, begun, created

DOUBTS = st.builds(
    UnresolvedRow,
    st.integers(1, 2**40),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(0, 4),
    st.integers(0, 7),
)
COUNT = 1_203


@given(st.lists(st.tuples(DOUBTS, st.floats(0.0, 1e6))), st.floats(0.0, 1e6))
def test_each_comes_back_as_it_was_once_it_is_due_and_within_a_second(
    given_: list[tuple[UnresolvedRow, float]], now: float
) -> None:
    doubts = UnresolvedQueue()
    for each, due in given_:
        doubts.add(each, due)
    first = doubts.due
    early = [each for group in in_groups(doubts.take(now), 3) for each in group]
    late = [each for group in in_groups(doubts.take(), 3) for each in group]
    assert sorted(early + late) == sorted(each for each, _ in given_)
    assert set(early) >= {each for each, due in given_ if due + 1 <= now}
    assert set(late) >= {each for each, due in given_ if due > now}
    assert (first is None) is (not given_)
    assert doubts.due is None


def test_forty_thousand_of_them_take_half_a_megabyte() -> None:
    doubts = UnresolvedQueue()
    tracemalloc.start()
    for number in range(40_000):
        doubts.add(UnresolvedRow(number + 1, refused=True), number % 600)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 5 << 17


def test_the_pauses_double_up_to_the_wait_for_the_next_key() -> None:
    pauses = [post_again_after(times) for times in range(9)]
    assert pauses == [10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, None, None]
    assert max(pause for pause in pauses if pause) < ABANDONED_AFTER


def test_a_settled_row_starts_its_back_off_from_the_beginning() -> None:
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

    async def intent_times(self, _: object) -> dict[int, IntentTimes]:
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
    claims = RowClaims(*parts, rules=StopRules(), size=2, patience=0.0)
    assert await claims.next() is not None
    assert await claims.waiting() is not None
    records.draining = True
    assert await claims.waiting() is None
    records.draining = False
    assert [await claims.waiting() is None for _ in range(2)] == [False, True]
    assert records.asked == [[1, 2], [3, 4], [5]]
    await claims.aclose()


class Listing:
    """The service as the resolver meets it: a list of two pages, and a clock an hour after the intents."""

    def __init__(self, *payouts: Payout) -> None:
        self.runtime = JumpingRuntime()
        self.started = self.moment()
        self.walks: list[Any] = []
        self.on_page: Callable[[], object] = bool
        self._payouts = payouts

    def moment(self) -> Timestamps:
        later = 1_800_000_000 + ABANDONED_AFTER + LIST_SETTLES + INTENT_LIFETIME + 3600
        return Timestamps(later, later - 1_799_999_000, "first", later)

    async def page(self, cursor: str | None, *, filters: Any, **_: object) -> Page[Payout]:
        if cursor is None:
            self.walks.append(filters)
            return Page(self._payouts, Pagination(next_cursor="last"))
        self.on_page()
        return Page()


async def doubtful(path: Path, listing: Any) -> tuple[SqliteLedger, Resolver, Stopping, Recorder]:
    """A ledger with many rows in doubt, and who resolves them."""
    ledger, stopping = await begun(path, COUNT, Clock()), Stopping(listing.runtime)
    recorder = Recorder(ledger, listing.runtime)
    resolver = Resolver(ledger, listing, recorder, stopping)
    claim = await ledger.claim(COUNT)
    await ledger.record([RowOutcome(row.number, doubt(row.known)) for row in claim.rows])
    for row in claim.rows:
        resolver.add(UnresolvedRow(row.number))
    return ledger, resolver, stopping, recorder


async def test_one_walk_serves_all_rows_and_pages_of_them_are_sent_again(tmp_path: Path) -> None:
    listing = Listing()
    ledger, resolver, _, recorder = await doubtful(tmp_path / "ledger", listing)
    asked: list[int] = []
    numbered = ledger.numbered

    async def counted(numbers: Any) -> Any:
        asked.append(len(wanted := list(numbers)))
        return await numbered(wanted)

    ledger.numbered = counted  # type: ignore[method-assign] # counts what is read at once
    claims = [len(claim.rows) async for claim in await resolver.look()]
    assert (claims, max(asked), len(listing.walks)) == ([500, 500, 203], 500, 1)
    assert set(listing.walks[0]) == {"created_on_or_after", "currency", "method"}
    assert resolver.due is None
    await recorder.close()
    await ledger.close()


async def test_what_was_decided_meanwhile_is_left_alone(tmp_path: Path) -> None:
    listing = Listing()
    ledger, resolver, _, recorder = await doubtful(tmp_path / "ledger", listing)
    row = (await ledger.numbered([7]))[7]
    await ledger.record([created(row)])
    numbers = [row.number async for claim in await resolver.look() for row in claim.rows]
    assert len(numbers) == COUNT - 1
    assert 7 not in numbers
    await recorder.close()
    await ledger.close()


async def test_a_payout_that_two_pages_show_is_settled_once_and_a_drain_breaks_the_walk_off(
    tmp_path: Path,
) -> None:
    payout = Payout(id="po_1", reference="reference-1", amount=Amount(value=Decimal(9), currency="XOF"))
    listing = Listing(payout, payout)
    ledger, resolver, stopping, recorder = await doubtful(tmp_path / "ledger", listing)
    stopping.drain("enough")
    listing.on_page = lambda: stopping.halt("a second page was read")
    assert [claim async for claim in await resolver.look()] == []
    assert stopping.reason == "enough"
    assert not stopping.halted
    await recorder.close()
    states = Counter([row.state async for row in ledger.rows()])
    assert states == {RowState.CONFLICT: 1, RowState.IN_DOUBT: COUNT - 1}
    await ledger.close()
