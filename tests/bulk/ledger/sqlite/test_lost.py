"""A ledger deleted or replaced under whoever works on it: never a good end, and never a clean certificate."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from payments_async.bulk.ledger_errors import LedgerGone
from payments_async.sandbox import Sandbox
from tests.support.batches import items, steady_ledgers
from tests.support.desks import Desk


def _losing(path: Path) -> Callable[[Any], None]:
    """Deletes the ledger as soon as payouts are created."""

    def lose(progress: Any) -> None:
        if progress.counts["created"]:
            path.unlink(missing_ok=True)

    return lose


@pytest.mark.parametrize("rows", [3, 600])
async def test_a_run_whose_ledger_is_deleted_does_not_end_well(
    desk: Desk, service: Sandbox, tmp_path: Path, rows: int
) -> None:
    path = tmp_path / "l"
    with steady_ledgers():
        async with desk.client(service) as client:
            async with desk.open(path, client) as batch:
                await batch.load(items(rows), batch_id="june")
                with pytest.raises(LedgerGone, match="was deleted, moved or replaced"):
                    await batch.run(_losing(path), concurrency=4)
            assert len(service.books.payouts()) < 600
            async with desk.open(path, client) as batch:
                await batch.load(items(rows), batch_id="june")
                assert (await batch.run()).exit_code == 0
    assert len(service.books.payouts()) == rows


async def test_following_ends_when_the_ledger_is_deleted(
    desk: Desk, service: Sandbox, tmp_path: Path
) -> None:
    path = tmp_path / "l"
    with steady_ledgers():
        async with desk.client(service) as client, desk.open(path, client) as batch:
            await batch.load(items(2))
            await batch.run()
            began = len(service.requests)
            with pytest.raises(LedgerGone):
                await batch.follow(3600.0, _losing(path))
    assert len(service.requests) - began < 10


async def test_a_deleted_ledger_cannot_be_clean(desk: Desk, service: Sandbox, tmp_path: Path) -> None:
    path = tmp_path / "l"
    async with desk.client(service) as client, desk.open(path, client) as batch:
        await batch.load(items(2))
        await batch.run()
        assert (await batch.reconcile()).is_clean
        os.rename(path, tmp_path / "elsewhere")
        (finding,) = (await batch.check()).findings
        assert "was deleted, moved or replaced" in finding
        with pytest.raises(LedgerGone, match="put the file back"):
            await batch.reconcile()
        os.rename(tmp_path / "elsewhere", path)
        assert (await batch.reconcile()).is_clean
