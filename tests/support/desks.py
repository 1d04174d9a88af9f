"""Batches through both surfaces from one test body.

A test takes the `desk` fixture, opens clients and batches with it, and awaits; it runs twice, as `[async]`
and as `[sync]`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

from payments_async.bulk import BatchReport
from payments_async.bulk._protocol.records import LedgerRow
from payments_async.sandbox import Sandbox
from tests.support.batches import Item, calling, ledger_rows
from tests.support.surfaces import make_batch, make_client

Pay = Callable[..., Awaitable[BatchReport]]


@attrs.frozen
class Desk:
    """Where batches of one surface are worked on."""

    surface: str

    def client(self, sandbox: Sandbox, **options: Any) -> Any:
        """A client that calls the sandbox, in this process, and waits in no time."""
        return make_client(self.surface, **calling(sandbox, **options))

    def other_client(self, api_key: str, base_url: str) -> Any:
        return make_client(self.surface, api_key, base_url=base_url)

    def open(self, path: Path | str, client: Any = None, **options: Any) -> Any:
        return make_batch(self.surface, path, client, **{"batch_id": "batch", **options})

    async def paid(self, path: Path | str, client: Any, rows: Sequence[Item], **options: Any) -> BatchReport:
        max_rows = options.pop("max_rows", None)
        async with self.open(path, client) as batch:
            await batch.load(rows)
            await batch.limit(max_rows=max_rows)
            report: BatchReport = await batch.run(**options)
            return report

    async def rows(self, batch: Any) -> list[LedgerRow]:
        if self.surface == "async":
            return await ledger_rows(batch)
        twin = batch._blocking
        found: list[LedgerRow] = await asyncio.to_thread(twin._bridge.call, ledger_rows, twin._async)
        return found
