"""A list with items that cannot be read: whatever it does not show may be one of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_async.bulk import PayoutBatch
from payments_async.errors import SearchIncomplete
from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from tests.support.batches import alter, in_process, items, ledger_rows, steady_ledgers


@pytest.fixture(autouse=True)
def _steady() -> Iterator[None]:
    with steady_ledgers():
        yield


def _spoiling(reference: str) -> Callable[[Any, Any], Any]:
    """The list shows one payout in a form that cannot be read."""

    def spoil(flight: Any, answer: Any) -> Any:
        page = json.loads(answer.body)
        if flight.method != "GET":
            return answer
        for item in page["data"]:
            if item["reference"] == reference:
                item["metadata"] = ["no", "pairs"]
        return attrs.evolve(answer, body=json.dumps(page).encode())

    return spoil


async def test_a_list_with_an_unreadable_item_proves_no_absence(tmp_path: Path) -> None:
    service = Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits.off())
    async with in_process(service) as client, PayoutBatch.open(tmp_path / "l", client) as batch:
        await batch.load(items(3))
        await batch.run()
        first, second, _ = [row.reference for row in await ledger_rows(batch)]
        alter(batch._service._client, _spoiling(first))
        assert await batch._service.search([first]) == ({}, False)
        assert (await batch._service.search(["unknown"]))[1] is False
        found, whole = await batch._service.search([second])
        assert (list(found), whole) == ([second], True)
        with pytest.raises(SearchIncomplete, match="could not be read"):
            await batch.certify()
