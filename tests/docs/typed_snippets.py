"""`python -m tests.docs.typed_snippets`: every Python block of README.md and docs/ passes `mypy --strict`.

Needs mypy, which the tests' environment does not have: a part of `nox -s typing`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from textwrap import indent

from tests.docs.snippets import Snippet, all_snippets


def as_module(snippet: Snippet) -> str:
    """The block as the body of a coroutine, each line where it is on the page."""
    return "\n" * (snippet.line - 2) + "async def snippet() -> None:\n" + indent(snippet.code, "    ")


def told_for_the_page(shown: str, snippets: Sequence[Snippet]) -> str:
    """mypy's words with the pages' names in place of the modules'."""
    for snippet in snippets:
        shown = re.sub(rf"^.*\b{name_of(snippet)}(?=:\d)", snippet.file, shown, flags=re.MULTILINE)
    return shown


def name_of(snippet: Snippet) -> str:
    return f"{re.sub(r'[^A-Za-z0-9]', '_', snippet.file.removesuffix('.md'))}_{snippet.line}.py"


def main() -> int:
    """mypy's exit code; what it found, on stdout."""
    snippets = all_snippets()
    with tempfile.TemporaryDirectory(prefix="snippets-") as folder:
        for snippet in snippets:
            Path(folder, name_of(snippet)).write_text(as_module(snippet), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", *map(str, Path(folder).iterdir())],
            capture_output=True,
            text=True,
            check=False,
        )
    print(told_for_the_page(done.stdout, snippets) + done.stderr, end="")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
