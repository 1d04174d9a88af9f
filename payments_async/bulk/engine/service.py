"""The service as the engine meets it through the client: clocks, one post of a row, a search of the list."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final

from ..._request.pages import PAYOUTS
from ..._runtime import Runtime
from ...arguments import PayoutPreparation
from ...client import AsyncPayments
from ...errors import ConfigurationError, PaymentsError
from ...models import Page, Payout
from ...params import Instrument, PreparedRequest
from ..protocol.clocks import Timestamps
from ..protocol.records import LedgerRow
from ..protocol.responses import Posted, failed, headers_of, succeeded
from ..protocol.stop_rules import Account

_PATTERN: Final[PayoutPreparation] = {
    "amount": 1,
    "currency": "XOF",
    "method": "pattern",
    "instrument": Instrument.phone("+10000000000", "BJ"),
}
"""What is never sent: the request that is prepared of it lends all but its body and key to each row's."""


class Service:
    """One client's view of the service, for one run of the program."""

    def __init__(self, client: AsyncPayments) -> None:
        self._client = client.with_options(on_limit="wait")
        self._internal = self._client._internal
        self._list = self._internal.reader(PAYOUTS)
        self.runtime: Runtime = self._internal.runtime
        """The client's time and chance."""
        self._session = self.runtime.token(8).hex()
        self._began = self.runtime.monotonic()
        self._heard: tuple[float, float] | None = None
        self._pattern: PreparedRequest | None = None
        self.listed: int = 0
        """Payouts of the list that were read."""
        self.started: Timestamps = self.moment()
        """When this session began: whatever an earlier one recorded was past by then."""

    @property
    def place(self) -> Account:
        """Where this client pays."""
        key = self._internal.key()
        return Account(key.environment, self._internal.base_url, key.fingerprint)

    def moment(self) -> Timestamps:
        """Now, on every clock there is; the service's is its last `Date`, carried on with our own."""
        elapsed = self.runtime.monotonic() - self._began
        server = None if self._heard is None else self._heard[0] + elapsed - self._heard[1]
        return Timestamps(self.runtime.now().timestamp(), elapsed, self._session, server)

    async def post(self, row: LedgerRow, seconds: float) -> Posted:
        """Send a row's bytes once; nothing leaves after so many seconds. Raises ConfigurationError."""
        try:
            prepared = self._prepared(row)
            payout = await self._client.send(prepared, priority="bulk", max_retries=0, deadline=seconds)
        except ConfigurationError:
            raise
        except PaymentsError as error:
            self._update_clock(headers_of(error))
            return failed(error, row.reference)
        self._update_clock(payout.response.headers)
        return succeeded(payout)

    def _prepared(self, row: LedgerRow) -> PreparedRequest:
        """The row's request, written out: `evolve` costs three times as much."""
        pattern, key, base_url = self._pattern, self._internal.key(), self._internal.base_url
        here = (base_url, key.environment, key.fingerprint)
        if pattern is None or here != (pattern.base_url, pattern.environment, pattern.key_fingerprint):
            raise ConfigurationError("the API key was replaced during the run; run again, to have it checked")
        return PreparedRequest(
            *(pattern.operation, pattern.path, row.body, row.idempotency_key, self.runtime.now(), *here),
            row.reference,
            pattern.headers,
        )

    async def greet(self) -> None:
        """Reach the service and learn its time. Raises PaymentsError when it cannot be worked with.

        Posts of this run are bound to the key of now.
        """
        self._pattern = self._client.payouts.prepare(**_PATTERN)
        self._note(await self._client.payouts.list(page_size=1))

    async def page(
        self,
        cursor: str | None = None,
        *,
        filters: Mapping[str, str | date] | None = None,
        deadline: float | None = None,
    ) -> Page[Payout]:
        """One page of the list, newest first; `deadline` in seconds. Raises PaymentsError."""
        page = await self._list.page({**(filters or {}), "deadline": deadline}, cursor)
        self._note(page)
        self.listed += len(page.items)
        return page

    def _note(self, page: Page[Payout]) -> None:
        assert page.response is not None  # it came over the line
        self._update_clock(page.response.headers)

    def _update_clock(self, headers: Mapping[str, str]) -> None:
        said = _date(headers.get("date"))
        if said is not None:
            self._heard = (said, self.runtime.monotonic() - self._began)


@lru_cache(maxsize=8)  # many answers carry the same second
def _date(text: str | None) -> float | None:
    """Seconds since 1970 in a `Date` header; None when there is none that can be read."""
    try:
        said = parsedate_to_datetime(text) if text else None
        return None if said is None else (said if said.tzinfo else said.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def day_of(seconds: float) -> date:
    """The day, UTC, of a time in seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).date()
