"""What may be said of a batch at its end, with all it rests on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import attrs

from ..._masking import clean
from .._audit import Audit, Auditor
from .._report import BatchReport, report_of
from ..engine.service import Service
from ..ledger.ledger import Ledger
from ..protocol.records import CheckReport
from ..protocol.stop_rules import OPEN
from ..protocol.totals import as_text


@attrs.frozen
class Certificate:
    """The state of a batch, seen in the ledger and in the service's own list."""

    report: BatchReport
    environment: str
    """`live` or `sandbox`."""
    base_url: str
    key_fingerprint: str
    """Tells keys apart and gives none away."""
    input_hash: str
    at: float
    """Seconds since 1970."""
    check: CheckReport
    """The ledger against itself; its head stands for all that was ever recorded."""
    audit: Audit
    """The ledger against the service's list."""

    @property
    def is_clean(self) -> bool:
        """Whether the batch is complete, adds up, and the list agrees with the ledger in every row.

        Not when an amount or a currency of a row was not compared: see `audit.fields`.
        """
        return not self.findings

    @property
    def findings(self) -> tuple[str, ...]:
        """All that speaks against it, in words: of the batch, the ledger's check and the list's audit."""
        found = (*shortcomings(self.report), *self.check.findings, *self.audit.findings)
        return tuple(map(clean, found))  # they name payouts as the service does

    def to_json(self) -> str:
        """All of it as JSON text; amounts are text. It holds no account data."""
        report = self.report
        said: dict[str, Any] = {
            "version": 1,
            "batch_id": report.batch_id,
            "environment": self.environment,
            "base_url": self.base_url,
            "key_fingerprint": self.key_fingerprint,
            "input_hash": self.input_hash,
            "at": self.at,
            "clean": self.is_clean,
            "findings": list(self.findings),
            "rows": report.rows,
            "counts": dict(report.counts),
            "totals": {currency: as_text(amount) for currency, amount in report.totals.items()},
            "sums": {
                currency: {state: as_text(amount) for state, amount in sums.items()}
                for currency, sums in report.sums.items()
            },
            "finals": dict(report.finals),
            "failed": report.failed,
            "ledger": attrs.asdict(self.check),
            "list": attrs.asdict(self.audit),
        }
        return json.dumps(said, indent=2)


def shortcomings(report: BatchReport) -> Iterator[str]:
    """What a batch lacks by its own counts and sums, in words."""
    if not report.complete:
        left = ", ".join(f"{state} {report.counts[state]}" for state in sorted(OPEN) if report.counts[state])
        yield f"the batch is not complete: {left} of {report.rows} rows"
    if not report.balanced:
        yield "the batch does not add up: its rows or amounts by state are not those that were imported"


async def certify(ledger: Ledger, service: Service) -> Certificate:
    """Check the ledger, walk the list. Raises PaymentsError when the list cannot be read to its end."""
    check = await ledger.check()
    audit = await Auditor(ledger, service).audit()
    header = ledger.header
    binding = header.binding
    return Certificate(
        report_of(header, ledger.totals, ends=await ledger.ends()),
        binding.environment,
        binding.base_url,
        binding.key_fingerprint,
        binding.input_hash,
        service.moment().wall,
        check.with_finding(ledger.gone),  # while the list was read, perhaps
        audit,
    )
