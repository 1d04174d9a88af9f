"""Compares an edited input with its ledger, row by row, and applies the edits: all of them or none.

Rows are matched by their keys, a group at a time, in one transaction; of each row one number is remembered.
Rows of the input are looked up in the ledger; the ledger's other rows were removed from the input.
Differences name rows and fields, never a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from typing import Any, Final

import attrs

from ..._codec import decode
from .._ledger.ledger import Ledger
from .._ledger.loading import Edits, edit
from .._protocol.identifiers import PROOF_KEY, shown_key
from .._protocol.outcomes import RowState
from .._protocol.records import Binding, InputDifference, LedgerRow, NewRow, What, grouped
from ..errors import LedgerOfAnotherInput, SourceUnreadable
from ..sources import Row, Source
from ..sources._requests import canonical
from .new_rows import RowIdentifiers
from .reader import CHANGED, SourceReader

_PARTS: Final = ("instrument", "customer", "metadata")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z_.-]{0,40}", re.ASCII)


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


_GROUP: Final = 500
_MOST: Final = 20


@attrs.define
class Comparison:
    accept: bool
    """True if edits are applied where they are allowed; only the others are then listed here."""
    reading: SourceReader  # the input's rows, as they were compared
    _identifiers: RowIdentifiers
    first: list[InputDifference] = attrs.field(factory=list)
    total: int = 0
    corrected: int = 0  # rows whose body was replaced
    cancelled: int = 0  # rows that the input no longer has
    _seen: set[int] = attrs.field(factory=set, repr=False)
    """Rows of the ledger that the input has."""

    async def apply(self, edits: Edits) -> None:
        """Compare row by row, and carry out the edits that are accepted."""
        async with aclosing(grouped(self.reading.rows(), _GROUP)) as groups:
            async for group in groups:
                found = {each.row_key: each for each in await edits.by_keys([row.row_key for row in group])}
                corrections = list[tuple[LedgerRow, NewRow]]()
                for row in group:
                    stored = found.get(row.row_key)
                    if stored is None or stored.state is RowState.CANCELLED:
                        self._accepts("added", row, stored)
                    elif new := self._correction(row, stored):
                        corrections.append((stored, new))
                self.corrected += len(corrections)
                if corrections:
                    await edits.correct(corrections)
        async with aclosing(edits.pages()) as pages:
            async for page in pages:
                left = [row for row in page if row.id not in self._seen]
                there = [row for row in left if row.state is not RowState.CANCELLED]
                gone = [row.id for row in there if self._accepts("removed", row, row)]
                self.cancelled += len(gone)
                if gone:
                    await edits.cancel(gone)

    def _correction(self, row: Row, stored: LedgerRow) -> NewRow | None:
        """The new content of a row; None when it stays as it is."""
        self._seen.add(stored.id)
        new = self._identifiers.correction(row, stored)
        fields = differing_fields(stored, new)
        if not self._identifiers.keeps_reference(row, stored):
            fields = tuple(sorted({*fields, "reference"}))
        return new if fields and self._accepts("changed", row, stored, fields) else None

    def _accepts(
        self, what: What, row: Row | LedgerRow, stored: LedgerRow | None, fields: tuple[str, ...] = ()
    ) -> bool:
        """True if this edit is applied; one that is not is listed. `stored`: what the ledger has of it."""
        key = shown_key(row.row_key, row.number)
        state, is_doubted = (None, False) if stored is None else (stored.state, stored.doubted)
        difference = InputDifference(row.number, row.line, key, what, fields, state, is_doubted)
        if self.accept and difference.is_acceptable:
            return True
        self.total += 1
        if len(self.first) < _MOST:
            self.first.append(difference)
        return False


async def compared(
    ledger: Ledger,
    source: Source,
    identifiers: RowIdentifiers,
    binding: Binding,
    *,
    changes: bool = False,
    accept: bool = False,
) -> Comparison:
    """Compares an edited input with its ledger, and with `changes` applies it: all of it or nothing.

    Its rows must be the same then unless edits are accepted; rows with faults count as removed. Raises
    LedgerOfAnotherInput, SourceUnreadable and LedgerError.
    """

    async def work(edits: Edits) -> Comparison:
        comparison = Comparison(accept, SourceReader(source, identifiers), identifiers)
        await comparison.apply(edits)
        if not changes:
            return comparison
        if comparison.reading.fingerprint != binding.input_hash:
            raise SourceUnreadable(source.name, CHANGED)
        if comparison.total:
            raise LedgerOfAnotherInput(
                ledger.label,
                recorded=ledger.known.binding.input_hash,
                given=binding.input_hash,
                differences=comparison.first,
                total=comparison.total,
            )
        has_changed = bool(comparison.corrected + comparison.cancelled)
        await edits.rebind(binding, doubts=comparison.reading.doubts, has_changed=has_changed)
        return comparison

    return await edit(ledger, work, changes=changes)
