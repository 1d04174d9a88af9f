"""Writes docs/errors.json from the error classes: code, class, HTTP status, effects on money, remedy.

`python -m tools.errors` writes it; a test says when it is stale.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from payments_async import bulk
from payments_async.errors import STATUS_ERRORS, PaymentsError

FILE: Final = Path(__file__).resolve().parents[1] / "docs" / "errors.json"
_LOADED: Final = bulk.BulkError
"""Its module defines classes, and is imported when it is first used."""
_BETWEEN_WORDS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def classes(family: type[PaymentsError] = PaymentsError) -> Iterator[type[PaymentsError]]:
    """The package's errors below `family`."""
    for cls in family.__subclasses__():
        if cls.__module__.startswith("payments_async."):
            yield cls
            yield from classes(cls)


def entry(cls: type[PaymentsError]) -> dict[str, object]:
    """A class in the form of the file."""
    home = bulk.__name__ if cls.__name__ in bulk.__all__ else cls.__module__
    return {
        "code": _BETWEEN_WORDS.sub("_", cls.__name__).lower(),
        "class": f"{home}.{cls.__name__}",
        "status": next((code for code, known in STATUS_ERRORS.items() if issubclass(cls, known)), None),
        "effects": list(cls.effects),
        "remedy": cls.remedy,
    }


def text() -> str:
    """The whole file."""
    entries = sorted(map(entry, classes()), key=lambda each: str(each["code"]))
    return json.dumps({"errors": entries}, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
