"""Docstrings name what exists: the exceptions after `Raises`."""

from __future__ import annotations

import builtins
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXTS = {file: file.read_text(encoding="utf-8") for file in (ROOT / "payments_async").rglob("*.py")}
RAISED = re.compile(r"Raises:?\s+`?([A-Z]\w+)(?:(?:,| or|,? and)\s+`?([A-Z]\w+))?")
KNOWN = {*re.findall(r"^ *class (\w+)", "\n".join(TEXTS.values()), re.MULTILINE), *vars(builtins)}
KNOWN |= {"CancelledError", "ValidationError"}
"""Every class of the package, and of the libraries that its docstrings may name."""


def test_docstrings_name_exceptions_that_exist() -> None:
    named = {
        (str(file), name) for file, text in TEXTS.items() for found in RAISED.findall(text) for name in found
    }
    assert len(named) > 20
    assert sorted(place for place in named if place[1] and place[1] not in KNOWN) == []
