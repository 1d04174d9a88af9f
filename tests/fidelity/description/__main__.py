"""Writes docs/openapi.json."""

from __future__ import annotations

from .document import PLACE, text

PLACE.write_text(text(), encoding="utf-8")
print(PLACE.name)
