"""Archives: all of a closed batch in one file, which is checked alone; every damage of it has a name."""

from __future__ import annotations

import asyncio
import json
import stat
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow
import pyarrow.parquet
import pytest
import pytest_asyncio

import payments_sync.bulk
from payments_async import Instrument
from payments_async.bulk import BulkError, CheckReport, check_archive
from payments_async.bulk._ledger.archive import form, writing
from payments_async.bulk._ledger.postgresql import batches
from payments_async.bulk._ledger.postgresql.ledger import PostgresLedger
from payments_async.bulk._protocol.records import RowOutcome
from payments_async.bulk.ledger_errors import (
    ArchiveDamaged,
    LedgerDamaged,
    LedgerForeign,
    LedgerMissing,
    LedgerNewer,
    LedgerOlder,
    LedgerRefused,
)
from payments_async.sandbox import Sandbox
from tests.support.batches import item, items, name_of
from tests.support.desks import Desk
from tests.support.ledgers import Clock, created
from tests.support.places import EITHER, Place, begun, looked_at, tampered

PHONE: Final = "+22990112233"
BANK: Final = Instrument.bank_account("0123456789", "058", "NG", account_name="Awa Diallo")
ROWS: Final = [*items(6), item(7, instrument=BANK, currency="NGN", metadata={"team": "north"})]


@pytest.fixture
def archived(desk: Desk, service: Sandbox, place: Place, tmp_path: Path) -> Any:
    """Pays rows, one refused and one posted twice, reconciles and archives: file, ledger's rows, report."""
    service.on("payouts.create", description="row 2").respond("http:422")
    service.on("payouts.create", description="row 3").respond("http:503", times=1)

    async def archive(rows: Any = ROWS, name: str = "june.parquet", **options: Any) -> tuple[Path, Any, Any]:
        path, seal = tmp_path / name, tmp_path / "certificate.json"
        async with desk.client(service) as client:
            await desk.paid(place, client, rows)
            async with desk.open(place, client, batch_id=name_of(place)) as batch:
                certificate = await batch.reconcile()
                seal.write_text(certificate.to_json())
        async with desk.open(place, batch_id=name_of(place)) as batch:
            report = await batch.archive(path, certificate=seal, **options)
            assert report.head == certificate.check.head
            return path, await desk.rows(batch), report

    return archive


@EITHER
async def test_an_archive_has_a_row_for_each_payout_and_is_checked_alone(
    archived: Any, service: Sandbox
) -> None:
    path, rows, report = await archived()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (report.path, report.rows, report.accounts, report.has_certificate) == (str(path), 7, False, True)
    found = check_archive(path)
    assert found == CheckReport(7, report.entries, report.head, ())
    table = pyarrow.parquet.read_table(path)
    for said, row in zip(table.to_pylist(), rows, strict=True):
        for name in ("number", "line", "row_key", "reference", "currency", "method", "metadata"):
            assert said[name] == getattr(row, name)
        assert said["amount"] == row.amount_text
        assert (said["state"], said["outcome"]) == (row.state.value, row.outcome.value)
        assert (said["payout_id"], said["service_status"]) == (row.known.payout_id, row.service_status)
        assert said["first_sent_at"] is not None
        assert said["changed_at"] >= said["first_sent_at"]
    entries = [entry for cell in table.column("entries").to_pylist() for entry in cell]
    assert len({(entry["chunk"], entry["number"]) for entry in entries}) == len(entries)
    assert {"import", "claim", "record"} <= {entry["kind"] for entry in entries}
    of_three = json.loads(table.column("attempts")[2].as_py())
    assert of_three
    assert table.column("attempts")[0].as_py() is None
    header = form.read_header(pyarrow.parquet.read_metadata(path).metadata[form.HEADER])
    assert header["certificate"]["ledger"]["head"] == found.head
    assert header["batch"]["environment"] == "sandbox"
    assert all(len(header["batch"][name]) == 64 for name in ("input_hash", "input_stat"))


async def test_an_archive_has_no_statistics_of_columns_which_no_checksum_covers(archived: Any) -> None:
    path, *_ = await archived()
    parts = pyarrow.parquet.read_metadata(path).row_group(0)
    assert all(parts.column(number).statistics is None for number in range(parts.num_columns))


