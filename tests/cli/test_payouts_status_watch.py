"""`payments payouts status --watch` without a run in another process: until Ctrl-C, and of what is over."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from payments_async import AsyncPayments
from payments_async._cli._exit_codes import Exit
from payments_async._cli._output import JsonLines, OutputConsole
from payments_async._cli.payouts import inspect
from payments_async._cli.payouts.command_context import CommandContext
from payments_async.bulk import PayoutBatch, SharedBatch
from payments_async.bulk._texts.ledger_address import LedgerAddress
from tests.support.batches import items
from tests.support.payout_command import Here


class CtrlC:
    """A Ctrl-C as soon as the figures were shown."""

    @contextmanager
    def draining(self, drain: Callable[[str], object]) -> Iterator[None]:
        asyncio.get_running_loop().call_later(0.2, drain, "Ctrl-C")
        yield


def context() -> CommandContext:
    """JSON lines, and a Ctrl-C soon."""
    interrupts: Any = CtrlC()
    return CommandContext(OutputConsole(), JsonLines(), True, interrupts)


def steps(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The steps of the lines that were printed."""
    return [json.loads(line)["step"] for line in capsys.readouterr().out.splitlines()]


async def test_a_batch_of_a_database_is_watched_until_it_is_over_or_ctrl_c(
    here: Here, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = LedgerAddress(database, "june")
    client = AsyncPayments(here.sandbox.api_key, base_url=here.sandbox.base_url)
    async with client, SharedBatch.open(database, client, batch_id="june") as batch:
        await batch.load(items(2))
        await batch.plan()
        assert await inspect.watch_status(ledger, context()) == Exit.DONE
        assert steps(capsys) == ["progress", "batch"]
        await batch.cancel_rest()
        assert await inspect.watch_status(ledger, context()) == Exit.DONE
        assert steps(capsys) == ["batch"]


async def test_a_run_that_has_written_no_figures_yet_is_waited_for(
    here: Here, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(inspect, "_WATCH_EVERY", 0.01)
    path = Path("june.ledger")
    client = AsyncPayments(here.sandbox.api_key, base_url=here.sandbox.base_url)
    async with client, PayoutBatch.open(path, client) as batch:
        moments = inspect._in_file(LedgerAddress(str(path)))
        assert await anext(moments) is None
        await batch.load(items(2))
        await batch.run()
        figures = await anext(moments)
        assert figures is not None
        assert figures.speed is not None
        assert (figures.done, figures.speed.limit) == (2, 1000.0)
        await moments.aclose()
    assert await inspect.watch_status(LedgerAddress(str(path)), context()) == Exit.DONE
    assert steps(capsys) == ["batch"]
