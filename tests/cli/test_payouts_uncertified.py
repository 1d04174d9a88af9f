"""A batch whose payouts were made and whose certificate could not be: its command never ends with 0."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from payments_async._cli.payouts.messages import code_of
from payments_async.bulk import PayoutBatch
from payments_async.bulk._run.service import Service
from payments_async.bulk.errors import LedgerError, LedgerUnavailable
from payments_async.errors import (
    APIConnectionError,
    DeadlineExceeded,
    DecodeError,
    PaymentsError,
    error_class,
)
from tests.support.payout_command import Exit, Here, assert_paid_once, payouts_file


@pytest.fixture
def here(here: Here) -> Here:
    """With a file of four payouts."""
    payouts_file(here.folder, 4)
    return here


def answered(status: int) -> PaymentsError:
    """What a reading raises for an answer with this status."""
    facts: dict[str, Any] = {"service_message": None, "errors": {}, "headers": {}, "body": b""}
    return error_class(status)(f"payouts.list: HTTP {status}", status=status, **facts)


def list_ends_with(monkeypatch: pytest.MonkeyPatch, error: PaymentsError) -> None:
    """Have the reading of the list end with an error."""

    async def refused(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(Service, "page", refused)


PASSING = [
    *map(answered, (408, 429, 500, 502, 503, 504)),
    APIConnectionError("payouts.list: no answer", kind="reset"),
    APIConnectionError("payouts.list: no answer", kind="dns"),
    DeadlineExceeded("payouts.list: the deadline passed"),
]
SHUT_OUT = [*map(answered, (302, 401, 403, 404)), APIConnectionError("payouts.list: no answer", kind="tls")]
ODD = [*map(answered, (400, 422)), DecodeError("payouts.list: not JSON", record_id=None, body=b"")]


def test_the_exit_code_says_whether_an_error_passes_by_itself() -> None:
    assert {code_of(error) for error in PASSING} == {Exit.RESUMABLE}
    assert {code_of(error) for error in SHUT_OUT} == {Exit.USAGE}
    assert {code_of(error) for error in ODD} == {Exit.REFUSED}


@pytest.mark.parametrize(
    ("error", "code", "resumable"),
    [
        (answered(503), Exit.RESUMABLE, "now"),
        (answered(403), Exit.USAGE, "after_change"),
        (answered(422), Exit.REFUSED, None),
    ],
)
def test_a_run_without_its_certificate_does_not_look_certified(
    here: Here, monkeypatch: pytest.MonkeyPatch, error: PaymentsError, code: Exit, resumable: str | None
) -> None:
    with monkeypatch.context() as patch:
        list_ends_with(patch, error)
        said = here("run", "june.csv")
        settled = here("reconcile", "june.csv.ledger")
    end = said.step("finished")
    assert (said.code, end["exit_code"], end["ok"], end["rows"]["created"]) == (code, code, False, 4)
    assert end["resumable"] == resumable
    assert said.err == f"payments: {end['next']}\n"
    assert str(error) in said.err
    settled.assert_one_message(code)

    again = here("run", "june.csv")
    assert (again.code, again.step("certified")["clean"]) == (Exit.DONE, True)
    assert_paid_once(here.sandbox, 4)


def test_rows_that_were_rejected_count_more_than_a_certificate_that_waits(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.sandbox.on("payouts.create").respond("http:422", times=1)
    list_ends_with(monkeypatch, answered(503))
    said = here("run", "june.csv")
    end = said.step("finished")
    assert (said.code, end["exit_code"], end["resumable"]) == (Exit.REFUSED, 1, None)
    assert "1 row rejected" in said.err


def test_a_key_that_is_refused_is_no_end_of_a_complete_batch(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert here("run", "june.csv").code == Exit.DONE
    monkeypatch.setenv("PAYMENTS_API_KEY", "sk_sandbox_revoked")
    said = here("run", "june.csv")
    end = said.step("finished")
    assert (said.code, end["exit_code"], end["resumable"]) == (Exit.USAGE, 2, "after_change")
    assert "the service refused the API key (HTTP 401)" in said.err


def test_a_complete_batch_is_certified_also_while_it_is_paused(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        list_ends_with(patch, answered(503))
        here("run", "june.csv")
    here("pause", "june.csv.ledger")
    again = here("run", "june.csv")
    assert (again.code, again.step("certified")["clean"]) == (Exit.DONE, True)


@pytest.mark.parametrize(("error", "code"), [(LedgerError, Exit.USAGE), (LedgerUnavailable, Exit.RESUMABLE)])
def test_a_ledger_that_fails_during_a_run_is_no_clean_end(
    here: Here, monkeypatch: pytest.MonkeyPatch, error: type[LedgerError], code: Exit
) -> None:
    async def failed(*_: object, **__: object) -> None:
        raise error("june.csv.ledger", "as planned")

    with monkeypatch.context() as patch:
        patch.setattr(PayoutBatch, "run", failed)
        here("run", "june.csv").assert_one_message(code, "as planned")
    assert here("run", "june.csv").code == Exit.DONE


def test_only_a_signal_ends_a_command_as_stopped(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    async def cancelled(*_: object, **__: object) -> None:
        raise asyncio.CancelledError

    monkeypatch.setitem(sys.modules, "uvloop", None)  # which is not needed
    monkeypatch.setattr(PayoutBatch, "run", cancelled)
    with pytest.raises(asyncio.CancelledError):
        here("run", "june.csv")
