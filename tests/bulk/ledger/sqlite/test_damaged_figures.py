"""Figures of a run that were damaged in the file: they decide nothing, so nothing ends for them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from payments_async.bulk import RowAttempt, RunSeries
from tests.support.ledgers import Clock, begun, created
from tests.support.places import opened

_AT = 1_800_000_100.0
_OF_ROW_3 = ("the attempts of row 3",)
_SERIES = ("payouts a second and answer times",)


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        ("UPDATE series SET created = 'many'", _SERIES),
        ("UPDATE series SET seconds = 0", _SERIES),
        ("UPDATE series SET created = CAST(x'ff' AS TEXT)", _SERIES),
        ("UPDATE series SET created = -1", _SERIES),
        ("UPDATE series SET closed = 9e999", _SERIES),
        ("UPDATE series SET closed = -9", _SERIES),
        ("UPDATE series SET allowed = -5", _SERIES),
        ("UPDATE series SET at = 99999999999999", _SERIES),
        ("UPDATE answer_times SET answers = 'many'", _SERIES),
        ("UPDATE answer_times SET answers = -5", _SERIES),
        ("ALTER TABLE series RENAME COLUMN created TO made", _SERIES),
        ("DROP TABLE series", ()),
        ("DROP TABLE attempts", ()),
        ("ALTER TABLE attempts RENAME COLUMN attempts TO tries", ("the attempts of rows",)),
        ("UPDATE attempts SET attempts = '{'", ("the attempts of row 2 and 1 more",)),
        ("UPDATE attempts SET attempts = '{' WHERE number = 3", _OF_ROW_3),
        ("UPDATE attempts SET attempts = replace(attempts, '0.2', 'NaN') WHERE number = 3", _OF_ROW_3),
        (
            "UPDATE attempts SET attempts = replace(attempts, '1800000100.0', '1e30') WHERE number = 3",
            _OF_ROW_3,
        ),
        (
            'UPDATE attempts SET attempts = \'{"made": -3, "first": [], "last": []}\' WHERE number = 3',
            _OF_ROW_3,
        ),
        (
            "UPDATE attempts SET attempts = replace(attempts, '\"made\": 1', '\"made\": 0') WHERE number = 3",
            _OF_ROW_3,
        ),
    ],
)
async def test_a_run_goes_on_without_figures_that_cannot_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str, named: tuple[str, ...]
) -> None:
    path = tmp_path / "june.ledger"
    async with await begun(path, 3) as ledger:
        ledger.recorder.add(_AT, "created", 0.1)
        ledger.recorder.attempt(2, RowAttempt(_AT, "503", 0.2))
        ledger.recorder.attempt(3, RowAttempt(_AT, "503", 0.2))
        await ledger.save_figures()
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute(damage)
    async with await opened(path, Clock("second", _AT + 40)) as ledger:
        checked = await ledger.check()
        assert (checked.findings, checked.unreadable) == ((), named)
    for begins_with_reading in (True, False):
        async with await opened(path, Clock("second", _AT + 50)) as ledger:
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
