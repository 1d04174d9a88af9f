"""`LEDGER.page.json`: private, and believed only of the process that holds the ledger."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from payments_async.bulk._page import address_file
from payments_async.bulk._page.access import PageAccess
from payments_async.bulk._page.address_file import ask_running, publish, withdraw
from tests.support.batch_pages import GivenSource, row, served, states


async def test_a_command_asks_the_run_that_holds_the_ledger(tmp_path: Path) -> None:
    ledger = str(tmp_path / "june.ledger")
    source = GivenSource(states()["running"], {"41": row(41)})
    async with served(source) as server:
        publish(ledger, server.access)
        (file,) = tmp_path.iterdir()
        assert (file.name, stat.S_IMODE(file.stat().st_mode)) == ("june.ledger.page.json", 0o600)
        found = await ask_running(ledger, os.getpid(), "/api/row", name="41")
        assert found is not None
        assert (found["row_key"], found["page"]) == ("emp-00041", f"{server.access.origin}/rows/41")
        missing = await ask_running(ledger, os.getpid(), "/api/row", name="ä ?&")
        assert missing == {"error": "there is no such row"}
        assert (
            await ask_running(ledger, 1, "/api/row", name="41") is None
        )  # a file that a killed run has left
        read = address_file.read(ledger)
        assert read is not None
        assert server.access.rules.secret not in repr(read)
        publish(ledger, PageAccess(server.access.port))  # another secret
        assert await ask_running(ledger, os.getpid(), "/api/row", name="41") is None
    assert await ask_running(ledger, os.getpid(), "/api/row", name="41") is None  # nobody listens
    withdraw(ledger)
    withdraw(ledger)
    assert await ask_running(ledger, os.getpid(), "/api/row", name="41") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        json.dumps({"version": 2, "pid": 1, "address": "http://127.0.0.1:20001", "secret": "t"}),
        json.dumps({"version": 1, "pid": 1, "address": "http://127.0.0.1", "secret": "t"}),
        json.dumps({"version": 1, "pid": 1, "address": "http://127.0.0.1:x", "secret": "t"}),
        json.dumps({"version": 1, "pid": 1, "address": 7, "secret": "t"}),
        json.dumps({"version": 1, "pid": 1, "address": "http://evil.example:20001", "secret": "t"}),
        json.dumps({"version": 1, "pid": 1, "address": "ftp://127.0.0.1:20001", "secret": "t"}),
        json.dumps({"version": 1, "pid": 1}),
    ],
)
def test_a_file_of_another_kind_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "june.ledger.page.json").write_text(text)
    assert address_file.read(str(tmp_path / "june.ledger")) is None


def test_a_run_goes_on_where_the_file_cannot_be_written(tmp_path: Path) -> None:
    publish(str(tmp_path / "nowhere" / "june.ledger"), PageAccess(20_001))
    assert address_file.read(str(tmp_path / "june.ledger")) is None
