"""Reads the service's list once: updates the ledger from it, and compares the two. Sends no payout."""

from __future__ import annotations

from collections.abc import Callable

from .._report import report_of
from ..engine.payout_list import pages
from ..engine.reading import ListReading
from ..engine.service import Service
from ..ledger.ledger import Ledger
from .audit import Auditor
from .certificate import Certificate


async def reconcile(ledger: Ledger, service: Service, on_commit: Callable[[], object] = bool) -> Certificate:
    """Record what the list shows, compare the ledger with it row by row, and check the ledger.

    Raises PaymentsError when the list cannot be read whole, to its end; all facts read until then are
    recorded.
    """
    auditor = Auditor(ledger)
    reading = ListReading(ledger, service, note=auditor.note)
    async for page in pages(service):
        found = await reading.take(page)
        auditor.take(each for each in found if each.row.number not in reading.several)
        on_commit()
    auditor.take(await reading.end())
    audit = await auditor.result(reading.turns)
    await ledger.refresh()
    on_commit()
    check = await ledger.check()
    binding = ledger.header.binding
    return Certificate(
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
    )
