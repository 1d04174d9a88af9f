"""`--page`: the page of a run while it pays and at its end, and of a ledger at rest."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.support.batch_pages import BatchPage, LedgerAddress, serve_page
from tests.support.payout_command import (
    PHONE,
    Exit,
    Here,
    OnTerminal,
    assert_paid_once,
    environment_of,
    payouts_file,
)
from tests.support.servers import PASSWORD

ROWS = 40
LEDGER = "june.csv.ledger"


@pytest.fixture
def here(here: Here) -> Here:
    payouts_file(here.folder, ROWS)
    return here


@pytest.fixture(autouse=True)
def links(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The links of the pages that are served in this process."""
    found = list[str]()

    @asynccontextmanager
    async def noted(ledger: LedgerAddress) -> AsyncIterator[BatchPage]:
        async with serve_page(ledger) as served:
            found.append(served.link)
            yield served

    monkeypatch.setattr("payments_async._cli.payouts.page.serve_page", noted)
    return found


def text_of(address: str) -> str:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address) as answer:
        return str(answer.read().decode())


def watched(here: Here, links: list[str], *arguments: str) -> str:
    """The page that `watch --page` serves until Ctrl-C; the command here ends by a signal."""
    links.clear()
    pages: list[str] = []

    def look_and_press_ctrl_c() -> None:
        try:
            while not links:
                threading.Event().wait(0.02)
            pages.append(text_of(links[0]))
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    visitor = threading.Thread(target=look_and_press_ctrl_c)
    visitor.start()
    done = here("watch", *arguments, "--page", as_text=True)
    visitor.join(300)
    assert (done.code, "until Ctrl-C" in done.out) == (Exit.DONE, True)
    return pages[0]


def test_the_page_of_a_batch_is_watched_until_ctrl_c(
    here: Here, links: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert here("run", "june.csv", "--max-rows", "1").code == Exit.RESUMABLE
    monkeypatch.delenv("PAYMENTS_API_KEY")  # what only looks needs none
    shown = watched(here, links, LEDGER)
    assert ("1 of 40" in shown, PHONE in shown) == (True, False)


def test_a_run_with_a_page_stays_on_its_terminal_until_ctrl_c(here: Here) -> None:
    here.sandbox.on("payouts.create", amount="4.07").respond("http:422")
    variables = environment_of(here.sandbox)
    with OnTerminal(variables, "run", "june.csv", "--page", cwd=here.folder) as terminal:
        seen = terminal.until("until Ctrl-C")
        (link,) = re.findall(r"http://127\.0\.0\.1:\d+/\S*", seen)
        shown = text_of(link)
        assert "complete, 1 rejected" in shown
        assert "Certified" in shown
        assert here("status", LEDGER).code == Exit.DONE  # others work with the ledger meanwhile
        terminal.type("\x03")
        assert terminal.end() == Exit.REFUSED
    assert len(here.sandbox.books.payouts()) == ROWS - 1


def test_without_a_terminal_a_run_names_the_address_without_a_secret_and_ends(here: Here) -> None:
    done = here("run", "june.csv", "--page")
    assert done.code == Exit.DONE
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", done.step("page")["address"])
    assert_paid_once(here.sandbox, ROWS)


def test_without_a_free_port_the_rows_are_paid_all_the_same(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(_: object) -> None:
        raise OSError

    monkeypatch.setattr("payments_async.bulk._page.page.listen", taken)
    done = here("run", "june.csv", "--page")
    assert (done.code, done.step("page")["address"]) == (Exit.DONE, None)
    assert_paid_once(here.sandbox, ROWS)
    here("watch", LEDGER, "--page").assert_one_message(Exit.RESUMABLE, "no port of 127.0.0.1 is free")


def test_a_page_without_its_extra_is_refused_before_anything_is_paid(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    for command in (("run", "june.csv"), ("watch", LEDGER)):
        said = here(*command, "--page")
        assert (said.code, 'pip install "payments-sdk[' in said.told) == (Exit.USAGE, True)
    assert here.sandbox.requests == []


def test_the_page_of_a_batch_in_a_database_shows_no_password(
    here: Here, links: list[str], database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = ("--batch-id", "june")
    assert here("run", "june.csv", *named, "--ledger", database).code == Exit.DONE
    monkeypatch.setenv("PAYMENTS_LEDGER", database)
    shown = watched(here, links, *named)
    assert "complete" in shown
    assert "payments payouts reconcile --batch-id june" in shown
    for secret in (PASSWORD, PHONE):
        assert secret not in shown
