"""The program of docs/nightly.md, as its reader runs it: killed and started again, given a fault."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from payments_async.sandbox import Sandbox
from tests.docs.snippets import all_snippets
from tests.support.patience import until
from tests.support.sightings import posts

HEAD = "row_key,amount,currency,method,instrument.phone_number,instrument.country"
ROWS = 60


def night(name: str, *amounts: str) -> None:
    """A file of the folder."""
    rows = [f"emp-{n},{amount},GHS,mobile_money,+2332{n:08},GH" for n, amount in enumerate(amounts, 1)]
    Path(name).write_text("\n".join([HEAD, *rows, ""]))


def started(name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "nightly.py", name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """A service, and a folder with the program."""
    (program,) = (snippet for snippet in all_snippets() if snippet.file == "docs/nightly.md")
    (tmp_path / "nightly.py").write_text(program.code)
    monkeypatch.chdir(tmp_path)
    with Sandbox(seed=880_002, scenario="complete immediate") as sandbox:
        monkeypatch.setenv("PAYMENTS_API_KEY", sandbox.api_key)
        monkeypatch.setenv("PAYMENTS_BASE_URL", sandbox.base_url)
        yield sandbox


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_night_that_is_killed_is_paid_once_by_the_next_start(sandbox: Sandbox) -> None:
    amounts = [f"{n}.07" for n in range(1, ROWS + 1)]
    night("june.csv", *amounts)
    process = started("june.csv")
    await until(lambda: posts(sandbox) > 5)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    for _ in range(2):
        process = started("june.csv")
        told = process.communicate()
        assert process.returncode == 0, told
        assert sorted(payout.amount for payout in sandbox.books.payouts()) == list(map(Decimal, amounts))
    assert Path("june.xlsx").exists()


def test_a_fault_in_the_file_is_told_with_its_line_and_nothing_is_sent(sandbox: Sandbox) -> None:
    night("june.csv", "10.07", "0")
    process = started("june.csv")
    _, told = process.communicate()
    assert (process.returncode, posts(sandbox)) == (2, 0)
    assert told == "june.csv, line 3, amount: must be at least 1, in major units\n"


def test_payouts_that_fail_are_told_with_their_sum(sandbox: Sandbox) -> None:
    sandbox.on("payouts.create", amount="10.07").outcome("fail:INSUFFICIENT_FUNDS immediate")
    night("june.csv", "10.07", "11.07")
    process = started("june.csv")
    _, told = process.communicate()
    assert process.returncode == 1, told
    assert told.startswith("1 rows failed, GHS 10.07: ")


@pytest.mark.slow  # it tries for half a minute
@pytest.mark.usefixtures("sandbox")
def test_a_service_that_is_away_is_asked_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    night("june.csv", "10.07")
    monkeypatch.setenv("PAYMENTS_BASE_URL", "http://127.0.0.1:9/v1")
    process = started("june.csv")
    _, told = process.communicate()
    assert process.returncode == 75, told
