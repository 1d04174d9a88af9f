"""Batches in a database: found by their names, imported once, planned, paused; nothing lies beside them.

Through one surface: `tests/sync/test_bulk.py` takes a blocking batch through all of it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import payments_async.bulk
import payments_sync.bulk
from payments_async.bulk.errors import BulkError
from payments_async.bulk.ledger_errors import (
    InputPaidElsewhere,
    LedgerMissing,
    LedgerOfAnotherInput,
    LedgerRefused,
    LedgerUnavailable,
)
from payments_async.sandbox import Sandbox
from tests.support.batches import item, items
from tests.support.canary import told_by
from tests.support.desks import Desk
from tests.support.one_surface import surface as surface
from tests.support.servers import PASSWORD, PostgresServer, free_port


async def test_a_batch_is_imported_once_and_found_by_its_name(
    desk: Desk, client: Any, database: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with desk.open(database, client, batch_id="june") as batch:
        assert (await batch.load(items(3))).is_new
        assert (await batch.load(items(3))).is_new is False
    async with desk.open(database, client, batch_id="july") as batch:
        with pytest.raises(LedgerMissing, match="`load` comes first"):
            batch.status()
    async with desk.open(database, client, batch_id="june") as batch:
        assert (await batch.load(items(3))).is_new is False
        assert len(await desk.rows(batch)) == 3
        assert batch.chunks() == 1
    async with desk.open(database, batch_id="june") as batch:
        assert batch.status().counts["not_started"] == 3
        assert (await batch.check()).findings == ()
    assert [*tmp_path.iterdir()] == []


async def test_a_batch_may_get_its_name_with_its_input(desk: Desk, client: Any, database: Any) -> None:
    async with desk.open(database, client) as batch:
        name = (await batch.load(items(2))).batch_id
    async with desk.open(database, client) as batch:
        assert (await batch.load(items(2))).is_new is False
        assert batch.status().batch_id == name
    async with desk.open(database, client) as batch:
        assert (await batch.load(items(2), batch_id="june", pay_again=True)).batch_id == "june"
    async with desk.open(database, batch_id=name) as batch:
        assert batch.status().rows == 2


async def test_without_a_client_the_batch_must_be_named_and_there(
    desk: Desk, service: Sandbox, database: Any
) -> None:
    with pytest.raises(LedgerMissing, match="holds no ledger"):
        async with desk.open(database, batch_id="june"):
            pass
    async with desk.client(service) as client, desk.open(database, client, batch_id="june") as batch:
        await batch.load(items(1))
    with pytest.raises(BulkError, match="name one by batch_id="):
        async with desk.open(database):
            pass
    with pytest.raises(LedgerMissing, match=r"batch july: there is no such batch") as caught:
        async with desk.open(database, batch_id="july"):
            pass
    assert PASSWORD not in told_by(caught.value)


async def test_of_two_planners_one_imports_and_the_other_sees_that(
    desk: Desk, client: Any, database: Any
) -> None:
    one, two = (desk.open(database, client, batch_id="june") for _ in range(2))
    async with one, two:
        loaded = await asyncio.gather(one.load(items(50)), two.load(items(50)))
        assert sorted(each.is_new for each in loaded) == [False, True]
        assert one.status().rows == two.status().rows == 50


async def test_another_planner_with_another_input_is_shown_the_rows_that_differ(
    desk: Desk, client: Any, database: Any
) -> None:
    one, two = (desk.open(database, client, batch_id="june") for _ in range(2))
    async with one, two:
        await one.load(items(3))
        with pytest.raises(LedgerOfAnotherInput, match=r"row 2.*changed amount, NEW"):
            await two.load([item(1), item(2, amount=7), item(3)])
        assert (await two.load([item(1), item(2, amount=7)], accept_edits=True)).cancelled == 1
        assert (await one.refresh()).counts["cancelled"] == 1
        assert one.status().payable == two.status().payable


async def test_an_input_is_compared_with_the_batch_as_it_is_now(
    desk: Desk, client: Any, database: Any
) -> None:
    one, two = (desk.open(database, client, batch_id="june") for _ in range(2))
    async with one, two:
        await one.load(items(2))
        await two.load([item(1), item(2, amount=700)], accept_edits=True)
        assert (await one.preview(items(2))).differing == 1
        await two.load([item(1), item(2, amount=7000)], accept_edits=True)
        with pytest.raises(LedgerOfAnotherInput, match=r"row 2.*changed amount, NEW"):
            await one.load(items(2))


async def test_the_same_input_is_no_second_batch_of_the_database(
    desk: Desk, client: Any, database: Any
) -> None:
    preview = await desk.open(database, client, batch_id="july").preview(items(2))
    assert (preview.is_new, preview.warnings) == (True, ())
    with pytest.raises(LedgerMissing, match="holds no ledger"):  # a preview makes no tables
        async with desk.open(database, batch_id="july"):
            pass
    async with desk.open(database, client, batch_id="june") as batch:
        await batch.load(items(2))
    preview = await desk.open(database, client, batch_id="july").preview(items(2))
    assert "the database has the same input as batch june" in preview.warnings[0]
    async with desk.open(database, client, batch_id="july") as batch:
        with pytest.raises(InputPaidElsewhere, match="batch june") as caught:
            await batch.load(items(2))
        assert (caught.value.batch_id, caught.value.ledger) == ("june", None)
        report = await batch.load(items(2), pay_again=True)
        assert "paid again on purpose" in report.warnings[0]


async def test_a_batch_is_planned_paused_and_resumed(desk: Desk, client: Any, database: Any) -> None:
    async with desk.open(database, client, batch_id="june") as batch:
        await batch.load(items(2))
        assert batch.status().stopped == "not planned yet"
        assert (await batch.plan(max_rows=1)).stopped is None
    async with desk.open(database, batch_id="june") as batch:
        assert (await batch.pause("lunch")).stopped == "paused: lunch"
        assert (await batch.resume()).stopped is None
        assert (await batch.resume()).stopped is None
        # as from a command line that is not UTF-8
        assert (await batch.pause("lunch\0 \udcff")).stopped == r"paused: lunch\x00 \udcff"


async def test_a_pause_does_not_begin_a_batch_that_was_not_planned(
    desk: Desk, service: Sandbox, database: Any
) -> None:
    async with desk.client(service) as client, desk.open(database, client, batch_id="june") as batch:
        await batch.load(items(1))
        assert (await batch.pause()).stopped == "not planned yet"
        assert (await batch.resume()).stopped == "not planned yet"


async def test_a_check_writes_a_line_for_each_chunk_and_its_head_is_their_hash(
    desk: Desk, service: Sandbox, database: Any, tmp_path: Path
) -> None:
    lines = tmp_path / "chunks.jsonl"
    async with desk.client(service) as client, desk.open(database, client, batch_id="june") as batch:
        await batch.load(items(501))
        report = await batch.check(chunks=lines)
        assert hashlib.sha256(lines.read_bytes()).hexdigest() == report.head
        found = [json.loads(line) for line in lines.read_text().splitlines()]
        assert [(each["chunk"], each["first"], each["last"], each["rows"]) for each in found] == [
            (1, 1, 500, 500),
            (2, 501, 501, 1),
        ]
        with pytest.raises(BulkError, match="exists already; name another file"):
            await batch.check(chunks=lines)


async def test_a_batch_is_recovered_by_hand(desk: Desk, service: Sandbox, database: Any) -> None:
    async with desk.client(service) as client, desk.open(database, client, batch_id="june") as batch:
        await batch.load(items(2))
        await batch.plan()
        assert (await batch.recover()).reason is None
        report = await batch.recover(by_hand=True)
        assert (report.is_suspect, report.settled, report.is_over) == (True, 0, False)
        assert (await batch.recover(commands_complete=True)).is_suspect is False
        assert batch.status().stopped is None


async def test_a_batch_that_is_called_off_leaves_its_name_to_the_next(
    desk: Desk, client: Any, database: Any
) -> None:
    async with desk.open(database, client, batch_id="june") as batch:
        await batch.load(items(2))
        await batch.discard()
        await batch.discard()
    async with desk.open(database, client, batch_id="june") as batch:
        assert (await batch.load([item(1), item(2)])).is_new
        assert (await batch.load([item(1)], accept_edits=True)).cancelled == 1
        with pytest.raises(LedgerRefused, match="it is the record of that"):
            await batch.discard()


async def test_a_database_that_cannot_be_reached_is_named_without_its_password(
    desk: Desk, client: Any, postgres: PostgresServer
) -> None:
    address: Any = postgres.url(port=free_port())
    with pytest.raises(LedgerUnavailable, match="cannot be reached") as caught:
        async with desk.open(address, client, batch_id="june"):
            pass
    assert PASSWORD not in told_by(caught.value)


@pytest.mark.parametrize("package", [payments_async.bulk, payments_sync.bulk])
@pytest.mark.parametrize(
    ("name", "place", "library", "extra"),
    [
        ("PayoutBatch", "june.ledger", "aiosqlite", "bulk"),
        ("SharedBatch", "postgresql://u@127.0.0.1/d", "psycopg", "machines"),
        ("BatchDatabase", "postgresql://u@127.0.0.1/d", "psycopg", "machines"),
    ],
)
def test_without_its_extra_a_batch_is_refused_before_it_is_entered(
    package: Any, name: str, place: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf'needs {library}: pip install "payments-sdk\[{extra}\]"$'):
        getattr(package, name).open(place)


async def test_without_its_extra_a_file_names_it(
    desk: Desk, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "payments_async.bulk._ledger.sqlite.ledger", None)
    with pytest.raises(ImportError, match=r'pip install "payments-sdk\[bulk\]"$'):
        async with desk.open(tmp_path / "l", client):
            pass


async def test_without_its_extra_a_database_names_it(
    desk: Desk, client: Any, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [*sys.modules]:
        if name.startswith("payments_async.bulk._ledger.postgresql."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ImportError, match=r'needs psycopg: pip install "payments-sdk\[machines\]"$'):
        async with desk.open(database, client, batch_id="june"):
            pass
