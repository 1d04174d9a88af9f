"""The limiters of a key, which of them a 429 closes, and the one limiter of each key in a process."""

from __future__ import annotations

import gc
import threading
import warnings
from contextlib import ExitStack
from typing import Any, get_args

import pytest

from payments_async._http.types import Secret
from payments_async._rate_limit import key_limiter, registry
from payments_async._rate_limit.key_limiter import KeyLimiter, make_limiter
from payments_async._rate_limit.limiter import ORDINARY, RateLimiter
from payments_async._rate_limit.limits import LimitClass, RateLimits
from payments_async._rate_limit.registry import LimiterRegistry, StoreUse
from tests.support.limit_stores import ADDRESS
from tests.support.simulated import SimulatedRuntime, simulated


def enter(
    key: KeyLimiter, kind: LimitClass, now: float, record: str | None = None
) -> list[tuple[RateLimiter, int]]:
    """Pass every limiter of a request that has room."""
    held = [(limiter, limiter.try_acquire(now)) for limiter in key.limiters(kind, record, now)]
    assert all(grant for _, grant in held)
    return held


def leave(held: list[tuple[RateLimiter, int]], now: float) -> None:
    for limiter, grant in held:
        limiter.release(grant, now)


def closed(key: KeyLimiter, now: float) -> set[str]:
    return {kind for kind, state in key.snapshot(now).items() if state.closed_for}


# --- Records come and go -------------------------------------------------------------------------------


def test_a_record_in_use_or_closed_keeps_its_limiter() -> None:
    key = KeyLimiter()
    in_use = enter(key, "diagnostic", 0.0, "in use")[0][0]
    closed_limiter = enter(key, "diagnostic", 0.0, "closed")
    key.close_after_429(closed_limiter, 0.0, 1_000.0)
    answered = enter(key, "diagnostic", 0.0, "answered")
    leave(answered, 0.0)
    for number in range(2 * key_limiter.SWEEP_FROM):
        key.limiters("diagnostic", str(number), 100.0)
    assert key.limiters("diagnostic", "in use", 100.0)[0] is in_use
    assert key.limiters("diagnostic", "closed", 100.0)[0] is closed_limiter[0][0]
    assert key.limiters("diagnostic", "answered", 100.0)[0] is not answered[0][0]


def test_a_limiter_that_was_fetched_and_not_entered_yet_is_not_swept_away() -> None:
    key = KeyLimiter()
    fetched = key.limiters("diagnostic", "po_1", 100.0)[0]
    for number in range(2 * key_limiter.SWEEP_FROM):
        key.limiters("diagnostic", str(number), 110.0)
    assert key.limiters("diagnostic", "po_1", 110.0)[0] is fetched


# --- What a 429 closes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "refusals", "looks"),
    [
        *((kind, [(None, 1.0)], [(20.9, {kind}), (21.0, set())]) for kind in get_args(LimitClass)),
        ("diagnostic", [("po_1", 0.0), ("po_1", 1.0)], [(1.0, set())]),  # its record only
        ("diagnostic", [("po_1", 0.0), ("po_2", 19.0)], [(38.9, {"diagnostic"})]),
        ("diagnostic", [("po_1", 0.0), ("po_2", 20.0)], [(20.0, set())]),  # the first is open again
    ],
)
def test_a_429_closes_the_class_or_the_one_record(
    kind: LimitClass, refusals: list[tuple[str | None, float]], looks: list[tuple[float, set[str]]]
) -> None:
    """The refused requests had all left before the first refusal; each closes for twenty seconds."""
    key = KeyLimiter()
    for held, now in [(enter(key, kind, 0.0, record), now) for record, now in refusals]:
        key.close_after_429(held, now, 20.0)
    assert [(now, closed(key, now)) for now, _ in looks] == looks


def test_a_refused_probe_closes_the_class_anew_even_when_it_is_the_only_record() -> None:
    key = KeyLimiter()
    first, second = (enter(key, "diagnostic", 0.0, record) for record in ("po_1", "po_2"))
    key.close_after_429(first, 0.0, 5.0)
    key.close_after_429(second, 0.0, 5.0)
    probe = enter(key, "diagnostic", 10.0, "po_3")
    assert probe[0][1] == ORDINARY < probe[1][1]
    key.close_after_429(probe, 10.0, 5.0)
    assert closed(key, 14.9) == {"diagnostic"}


# --- One key per key -------------------------------------------------------------------------------


@pytest.mark.parametrize("wished", [RateLimits(writes=600), RateLimits(refund_availability=10_000)])
def test_a_client_without_wishes_joins_what_the_other_asks_for_whoever_comes_first(
    wished: RateLimits,
) -> None:
    registered = LimiterRegistry()
    assert registered.join("a", "k", wished).limits == registered.join("a", "k").limits == wished
    key = registered.join("b", "k")
    registered.join("b", "k", wished)
    assert key.limits == wished
    assert key.snapshot(0.0)["write"].limit == wished.writes
    assert key.snapshot(0.0)["refund_availability"].limit == wished.refund_availability


