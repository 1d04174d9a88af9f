"""Reads the service's list once: updates the ledger from it, and compares the two. Sends no payout."""

from __future__ import annotations

from collections.abc import Callable

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
    retried = list[ListedRow]()
    async for page in pages(service):
        listed, past = await reading.take(page), await others.past(page)
        later = reading.mirror.later.shown
        auditor.take_past(past)
        known = {each.row.reference for each in listed} | {payout.reference for _, payout in past}
        known = known.union(*later.values())
        auditor.take_unknown(payout for payout in page if payout.reference not in known)
        auditor.take(each for each in listed if each.row.number not in later)
        retried += (each for each in listed if each.row.number in later)
        on_commit()
    findings = await reading.adopt()
    if reading.adopted:
        on_commit()
    auditor.take(each for each in retried if each.row.number not in reading.adopted)
    auditor.take(ListedRow(row, row, payout) for row, payout in reading.adopted.values())
    for finding in findings:
        auditor.note(finding)
    left = reading.mirror.later.shown.keys() - reading.adopted.keys()
    for number, row in (await ledger.numbered(left)).items():
        auditor.take_later(row, reading.mirror.later.shown[number].values())
    audit = await auditor.result(reading.mirror.turns)
    if auditor.extra != ledger.header.extra:
        await ledger.note_extra(auditor.extra)
        on_commit()
    check = await ledger.check()
    await ledger.refresh()
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
