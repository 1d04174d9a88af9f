"""The keys of a ledger's rows by the references of their payouts, for the pages of a sandbox."""

from __future__ import annotations

from contextlib import suppress

import attrs

from ..._runtime import SYSTEM
from .._ledger import views
from .._ledger.database import DatabaseAddress
from .._ledger.ledger import Ledger
from .._protocol.identifiers import parted
from .._texts.ledger_address import LedgerAddress
from ..errors import LedgerMissing


@attrs.define
class RowKeys:
    """The table of a ledger, as of its last reading. A key is often a name: no repr shows it."""

    _ledger: LedgerAddress
    _keys: dict[str, str] = attrs.field(factory=dict, repr=False)  # {reference without its generation: key}
    _mark: views.RowsMark | None = attrs.field(default=None, repr=False)

    def of(self, reference: str) -> str | None:
        """The key of the row that a payout's reference belongs to; None for another payout."""
        return self._keys.get(parted(reference)[0])

    async def read(self) -> None:
        """Read the rows of all its batches, if they are others by now. Raises LedgerError and BulkError.

        A ledger that is not there has no rows yet.
        """
        address = DatabaseAddress(self._ledger.text, self._ledger.is_insecure)
        with suppress(LedgerMissing):
            ledger = await Ledger.open(address, SYSTEM, None, create=False)
            try:
                mark = await views.rows_mark(ledger)
                if mark != self._mark:
                    self._keys, self._mark = await views.row_keys(ledger), mark
            finally:
                await ledger.close()