def test_differing_wishes_get_the_lower_figures_and_one_warning_that_blames_the_caller() -> None:
    registered = LimiterRegistry()
    key = registered.join("a", "k", RateLimits(writes=600, reads=900))
    record = key.limiters("diagnostic", "po_1", 0.0)[0]

    def construct(limits: RateLimits) -> None:
        registered.join("a", "k", limits)

    with pytest.warns(RuntimeWarning, match="lower figure of each class") as caught:
        construct(RateLimits(writes=700, reads=800, diagnostics_per_record=3))
    assert caught[0].filename == __file__
    assert key.limits == RateLimits(writes=600, reads=800, diagnostics_per_record=3)
    assert key.snapshot(0.0)["read"].limit == 800
    assert record.snapshot(0.0).limit == 3
    construct(RateLimits(writes=500))
    assert key.limits.writes == 500


def fill(registered: LimiterRegistry) -> None:
    """Join until the registry looks for idle keys."""
    for number in range(2 * registry.SWEEP_FROM):
        registered.join("filler", str(number))


def test_a_key_that_a_client_holds_stays_though_idle_and_counts_after_the_client_is_gone() -> None:
    now = 0.0
    registered = LimiterRegistry(lambda: now)
    key = registered.join("a", "k", RateLimits(writes=7))
    fill(registered)
    assert registered.join("a", "k") is key
    leave(enter(key, "write", 0.0), 0.0)
    del key
    gc.collect()
    fill(registered)
    assert registered.join("a", "k").snapshot(0.0)["write"].used == 1
    now = 61.0
    for number in range(4 * registry.SWEEP_FROM):
        registered.join("more", str(number))
    assert registered.join("a", "k").limits == RateLimits()


def test_a_new_client_finds_nothing_of_one_that_is_gone_once_nothing_of_it_counts() -> None:
    now = 0.0
    registered = LimiterRegistry(lambda: now)
    key = registered.join("a", "k", RateLimits(writes=60))
    leave(enter(key, "write", 0.0), 0.0)
    del key
    now = 59.0
    assert registered.join("a", "k").limits.writes == 60
    now = 61.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert registered.join("a", "k", RateLimits(writes=600)).limits.writes == 600


def test_a_key_with_a_busy_record_is_not_idle() -> None:
    key = KeyLimiter()
    record, _ = key.limiters("diagnostic", "po_1", 0.0)
    grant = record.try_acquire(0.0)
    assert not key.idle(100.0)
    record.put_back(grant)
    assert key.idle(100.0)


# --- Fork ----------------------------------------------------------------------------------------------


def test_after_a_fork_every_registry_begins_anew_whatever_locks_were_held_and_old_grants_end_unseen() -> None:
    registered = LimiterRegistry()
    key = registered.join("a", "k", RateLimits(writes=5))
    held = enter(key, "write", 0.0) + enter(key, "diagnostic", 0.0, "po_1")
    key.close_after_429(enter(key, "diagnostic", 0.0, "po_2"), 0.0, 60.0)
    locks = [registered._lock, key._lock, key._records._lock, *(limiter._lock for limiter, _ in held)]
    locked, done = threading.Event(), threading.Event()

    def hold_every_lock() -> None:
        with ExitStack() as stack:
            for lock in locks:
                stack.enter_context(lock)
            locked.set()
            done.wait(300)

    holder = threading.Thread(target=hold_every_lock)  # the parent's
    holder.start()
    locked.wait(300)
    try:
        registry._after_fork()
        assert registered.join("a", "k") is key
        assert key.idle(0.0)
        leave(held, 0.0)
        assert key.idle(0.0)
        enter(key, "diagnostic", 0.0, "po_1")
        key.close_after_429(enter(key, "diagnostic", 0.0, "po_3"), 0.0, 60.0)
        assert closed(key, 0.0) == set()
        assert key.limits.writes == 5
    finally:
        done.set()
        holder.join(300)


# --- A store -------------------------------------------------------------------------------------------


def test_a_process_has_one_client_of_a_store() -> None:
    registered, runtime = LimiterRegistry(), SimulatedRuntime()

    def client_of(key: str, address: str) -> Any:
        use = StoreUse(address=Secret(address), workers=None, runtime=runtime)
        kept.append(registered.join("http://127.0.0.1:9/v1", key, store=use))
        return kept[-1].store

    kept: list[Any] = []
    client = client_of("one", ADDRESS)
    assert client is not None
    assert client_of("other", ADDRESS) is client
    assert client_of("third", f"{ADDRESS}1") is not client


@simulated
async def test_what_was_sent_before_a_client_brought_the_store_still_counts() -> None:
    registered, runtime = LimiterRegistry(clock=lambda: 5.0), SimulatedRuntime()
    key = registered.join("http://127.0.0.1:9/v1", "k")
    (limiter,) = key.limiters("write", None, 5.0)
    assert all(limiter.try_acquire(5.0) for _ in range(3))
    use = StoreUse(address=Secret(ADDRESS), workers=4, runtime=runtime)
    assert registered.join("http://127.0.0.1:9/v1", "k", store=use) is key
    assert [key.snapshot(now)["write"].used for now in (5.0, 64.0, 66.0)] == [3, 3, 0]


def test_a_limiter_without_a_store_has_no_outage_and_no_part() -> None:
    limiter = make_limiter(RateLimits(), "write")
    assert (limiter.outage, limiter.part, limiter.lag) == (None, None, 0.0)
