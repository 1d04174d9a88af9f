"""A batch's access to the service through the client: one send of a row, pages of the list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

from ..._attrs import evolver
from ..._request.pages import PAYOUTS, ListPosition
from ..._runtime import Runtime
from ...arguments import PayoutPreparation
from ...client import AsyncPayments
from ...errors import ConfigurationError, GuardRefused, LimitStoreUnavailable, PaymentsError
from ...models import Page, Payout
from ...params import Instrument, PreparedRequest
from .._protocol.answers import Posted, failed, succeeded
from .._protocol.identifiers import body_at, body_hash, identity_of
from .._protocol.payout_status import storable
from .._protocol.records import Account, Binding, LedgerRow

if TYPE_CHECKING:
    from ..._guard.key_guard import KeyGuard

_PATTERN: Final[PayoutPreparation] = {
    "amount": 1,
    "currency": "XOF",
    "method": "pattern",
    "instrument": Instrument.phone("+10000000000", "BJ"),
}
"""A payout that is never sent: its prepared request is the pattern for each row's, all but body and key."""
_evolved: Final = evolver(PreparedRequest)


class KeyReplaced(Exception):
    """The client has another key than the one that the batch was admitted with."""


class Service:
    def __init__(self, client: AsyncPayments) -> None:
        self._client = client.with_options(on_limit="wait")
        self._internal = self._client._internal
        self._internal.fail_closed()
        self._list = self._internal.reader(PAYOUTS)
        self.runtime: Runtime = self._internal.runtime  # the client's time and chance
        self._pattern: PreparedRequest | None = None
        self.listed: int = 0  # payouts that were read from the list

    @property
    def account(self) -> Account:
        key = self._internal.key()
        return Account(key.environment, self._internal.base_url, key.fingerprint)

    @property
    def guard(self) -> KeyGuard | None:
        return self._internal.guard

    @property
    def guard_digest(self) -> str:
        """The digest of the client's guards; "" without any."""
        return self._internal.guard_digest

    def clock(self) -> float:
        """Seconds on a clock that goes on while the process or the machine sleeps."""
        seconds = self.runtime.boottime()
        return self.runtime.monotonic() if seconds is None else seconds

    def bind(self) -> None:
        """Bind the sends from now on to the client's present API key."""
        self._pattern = self._client.payouts.prepare(**_PATTERN)

    async def send(
        self, row: LedgerRow, binding: Binding, seconds: float, may_send: Callable[[], bool]
    ) -> Posted:
        """Send a row's bytes once, within `seconds`, and only if `may_send` allows it at the very last.

        Raises KeyReplaced, ConfigurationError, LimitStoreUnavailable, GuardRefused.
        """
        options = {"max_retries": 0, "deadline": seconds}
        try:
            prepared = self._prepared(row, binding)
            payout = await self._internal.send(prepared, options, priority="bulk", may_send=may_send)
        except (ConfigurationError, LimitStoreUnavailable, GuardRefused):
            raise
        except PaymentsError as error:
            return failed(error, row.reference)
        return succeeded(payout)

    def _prepared(self, row: LedgerRow, binding: Binding) -> PreparedRequest:
        pattern, key, base_url = self._pattern, self._internal.key(), self._internal.base_url
        here = (base_url, key.environment, key.fingerprint)
        if pattern is None or here != (pattern.base_url, pattern.environment, pattern.key_fingerprint):
            raise KeyReplaced("the API key was replaced during the run; run again, to have it checked")
        body = body_at(row, binding)
        return _evolved(
            pattern,
            body=body,
            idempotency_key=identity_of(row, binding).idempotency_key(body_hash(body)),
            reference=row.reference,
            created_at=self.runtime.now(),
        )

    async def page(self, cursor: str | None, filters: Mapping[str, str | date]) -> Page[Payout]:
        """Read one page of the list, newest first. Raises PaymentsError."""
        page = await self._list.page(filters, cursor)
        self.listed += len(page.items)
        return page


class PayoutList(ListPosition):
    """The list from the newest payout to the oldest, from any place in it."""

    def __init__(self, service: Service, since: float | None = None, cursor: str | None = None) -> None:
        """`since`: the service's time from which on payouts are wanted, in seconds since 1970."""
        super().__init__("payouts.list", cursor)
        self._service = service
        self._filters = {} if since is None else {"created_on_or_after": day_of(since)}

    async def page(self) -> Sequence[Payout]:
        """Read the next page's payouts. Raises PaymentsError, also for a list whose end is not shown."""
        self.check()
        page = await self._service.page(self.cursor, self._filters)
        if page.unread:  # once more: of many pages one is spoilt on its way, and then no row is proven absent
            page = await self._service.page(self.cursor, self._filters)
        self.advance(page)
        return [*map(storable, page.items)]


def day_of(seconds: float) -> date:
    """Convert seconds since 1970 to the day, in UTC."""
    return datetime.fromtimestamp(max(seconds, 0.0), UTC).date()