@EITHER
async def test_account_data_and_what_lets_it_be_guessed_is_there_only_when_asked_for(
    archived: Any, place: Place, desk: Desk, tmp_path: Path
) -> None:
    path, rows, _ = await archived()
    async with desk.open(place, batch_id=name_of(place)) as batch:
        full = tmp_path / "full.parquet"
        await batch.archive(full, accounts=True)
        header = batch.header()
    assert check_archive(full) == check_archive(path)
    named_by_input = {header.binding.batch_id}  # without a name it is in every reference
    secrets = {PHONE, "0123456789", "Awa Diallo", header.binding.input_hash} - named_by_input
    secrets |= {text for row in rows for text in (row.body_hash, row.idempotency_key)}
    assert not [each for each in secrets if each in everything(path)]
    shown = everything(full)
    for text in (PHONE, "0123456789", rows[0].body_hash, rows[0].idempotency_key, header.binding.input_hash):
        assert text in shown
    key = form.read_header(pyarrow.parquet.read_metadata(full).metadata[form.HEADER])["batch"]["hash_key"]
    assert len(key) == 32
    assert key.hex() not in everything(path)


def everything(path: Path) -> str:
    """All values and texts of an archive."""
    table = pyarrow.parquet.read_table(path)
    return f"{table.to_pylist()} {pyarrow.parquet.read_metadata(path).metadata}"


def test_both_packages_check_archives_by_the_same_function() -> None:
    assert payments_sync.bulk.check_archive is check_archive


