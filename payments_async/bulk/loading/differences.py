"""Differences between an edited input and its ledger: rows and fields, never a value. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ..._codec import decode
from ..protocol.identifiers import PROOF_KEY, shown_key
from ..protocol.records import InputDifference, LedgerRow, NewRow
from ..protocol.row_state import RowState
from ..sources import Row
from ..sources._requests import canonical

_PARTS: Final = ("instrument", "customer", "metadata")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z_.-]{0,40}", re.ASCII)


def added(row: Row, state: RowState | None) -> InputDifference:
    """The difference for a row of the input that the ledger does not have, or has cancelled."""
    return InputDifference(row.number, row.line, shown_key(row.row_key, row.number), "added", state=state)


def removed(stored: LedgerRow) -> InputDifference:
    """The difference for a row of the ledger that the input no longer has."""
    key = shown_key(stored.row_key, stored.number)
    return InputDifference(stored.number, stored.line, key, "removed", state=stored.state)


def changed(row: Row, fields: tuple[str, ...], state: RowState) -> InputDifference:
    """The difference for a row whose content is not the ledger's."""
    return InputDifference(row.number, row.line, shown_key(row.row_key, row.number), "changed", fields, state)


def differing_fields(stored: LedgerRow, new: NewRow) -> tuple[str, ...]:
    """List the fields that another body of a row changes; none when both ask for the same payout."""
    if stored.body == new.body:
        return ()
    before, after = dict(_fields(stored.body)), dict(_fields(new.body))
    names = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    return tuple(sorted({_shown(name) for name in names}))


def _fields(body: bytes) -> Iterator[tuple[str, object]]:
    """Split a body into fields to compare: amounts as numbers, all else with its type."""
    read: Mapping[str, Any] = decode.parse(body)
    for name, value in read.items():
        if name in _PARTS and isinstance(value, Mapping):
            pairs = ((key, item) for key, item in value.items() if (name, key) != ("metadata", PROOF_KEY))
            yield from ((f"{name}.{key}", canonical(item)) for key, item in pairs)
        else:
            yield name, value if name == "amount" else canonical(value)


def _shown(name: str) -> str:
    part, _, field = name.partition(".")
    return part if field and not _NAME.fullmatch(field) else name
