"""Texts that commands and pages show, kept beside their tests in `snapshots/MODULE.txt`.

`SNAPSHOTS=write pytest -p no:xdist FILE` writes them anew; read the difference before it is committed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import attrs

IS_WRITTEN = os.environ.get("SNAPSHOTS") == "write"


@attrs.frozen
class Snapshots:
    """The texts of one test module; each has the name of its test, and its own if there are more."""

    module: Path
    test: str

    @property
    def file(self) -> Path:
        return self.module.parent / "snapshots" / f"{self.module.stem}.txt"

    def read(self) -> dict[str, str]:
        text = self.file.read_text(encoding="utf-8") if self.file.exists() else ""
        names_and_texts = re.split(r"^=== (.*)\n", text, flags=re.MULTILINE)[1:]
        return dict(zip(names_and_texts[::2], names_and_texts[1::2], strict=True))

    def __call__(self, shown: str | Iterable[str], name: str = "") -> None:
        """These lines are those that are kept; blanks at the end of a line are not told apart."""
        lines = shown.splitlines() if isinstance(shown, str) else shown
        text = "".join(f"{line.rstrip()}\n" for line in lines)
        key = f"{self.test} {name}".rstrip()
        if IS_WRITTEN:
            kept = {**self.read(), key: text}
            self.file.parent.mkdir(exist_ok=True)
            sections = (f"=== {name}\n{kept[name]}" for name in sorted(kept))
            self.file.write_text("".join(sections), encoding="utf-8")
        assert text.splitlines() == self.read()[key].splitlines()
