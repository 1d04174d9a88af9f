"""Killed at any moment: what was returned as claimed is IN_FLIGHT on the disk, what was recorded stays."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from payments_async.bulk import RowState
from tests.support.ledgers import Clock, all_rows, counts, imported, new_rows
from tests.support.places import opened

# many times as slow when it is traced; others cover the same
pytestmark = pytest.mark.no_cover  # heavy under a tracer; what it runs is covered without it

ROWS = 300
WORKER = """
import asyncio, sys
from pathlib import Path
from tests.support.ledgers import created, imported, new_rows, numbers
from tests.support.places import opened

def say(what, rows):
    print(what, *rows, flush=True)

async def main():
    async with await opened(Path(sys.argv[1]), create=True) as ledger:
        say("open", [])
        if ledger.is_empty:
            await imported(ledger, new_rows(int(sys.argv[2])))
        say("imported", [])
        while rows := (await ledger.claim(7)).rows:
            say("claimed", [row.number for row in rows])
            say("recorded", [row.number for row in await ledger.record([created(row) for row in rows[:5]])])
    say("done", [])

asyncio.run(main())
"""


def _killed(path: Path, rows: int, lines: int) -> list[list[str]]:
    """Run the worker, kill it as soon as it has said so many lines, and give what it said."""
    command = [sys.executable, "-c", WORKER, str(path), str(rows)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        said = [worker.stdout.readline().split() for _ in range(lines)]
        worker.kill()
        said += [line.split() for line in worker.stdout]
    assert worker.returncode == -9
    return said


async def test_a_killed_run_has_on_the_disk_all_that_it_said(path: Path) -> None:
    chance = random.Random(1)
    claimed, recorded = set[int](), set[int]()
    for _ in range(2):
        for what, *rows in _killed(path, ROWS, chance.randrange(3, 30)):
            said = {"claimed": claimed, "recorded": recorded}.get(what, set())
            assert what != "claimed" or not said & set(map(int, rows)), "a row was claimed twice"
            said.update(map(int, rows))
    async with await opened(path, Clock("after")) as ledger:
        states = {row.number: row.state for row in await all_rows(ledger)}
        assert len(states) == ROWS
        assert {states[number] for number in recorded} <= {RowState.CREATED}
        assert {states[number] for number in claimed} <= {RowState.CREATED, RowState.IN_FLIGHT}
        unfinished = [row.number async for row in ledger.unfinished()]
        assert claimed - recorded <= set(unfinished) | {n for n in states if states[n] is RowState.CREATED}
        assert (await ledger.check()).findings == ()


async def test_a_run_killed_in_its_import_can_be_begun_again(path: Path) -> None:
    said = _killed(path, 200_000, 1)
    assert ["imported"] not in said
    async with await opened(path, create=True) as ledger:
        assert ledger.is_empty
        await imported(ledger, new_rows(3))
        assert counts(ledger) == {"not_started": 3}
        assert (await ledger.check()).findings == ()
