"""A walk of the service's list, page by page, that a failure does not end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import date
from typing import Final

from ..errors import SearchIncomplete
from ..models import Payout
from ._service import Service

_PAGE: Final = 100


class Walk:
    """From the newest payout to the oldest. A page that could not be read can be asked for again."""

    def __init__(self, service: Service, filters: Mapping[str, str | date] | None = None) -> None:
        self._service, self._filters = service, filters
        self._cursor: str | None = None
        self._gone: set[str | None] = set()
        self.pages = 0
        """Pages read so far."""
        self.is_over = False

    async def page(self, deadline: float | None = None) -> Sequence[Payout]:
        """The next page's payouts, within so many seconds.

        Raises PaymentsError, SearchIncomplete among them for a list that does not come to an end.
        """
        page = await self._service.page(self._cursor, size=_PAGE, filters=self._filters, deadline=deadline)
        self.pages += 1
        self._gone.add(self._cursor)
        self._cursor = page.next_cursor
        self.is_over = self._cursor is None and not page.pagination.has_more_pages
        if not self.is_over and self._cursor in self._gone:
            told = "the list does not come to an end: a cursor repeats"
            raise SearchIncomplete(told, pages=self.pages, cursor=self._cursor)
        return page.items


async def pages(service: Service) -> AsyncIterator[Sequence[Payout]]:
    """The whole list, a page at a time. Raises PaymentsError when it cannot be read to its end."""
    walk = Walk(service)
    while not walk.is_over:
        yield await walk.page()
