"""The certificate: what became of a batch, by the ledger and by the service's own list."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import attrs

from ...models._masking import clean
from .._protocol.outcomes import OPEN, as_text, sums_text
from .._protocol.records import CheckReport
from .._report import BatchReport
from .audit import Audit

_PLACE: Final = ("environment", "base_url", "key_fingerprint", "input_hash", "at", "looked_at")


@attrs.frozen
class Certificate:
    """The state of a batch, by the ledger and by the service's own list."""

    report: BatchReport
    environment: str
    """`live` or `sandbox`."""
    base_url: str
    key_fingerprint: str
    """A fingerprint that distinguishes API keys without revealing them."""
    input_hash: str
    at: float
    """When it was made, in seconds since 1970."""
    looked_at: float | None
    """When the reading of the list began, by the service's clock, in seconds since 1970; None if unknown."""
    check: CheckReport
    """The check of the ledger itself; its head covers all that was ever recorded of rows."""
    audit: Audit
    """The comparison of the ledger with the service's list."""
    is_unproven: bool = False
    """True if commits were lost, and no recovery has proven yet which: it says less than an earlier one."""

    guard: str = ""
    """The digest of the guard that the batch was run under last; "" for none."""

    @property
    def agrees(self) -> bool:
        """True if the ledger is undamaged, and the list agrees with it in every row.

        Not when an amount or a currency of a row was not compared: see `audit.fields`.
        """
        return not (self.check.findings or self.audit.findings)

    @property
    def is_clean(self) -> bool:
        """True if it agrees, and the batch is complete and adds up."""
        return not self.findings

    @property
    def is_settled(self) -> bool:
        """True if it is clean, and every payout is final."""
        return self.is_clean and not self.report.counts["not_final"]

    @property
    def findings(self) -> tuple[str, ...]:
        """All that is wrong: with the batch, in the ledger's check and in the list's audit."""
        found = (*shortcomings(self.report), *self.check.findings, *self.audit.findings)
        return tuple(map(clean, found))  # these may contain the service's own texts

    def to_json(self) -> str:
        """Encode the certificate as JSON text, amounts as text. It holds no account data."""
        report = self.report
        facts: dict[str, Any] = {
            "version": 1,
            "batch_id": report.batch_id,
            **{name: getattr(self, name) for name in _PLACE},
            "guard": self.guard or None,
            "agrees": self.agrees,
            "clean": self.is_clean,
            "settled": self.is_settled,
            "findings": list(self.findings),
            "rows": dict(report.counts),
            "sums": sums_text(report.sums),
            "ledger": attrs.asdict(self.check),
            "list": {
                **attrs.asdict(self.audit),
                "rounded": {currency: as_text(amount) for currency, amount in self.audit.rounded.items()},
            },
        }
        return json.dumps(facts, indent=2)


def shortcomings(report: BatchReport) -> Iterator[str]:
    """Find what a batch lacks, by its own counts and sums."""
    if not report.complete:
        open_rows = {outcome.replace("_", " "): report.counts[outcome] for outcome in OPEN}
        left = ", ".join(f"{rows:,} {words}" for words, rows in open_rows.items() if rows)
        yield f"the batch is not complete: of {report.rows:,} rows, {left}"
    if not report.balanced:
        yield "the batch does not add up: its rows or amounts by state are not those that were imported"
