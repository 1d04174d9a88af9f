"""A fingerprint is of what the rows say, a stat of how the file looks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from payments_async.bulk.errors import SourceUnreadable
from payments_async.bulk.sources import open_source
from tests.support.payout_files import bytes_file, split

SAMPLE = 65_536  # bytes of each end of a file
TEXT = b"amount,currency,method,instrument.type,reference\n50.10,XCD,m,x,r1\n60,XCD,m,x,\n"
SAME = {
    "line endings": TEXT.replace(b"\n", b"\r\n"),
    "byte order mark": b"\xef\xbb\xbf" + TEXT,
    "empty lines": TEXT.replace(b"\n", b"\n\n,,,,\n", 2).removesuffix(b"\n"),
    "quotes": b'"amount",currency,method,instrument.type,reference\n"50.10",XCD,m,x,"r1"\n60,XCD,m,x,\n',
    "column order": b"reference,amount,currency,method,instrument.type\nr1,50.10,XCD,m,x\n,60,XCD,m,x\n",
    "zeros behind an amount": TEXT.replace(b"50.10", b"50.1000").replace(b"60", b"60.00"),
    "an empty column": TEXT.replace(b"\n", b",\n").replace(b"reference,", b"reference,description"),
}
OTHER = {
    "another cell": TEXT.replace(b"r1", b"r2"),
    "a cell in another column": TEXT.replace(b",reference", b",description"),
    "another order": b"amount,currency,method,instrument.type,reference\n60,XCD,m,x,\n50.10,XCD,m,x,r1\n",
    "a row more": TEXT + b"60,XCD,m,x,\n",
    "a row at fault more": TEXT + b"60,XCD,m\n",
    "white space": TEXT.replace(b"50.10", b" 50.10"),
}


def fingerprint(folder: Path, content: bytes) -> str:
    source = open_source(bytes_file(folder, content))
    split(source)
    return source.fingerprint()


@pytest.mark.parametrize("content", [*SAME.values()], ids=[*SAME])
def test_how_rows_are_written_leaves_no_trace(tmp_path: Path, content: bytes) -> None:
    assert fingerprint(tmp_path, content) == fingerprint(tmp_path, TEXT)


@pytest.mark.parametrize("content", [*OTHER.values()], ids=[*OTHER])
def test_what_rows_say_does(tmp_path: Path, content: bytes) -> None:
    assert fingerprint(tmp_path, content) != fingerprint(tmp_path, TEXT)


def test_the_form_of_the_hash_stays_as_it_is(tmp_path: Path) -> None:
    assert fingerprint(tmp_path, TEXT) == "f2ba66e8901f20e9af57138c70ba5f53cdc36bda98060cc95efffdb026c47078"


def test_a_stat_shows_changes_at_either_end_and_in_time(tmp_path: Path) -> None:
    path = bytes_file(tmp_path, b"a" * SAMPLE * 3)
    source = open_source(path)
    before = source.stat()
    assert source.stat() == before
    assert before["size"] == SAMPLE * 3
    os.utime(path, ns=(0, before["mtime_ns"] + 1))
    assert source.stat()["mtime_ns"] == before["mtime_ns"] + 1
    path.write_bytes(b"b" + b"a" * (SAMPLE * 3 - 1))
    assert (source.stat()["head"] == before["head"], source.stat()["tail"] == before["tail"]) == (False, True)
    path.write_bytes(b"a" * (SAMPLE * 3 - 1) + b"b")
    assert (source.stat()["head"] == before["head"], source.stat()["tail"] == before["tail"]) == (True, False)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = bytes_file(tmp_path, TEXT)
    items = open_source(path).read()
    next(items)
    with path.open("ab") as file:
        file.write(b"70,XCD,m,x,\n")
    with pytest.raises(SourceUnreadable, match="changed while it was read"):
        list(items)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_file_that_is_not_there_or_no_file_is_named(tmp_path: Path, suffix: str) -> None:
    missing = open_source(tmp_path / f"none{suffix}")
    for action in (missing.stat, lambda: list(missing.read())):
        with pytest.raises(SourceUnreadable, match=rf"none{suffix}: cannot be read \(No such file"):
            action()
    folder = tmp_path / f"folder{suffix}"
    folder.mkdir()
    for action in (open_source(folder).stat, lambda: list(open_source(folder).read())):
        with pytest.raises(SourceUnreadable, match="is not a regular file"):
            action()
