"""Checks a workbook's package, a zip of XML parts, before anything in it is read.

openpyxl reads XML with the standard library's parser, which expands entities: no part may define any.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, BinaryIO, Final, NoReturn
from xml.parsers import expat
from zipfile import BadZipFile, ZipFile, ZipInfo

from ...errors import SourceUnreadable
from .._columns import shown

_OLE: Final = b"\xd0\xcf\x11\xe0"
"""How a workbook with a password begins, and an .xls."""
_MOST_PARTS: Final = 2_000
_MOST_BYTES: Final = 256 << 20
"""Bytes of all parts without compression; 100,000 rows of 20 columns have half of that."""
_MOST_RATIO: Final = 200
"""How much smaller compression may make a package; that of payrolls makes them 10 to 40 times smaller."""
_SMALL: Final = 4 << 20
"""Bytes of all parts below which no ratio is out of proportion."""
_MOST_WHOLE: Final = 4 << 20
"""Bytes of a part that openpyxl reads as a whole; those of large workbooks have some hundred KiB."""
_MOST_ELEMENTS: Final = 50_000
"""Elements of a part beside a sheet's cells; openpyxl takes 1.5 s for as many cell formats."""
_ELEMENTS_OF_CELL: Final = 4
"""How many more there may be for each cell with a value: two for its text, some for rich text."""
_MAIN: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main "
_VALUES: Final = frozenset((f"{_MAIN}v", f"{_MAIN}is"))
_CELLS: Final = frozenset((*_VALUES, *(f"{_MAIN}{tag}" for tag in ("row", "c", "f"))))
_STRICT: Final = "http://purl.oclc.org/ooxml/"
_PARTS: Final = (
    ("vbaproject.bin", "has macros: save it as Excel Workbook (.xlsx), without them"),
    ("xl/macrosheets/", "has macros: save it as Excel Workbook (.xlsx), without them"),
    ("xl/externallinks/", "has links to other workbooks: break them (Data, Edit Links), and save it"),
    ("xl/workbook.bin", "is a binary workbook (.xlsb): save it as Excel Workbook (.xlsx)"),
)
"""Parts that a workbook may not have, by some of their name in small letters, and what to do."""
_WORKBOOK: Final = "xl/workbook.xml"
_WHOLE: Final = ("[content_types].xml", "docprops/", "xl/theme/", "xl/styles.xml", _WORKBOOK)
"""How the names of parts begin that openpyxl reads as a whole; those of relations end alike."""


def check_package(file: BinaryIO, name: str) -> None:
    """Raise SourceUnreadable for a file that is no workbook, or one that may not be read.

    Texts that cells share are read last: the cells say how many there may be.
    """
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
        cells = 0
        for part in sorted(parts, key=lambda part: "sharedstrings" in part.filename.lower()):
            with package.open(part) as xml:
                cells = _check_part(xml, name, part.filename, cells)


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
    if any(count > 1 for count in Counter(names).values()):
        return "has a part twice: save it again"
    if any(name.startswith("/") or ".." in name.split("/") for name in names):
        return "has a part that is named outside of it: save it again"
    if any(part.file_size > _MOST_WHOLE and _is_whole(part.filename) for part in parts):
        return (
            f"has a part of more than {_MOST_WHOLE >> 20} MiB that is no sheet: copy its rows into a new one"
        )
    if bad := next((part.filename for part in parts if "\\" in part.filename), None):
        return f"has the part {shown(bad)}, whose name has a backslash: save it again"
    if any(part.flag_bits & 1 for part in parts):
        return "has a password: save it without one"
    for part, problem in _PARTS:
        if any(part in name for name in names):
            return problem
    return None if _WORKBOOK in names else "is no Excel workbook: save it as .xlsx"


def _is_whole(part: str) -> bool:
    name = part.lower().replace("\\", "/")
    return name.startswith(_WHOLE) or name.endswith(".rels")


def _check_part(xml: IO[bytes], name: str, part: str, cells: int) -> int:
    """Read a part, behind others with so many cells. Returns the cells of all.

    What is no XML is left: nothing reads it as any.
    """
    elements, is_whole = 0, _is_whole(part)

    def refuse(*_: object) -> NoReturn:
        raise SourceUnreadable(name, "has a part with a document type, which may expand: save it again")

    def begin(tag: str, given: dict[str, str]) -> None:
        nonlocal elements, cells
        if not is_whole and tag in _CELLS:
            cells += tag in _VALUES
            return
        elements += 1
        most = _MOST_ELEMENTS + (0 if is_whole else cells * _ELEMENTS_OF_CELL)
        if problem := _element_problem(part, tag, given, elements, most):
            raise SourceUnreadable(name, problem)

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = begin
    with suppress(expat.ExpatError):
        parser.ParseFile(xml)
    return cells


def _element_problem(part: str, tag: str, given: Mapping[str, str], count: int, most: int) -> str | None:
    """Find what forbids a part's element number `count`: too many, or a sheet that is to be read whole."""
    if tag.startswith(_STRICT) and part == _WORKBOOK:
        return "is a Strict Open XML workbook: save it as Excel Workbook (.xlsx)"
    if count > most:
        return f"has a part of more than {most:,} styles, names or texts: copy its rows into a new one"
    kind = given.get("ContentType", given.get("Type", ""))
    if "chartsheet" in kind:
        return "has a sheet that is a chart: remove it"
    if kind.endswith("main+xml") and given.get("PartName", f"/{_WORKBOOK}") != f"/{_WORKBOOK}":
        return "has its list of sheets in another part: save it again"
    return None
