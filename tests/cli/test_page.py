"""The page of real runs: served while they pay, found by `watch`, gone at the end; and of ledgers at rest."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import stat
import sys
import threading
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from payments_async._cli._exit_codes import Exit
from payments_async.bulk._page import address_file, browser, server, view
from payments_async.bulk._page.address_file import ask_running
from payments_async.bulk._page.site import FILES
from payments_async.bulk._page.source import LedgerSource
from payments_async.bulk._texts.ledger_address import LedgerAddress
from tests.support.payout_command import (
    PHONE,
    Here,
    OnTerminal,
    assert_paid_once,
    environment_of,
    payouts_file,
    started,
    until,
)
from tests.support.servers import PASSWORD

ROWS = 200


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

    set_browser(monkeypatch, open_here)
    monkeypatch.setattr(browser, "_PATIENCE", 30.0)  # until it has written it down
    return here


def set_browser(monkeypatch: pytest.MonkeyPatch, opening: Callable[[str], bool]) -> None:
    """Let this be what a browser does."""
    monkeypatch.setattr(webbrowser, "get", lambda: SimpleNamespace(open=opening))


def opened(here: Here) -> list[str]:
    """What the browser was to open."""
    file = here.folder / "opened"
    return file.read_text().split() if file.exists() else []


def visit(address: str) -> urllib.request.OpenerDirector:
    """A browser that has followed a link."""
    proxies = urllib.request.ProxyHandler({})
    browser = urllib.request.build_opener(proxies)
    browser.open(address).close()
    return browser


def text_of(browser: urllib.request.OpenerDirector, address: str) -> str:
    """A page."""
    with browser.open(address) as answer:
        return str(answer.read().decode())


@pytest.mark.slow
def test_a_run_serves_its_page_and_watch_opens_it_and_serves_that_of_a_killed_one(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.sandbox.on("payouts.create").respond("slow:0.2s", times=2 * ROWS)
    file = here.folder / "june.csv.ledger.page.json"
    variables = environment_of(here.sandbox)
    with started(variables, "run", "june.csv", "--concurrency", "4", cwd=here.folder) as run:
        until(run, created=1)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        found = address_file.read("june.csv.ledger")
        assert found is not None
        assert found.pid == run.pid
        assert opened(here) == []

        watched = here("watch", "june.csv.ledger")
        assert (watched.code, f"process {run.pid} works on it" in watched.out) == (Exit.DONE, True)
        assert found.secret not in watched.out
        (link,) = opened(here)
        page = text_of(visit(link), found.address)
        assert re.search(r"\bpaying\b", page)
        assert "GHS" in page
        assert PHONE not in page
        assert found.secret not in page
        assert "in a browser" not in watched.out
        (printed,) = re.findall(r"http\S+token=\w+", watched.out)  # another, for another browser
        assert "created" in text_of(visit(printed), f"{found.address}/rows/1")

        monkeypatch.delenv("BROWSER")
        without = here("watch", "june.csv.ledger")
        assert "open this link in a browser:\n  http" in without.out
        assert max(map(len, without.out.splitlines())) <= 80
        (printed,) = re.findall(r"http\S+token=\w+", without.out)
        assert (len(opened(here)), "paying" in text_of(visit(printed), found.address)) == (1, True)

        kept = file.rename(here.folder / "kept")
        here("watch", "june.csv.ledger").assert_one_message(
            Exit.RESUMABLE, f"process {run.pid}", "serves no page"
        )
        here("watch", "nothing.ledger").assert_one_message(
            Exit.USAGE, "nothing.ledger", "is not there", "start the run first"
        )
        kept.rename(file)
        monkeypatch.setenv("BROWSER", "any")
        run.kill()
        run.communicate(timeout=300)
    killed = datetime.now(UTC)
    page = watched_at_rest(here, "june.csv.ledger")
    assert "stopped, can be resumed" in page
    assert "nothing is paid twice" in page
    assert re.search(r"At \S+ the last run was killed or cut off, with rows under way", page)
    while datetime.now(UTC) < killed + timedelta(seconds=1.1):  # the charts have whole seconds
        threading.Event().wait(0.02)
    assert_shows_both_runs_and_paces_the_last_one(here)


def assert_shows_both_runs_and_paces_the_last_one(here: Here) -> None:
    """The page of the run that resumes a killed one, and of the ledger after it."""
    ledger, before = (
        "june.csv.ledger",
        here("status", "june.csv.ledger", "--json").step("batch")["rows"]["created"],
    )
    arguments = ("run", "june.csv", "--concurrency", "24")
    with started(environment_of(here.sandbox), *arguments, cwd=here.folder) as run:
        until(run, created=before + 1)
        found = asyncio.run(ask_running(ledger, run.pid, "/api/open"))
        assert found is not None
        page = text_of(visit(found["url"]), found["url"].partition("?")[0])
        run.communicate(timeout=300)
        assert run.returncode == Exit.DONE
    now = asyncio.run(LedgerSource(LedgerAddress(ledger)).snapshot())
    at_rest = FILES.render("batch.html", view.batch_context(now))
    killed = r"<li class=.bad.>(Not running \S+ to \S+; the run before was killed or cut off),"
    assert re.findall(killed, page) == re.findall(killed, at_rest) != []
    assert now.batch is not None
    (_, first), (resumed, second) = now.batch.series.by_run(now.runs)
    assert resumed is not None
    assert not resumed.is_cut_off
    assert second.total.created == ROWS - before
    assert first.total.created <= before
    assert_paid_once(here.sandbox, ROWS)


def test_without_a_free_port_the_rows_are_paid_all_the_same(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    payouts_file(here.folder, 3)

    def taken(_: object) -> None:
        raise OSError

    monkeypatch.setattr(server, "listen", taken)
    done = here("run", "june.csv", "--open")
    assert (done.code, done.step("page")["address"]) == (Exit.DONE, None)
    assert_paid_once(here.sandbox, 3)
    here("watch", "june.csv.ledger").assert_one_message(Exit.RESUMABLE, "no port of 127.0.0.1 is free")


def test_without_the_sandbox_extra_a_run_tells_of_its_rows_and_its_page_says_what_to_install(
    here: Here,
) -> None:
    hidden = "import sys\nsys.modules.update(dict.fromkeys(('babel', 'jinja2', 'segno')))\n"
    (here.folder / "sitecustomize.py").write_text(hidden)
    here.sandbox.on("payouts.create").respond("slow:0.2s", times=ROWS)
    variables = {**environment_of(here.sandbox), "PYTHONPATH": str(here.folder)}
    with started(variables, "run", "june.csv", "--concurrency", "2", cwd=here.folder) as run:
        until(run, created=1)
        shown = here("show", "june.csv.ledger", "1", "--json")
        assert (shown.code, shown.step("row")["number"]) == (Exit.DONE, 1)
        assert here("watch", "june.csv.ledger").code == Exit.DONE
        with pytest.raises(urllib.error.HTTPError, match="503") as refused:
            visit(opened(here)[0])
        with refused.value as answer:
            needed = 'the page of a batch needs babel, jinja2, segno: pip install "payments-sdk[sandbox]"\n'
            assert answer.read().decode() == needed
        until(run, created=8)  # it goes on
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=300)
    assert run.returncode == Exit.RESUMABLE
    assert "Traceback" not in said


@pytest.mark.parametrize("is_run", [True, False])
def test_a_page_that_cannot_be_served_says_so_once_and_leaves_no_visitor_waiting(
    here: Here, monkeypatch: pytest.MonkeyPatch, is_run: bool
) -> None:
    payouts_file(here.folder, 3)
    if not is_run:
        assert here("run", "june.csv").code == Exit.DONE
    file, left = here.folder / "june.csv.ledger.page.json", []

    def broken() -> None:
        raise ImportError("cannot import name 'web'")

    def visit_once(address: str) -> bool:
        assert file.exists() is is_run
        place = ("127.0.0.1", urlsplit(address).port or 0)
        with suppress(ConnectionError), socket.create_connection(place, 30) as visitor:
            assert visitor.recv(1) == b""
        left.append(file.exists())
        return True

    monkeypatch.setattr(server, "_imported", broken)
    set_browser(monkeypatch, visit_once)
    why = "it cannot be served (ImportError: cannot import name 'web')"
    if is_run:
        done = here("run", "june.csv", "--open", "--json")
        assert done.code == Exit.DONE
        assert done.out.count(why) == 1
        assert "`payments payouts watch june.csv.ledger`" in done.out
    else:
        here("watch", "june.csv.ledger").assert_one_message(Exit.REFUSED, why, "install the package again")
    assert left == [False]
    assert_paid_once(here.sandbox, 3)


def test_watch_shows_a_batch_in_a_database_at_rest_and_at_its_end(
    here: Here, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    payouts_file(here.folder, 6)
    monkeypatch.setenv("PAYMENTS_LEDGER", database)
    monkeypatch.setenv("PAYMENTS_RATE_SHARE", "1")  # the limit stays in this process
    named = ("--batch-id", "june")
    here.sandbox.on("payouts.create", amount="4.07").respond("http:422")
    assert here("run", "june.csv", *named, "--detach").code == Exit.DONE
    page = watched_at_rest(here, *named)
    assert "nothing was sent yet" in page
    assert re.search(r"Not started</th><td>6</td>", page)
    assert here("run", "june.csv", *named).code == Exit.REFUSED
    page = watched_at_rest(here, *named)
    for text in ("complete, 1 rejected", "Certified", "payments payouts watch --batch-id june", ">422<"):
        assert text in page
    for secret in (PASSWORD, PHONE):
        assert secret not in page


def watched_at_rest(here: Here, *arguments: str) -> str:
    """The page that `watch` serves until Ctrl-C, without a key."""
    (here.folder / "opened").unlink(missing_ok=True)
    pages: list[str] = []
    visitor = threading.Thread(target=lambda: pages.append(look_and_press_ctrl_c(here)))
    visitor.start()
    with keyless():
        done = here("watch", *arguments)
    visitor.join(300)
    assert (done.code, "until Ctrl-C" in done.out) == (Exit.DONE, True)
    return pages[0]


def until_opened(here: Here) -> str:
    """What the browser was to open, once it was."""
    while not opened(here):
        threading.Event().wait(0.02)
    return opened(here)[0]


def look_and_press_ctrl_c(here: Here) -> str:
    """The page that the browser was to open; the command here ends by a signal."""
    try:
        link = until_opened(here)
        return text_of(visit(link), link.partition("?")[0])
    finally:
        os.kill(os.getpid(), signal.SIGINT)


@contextmanager
def keyless() -> Iterator[None]:
    """What only looks needs no key."""
    key = os.environ.pop("PAYMENTS_API_KEY")
    yield
    os.environ["PAYMENTS_API_KEY"] = key


def test_an_opened_run_stays_on_its_terminal_until_ctrl_c_as_the_certificate(here: Here) -> None:
    here.sandbox.on("payouts.create", amount="4.07").respond("http:422")
    variables = environment_of(here.sandbox)
    with OnTerminal(variables, "run", "june.csv", "--open", cwd=here.folder) as terminal:
        seen, link = terminal.until("until Ctrl-C"), until_opened(here)
        assert link not in seen
        (printed,) = re.findall(r"http\S+token=\w+", seen)
        visitor, address = visit(link), printed.partition("?")[0]
        page = text_of(visitor, address)
        assert "complete, 1 rejected" in page
        assert "Certified" in page
        row = re.search(r'href="(/rows/4)"', page)
        assert row is not None
        assert "rejected" in text_of(visitor, address + row[1][1:])
        assert here("status", "june.csv.ledger").code == Exit.DONE  # the ledger is free meanwhile
        terminal.type("\x03")
        assert terminal.end() == Exit.REFUSED
    assert len(here.sandbox.books.payouts()) == ROWS - 1


def test_an_opened_run_without_a_terminal_names_the_address_without_a_secret_and_ends(here: Here) -> None:
    done = here("run", "june.csv", "--open")
    assert done.code == Exit.DONE
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", done.step("page")["address"])
    assert "token" not in done.out + done.err
    assert len(opened(here)) == 1
    assert_paid_once(here.sandbox, ROWS)
    assert [json.loads(line)["step"] for line in done.out.splitlines()].count("page") == 1
