"""Account data and passwords: in no error, and in no log of the server, whatever it was set to log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from payments_async.bulk._protocol.records import NewRow, Resend
from payments_async.bulk.ledger_errors import LedgerDamaged, LedgerDuplicates, LedgerError, LedgerRefused
from payments_async.models.statuses import PayoutEnd
from tests.support.databases import batch, connected, fail, leased, run, unimported
from tests.support.ledgers import created, imported, new_row, rejected
from tests.support.servers import PASSWORD, PostgresServer

CANARY = "22997-CANARY-00119"
PHONE = f"+{CANARY}"


def secret_row(number: int, **changes: Any) -> NewRow:
    """A row whose key, body and metadata hold account data."""
    body = json.dumps({"phone": PHONE, "row": number, "name": f"{CANARY} Ann"}).encode()
    fields = {"row_key": f"{PHONE}-{number}", "body": body, "metadata": json.dumps({"note": CANARY})}
    return new_row(number, **{**fields, **changes})


async def test_the_servers_log_holds_no_account_data_even_if_it_logs_every_statement(
    database: str, postgres: PostgresServer
) -> None:
    name = urlsplit(database).path.removeprefix("/")
    for setting in (
        "log_statement = 'all'",
        "log_min_duration_statement = 0",
        "log_error_verbosity = verbose",
    ):
        run(database, f'ALTER DATABASE "{name}" SET {setting}')
    begun = postgres.log.stat().st_size
    errors: list[LedgerError] = []
    async with connected(database) as opened:
        ledger = await unimported(opened)
        for rows in (
            [secret_row(1), secret_row(2, row_key=f"{PHONE}-1")],
            [secret_row(1), secret_row(2, reference="reference-1")],
        ):
            with pytest.raises(LedgerDuplicates) as caught:
                await imported(ledger, rows)
            errors.append(caught.value)
    async with batch(database, map(secret_row, range(1, 6))) as ledger:
        chunk, _ = await leased(ledger.database)
        rows = (await chunk.claim(5)).rows
        await chunk.resend([Resend(1)])
        await chunk.record(
            [
                created(rows[0]),
                rejected(rows[1]),
                created(rows[2], service_status="FAILED", payout_end=PayoutEnd.FAILED),
            ]
        )
        await ledger.correct([secret_row(2, idempotency_key="two")])
        taken = secret_row(3, reference="reference-1", idempotency_key="three")
        with pytest.raises(LedgerRefused) as refused:
            await ledger.next_generation([taken])
        errors.append(refused.value)
        await ledger.edit(lambda edits: edits.by_keys([f"{PHONE}-1"]), dry=True)  # type: ignore[arg-type, return-value] # makes nothing
        await ledger.by_references(["reference-1"])
        for code in ("23514", "22P02"):
            fail(database, code)
            with pytest.raises(LedgerError) as broken:
                await ledger.record([created(row) for row in rows[3:]])
            errors.append(broken.value)
        assert (await ledger.check()).findings == ()
    logged = _since(postgres.log, begun)
    assert "row_states" in logged  # it was logged
    for secret in (CANARY, PASSWORD):
        assert secret not in logged
        for error in errors:
            assert secret not in f"{error} {error!r} {error.__context__!r} {error.__cause__!r}"


def _since(log: Path, begun: int) -> str:
    with log.open("rb") as file:
        file.seek(begun)
        return file.read().decode()


async def test_an_error_about_damage_carries_nothing_of_what_is_damaged(database: str) -> None:
    """A parser's error has the whole text that it was given."""
    async with batch(database, 1) as ledger:
        table = f"payments.rows_{ledger.facts.batch.batch:016x}"
        run(database, f"UPDATE {table} SET amount = '{CANARY}'")
        with pytest.raises(LedgerDamaged) as row:
            await ledger.numbered([1])
        run(database, f"UPDATE payments.chunks SET totals = '{CANARY}'")
        with pytest.raises(LedgerDamaged) as chunk:
            await ledger.refresh()
    for error in (row.value, chunk.value):
        assert CANARY not in str(error)
        assert error.__context__ is None
        assert error.__cause__ is None


async def test_what_can_be_printed_of_a_ledger_shows_no_password(database: str) -> None:
    async with batch(database, 1) as ledger:
        chunk, leases = await leased(ledger.database)
        shown = (
            f"{ledger!r} {chunk!r} {leases!r} {ledger.database!r} {ledger.database.address!r} {ledger.path}"
        )
        assert PASSWORD not in shown
        assert leases[0].id.hex() not in shown
