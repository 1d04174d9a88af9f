"""Where the figures of a page come from: the run, a ledger at rest, and a ledger that a run has taken."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import ClientSession

from payments_async import AsyncPayments, Instrument, PayoutRequest
from payments_async.bulk import AnyBatch, Cause, Outcome, PayoutBatch, RunTime, SharedBatch
from payments_async.bulk._page import address_file, source, view
from payments_async.bulk._page.feed import BatchFeed
from payments_async.bulk._page.source import LedgerSource, PageElsewhere, RunSource
from payments_async.bulk._texts.ledger_address import LedgerAddress, open_batch
from payments_async.bulk.ledger_errors import LedgerGone, LedgerLocked, LedgerMissing
from payments_async.sandbox import Sandbox
from tests.support.batch_pages import GivenSource, cause, served, states


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A service."""
    with Sandbox() as sandbox:
        yield sandbox


@pytest_asyncio.fixture
async def client(sandbox: Sandbox) -> AsyncIterator[AsyncPayments]:
    """At the service."""
    async with AsyncPayments(sandbox.api_key, base_url=sandbox.base_url) as client:
        yield client


@pytest.fixture
def payouts() -> list[PayoutRequest]:
    """Three rows."""
    phone = Instrument.phone("+22990112233", "BJ")
    return [
        PayoutRequest(amount=f"{n}.50", currency="XOF", method="mtn_bj", instrument=phone) for n in (1, 2, 3)
    ]


async def test_a_run_shows_its_batch_from_the_first_row_read_to_the_certificate(
    client: AsyncPayments, payouts: list[PayoutRequest], tmp_path: Path
) -> None:
    address = LedgerAddress(str(tmp_path / "june.ledger"))
    shown = RunSource(address, "june.csv", rows_read=2)
    assert ((await shown.snapshot()).batch, await shown.row("1")) == (None, None)
    async with PayoutBatch.open(address.text, client) as batch:
        shown.batch = batch
        before = await shown.snapshot()
        assert (before.batch, before.rows_read, await shown.row("1")) == (None, 2, None)
        await batch.load(payouts)
        loaded = await shown.snapshot()
        assert loaded.batch is not None
        assert (loaded.batch.report.counts["not_started"], loaded.pid) == (3, os.getpid())
        await batch.run()
        certificate = await batch.reconcile()
        assert (await shown.snapshot()).certificate is None
        Path(address.beside("certificate.json")).write_text(certificate.to_json())
        last = await shown.snapshot()
        assert last.certificate is not None
        assert last.certificate["clean"]
        row = await shown.row("2")
        assert row is not None
        assert row.account["instrument"]["phone_number"] == "***"
        await shown.end()
    assert shown.batch is None
    assert (await shown.snapshot()) == last, "while the run closes its ledger, and after"
    resting = LedgerSource(address)
    rest = await resting.snapshot()
    assert rest is await resting.snapshot()  # the files are as they were
    assert (rest.phase, rest.batch and rest.batch.report.complete, rest.certificate) == (
        "ended",
        True,
        last.certificate,
    )
    Path(address.beside("certificate.json")).write_text("{}")
    assert (await resting.snapshot()).certificate is None
    with pytest.raises(LedgerMissing):
        await LedgerSource(LedgerAddress(str(tmp_path / "none.ledger"))).snapshot()


async def test_a_run_that_resumes_begins_with_its_first_row_as_the_ledger_has_it(
    client: AsyncPayments, payouts: list[PayoutRequest], tmp_path: Path
) -> None:
    address = LedgerAddress(str(tmp_path / "june.ledger"))
    async with PayoutBatch.open(address.text, client) as batch:
        await batch.load(payouts)
        await batch.run(max_rows=1)
    async with PayoutBatch.open(address.text, client) as batch:
        began, (first,) = batch.now(), await batch.run_times()
        shown = RunSource(address, "june.csv", batch=batch, began=began)
        before = await shown.snapshot()
        await batch.run()
        after, later = await shown.snapshot(), await shown.snapshot()
        known = await batch.run_times()
    assert before.runs == (first, RunTime(began, before.at)), "it has sent nothing yet"
    assert after.runs == (first, RunTime(known[1].begin, after.at))
    assert later.runs == (first, RunTime(known[1].begin, later.at))
    assert (await LedgerSource(address).snapshot()).runs == known


