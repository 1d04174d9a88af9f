"""`payments payouts status --watch`: where a batch stands, once a second, until its run ends or Ctrl-C."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import attrs

from ..._runtime import SYSTEM
from ...bulk import BatchFigures
from ...bulk._texts.figures import figures_in
from ...bulk._texts.ledger_address import LedgerAddress, open_batch
from ...bulk.ledger_errors import LedgerLocked
from .._exit_codes import Exit
from .command_context import CommandContext, read_status
from .inspect import status

_EVERY: Final = 1.0


async def watch_status(ledger: LedgerAddress, context: CommandContext) -> Exit:
    """Show the figures every second, and at the end what `status` shows. Raises what it raises."""
    stopped = asyncio.Event()
    with context.interrupts.draining(lambda _: stopped.set()), context.progress("Paying") as view:
        ending = asyncio.ensure_future(stopped.wait())
        try:
            async with aclosing(_in_database(ledger) if ledger.is_database else _in_file(ledger)) as moments:
                async for figures in moments:
                    if figures is not None:
                        view.show(figures, SYSTEM.monotonic())
                    await asyncio.wait([ending], timeout=_EVERY)
                    if ending.done():
                        break
        finally:
            ending.cancel()
    return await status(ledger, context)


async def _in_file(ledger: LedgerAddress) -> AsyncGenerator[BatchFigures | None, None]:
    """The figures of the run that holds the ledger, until there is none; None without any yet."""
    while True:
        try:
            async with open_batch(ledger):
                return
        except LedgerLocked:
            latest = read_status(ledger)
        if not latest:  # it is still reading the input
            yield None
            continue
        yield figures_in(latest)


async def _in_database(ledger: LedgerAddress) -> AsyncGenerator[BatchFigures | None, None]:
    """The figures of the batch, until no worker can do more. Raises LedgerError."""
    async with open_batch(ledger) as batch:
        while True:
            now = await batch.snapshot()
            if now.report.complete or (now.rule is not None and not now.report.counts["under_way"]):
                return
            yield attrs.evolve(now.report, speed=now.speed)
