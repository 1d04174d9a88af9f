"""An idle worker asks seldom, and is woken when there may be work."""

from __future__ import annotations

import pytest

from payments_async.bulk.workers import _worker
from tests.support.fleet import Fleet, books
from tests.support.patience import until


@pytest.mark.parametrize("is_cut", [False, True])
async def test_plan_and_resume_wake_an_idle_worker_also_once_it_was_cut_off(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, is_cut: bool
) -> None:
    monkeypatch.setattr(_worker, "POLL", 3600.0)
    july = await fleet.planned(3, "july")
    await july.pause("for now")
    june = await fleet.loaded(4)
    fleet.started(await fleet.worker(until_idle=False))
    asked = "FROM pg_stat_activity WHERE query LIKE '%b.state = ''open''%' AND state = 'idle'"
    await until(lambda: fleet.query(f"SELECT 1 {asked}"))
    if is_cut:
        fleet.query(f"SELECT pg_terminate_backend(pid, 5000) {asked}")
    await june.plan()
    await until(lambda: len(books(fleet.sandbox)) == 4)
    await until(lambda: fleet.query(f"SELECT 1 {asked}"))
    await july.resume()
    await until(lambda: len(books(fleet.sandbox)) == 7)
