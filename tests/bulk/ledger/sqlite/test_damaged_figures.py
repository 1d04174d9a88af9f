"""Figures of a run that were damaged in the file: they decide nothing, so nothing ends for them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from payments_async.bulk.ledger.sqlite.ledger import SqliteLedger
from payments_async.bulk.protocol.attempts import RowAttempt
from payments_async.bulk.protocol.run_figures import RunSeries
from tests.support.ledgers import Clock, begun, created

_AT = 1_800_000_100.0


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE series SET created = 'many'",
        "UPDATE series SET seconds = 0",
        "UPDATE series SET created = CAST(x'ff' AS TEXT)",
        "UPDATE answer_times SET answers = 'many'",
        "ALTER TABLE series RENAME COLUMN created TO made",
        "DROP TABLE series",
        "DROP TABLE attempts",
        "UPDATE attempts SET attempts = '{'",
    ],
)
async def test_a_run_goes_on_without_figures_that_cannot_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    path = tmp_path / "june.ledger"
    async with await begun(path, 3) as ledger:
        ledger.recorder.add(_AT, "created", 0.1)
        ledger.recorder.attempt(2, RowAttempt(_AT, "503", 0.2))
        await ledger.save_figures()
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute(damage)
    for begins_with_reading in (True, False):
        async with await SqliteLedger.open(path, clock=Clock("second", _AT + 50)) as ledger:
            if begins_with_reading:
                await ledger.series()
            ledger.recorder.add(_AT + 50, "created", 0.1)
            ledger.recorder.attempt(2, RowAttempt(_AT + 50, "409", 0.2))
            (row,) = (await ledger.claim(1)).rows
            assert await ledger.record([created(row)])
            assert (await ledger.series()) != RunSeries()
            assert str((await ledger.attempts([2]))[2]).endswith("409")
            ledger.publish(None, running=True)
            assert not (await ledger.check()).findings
    assert json.loads(Path(f"{path}.status.json").read_text())["running"]
    assert caplog.text.count("the figures of this run") <= 2
