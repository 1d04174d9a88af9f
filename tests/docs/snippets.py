"""The Python blocks of README.md and docs/."""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from tests.docs.pages import ROOT

FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@attrs.frozen
class Snippet:
    """A fenced block, and where it stands."""

    file: str
    line: int
    info: str
    code: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def snippets_in(text: str, file: str) -> Iterator[Snippet]:
    """The Python blocks of a Markdown text; `line` is that of a block's first line of code."""
    for found in FENCE.finditer(text):
        if found[1].split(" ")[0] == "python":
            yield Snippet(file, text.count("\n", 0, found.start(2)) + 1, found[1], found[2])


def all_snippets() -> list[Snippet]:
    files = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [
        snippet
        for file in files
        for snippet in snippets_in(file.read_text(encoding="utf-8"), str(file.relative_to(ROOT)))
    ]
