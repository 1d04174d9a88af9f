"""Reads the service's list: updates the ledger from it, and compares the two. Sends no payout."""

from __future__ import annotations

from collections.abc import Callable

from .._engine.payout_list import Filters, listed_since, pages
from .._engine.reading import ListReading
from .._engine.service import Service
from .._ledger.ledger import Ledger
from .._protocol.outcomes import counts_of
from .._report import report_of
from .audit import Audit, Auditor
from .certificate import Certificate


async def reconcile(ledger: Ledger, service: Service, on_commit: Callable[[], object] = bool) -> Certificate:
    """Record what the list shows, compare the ledger with it row by row, and check the ledger.

    Reads the list from the day before the first send, and all of it when that part does not show every row.
    Raises PaymentsError when the list cannot be read whole, to its end; all facts read until then are
    recorded.
    """
    turns = list[str]()
    filters = await _filters(ledger)
    reading, auditor, audit = await _read(ledger, service, filters, turns, on_commit)
    if filters and auditor.unseen:
        reading, _, audit = await _read(ledger, service, {}, turns, on_commit)
    await ledger.refresh()
    on_commit()
    check = await ledger.check()
    binding = ledger.header.binding
    certificate = Certificate(
        report_of(ledger.header, ledger.totals),
        binding.environment,
        binding.base_url,
        binding.key_fingerprint,
        binding.input_hash,
        service.moment().wall,
        reading.began.server,
        check.with_finding(ledger.unproven),
        audit,
        is_unproven=ledger.unproven is not None,
        guard=ledger.header.guard,
    )
    await ledger.keep_certificate(certificate.to_json())
    return certificate


async def _filters(ledger: Ledger) -> Filters:
    """Make filters for a part of the list that shows every payout of a batch, unless its ledger was lost.

    Only of one whose rows are all created: an earlier ledger may have paid any other long ago.
    """
    counts = counts_of(ledger.totals, ledger.header.extra)
    others = ("not_started", "cancelled", "rejected", "conflict", "moved_in_conflict", "in_excess")
    return {} if any(counts[word] for word in others) else listed_since(await ledger.first_send())


async def _read(
    ledger: Ledger, service: Service, filters: Filters, turns: list[str], on_commit: Callable[[], object]
) -> tuple[ListReading, Auditor, Audit]:
    """Read the list, or a part of it, to its end. Adds to `turns` what has turned."""
    auditor = Auditor(ledger)
    reading = ListReading(ledger, service, note=auditor.note)
    async for page in pages(service, filters):
        found = await reading.take(page)
        auditor.take(each for each in found if each.row.number not in reading.several)
        on_commit()
    auditor.take(await reading.end())
    turns += reading.turns
    return reading, auditor, await auditor.result(turns)
