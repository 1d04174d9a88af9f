"""Checks a workbook's package, a zip of XML parts, before anything in it is read."""

from __future__ import annotations

from typing import BinaryIO, Final
from zipfile import BadZipFile, ZipFile

from ...errors import SourceUnreadable

_OLE: Final = b"\xd0\xcf\x11\xe0"  # how a workbook with a password begins, and an .xls
_MOST_BYTES: Final = 64 << 20
"""Bytes of all parts without compression, of which openpyxl takes ten times as many in memory; 100,000 rows
of ten columns have about 50 MiB."""
_HEAD: Final = 4096
"""Bytes in which a part that defines entities says so: they would expand without a bound."""


def check_package(file: BinaryIO, name: str) -> None:
    """Raise SourceUnreadable for a file that is no workbook, or one that would take too much memory."""
    if file.read(4) == _OLE:
        raise SourceUnreadable(name, "has a password, or is an .xls: save it as .xlsx, without a password")
    try:
        package = ZipFile(file)
    except (BadZipFile, NotImplementedError, ValueError):
        raise SourceUnreadable(name, "is no Excel workbook, or not a whole one: save it again") from None
    with package:
        parts = package.infolist()
        unpacked = sum(part.file_size for part in parts)  # of no part more is read than its size here
        if unpacked > _MOST_BYTES:
            most = f"takes {unpacked >> 20:,} MiB unpacked, and may take {_MOST_BYTES >> 20}"
            raise SourceUnreadable(name, f"{most}: divide it, or use CSV")
        for part in parts:
            with package.open(part) as xml:
                if b"<!DOCTYPE" in xml.read(_HEAD).replace(b"\0", b""):  # also in UTF-16
                    problem = "has a part with a document type, which may expand: save it again"
                    raise SourceUnreadable(name, problem)
