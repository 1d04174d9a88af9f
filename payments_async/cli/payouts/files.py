"""Files beside a ledger: the certificate, the confirmation, outcomes that the ledger could not record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def certificate_of(ledger: str) -> str:
    """The path of a batch's certificate, unless another is given."""
    return f"{ledger}.certificate.json"


def confirmation_of(ledger: str) -> str:
    """The path of what was confirmed."""
    return f"{ledger}.confirmed.json"


def unrecorded_of(ledger: str) -> str:
    """The path of outcomes that the ledger could not record."""
    return f"{ledger}.unrecorded.json"


def read(path: str) -> str:
    """A file's text; empty when it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def read_status(ledger: str) -> dict[str, Any]:
    """The ledger's status file (`LEDGER.status.json`); empty when it cannot be read."""
    try:
        status = json.loads(read(f"{ledger}.status.json"))
    except ValueError:
        return {}
    return status if isinstance(status, dict) and isinstance(status.get("rows"), dict) else {}
