"""Checks a workbook's package, a zip of XML parts, before anything in it is read.

openpyxl reads XML with the standard library's parser, which expands entities: no part may define any.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import IO, BinaryIO, Final, NoReturn
from xml.parsers import expat
from zipfile import BadZipFile, ZipFile, ZipInfo

from ...errors import SourceUnreadable

_OLE: Final = b"\xd0\xcf\x11\xe0"
"""How a workbook with a password begins, and an .xls."""
_MOST_PARTS: Final = 2_000
_MOST_BYTES: Final = 256 << 20
"""Bytes of all parts without compression; 100,000 rows of 20 columns have half of that."""
_MOST_RATIO: Final = 200
"""How much smaller compression may make a package; that of payrolls makes them 10 to 40 times smaller."""
_SMALL: Final = 4 << 20
"""Bytes of all parts below which no ratio is out of proportion."""
_MOST_OTHER: Final = 1 << 20
"""Bytes of a part beside the sheets and their texts: openpyxl makes objects of all its elements."""
_LARGE: Final = ("xl/worksheets/", "xl/sharedstrings.xml", "xl/media/")
_STRICT: Final = "http://purl.oclc.org/ooxml/"
_PARTS: Final = (
    ("vbaproject.bin", "has macros: save it as Excel Workbook (.xlsx), without them"),
    ("xl/macrosheets/", "has macros: save it as Excel Workbook (.xlsx), without them"),
    ("xl/externallinks/", "has links to other workbooks: break them (Data, Edit Links), and save it"),
    ("xl/workbook.bin", "is a binary workbook (.xlsb): save it as Excel Workbook (.xlsx)"),
)
"""Parts that a workbook may not have, by some of their name in small letters, and what to do."""
_WORKBOOK: Final = "xl/workbook.xml"


def check_package(file: BinaryIO, name: str) -> None:
    """Raise SourceUnreadable for a file that is no workbook, or one that may not be read."""
    if file.read(4) == _OLE:
        raise SourceUnreadable(name, "has a password, or is an .xls: save it as .xlsx, without a password")
    size = file.seek(0, os.SEEK_END)
    try:
        package = ZipFile(file)
    except (BadZipFile, NotImplementedError, ValueError):
        raise SourceUnreadable(name, "is no Excel workbook, or not a whole one: save it again") from None
    with package:
        parts = package.infolist()
        if problem := package_problem(parts, size):
            raise SourceUnreadable(name, problem)
        for part in parts:
            with package.open(part) as xml:
                _check_start(xml, name, part.filename)


def package_problem(parts: Sequence[ZipInfo], size: int) -> str | None:
    """Find what forbids to read a package of `size` bytes, and say what to do; None if nothing does."""
    names = [part.filename.lower().replace("\\", "/") for part in parts]
    unpacked = sum(part.file_size for part in parts)
    if len(parts) > _MOST_PARTS:
        return f"has {len(parts):,} parts, and may have {_MOST_PARTS:,}: save its rows alone"
    if unpacked > _MOST_BYTES:
        return (
            f"takes {unpacked >> 20:,} MiB unpacked, and may take {_MOST_BYTES >> 20}: divide it, or use CSV"
        )
    if unpacked > _SMALL and unpacked > size * _MOST_RATIO:
        return f"is {unpacked // size:,} times larger unpacked, as no workbook of payouts is: write it anew"
    others = (part for part, name in zip(parts, names, strict=True) if not name.startswith(_LARGE))
    if any(part.file_size > _MOST_OTHER for part in others):
        return "has a large part beside its sheets: copy the values into a new workbook"
    if any(count > 1 for count in Counter(names).values()):
        return "has a part twice: save it again"
    if any(name.startswith("/") or ".." in name.split("/") for name in names):
        return "has a part that is named outside of it: save it again"
    if any(part.flag_bits & 1 for part in parts):
        return "has a password: save it without one"
    for part, problem in _PARTS:
        if any(part in name for name in names):
            return problem
    return None if _WORKBOOK in names else "is no Excel workbook: save it as .xlsx"


class _Begun(Exception):
    """The first element of a part, behind which no entity can be defined."""


def _check_start(xml: IO[bytes], name: str, part: str) -> None:
    """Read a part until its first element. What is no XML is left: nothing reads it as any."""

    def refuse(*_: object) -> NoReturn:
        raise SourceUnreadable(name, "has a part with a document type, which may expand: save it again")

    def begin(tag: str, _: object) -> NoReturn:
        if tag.startswith(_STRICT) and part == _WORKBOOK:
            problem = "is a Strict Open XML workbook: save it as Excel Workbook (.xlsx)"
            raise SourceUnreadable(name, problem)
        raise _Begun

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = begin
    try:
        parser.ParseFile(xml)
    except (_Begun, expat.ExpatError):
        return
