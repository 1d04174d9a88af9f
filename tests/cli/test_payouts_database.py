"""Batches and outboxes in PostgreSQL: paid, joined, watched, paused, cancelled, forgotten, by their names."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from payments_async import Instrument
from payments_async.bulk import Outbox
from tests.support.payout_command import (
    PHONE,
    Exit,
    Here,
    OnTerminal,
    assert_paid_once,
    environment_of,
    payouts_file,
    started,
    until,
)
from tests.support.servers import PASSWORD

ROWS = 6
NAMED = ("--batch-id", "june")
RUN = ("run", "june.csv", *NAMED)


@pytest.fixture
def here(here: Here, database: str, monkeypatch: pytest.MonkeyPatch) -> Here:
    payouts_file(here.folder, ROWS)
    monkeypatch.setenv("PAYMENTS_LEDGER", database)
    return here


def answers(monkeypatch: pytest.MonkeyPatch, *typed: str) -> None:
    """A terminal, on which a person types this."""
    left = iter(typed)
    monkeypatch.setattr("payments_async._cli.payouts.confirm.terminal", lambda: lambda text: next(left))


def test_a_batch_is_paid_joined_and_examined_by_its_name(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    here(*RUN, "--follow").assert_one_message(Exit.USAGE, "follow is for an outbox")
    first = here(*RUN, "--max-rows", "2")
    assert "not complete; limited to --max-rows 2" in here("status", *NAMED).out
    assert first.step("finished")["rows"]["not_started"] == 4
    joined = here("run", *NAMED, "--max-rows", "9")
    assert (joined.code, joined.step("certified")["clean"]) == (Exit.DONE, True)
    assert "`payments payouts reconcile --batch-id june`" in joined.err
    assert_paid_once(here.sandbox, ROWS)
    here("run", "june.csv", "--batch-id", "july").assert_one_message(
        Exit.USAGE, "has the same input as batch june", "--pay-again"
    )
    here("run", "--batch-id", "july").assert_one_message(Exit.USAGE, "has no batch july")

    monkeypatch.delenv("PAYMENTS_API_KEY")  # what only looks needs none
    found = here("status", *NAMED, "--json").step("batch")
    assert (found["complete"], found["rows"]["created"], found["running"]) == (True, ROWS, False)
    assert here("show", "r2", *NAMED).code == Exit.DONE
    assert here("export", "out.csv", *NAMED).code == Exit.DONE
    assert len((here.folder / "out.csv").read_text().splitlines()) == ROWS + 1
    (listed,) = here("batches", "--json").lines
    assert (listed["batch_id"], listed["rows"], listed["state"]) == ("june", ROWS, "certified")
    assert "june: certified; 6 rows, GHS 9.14, XCD 12.28; of " in here("batches").out


def test_no_password_appears_in_what_is_said(
    here: Here, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PAYMENTS_LEDGER")
    here.sandbox.clock.set_speed(0)  # so that no payout turns, however long the commands take
    shown = database.replace(PASSWORD, "***")
    for line in (RUN, ("status", *NAMED), ("show", "r2", *NAMED), ("batches",), ("reconcile", *NAMED)):
        done = here(*line, "--ledger", database)
        assert done.code == Exit.DONE
        assert PASSWORD not in done.out + done.err
        assert "password is on the command line" in done.err
        assert "put the address into PAYMENTS_LEDGER" in done.err
        assert shown in done.out
    assert f"payments payouts reconcile '{shown}' --batch-id june" in here(*RUN, "--ledger", database).err
    away = database.replace("/test_", "/none_")
    assert PASSWORD not in here("status", away, *NAMED).told


def test_a_paused_batch_is_left_alone_until_it_is_resumed(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert here(*RUN, "--max-rows", "1").code == Exit.RESUMABLE
    with monkeypatch.context() as patched:
        patched.delenv("PAYMENTS_API_KEY")
        paused = here("pause", *NAMED, "--reason", "lunch", "--json").step("paused")
        assert (paused["batch_id"], paused["paused"]) == ("june", "lunch")
        printed = " ".join(here("status", *NAMED).out.split())
        assert "not complete; paused: lunch" in printed
        assert "`payments payouts resume --batch-id june` first" in printed
        (listed,) = here("batches", "--json").lines
        assert listed["state"] == "paused"
    stopped = here(*RUN, "--max-rows", "9")
    assert (stopped.code, stopped.step("finished")["stopped"]) == (75, "the batch is paused: lunch")
    assert here("resume", *NAMED, "--json").step("resumed")["resumed"]
    assert "it was not paused" in here("resume", *NAMED).out
    assert here(*RUN).code == Exit.DONE
    assert_paid_once(here.sandbox, ROWS)


def test_the_rest_is_cancelled_once_its_name_was_typed(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    assert here(*RUN, "--max-rows", "2").code == Exit.RESUMABLE
    here("cancel-rest", *NAMED).assert_one_message(
        Exit.USAGE,
        "4 rows, GHS 9.14, XCD 9.14, would be cancelled",
        "To do it: `payments payouts cancel-rest --yes --batch-id june`",
    )
    answers(monkeypatch, "yes\n", "june\n")
    assert here("cancel-rest", *NAMED).code == Exit.USAGE
    assert here("cancel-rest", *NAMED, "--json").step("cancelled")["rows"] == 4
    assert "no row is left; nothing was changed" in here("cancel-rest", *NAMED).out
    done = here(*RUN)
    assert (done.code, done.step("finished")["rows"]["cancelled"]) == (Exit.REFUSED, 4)
    assert len(here.sandbox.books.payouts()) == 2


def test_a_settled_batch_is_forgotten_once_a_word_was_typed(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.sandbox.on("payouts.create").outcome("complete immediate", times=None)
    assert here(*RUN).code == Exit.DONE
    assert here("reconcile", *NAMED).step("certified")["settled"]
    tomorrow, forget = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%d}", ("forget", *NAMED, "--before")
    assert "no row: some were decided, or are open, since" in here(*forget, "2026-01-01").out
    dry = here(*forget, tomorrow, "--dry-run", "--json").step("forgotten")
    assert (dry["rows"], dry["dry_run"], dry["forgotten_at"]) == (ROWS, True, None)
    here(*forget, tomorrow).assert_one_message(
        Exit.USAGE, "6 rows of batch june would be deleted", f"--before {tomorrow} --yes"
    )
    answers(monkeypatch, "june\n")
    assert here(*forget, tomorrow).code == Exit.USAGE
    assert "6 rows deleted" in here(*forget, tomorrow, "--yes").out
    assert "its rows were deleted on 20" in here("status", *NAMED).out
    (listed,) = here("batches", "--json").lines
    assert (listed["state"], listed["certificate"]["settled"]) == ("forgotten", True)
    for line in (RUN, ("run", *NAMED), ("reconcile", *NAMED), ("retry-failed", *NAMED)):
        here(*line).assert_one_message(Exit.USAGE, "the batch was settled, and its rows were deleted")
    (listed,) = here("batches", "--json").lines
    assert listed["certificate"]["list"]["seen"] == ROWS, "it stays"
    assert_paid_once(here.sandbox, ROWS)


async def _add(database: str, environment: Literal["live", "sandbox"], *references: str) -> None:
    engine = create_async_engine(database.replace("postgresql://", "postgresql+psycopg://"))
    try:
        async with engine.begin() as connection:
            for reference in references:
                await Outbox("payouts", environment=environment).add(
                    connection,
                    amount="10.10",
                    currency="GHS",
                    method="mtn_bj",
                    instrument=Instrument.phone(PHONE, "BJ"),
                    reference=reference,
                )
    finally:
        await engine.dispose()


def test_an_outbox_is_paid_followed_and_shown_with_the_rows_that_are_not_its_own(
    here: Here, database: str
) -> None:
    outbox = ("--batch-id", "payouts")
    assert here(*RUN).code == Exit.DONE  # which makes the tables
    asyncio.run(_add(database, "sandbox", "order-1", "order-2"))
    asyncio.run(_add(database, "live", "live-1"))
    assert here("run", *outbox).step("finished")["rows"]["created"] == 2
    assert "order-1, number" in here("show", "order-1", *outbox).out
    with started(environment_of(here.sandbox), "run", *outbox, "--follow", cwd=here.folder) as run:
        until(run, created=2)
        with OnTerminal({}, "watch", *outbox, cwd=here.folder) as watching:
            watching.until("2 of 2")  # and goes on: more may come
            asyncio.run(_add(database, "sandbox", "order-3"))
            watching.until("3 of 3")
            watching.type("\x03")
            assert watching.end() == Exit.DONE
        until(run, created=3)
        run.terminate()
        run.communicate(timeout=300)
        assert run.returncode == Exit.DONE
    found = here("status", *outbox, "--json").step("batch")
    assert (found["outbox"], found["rows"]["created"], found["others"]) == (True, 3, 1)
    assert "1 row for keys of the other environment" in here("status", *outbox).out
    here("run", *outbox, "--max-rows", "1").assert_one_message(Exit.USAGE, "a guard bounds an outbox")
    here("confirm", *outbox).assert_one_message(Exit.USAGE, "is an outbox, which has no total to confirm")
    here("run", "june.csv", *outbox, "--pay-again").assert_one_message(Exit.USAGE, "is an outbox")
    references = {str(entry.reference) for entry in here.sandbox.books.payouts()}
    assert {name for name in references if "-" in name} == {"order-1", "order-2", "order-3"}
