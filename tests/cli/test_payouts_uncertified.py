"""A batch whose payouts were made and whose certificate could not be: its command never ends with 0."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from payments_async.bulk import PayoutBatch
from payments_async.bulk.errors import LedgerError, LedgerUnavailable
from payments_async.errors import (
    APIConnectionError,
    DeadlineExceeded,
    DecodeError,
    PaymentsError,
    error_class,
)
from tests.support.payout_command import Exit, Here, assert_paid_once


def answered(status: int) -> PaymentsError:
    facts: dict[str, Any] = {"service_message": None, "errors": {}, "headers": {}, "body": b""}
    return error_class(status)(f"payouts.list: HTTP {status}", status=status, **facts)


@pytest.mark.parametrize(
    ("error", "code", "resumable"),
    [
        *((answered(status), Exit.RESUMABLE, "now") for status in (429, 503)),
        (APIConnectionError("payouts.list: no answer", kind="dns"), Exit.RESUMABLE, "now"),
        (DeadlineExceeded("payouts.list: the deadline passed"), Exit.RESUMABLE, "now"),
        *((answered(status), Exit.USAGE, "after_change") for status in (302, 401, 403, 404)),
        (APIConnectionError("payouts.list: no answer", kind="tls"), Exit.USAGE, "after_change"),
        (answered(422), Exit.REFUSED, None),
        (DecodeError("payouts.list: not JSON", record_id=None, body=b""), Exit.REFUSED, None),
    ],
)
def test_a_run_without_its_certificate_does_not_look_certified(
    here: Here, monkeypatch: pytest.MonkeyPatch, error: PaymentsError, code: Exit, resumable: str | None
) -> None:
    async def list_ends(*_: Any, **__: Any) -> Any:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("payments_async.bulk._run.service.Service.page", list_ends)
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
