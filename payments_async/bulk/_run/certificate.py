"""Makes the certificate of a batch: the service's list is read, and the ledger compared with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...errors import SearchIncomplete
from .._ledger import figures
from .._ledger.ledger import Ledger
from .._ledger.readings import ReadingLost
from ..report import Certificate, report_of
from .listing import read_list
from .service import Service

_WAIT: Final = 1.0  # seconds until it is asked again whether another process still reads


async def certify(
    ledger: Ledger, service: Service, on_page: Callable[[], object] | None = None
) -> Certificate:
    """Read the service's list, record what it shows, and compare the ledger with it row by row.

    The whole list is read once before the first certificate in which a row is anything but created by the
    answer to this ledger's own request: an earlier ledger, since lost, may have paid it long ago. Of an
    outbox the rows of the key's environment count that were decided before the reading. Waits while another
    process reads. Raises PaymentsError when the list cannot be read to its end.
    """
    while True:
        await ledger.refresh()
        all_of_it = not ledger.known.read_all and not await figures.only_own(ledger)
        try:
            store = await read_list(ledger, service, all_of_it=all_of_it, on_page=on_page)
            break
        except ReadingLost:
            await service.runtime.sleep(_WAIT)
    if unread := store.auditor.unread:  # each could be any that the list seems to lack
        told = f"{unread} of the list's payouts could not be read"
        raise SearchIncomplete(told, pages=0, cursor=None)
    known, account = ledger.known, service.account
    environment, before = (account.environment, store.reading.began) if known.is_outbox else ("", None)
    found = await figures.figures(ledger, environment, before)
    certificate = Certificate(
        report_of(known, found),
        account.environment,
        account.base_url,
        account.key,
        known.binding.input_hash,
        found.at,
        store.reading.began,
        store.reading.since,
        store.auditor.result(),
        known.guard,
    )
    await ledger.change(certificate=certificate.to_json())
    return certificate
