"""`--page`: the page of a run while it pays and at its end, and of a ledger at rest."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import urllib.request
import webbrowser
from types import SimpleNamespace

import pytest

from payments_async.bulk._page import browser, page
from tests.support.payout_command import (
    PHONE,
    Exit,
    Here,
    OnTerminal,
    assert_paid_once,
    environment_of,
    payouts_file,
)

ROWS = 40
LEDGER = "june.csv.ledger"


@pytest.fixture
def here(here: Here, monkeypatch: pytest.MonkeyPatch) -> Here:
    """With a file of payouts, and a browser that writes down what it is to open."""
    payouts_file(here.folder, ROWS)
    note = here.folder / "browser.py"
    note.write_text(f"import sys\nopen({str(here.folder / 'opened')!r}, 'a').write(sys.argv[1] + '\\n')\n")
    monkeypatch.setenv("BROWSER", f"{sys.executable} {note} %s")  # for processes

    def open_here(address: str) -> bool:
        with (here.folder / "opened").open("a") as file:
            file.write(f"{address}\n")
        return True

    monkeypatch.setattr(webbrowser, "get", lambda: SimpleNamespace(open=open_here))
    monkeypatch.setattr(browser, "_PATIENCE", 30.0)  # until it has written it down
    return here


def opened(here: Here) -> list[str]:
    file = here.folder / "opened"
    return file.read_text().split() if file.exists() else []


def text_of(address: str) -> str:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address) as answer:
        return str(answer.read().decode())


def test_the_page_of_a_batch_is_watched_until_ctrl_c(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    assert here("run", "june.csv", "--max-rows", "1").code == Exit.RESUMABLE
    monkeypatch.delenv("PAYMENTS_API_KEY")  # what only looks needs none
    pages: list[str] = []

    def look_and_press_ctrl_c() -> None:
        try:
            while not opened(here):
                threading.Event().wait(0.02)
            pages.append(text_of(*opened(here)))
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    visitor = threading.Thread(target=look_and_press_ctrl_c)
    visitor.start()
    done = here("watch", LEDGER, "--page", as_text=True)
    visitor.join(300)
    assert (done.code, "until Ctrl-C" in done.out) == (Exit.DONE, True)
    assert ("1 of 40" in pages[0], PHONE in pages[0]) == (True, False)


def test_a_run_with_a_page_stays_on_its_terminal_until_ctrl_c(here: Here) -> None:
    here.sandbox.on("payouts.create", amount="4.07").respond("http:422")
    variables = environment_of(here.sandbox)
    with OnTerminal(variables, "run", "june.csv", "--page", cwd=here.folder) as terminal:
        seen = terminal.until("until Ctrl-C")
        (link,) = opened(here)
        assert link in seen
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
    assert len(opened(here)) == 1
    assert_paid_once(here.sandbox, ROWS)


def test_without_a_free_port_the_rows_are_paid_all_the_same(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(_: object) -> None:
        raise OSError

    monkeypatch.setattr(page, "listen", taken)
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
        assert (said.code, 'pip install "payments-sdk[' in said.err) == (Exit.USAGE, True)
    assert here.sandbox.requests == []
