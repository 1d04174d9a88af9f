"""A ledger whose file lost pages, cut off or filled with zeros, is refused when opened: nothing is paid."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from payments_async.bulk import PayoutBatch
from payments_async.bulk._ledger.sqlite import driver, file
from payments_async.bulk._ledger.sqlite.ledger import SqliteLedger
from payments_async.bulk.ledger_errors import LedgerDamaged, LedgerReadOnly
from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from tests.support.batches import in_process, items, steady_ledgers
from tests.support.ledgers import Clock, begun, counts, created

PAGE = 4096
BLANK = bytes(PAGE)
ROWS = 400

Damage = Callable[[bytes], bytes]


def cut(whole: bytes) -> bytes:
    """Without its last page."""
    return whole[:-PAGE]


def halved(whole: bytes) -> bytes:
    """Without its second half."""
    return whole[: len(whole) // PAGE // 2 * PAGE]


def lengthened(whole: bytes) -> bytes:
    """With a page of zeros at its end that is not in use: it seems lost, and is not."""
    return whole + BLANK


def blanked(page: int) -> Damage:
    """With zeros for a page, counted from 0; negative from the end."""

    def blank(whole: bytes) -> bytes:
        start = page % (len(whole) // PAGE) * PAGE
        return whole[:start] + BLANK + whole[start + PAGE :]

    return blank


def half(whole: bytes) -> bytes:
    """With zeros for the page in the middle."""
    return blanked(len(whole) // PAGE // 2)(whole)


def spoil(path: Path, damage: Damage) -> bytes:
    """Damage a file. Gives what it held before."""
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    return whole


def _broken(*_: object) -> bool:
    raise OSError(5, "Input/output error")


@pytest.fixture(params=["checked whole", "only looked through"])
def _size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger of few rows, and one of so many that checking it would take long."""
    if request.param == "only looked through":
        monkeypatch.setattr(file, "CHECKED_WHOLE", 0)


@pytest.fixture
async def left(tmp_path: Path) -> Path:
    """What a killed process leaves: a ledger, its lock, and the log with its last commits."""
    path, left = tmp_path / "run" / "ledger", tmp_path / "left"
    path.parent.mkdir()
    async with await begun(path, ROWS) as ledger:
        await ledger.record([created(row) for row in (await ledger.claim(20)).rows])
        shutil.copytree(path.parent, left)
    return left / "ledger"


@pytest.fixture
async def closed(left: Path) -> Path:
    """A ledger that was closed: everything is in its file."""
    await (await SqliteLedger.open(left, clock=Clock())).close()
    return left


@pytest.mark.usefixtures("_size")
@pytest.mark.parametrize("damage", [cut, half, blanked(-1), blanked(1)])
async def test_a_ledger_that_lost_a_page_is_refused_at_opening(closed: Path, damage: Damage) -> None:
    spoil(closed, damage)
    for _ in range(2):
        with pytest.raises(LedgerDamaged, match="put back the newest whole copy") as caught:
            await SqliteLedger.open(closed, clock=Clock())
        assert caught.value.findings


@pytest.mark.usefixtures("_size")
@pytest.mark.parametrize("damage", [halved, half])
async def test_a_ledger_that_a_killed_run_left_is_refused_alike(left: Path, damage: Damage) -> None:
    spoil(left, damage)
    with pytest.raises(LedgerDamaged):
        await SqliteLedger.open(left, clock=Clock())


@pytest.mark.usefixtures("_size")
@pytest.mark.parametrize("damage", [cut, blanked(-1)])
async def test_a_page_that_the_log_has_too_is_not_lost(left: Path, damage: Damage) -> None:
    spoil(left, damage)
    async with await SqliteLedger.open(left, clock=Clock()) as ledger:
        assert (await ledger.check()).findings == ()


@pytest.mark.usefixtures("_size")
async def test_a_whole_ledger_is_opened_whatever_its_log_still_holds(left: Path) -> None:
    """The file alone may be behind: what is in the log is as good as in it."""
    for _ in range(2):
        async with await SqliteLedger.open(left, clock=Clock()) as ledger:
            assert counts(ledger) == {"not_started": ROWS - 20, "created": 20}


@pytest.mark.usefixtures("_size")
async def test_no_page_of_zeros_goes_unnoticed(closed: Path) -> None:
    whole = spoil(closed, bytes)
    for page in range(1, len(whole) // PAGE, 7):
        spoil(closed, blanked(page))
        with pytest.raises(LedgerDamaged):
            await SqliteLedger.open(closed, clock=Clock())
        spoil(closed, lambda _: whole)
    await (await SqliteLedger.open(closed, clock=Clock())).close()


async def test_a_large_ledger_is_checked_only_where_pages_seem_lost(
    closed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check of a million rows takes seconds, and every start would wait for it."""
    asked: list[Any] = []

    async def faults(db: Any, **given: Any) -> list[str]:
        asked.append(given)
        return []

    monkeypatch.setattr(driver, "faults", faults)
    await (await SqliteLedger.open(closed, clock=Clock())).close()
    assert asked == [{"quick": True}]
    monkeypatch.setattr(file, "CHECKED_WHOLE", 0)
    await (await SqliteLedger.open(closed, clock=Clock())).close()
    assert len(asked) == 1
    spoil(closed, lengthened)
    await (await SqliteLedger.open(closed, clock=Clock())).close()
    assert len(asked) == 2


async def test_a_page_that_is_not_in_use_may_be_blank(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "CHECKED_WHOLE", 0)
    spoil(closed, lengthened)
    async with await SqliteLedger.open(closed, clock=Clock()) as ledger:
        assert counts(ledger) == {"not_started": ROWS - 20, "created": 20}


def test_a_file_that_the_disk_does_not_give_is_no_ledger_to_work_with(
    closed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "CHECKED_WHOLE", 0)
    monkeypatch.setattr(file, "_is_cut", _broken)
    with pytest.raises(LedgerReadOnly, match="cannot be read"):
        file.needs_check(str(closed))


@pytest.fixture
def _steady() -> Iterator[None]:
    with steady_ledgers():
        yield


@pytest.mark.usefixtures("_steady", "_size")
@pytest.mark.parametrize("damage", [cut, half, blanked(-1)])
async def test_a_batch_on_such_a_ledger_pays_nothing(tmp_path: Path, damage: Damage) -> None:
    service = Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits.off())
    path = tmp_path / "l"
    async with in_process(service) as client, PayoutBatch.open(path, client) as batch:
        await batch.load(items(200))
        await batch.run(max_rows=20)
    before = len(service.requests)
    spoil(path, damage)
    with pytest.raises(LedgerDamaged):
        async with in_process(service) as client, PayoutBatch.open(path, client) as batch:
            await batch.load(items(200))
            await batch.run()
    assert len(service.requests) == before