@EITHER
async def test_an_archive_needs_the_extra(
    batch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await batch.load(items(1))
    for module in ("", ".reading"):
        monkeypatch.delitem(sys.modules, f"payments_async.bulk._ledger.archive{module}", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"an archive needs .*payments-sdk\[parquet\]"):
        await batch.archive(tmp_path / "june.parquet")


# Damage

Change = Callable[[list[dict[str, Any]], dict[str, Any]], object]
"""Changes rows and header of an archive, as somebody would who knows the file's form."""


def altered(path: Path, change: Change, schema: Any = None) -> Path:
    """The archive with a change, in a file that is as whole as the first."""
    file = pyarrow.parquet.ParquetFile(path)
    rows, header = file.read().to_pylist(), form.read_header(file.metadata.metadata[form.HEADER])
    change(rows, header)
    table = pyarrow.Table.from_pylist(rows, schema=schema or file.schema_arrow)
    made = path.with_name("altered.parquet")
    with pyarrow.parquet.ParquetWriter(made, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(form.header_text(header))
    return made


def cell(number: int, **values: Any) -> Change:
    """Other values of a row's columns."""
    return lambda rows, _: rows[number - 1].update(values)


def entry(**values: Any) -> Change:
    """Other values of the first entry of a chunk's chain."""
    return lambda rows, _: first_entry(rows).update(values)


def first_entry(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The first entry of the first chunk's chain."""
    found: dict[str, Any] = next(row for row in rows if row["entries"])["entries"][0]
    return found


def head(**values: Any) -> Change:
    """Other values of the header."""
    return lambda _, header: header.update(values)


def of_batch(**values: Any) -> Change:
    """Other facts of the batch."""
    return lambda _, header: header["batch"].update(values)


def certificate(**values: Any) -> Change:
    """Other values of the certificate."""
    return lambda _, header: header["certificate"].update(values)


def swapped(rows: list[dict[str, Any]], _: Mapping[str, Any]) -> None:
    """Two rows give each other all but their numbers."""
    rows[3], rows[4] = {**rows[4], "number": 4}, {**rows[3], "number": 5}


def _other_place(rows: list[dict[str, Any]], _: Mapping[str, Any]) -> None:
    kept = [row["entries"] for row in rows]
    rows[3], rows[4] = rows[4], rows[3]
    for row, entries in zip(rows, kept, strict=True):
        row["entries"] = entries


def _without_row(rows: list[dict[str, Any]], _: Mapping[str, Any]) -> None:
    rows[4]["entries"] = rows[3]["entries"] + rows[4]["entries"]
    del rows[3]


def _entry_removed(rows: list[dict[str, Any]], _: Mapping[str, Any]) -> None:
    del next(row for row in rows if row["entries"])["entries"][0]


DAMAGE: Final[dict[str, tuple[Change, list[str]]]] = {
    "amount": (cell(4, amount="9999.00"), ["chunk 1: row 4 is not as it was written", "rows not final: "]),
    "amount that is none": (cell(4, amount="many"), ["row 4 cannot be read"]),
    "reference": (cell(4, reference="another"), ["row 4 is not as it was written"]),
    "state": (cell(4, state="REJECTED"), ["row 4 is not as it was written", "row 4 is not shown as"]),
    "no such state": (cell(4, state="PAID"), ["row 4 cannot be read"]),
    "keyed hash": (cell(4, account="0" * 64), ["row 4 is not as it was written"]),
    "digest": (cell(4, digest=bytes(32)), ["row 4 is not as it was written"]),
    "outcome": (cell(4, outcome="failed"), ["row 4 is not shown as it is recorded"]),
    "time": (lambda rows, _: cell(4, changed_at=rows[0]["first_sent_at"])(rows, {}), ["row 4 is not shown"]),
    "entry of its change": (cell(4, changed_in=99), ["row 4 is not as it was written", "row 4 is not shown"]),
    "attempts": (cell(4, attempts="[]"), ["the attempts are not as they were written"]),
    "swapped rows": (swapped, ["row 4 is not as it was written", "row 5 is not as it was written"]),
    "order": (_other_place, ["row 4 is not in its place"]),
    "removed row": (_without_row, ["7 rows were imported, 6 are there", "the rows do not add up"]),
    "row of no chunk": (
        lambda rows, _: rows.append({**rows[0], "number": 2**31 - 1, "entries": []}),
        ["8 are there"],
    ),
    "entry": (entry(changes="[]"), ["entry 1 of the chain is not as it was written"]),
    "entry's time": (entry(wall=1.0), ["entry 1 of the chain is not as it was written"]),
    "removed entry": (_entry_removed, ["entry 1 of the chain is missing"]),
    "entry of no chunk": (
        lambda rows, _: rows[-1]["entries"].append({**first_entry(rows), "chunk": 9}),
        ["it has rows or entries that are of no chunk"],
    ),
    "entry of the batch": (
        lambda _, header: header["entries"].pop(0),
        ["the chain does not end with entry", "the header is not as it was written"],
    ),
    "sums": (of_batch(totals='{"XOF": "1.00"}'), ["the header is not as it was written"]),
    "environment": (
        of_batch(environment="live"),
        ["the header is not as it was written", "the certificate is of another batch"],
    ),
    "head of a chunk": (
        lambda _, header: header["chunks"][1].__setitem__(6, bytes(32)),
        ["chunk 1: the chain does not end with entry", "the root is not that of its chunks"],
    ),
    "removed chunk": (lambda _, header: header["chunks"].pop(), ["it was made of 1 chunks, 0 are there"]),
    "root": (head(root="0" * 64), ["the root is not that of its chunks"]),
    "certificate of another root": (
        lambda _, header: header["certificate"]["ledger"].update(head="0" * 64),
        ["the certificate is not of this root"],
    ),
    "certificate's rows": (
        lambda _, header: header["certificate"]["rows"].update(arrived=7),
        ["the certificate's rows or sums are not those of the archive"],
    ),
    "certificate's key": (certificate(key_fingerprint="other"), ["the certificate is of another batch"]),
}


_JUNE: Final[list[bytes]] = []


@pytest_asyncio.fixture
async def june(archived: Any, tmp_path: Path) -> Path:
    """An archive without accounts, made once."""
    if not _JUNE:
        path, *_ = await archived()
        _JUNE.append(path.read_bytes())
        assert check_archive(altered(path, lambda *_: None)).findings == ()
    (tmp_path / "june.parquet").write_bytes(_JUNE[0])
    return tmp_path / "june.parquet"


@pytest.mark.parametrize(("change", "findings"), DAMAGE.values(), ids=DAMAGE)
def test_a_change_of_an_archive_is_found(june: Path, change: Change, findings: list[str]) -> None:
    found = "; ".join(check_archive(altered(june, change)).findings)
    for finding in findings:
        assert finding in found


async def test_a_changed_body_is_found_in_an_archive_with_accounts(archived: Any) -> None:
    path, *_ = await archived(accounts=True)
    found = check_archive(altered(path, cell(4, body=b'{"amount":9}'))).findings
    assert found == ("chunk 1: the body of row 4 is another",)


UNREADABLE: Final[dict[str, tuple[Callable[[bytes], bytes], type[Exception], str]]] = {
    "cut short": (
        lambda raw: raw[: len(raw) // 2],
        ArchiveDamaged,
        "it was cut short, or its end is damaged",
    ),
    "only its beginning": (lambda raw: raw[:4], ArchiveDamaged, "cut short"),
    "a page": (lambda raw: raw[:2000] + bytes(200) + raw[2200:], ArchiveDamaged, "pages cannot be read"),
    "empty": (lambda _: b"", LedgerForeign, "is no Parquet file"),
    "another file": (lambda _: b"amount,currency\n", LedgerForeign, "is no Parquet file"),
    "header": (
        lambda raw: raw.replace(b'"environment": "sandbox"', b'"environment": "Sandbox"'),
        ArchiveDamaged,
        "its header is not as it was written",
    ),
    "no header": (
        lambda raw: raw.replace(b'{"format"', b'#"format"'),
        ArchiveDamaged,
        "its header cannot be",
    ),
}


@pytest.mark.parametrize(("change", "error", "told"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_cannot_be_read_is_refused(
    june: Path, change: Callable[[bytes], bytes], error: type[Exception], told: str
) -> None:
    june.write_bytes(change(june.read_bytes()))
    with pytest.raises(error, match=told) as caught:
        check_archive(june)
    assert type(caught.value) is error
    if error is ArchiveDamaged:
        assert str(caught.value).endswith("`payments payouts archive`")


def test_a_file_of_another_form_is_refused(june: Path, tmp_path: Path) -> None:
    with pytest.raises(LedgerNewer, match="its form is number 2, and this version knows up to 1"):
        check_archive(altered(june, head(format=2)))
    with pytest.raises(LedgerOlder):
        check_archive(altered(june, of_batch(schema=4)))
    with pytest.raises(LedgerMissing, match="there is no such file"):
        check_archive(tmp_path / "none.parquet")
    with pytest.raises(LedgerForeign, match="cannot be read"):
        check_archive(tmp_path)
    plain = tmp_path / "plain.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"amount": ["1"]}), plain)
    with pytest.raises(LedgerForeign, match="is Parquet, and no archive of a batch"):
        check_archive(plain)
    schema = form.schema(accounts=False).remove(3)
    with pytest.raises(ArchiveDamaged, match="its columns are not those of an archive"):
        check_archive(altered(june, lambda *_: None, schema))
    with pytest.raises(ArchiveDamaged, match="the certificate cannot be read"):
        check_archive(altered(june, head(certificate={"batch_id": 1})))


# Refusals


@EITHER
async def test_an_archive_is_made_of_a_closed_batch(
    desk: Desk, service: Sandbox, place: Place, tmp_path: Path
) -> None:
    path = tmp_path / "june.parquet"
    async with desk.client(service) as client, desk.open(place, client, batch_id=name_of(place)) as batch:
        await batch.load(items(2))
        with pytest.raises(
            LedgerRefused, match="2 of its rows are not decided: `payments payouts run` goes on"
        ):
            await batch.archive(path)
        await batch.run()
        await batch.archive(path)
        with pytest.raises(BulkError, match=r"exists already; .*--overwrite"):
            await batch.archive(path)
        await batch.archive(path, overwrite=True)
        for wrong in ("june.csv", "june"):
            with pytest.raises(BulkError, match=r"an archive is a \.parquet file"):
                await batch.archive(tmp_path / wrong)
        with pytest.raises(FileNotFoundError):
            await batch.archive(tmp_path / "no" / "where.parquet")
    assert not check_archive(path).findings
    assert sorted(each.suffix for each in tmp_path.iterdir() if "june" in each.name) == [".parquet"]


async def test_a_batch_of_a_database_that_is_complete_is_closed_first(database: str, tmp_path: Path) -> None:
    async with await begun(database, 2) as ledger:
        await ledger.record(map(created, (await ledger.claim(2)).rows))
    path = tmp_path / "june.parquet"
    async with await looked_at(database) as ledger:
        assert isinstance(ledger, PostgresLedger)
        with path.open("wb") as file:
            with pytest.raises(
                LedgerRefused, match="it is not closed yet: `payments payouts run` or a worker"
            ):
                await ledger.archive(file, accounts=False)
            await ledger.pause("lunch")
            with pytest.raises(LedgerRefused, match="it is paused: lunch"):
                await ledger.archive(file, accounts=False)


async def test_the_certificate_must_be_of_the_batch_as_it_is(
    archived: Any, desk: Desk, place: Place, tmp_path: Path
) -> None:
    path, *_ = await archived()
    seal = tmp_path / "certificate.json"
    facts = json.loads(seal.read_text())
    for change, told in {
        "": "is no certificate that can be read",
        "[]": "is no certificate that can be read",
        json.dumps({**facts, "batch_id": "july"}): "is the certificate of another batch",
        json.dumps({**facts, "ledger": {"head": "0" * 64}}): "of another state of the batch; .* reconcile",
    }.items():
        seal.write_text(change)
        async with desk.open(place, batch_id=name_of(place)) as batch:
            with pytest.raises(BulkError, match=told):
                await batch.archive(path, certificate=seal, overwrite=True)
            with pytest.raises(BulkError, match=r"none.json: cannot be read \(No such file"):
                await batch.archive(path, certificate=tmp_path / "none.json", overwrite=True)
    assert check_archive(path).findings == ()


@EITHER
async def test_the_certificate_that_a_database_keeps_is_in_the_archive_while_nothing_has_changed(
    archived: Any, desk: Desk, place: Place, tmp_path: Path
) -> None:
    _, rows, _ = await archived()
    path, keeps = tmp_path / "kept.parquet", not isinstance(place, Path)

    async def holds_one(batch: Any) -> bool:
        report = await batch.archive(path, overwrite=True)
        header = form.read_header(pyarrow.parquet.read_metadata(path).metadata[form.HEADER])
        assert report.has_certificate == (header["certificate"] is not None)
        assert check_archive(path).findings == ()
        return bool(report.has_certificate)

    async with desk.open(place, batch_id=name_of(place)) as batch:
        assert await holds_one(batch) == keeps
        await batch._ledger.record([RowOutcome(4, rows[3].known, service_status="completed")])
        assert not await holds_one(batch)
        if keeps:
            tampered(place, "UPDATE payments.batches SET certificate = '{}'")
            with pytest.raises(LedgerDamaged, match="its certificate cannot be read"):
                await batch.archive(path, overwrite=True)
            tampered(place, "UPDATE payments.batches SET certificate = NULL")
            assert not await holds_one(batch)


@EITHER
async def test_a_damaged_ledger_gives_no_archive(
    archived: Any, desk: Desk, place: Place, tmp_path: Path
) -> None:
    path, *_ = await archived()
    before = path.read_bytes()
    for damage, told in {
        "UPDATE rows SET amount = '99' WHERE number = 4": "row 4 is not as it was written",
        "UPDATE row_states SET payout_end = '?' WHERE number = 4": "some row cannot be read",
    }.items():
        tampered(place, damage)
        with pytest.raises(LedgerDamaged, match=told) as caught:
            async with desk.open(place, batch_id=name_of(place)) as batch:
                await batch.archive(path, overwrite=True)
        assert type(caught.value) is LedgerDamaged
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*.part"))


async def test_a_change_while_it_is_archived_is_no_damage(
    archived: Any, desk: Desk, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, rows, _ = await archived()
    pages = writing._Pages.of_chunk

    async def with_a_change(self: Any, chunk: Any) -> AsyncIterator[Any]:
        await batch._ledger.record([RowOutcome(4, rows[3].known, service_status="completed")])
        async for page in pages(self, chunk):
            yield page

    async with desk.open(place, batch_id=name_of(place)) as batch:
        monkeypatch.setattr(writing._Pages, "of_chunk", with_a_change)
        with pytest.raises(LedgerRefused, match="it was changed while it was archived: archive it again"):
            await batch.archive(path, overwrite=True)


async def test_two_archives_at_once_of_one_name_are_both_checked_and_one_stays(
    archived: Any, desk: Desk, place: Place, tmp_path: Path
) -> None:
    path, *_ = await archived()
    async with desk.open(place, batch_id=name_of(place)) as batch:
        reports = await asyncio.gather(*(batch.archive(path, overwrite=True) for _ in range(2)))
    assert [report.head for report in reports] == [check_archive(path).head] * 2
    assert not list(tmp_path.glob("*.part"))


@EITHER
async def test_a_batch_of_many_pages_and_chunks_is_archived_in_groups(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_GROUP", 900)
    async with await begun(place, 2_100) as ledger:
        while claim := (await ledger.claim(50)).rows:
            for start in (0, 25):
                await ledger.record(map(created, claim[start : start + 25]))
    await closed(place)
    made = tmp_path / "june.parquet"
    async with await looked_at(place) as ledger:
        with made.open("wb") as file:
            await ledger.archive(file, accounts=False)
        report = await ledger.check()
    assert check_archive(made) == report
    parts = pyarrow.parquet.read_metadata(made)
    assert [parts.row_group(number).num_rows for number in range(parts.num_row_groups)][:2] == [1_000, 1_000]


async def closed(place: Place) -> None:
    """Close a batch of a database, all of whose rows are decided."""
    if not isinstance(place, Path):
        async with await looked_at(place) as ledger:
            assert isinstance(ledger, PostgresLedger)
            assert await batches.close(ledger.database, ledger.facts.batch, Clock(), {})
