"""Reads the service's list once: updates the ledger from it, and compares the two. Sends no payout."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .._report import report_of
from ..engine.mirror import ListedRow, OtherGenerations
from ..engine.payout_list import pages
from ..engine.service import Service
from ..ledger.ledger import Ledger
from ..protocol.payout_status import settled
from .audit import Auditor
from .certificate import Certificate
from .reading import ListReading


async def reconcile(ledger: Ledger, service: Service, on_commit: Callable[[], object] = bool) -> Certificate:
    """Record what the list shows, compare the ledger with it row by row, and check the ledger.

    Open rows are settled, statuses copied, and rows get the later payouts that the list shows and the ledger
    does not know. Raises PaymentsError when the list cannot be read whole, to its end; all facts read until
    then are recorded.
    """
    began = service.moment()
    reading, auditor, others = ListReading(ledger, settled), Auditor(ledger), OtherGenerations(ledger)
    later, retried = reading.mirror.later, list[ListedRow]()
    async for page in pages(service):
        listed, past = await reading.take(page), await others.past(page)
        auditor.take(each for each in listed if each.row.number not in later.shown)
        retried += (each for each in listed if each.row.number in later.shown)
        auditor.take_past(past)
        known = {each.row.reference for each in listed} | {payout.reference for _, payout in past}
        unmatched = (each for each in page if each.reference not in known)
        auditor.take_unknown(each for each in unmatched if each.reference not in later.references)
        on_commit()
    await _compare_retried(ledger, reading, auditor, retried)
    audit = await auditor.result(reading.mirror.turns)
    await ledger.refresh()
    if auditor.extra != ledger.header.extra:
        await ledger.note_extra(auditor.extra)
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
        began.server,
        check.with_finding(ledger.unproven),
        audit,
    )


async def _compare_retried(
    ledger: Ledger, reading: ListReading, auditor: Auditor, listed: Iterable[ListedRow]
) -> None:
    """Record the later payouts of rows, then compare these rows: `listed`, by their references until now."""
    findings, shown = await reading.adopt(), reading.mirror.later.shown
    auditor.take(each for each in listed if each.row.number not in reading.adopted)
    auditor.take(ListedRow(row, row, payout) for row, payout in reading.adopted.values())
    for finding in findings:
        auditor.note(finding)
    for number, row in (await ledger.numbered(shown.keys() - reading.adopted.keys())).items():
        auditor.take_later(row, shown[number].values())
