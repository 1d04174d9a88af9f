"""Compares the binding of a ledger with that of a run. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ..._http.addresses import same_service
from ..ledger_errors import (
    LedgerMismatch,
    LedgerOfAnotherAddress,
    LedgerOfAnotherBatch,
    LedgerOfAnotherEnvironment,
    LedgerOfAnotherInput,
    LedgerOfAnotherKey,
)
from ..protocol.records import Binding

_MISMATCHES: Final[tuple[tuple[str, type[LedgerMismatch]], ...]] = (
    ("environment", LedgerOfAnotherEnvironment),
    ("base_url", LedgerOfAnotherAddress),
    ("batch_id", LedgerOfAnotherBatch),
    ("key_fingerprint", LedgerOfAnotherKey),
    ("input_hash", LedgerOfAnotherInput),
)


def require(path: str, recorded: Binding, given: Binding, allowed: Collection[str] = ()) -> None:
    """Raise the LedgerMismatch of the first fact that differs and is not in `allowed`."""
    for name, error in _MISMATCHES:
        before, now = getattr(recorded, name), getattr(given, name)
        same = same_service(before, now) if name == "base_url" else before == now
        if not same and name not in allowed:
            raise error(path, recorded=before, given=now)
