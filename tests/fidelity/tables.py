"""The tables of docs/interface.md, read for what they say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "interface.md"


@cache
def sections() -> Mapping[str, str]:
    """The text under each heading, without that of the headings below it."""
    parts = re.split(r"^#{2,3} (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def rows(heading: str) -> list[list[str]]:
    """The cells of every table row under a heading, without those that head the columns."""
    found: list[list[str]] = []
    previous = ""
    for line in sections()[heading].splitlines():
        if line.startswith("|---"):
            found.pop()
        elif line.startswith("|"):
            found.append([cell.strip() for cell in line.strip("|").split("|")])
        previous = line
    assert found, (heading, previous)
    return found


def names(cell: str) -> list[str]:
    """The names a cell has between backticks."""
    return re.findall(r"`([^`]+)`", cell)


def fields(heading: str) -> dict[str, list[str]]:
    """The fields of a table: the rest of its row by each name."""
    return {name: row[1:] for row in rows(heading) for name in names(row[0])}


def numbers(cell: str) -> list[int]:
    """The whole numbers in a cell, 60,000 as 60000."""
    return [int(found.replace(",", "")) for found in re.findall(r"\d[\d,]*", cell)]


def operations() -> Iterator[tuple[str, str]]:
    """Method and path of every operation that the interface knows."""
    for heading in ("Summary", "Operations referred to elsewhere"):
        for row in rows(heading):
            yield row[0].lower(), names(row[1])[0]
