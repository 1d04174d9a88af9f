"""`python -m tests.docs.typed_snippets`: every Python block of README.md and docs/ passes `mypy --strict`.

Needs mypy, which the tests' environment does not have: a part of `nox -s typing`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from textwrap import indent

from tests.docs.pages import ROOT
from tests.docs.snippets import Snippet, all_snippets


def as_module(snippet: Snippet) -> str:
    """The block as the body of a coroutine, each line where it is on the page."""
    return "\n" * (snippet.line - 2) + "async def snippet() -> None:\n" + indent(snippet.code, "    ")


def name_of(snippet: Snippet) -> str:
    """The module's file name, from which one sees the page; its lines are the page's."""
    return f"{re.sub(r'[^A-Za-z0-9]', '_', snippet.file.removesuffix('.md'))}_{snippet.line}.py"


def main() -> int:
    """mypy's exit code."""
    shop = str(ROOT / "examples" / "frameworks")  # which a page tests
    with tempfile.TemporaryDirectory(prefix="snippets-") as folder:
        for snippet in all_snippets():
            Path(folder, name_of(snippet)).write_text(as_module(snippet), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", *map(str, Path(folder).iterdir())],
            env={**os.environ, "MYPYPATH": shop},
            check=False,
        )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
