"""A batch whose payouts were made and whose certificate could not be: its command never ends with 0."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from payments_async.bulk import PayoutBatch
from payments_async.bulk.engine.service import Service
from payments_async.bulk.ledger_errors import LedgerDamaged
from payments_async.cli._exit_codes import Exit
from payments_async.errors import (
    APIConnectionError,
    DeadlineExceeded,
    DecodeError,
    PaymentsError,
    error_class,
)
from payments_async.sandbox import Sandbox, SandboxLimits
from tests.support.payout_command import Here, assert_paid_once, environment_of, payouts_file

CERTIFICATE = Path("june.csv.ledger.certificate.json")


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Here]:
    """The command at a sandbox, in a folder with a file of payouts."""
    monkeypatch.chdir(tmp_path)
    payouts_file(tmp_path, 4)
    with Sandbox(limits=SandboxLimits.off()) as sandbox:
        for name, value in environment_of(sandbox).items():
            monkeypatch.setenv(name, value)
        yield Here(sandbox, tmp_path, capsys)


def answered(status: int) -> PaymentsError:
    """What a reading raises for an answer with this status."""
    facts: dict[str, Any] = {"service_message": None, "errors": {}, "headers": {}, "body": b""}
    return error_class(status)(f"payouts.list: HTTP {status}", status=status, **facts)


def walk_ends_with(monkeypatch: pytest.MonkeyPatch, error: PaymentsError) -> None:
    """Have the list refuse its large pages: a run begins with a page of one payout, which is answered."""
    page = Service.page

    async def refused(self: Service, *args: Any, **facts: Any) -> Any:
        if facts.get("size"):
            raise error
        return await page(self, *args, **facts)

    monkeypatch.setattr(Service, "page", refused)


PASSING = [
    *map(answered, (408, 429, 500, 502, 503, 504)),
    APIConnectionError("payouts.list: no answer", kind="reset"),
    APIConnectionError("payouts.list: no answer", kind="dns"),
    DeadlineExceeded("payouts.list: the deadline passed"),
]
SHUT_OUT = [*map(answered, (302, 401, 403, 404)), APIConnectionError("payouts.list: no answer", kind="tls")]
ODD = [*map(answered, (400, 422)), DecodeError("payouts.list: not JSON", record_id=None, body=b"")]


@pytest.mark.parametrize(
    ("error", "code", "resumable"),
    [
        *((error, Exit.RESUMABLE, "now") for error in PASSING),
        *((error, Exit.USAGE, "after_change") for error in SHUT_OUT),
        *((error, Exit.REFUSED, None) for error in ODD),
    ],
)
def test_a_run_without_its_certificate_does_not_look_certified(
    here: Here, monkeypatch: pytest.MonkeyPatch, error: PaymentsError, code: Exit, resumable: str | None
) -> None:
    with monkeypatch.context() as patch:
        walk_ends_with(patch, error)
        said = here("run", "june.csv")
        settled = here("reconcile", "june.csv.ledger")
    end = said.step("finished")
    assert (said.code, end["exit_code"], end["ok"], end["created"]) == (code, code, False, 4)
    assert (end["certificate"], end["resumable"], CERTIFICATE.exists()) == (None, resumable, False)
    assert said.err == f"payments: {end['next']}\n"
    assert (str(error) in said.err) == (code != Exit.REFUSED)
    settled.assert_one_message(code)

    again = here("run", "june.csv")
    assert (again.code, json.loads(CERTIFICATE.read_text())["clean"]) == (Exit.DONE, True)
    assert_paid_once(here.sandbox, 4)


def test_rows_that_were_rejected_count_more_than_a_certificate_that_waits(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.sandbox.on("payouts.create", amount="4.07").respond("http:422")
    walk_ends_with(monkeypatch, answered(503))
    said = here("run", "june.csv")
    end = said.step("finished")
    assert (said.code, end["exit_code"], end["resumable"]) == (Exit.REFUSED, 1, None)
    assert "1 row rejected" in said.err


def test_a_ledger_that_fails_while_it_is_certified_is_no_clean_end(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def damaged(*_: object) -> None:
        raise LedgerDamaged("june.csv.ledger", ["as planned"])

    monkeypatch.setattr(PayoutBatch, "certify", damaged)
    here("run", "june.csv").assert_one_message(Exit.OUTCOME_UNKNOWN, "as planned")
    assert not CERTIFICATE.exists()
