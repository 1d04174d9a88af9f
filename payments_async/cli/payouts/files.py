"""Files beside a ledger: the certificate, what was confirmed, outcomes that the ledger could not take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def certificate_of(ledger: str) -> str:
    """Where a batch's certificate goes unless told."""
    return f"{ledger}.certificate.json"


def confirmation_of(ledger: str) -> str:
    """Where it is kept what was confirmed."""
    return f"{ledger}.confirmed.json"


def unrecorded_of(ledger: str) -> str:
    """Where outcomes go that the ledger could not take."""
    return f"{ledger}.unrecorded.json"


def read(path: str) -> str:
    """What it says; nothing when it is not there or cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def status_said(ledger: str) -> dict[str, Any]:
    """What the ledger's status file says (`LEDGER.status.json`); nothing when it cannot be read."""
    try:
        said = json.loads(read(f"{ledger}.status.json"))
    except ValueError:
        return {}
    return said if isinstance(said, dict) and isinstance(said.get("rows"), dict) else {}