async def test_a_page_by_number_shows_that_row_though_another_has_the_number_as_its_key(
    client: AsyncPayments, payouts: list[PayoutRequest], tmp_path: Path
) -> None:
    address = LedgerAddress(str(tmp_path / "june.ledger"))
    async with PayoutBatch.open(address.text, client) as batch:
        await batch.load(list(zip("321", payouts, strict=True)))
        assert await batch.row(4) is None
        async with (
            served(RunSource(address, "june.csv", batch=batch)) as server,
            ClientSession() as session,
            session.get(f"{server.access.origin}/rows/1") as answer,
        ):
            page = await answer.text()
    by_number, by_key = await LedgerSource(address).row(1), await LedgerSource(address).row("1")
    assert by_number is not None
    assert by_key is not None
    assert (by_number.number, by_key.number) == (1, 3)
    assert by_number.reference in page
    assert by_key.reference not in page


async def test_what_another_writes_as_soon_as_the_ledger_is_free_is_news(
    client: AsyncPayments, payouts: list[PayoutRequest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = LedgerAddress(str(tmp_path / "june.ledger"))
    async with PayoutBatch.open(address.text, client) as batch:
        await batch.load(payouts)

    @asynccontextmanager
    async def overtaken(ledger: LedgerAddress) -> AsyncIterator[AnyBatch]:
        async with open_batch(ledger) as batch:
            yield batch
        async with PayoutBatch.open(ledger.text, client) as batch:
            await batch.run()

    resting = LedgerSource(address)
    with monkeypatch.context() as patch:
        patch.setattr(source, "open_batch", overtaken)
        before = (await resting.snapshot()).batch
    after = (await resting.snapshot()).batch
    assert before is not None
    assert after is not None
    assert (before.report.complete, after.report.complete) == (False, True)


async def test_a_page_of_a_batch_in_a_database_connects_once_and_sees_whether_it_is_paid(
    client: AsyncPayments, payouts: list[PayoutRequest], database: str, sandbox: Sandbox
) -> None:
    address = LedgerAddress(database, "june")
    watched = LedgerSource(address)
    with pytest.raises(LedgerMissing):
        await watched.snapshot()
    sandbox.on("payouts.create").respond("hang", times=1)
    async with SharedBatch.open(database, client, batch_id="june") as batch:
        await batch.load(payouts)
        before = await watched.snapshot()
        paying = asyncio.ensure_future(batch.run())
        while (now := await watched.snapshot()).phase != "working":
            assert not paying.done()
        assert (before.phase, view.batch_context(now)["state"]) == ("ended", ("work", "paying"))
        while now.batch is None or now.batch.report.counts["created"] < 2:
            now = await watched.snapshot()
        row = await watched.row(1)
        batch.stop("enough")
        paying.cancel()
        await asyncio.wait([paying])
        while (await watched.snapshot()).phase != "ended":
            pass
    assert row is not None
    connected = watched._connected
    assert connected is not None
    assert connected._ledger.database.connections == 1  # type: ignore[attr-defined] # it is in a database
    await watched.close()
    await watched.close()


async def test_a_ledger_that_is_busy_shows_its_figures_and_older_details(
    client: AsyncPayments, payouts: list[PayoutRequest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, free = LedgerAddress(str(tmp_path / "june.ledger")), asyncio.Event()
    monkeypatch.setattr(source, "_PATIENCE", 0.01)
    async with PayoutBatch.open(address.text, client) as batch:
        await batch.load(payouts)
        shown = RunSource(address, "june.csv", batch=batch)

        async def later(most: int) -> tuple[Cause, ...]:
            await free.wait()
            return (cause(Outcome.REJECTED, 7),)

        monkeypatch.setattr(batch, "causes", later)
        assert (await shown.snapshot()).causes == ()
        free.set()
        while not (found := (await shown.snapshot()).causes):
            pass
        assert found[0].count == 7
        await shown.end()


async def test_causes_are_read_again_only_if_there_may_be_others_and_not_too_often(
    client: AsyncPayments, payouts: list[PayoutRequest], sandbox: Sandbox, tmp_path: Path
) -> None:
    sandbox.on("payouts.create", amount="2.50").respond("http:422")
    reader, readings = source.CauseReader(), 0
    async with PayoutBatch.open(tmp_path / "june.ledger", client) as batch:
        await batch.load(payouts)

        async def counted(most: int) -> tuple[Cause, ...]:
            nonlocal readings
            readings += 1
            return await PayoutBatch.causes(batch, most)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(batch, "causes", counted)
            await reader.read(batch)
            first = reader.at
            await batch.run()
            await reader.read(batch)
            assert (reader.found, readings) == ((), 1), "it is too early"
            reader._next = 0.0
            await reader.read(batch)
            found, second = reader.found, reader.at
            await reader.read(batch)
            assert (reader.at, readings) == (second, 2), "it is too early"
            reader._next = 0.0
            await reader.read(batch)
    assert [each.count for each in found] == [1]
    assert (reader.found, readings) == (found, 3), "a payout that is not final may contradict itself by now"
    assert reader.at > second > first


async def test_a_reading_that_fails_when_its_page_is_gone_is_not_logged(
    client: AsyncPayments, payouts: list[PayoutRequest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, free, logged = LedgerAddress(str(tmp_path / "june.ledger")), asyncio.Event(), []
    monkeypatch.setattr(source, "_PATIENCE", 0.01)
    asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context["message"]))

    async def lost(most: int) -> tuple[Cause, ...]:
        await free.wait()
        raise LedgerGone(address.text, "was deleted")

    async with PayoutBatch.open(address.text, client) as batch:
        await batch.load(payouts)
        monkeypatch.setattr(batch, "causes", lost)
        shown = RunSource(address, "june.csv", batch=batch)
        feed = BatchFeed(shown)
        assert (await feed.snapshot()).batch is not None
        free.set()
        await shown.end()
    feed.show(LedgerSource(LedgerAddress("nothing.ledger")))
    visitor = asyncio.ensure_future(feed.snapshot())
    await asyncio.sleep(0)
    visitor.cancel()
    await asyncio.wait({*asyncio.all_tasks()} - {asyncio.current_task()})
    del shown, feed, visitor
    gc.collect()
    assert logged == []


async def test_a_page_of_a_ledger_that_a_run_takes_leads_to_the_page_of_the_run(
    client: AsyncPayments, payouts: list[PayoutRequest], tmp_path: Path
) -> None:
    address = LedgerAddress(str(tmp_path / "june.ledger"))
    async with PayoutBatch.open(address.text, client) as batch:
        await batch.load(payouts)
    async with (
        served(GivenSource(states()["running"])) as run,
        served(GivenSource(states()["empty"])) as page,
    ):
        page.feed.show(LedgerSource(address))
        async with ClientSession() as session:
            async with session.get(page.access.new_address()) as answer:
                assert "nothing was sent yet" in await answer.text()
            async with PayoutBatch.open(address.text, client):  # it holds the ledger
                with pytest.raises(LedgerLocked):
                    await LedgerSource(address).snapshot()
                address_file.publish(address.text, run.access)
                with pytest.raises(PageElsewhere) as found:
                    await LedgerSource(address).row("1")
                assert found.value.pid == os.getpid()
                page.feed.show(LedgerSource(address))
                async with session.get(page.access.origin) as answer:
                    assert str(answer.url) == f"{run.access.origin}/"
                    assert "GHS 2,797,197.20" in await answer.text()
                root = page.access.origin + page.access.rules.root
                async with session.get(f"{root}/api/row?name=1") as answer:
                    assert answer.status == 503
