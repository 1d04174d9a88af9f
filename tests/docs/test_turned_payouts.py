"""The guide's table of payouts whose status turns: commands and page say of each what the table says."""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest

from payments_async.sandbox import Sandbox
from tests.docs.pages import rows, section
from tests.support.batch_pages import words_of
from tests.support.ledger_clock import ledger_time
from tests.support.payout_command import HEADER, Here, environment_of

TABLE = [row for row in rows(section("docs/bulk.md", "When something goes wrong")) if len(row) == 5][2:]
LEDGER = "june.ledger"
RUN = ("run", "june.csv", "--ledger", LEDGER, "--batch-id", "june")


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Here]:
    """The command in an empty folder, at a service whose payouts arrive at once."""
    monkeypatch.chdir(tmp_path)
    with Sandbox(scenario="complete immediate") as sandbox:
        for name, value in environment_of(sandbox).items():
            monkeypatch.setenv(name, value)
        yield Here(sandbox, tmp_path, capsys)


def paid(here: Here, amount: str = "10.75") -> None:
    """Run a batch of two rows, of which the first asks for this."""
    lines = [f"emp-{n},{each},GHS,mobile_money,+23320000000{n},GH" for n, each in ((1, amount), (2, "11.75"))]
    (here.folder / "june.csv").write_text("\n".join([HEADER, *lines, ""]))
    here(*RUN)


def shown(here: Here, status: str, *, failed_at: bool = False, more: str = "0") -> None:
    """The service shows the first payout of row 1 with this status, and with so much more."""
    with here.sandbox.changing() as world:
        payout = world.tenants[here.sandbox.api_key].payouts_by_id[first_payout(here)]
        payout.status, payout.amount = status, payout.amount + Decimal(more)
        payout.completed_at = None if status == "pending" else payout.created_at
        payout.failed_at = payout.created_at if failed_at else None


def first_payout(here: Here) -> str:
    return next(entry.id for entry in here.sandbox.books.payouts() if entry.amount < 11)


def turned(here: Here, status: str, *, failed_at: bool = False, more: str = "0") -> None:
    """A payout has arrived, and is then shown so."""
    paid(here)
    shown(here, status, failed_at=failed_at, more=more)


def paid_twice(here: Here) -> None:
    rule = here.sandbox.on("payouts.create", amount="10.75")
    rule.outcome("fail:RECIPIENT_ERROR immediate", times=1)
    paid(here)
    assert here("retry-failed", LEDGER).code == 0
    paid(here)
    shown(here, "completed")


def lost_and_edited(here: Here) -> None:
    paid(here)
    for path in here.folder.glob("june.ledger*"):
        path.unlink()
    paid(here, "12.50")


RETURNED, PENDING, UNCLEAR, TWICE, ROUNDED, LOST = range(6)
_UNCLEAR = "completed with completed_at and failed_at: the service contradicts itself"
_LOST = "other content under its reference: the list shows po_1, GHS 10.75, completed"
SHOWN = {
    RETURNED: (["Returned", "1 × reversed · GHS 10.75"], ["returned", "reversed"]),
    PENDING: (["not final yet", "1 payout is created, and not final yet"], ["not_final", "pending"]),
    UNCLEAR: (["Not final yet", f"1 × {_UNCLEAR} · GHS 10.75"], ["not_final", "completed", _UNCLEAR]),
    TWICE: (["1 in excess", "1 payout in excess of what the rows ask for"], ["arrived", "completed"]),
    ROUNDED: (["arrived"], ["arrived", "10.75000000000000001"]),
    LOST: (["In conflict", f"1 × {_LOST} · GHS 12.50"], ["conflict", "10.75"]),
}
"""What `status` and the page say, and what an export has."""
CASES = {
    "reversed": (RETURNED, partial(turned, status="reversed")),
    "failed": (RETURNED, partial(turned, status="failed")),
    "cancelled": (RETURNED, partial(turned, status="cancelled")),
    "pending": (PENDING, partial(turned, status="pending")),
    "completed with failed_at": (UNCLEAR, partial(turned, status="completed", failed_at=True)),
    "paid twice": (TWICE, paid_twice),
    "rounded": (ROUNDED, partial(turned, status="completed", more="1e-17")),
    "ledger lost": (LOST, lost_and_edited),
}


@pytest.mark.parametrize("command", [RUN, ("reconcile", LEDGER)], ids=["run", "reconcile"])
@pytest.mark.parametrize("case", CASES)
def test_commands_and_page_say_of_a_turned_payout_what_the_table_says(
    here: Here, case: str, command: tuple[str, ...]
) -> None:
    number, make = CASES[case]

    def of_case(text: str) -> str:
        return text.replace("reversed", case if number == RETURNED else "reversed")

    _, certified, outcome, code, _ = map(of_case, TABLE[number])
    looked_at, exported = (list(map(of_case, texts)) for texts in SHOWN[number])
    make(here)

    def plain(text: str) -> str:
        words = " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())
        return words.replace(first_payout(here), "po_1")

    with ledger_time(lambda: time.time() + 61):  # the certificate of before is not young any more
        said = here(*command, as_text=True)
    assert said.code == int(code)
    for text in quoted(certified):
        assert text in plain(said.out)
    here("export", LEDGER, "out.html")
    on_page = plain(words_of((here.folder / "out.html").read_text(encoding="utf-8")))
    status = plain(here("status", LEDGER).out)
    for text in looked_at:
        assert text in status
        assert text in on_page
    for text in quoted(certified):
        assert text in on_page or text in ("Turned", "Finding")
    here("export", LEDGER, "out.csv")
    with (here.folder / "out.csv").open(newline="", encoding="utf-8") as file:
        row = next(csv.DictReader(file))
    for text in (*exported, *quoted(outcome)):
        assert text in row.values()


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_row_of_the_table_is_tried() -> None:
    assert {number for number, _ in CASES.values()} == {*range(len(TABLE))}
