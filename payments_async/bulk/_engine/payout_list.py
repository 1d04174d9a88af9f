"""Scans the service's list, page by page, and tells whether it was read whole.

A list with unreadable items, or without its end, proves no absence. The scan counts such items,
and code that needs the whole list raises `SearchIncomplete` or reports it in its result.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from datetime import date

from ..._request.pages import ListPosition
from ...errors import PaymentsError, SearchIncomplete
from ...models import Payout
from .._protocol.clocks import Timestamps, scan_start
from .._protocol.payout_status import storable
from .._protocol.responses import FATAL
from .service import Service, day_of

Filters = Mapping[str, str | date]
"""Arguments of `payouts.list`."""


def listed_since(server: float | None) -> Filters:
    """Make filters for the part of the list that surely shows what was requested since a time.

    `server`: that time by the service's clock, in seconds since 1970; None, if unknown, for all of the list.
    """
    start = scan_start(Timestamps(0.0, 0.0, "", server))
    return {} if start is None else {"created_on_or_after": day_of(start)}


class PayoutList(ListPosition):
    """The list from the newest payout to the oldest. A page that failed can be requested again."""

    def __init__(self, service: Service, filters: Filters | None = None) -> None:
        super().__init__("payouts.list")
        self._service, self._filters = service, filters

    async def page(self, deadline: float | None = None) -> Sequence[Payout]:
        """Read the next page's payouts, within `deadline` seconds.

        Raises PaymentsError, SearchIncomplete among them for a list whose end is not shown.
        """
        self.check()
        page = await self._service.page(self.cursor, filters=self._filters, deadline=deadline)
        self.advance(page)
        return [*map(storable, page.items)]


async def pages(service: Service, filters: Filters | None = None) -> AsyncIterator[Sequence[Payout]]:
    """Read the whole list, or the part of it that the filters choose, a page at a time.

    Raises PaymentsError when it cannot be read to its end, or shows a payout that cannot be read: it could be
    any that the list seems to lack.
    """
    walk = PayoutList(service, filters)
    while not walk.is_over:
        yield await walk.page()
    if walk.unread:
        told = f"{walk.unread} of the list's payouts could not be read"
        raise SearchIncomplete(told, pages=walk.pages, cursor=None)


async def scan(
    service: Service, filters: Filters | None = None
) -> AsyncGenerator[tuple[Sequence[Payout], bool], None]:
    """Read the list's pages. Yields each with True if the list is now complete: read whole, to its end.

    Raises one of `FATAL`; any other failure stops the scan early.
    """
    walk = PayoutList(service, filters)
    while not walk.is_over:
        try:
            page = await walk.page()
        except FATAL:
            raise
        except PaymentsError:
            return
        yield page, walk.is_over and not walk.unread


async def search(service: Service, references: Collection[str]) -> dict[str, Payout]:
    """Find payouts on the list: {reference: payout}. Stops reading once all are found.

    Raises PaymentsError when some are not found and the list could not be read whole.
    """
    found = dict[str, Payout]()
    async for page in pages(service):
        found.update((p.reference, p) for p in page if p.reference is not None and p.reference in references)
        if len(found) == len(references):
            break
    return found
