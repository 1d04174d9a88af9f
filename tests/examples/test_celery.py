"""The Celery example: chunks of a batch as tasks, each row paid once however often a task comes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from payments_async.sandbox import Sandbox
from tests.docs.pages import ROOT
from tests.support.payout_files import PHONE, csv_file
from tests.support.servers import PostgresServer, ValkeyServer

EXAMPLE = ROOT / "examples" / "celery"
_CLOSED = "SELECT count(*) FROM payments.batches WHERE state = 'closed'"
pytestmark = pytest.mark.no_cover  # its work is done by processes


@contextmanager
def celery_worker(environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Context of a Celery worker with two processes."""
    command = ["-m", "celery", "--app", "payroll", "worker", "--concurrency", "2", "--loglevel", "WARNING"]
    with subprocess.Popen([sys.executable, *command], cwd=EXAMPLE, env=environment) as process:
        try:
            yield process
        finally:
            process.terminate()


def test_celery_pays_each_row_once(
    sandbox: Sandbox, postgres: PostgresServer, valkey: ValkeyServer, tmp_path: Path
) -> None:
    database = postgres.make_database()
    environment = {
        **os.environ,
        "PAYMENTS_API_KEY": sandbox.api_key,
        "PAYMENTS_BASE_URL": sandbox.base_url,
        "PAYMENTS_LEDGER": postgres.url(database),
        "CELERY_BROKER_URL": valkey.url(database=9),
    }
    rows = csv_file(tmp_path, *[PHONE] * 40)
    plan = [sys.executable, str(EXAMPLE / "payroll.py"), str(rows), "june"]
    with celery_worker(environment):
        for _ in range(2):  # the second time makes every task once more
            subprocess.run(plan, env=environment, check=True, cwd=EXAMPLE, stdout=subprocess.DEVNULL)
        while not postgres.query(database, _CLOSED)[0][0]:
            time.sleep(0.1)
    assert len(sandbox.books.payouts()) == 40
