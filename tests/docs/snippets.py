"""The fenced blocks of README.md and docs/: programs, shell, and what is only shown."""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from tests.docs.pages import ROOT

FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: (.+) -->\n\Z")
"""The mark on the line above a block that the tests do not run. It says why."""


ENDINGS = {"python": ".py", "toml": ".toml"}


@attrs.frozen
class Snippet:
    """A fenced block, and where it stands."""

    file: str
    line: int
    info: str
    code: str
    saved_as: str | None
    """The program's file, where the paragraph above names one."""
    not_run: str | None
    """Why the tests do not run it."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def blocks_in(text: str, file: str) -> Iterator[Snippet]:
    """The blocks of a Markdown text; `line` is that of a block's first line of code."""
    for found in FENCE.finditer(text):
        above = text[: found.start()]
        named = re.findall(r"`([\w-]+\.(?:py|toml))`", above.rstrip().rpartition("\n\n")[2])
        mark = NOT_RUN.search(above)
        yield Snippet(
            file=file,
            line=text.count("\n", 0, found.start(2)) + 1,
            info=found[1],
            code=found[2],
            saved_as=named[-1] if named and named[-1].endswith(ENDINGS.get(found[1], "?")) else None,
            not_run=mark[1] if mark else None,
        )


def all_blocks() -> list[Snippet]:
    files = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [
        block
        for file in files
        for block in blocks_in(file.read_text(encoding="utf-8"), str(file.relative_to(ROOT)))
    ]


def all_snippets() -> list[Snippet]:
    """The Python blocks."""
    return [block for block in all_blocks() if block.info == "python"]
