"""The engine's access to the service through the client: clocks, one post of a row, pages of the list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from ..._attrs import evolver, maker
from ..._rate_limit.limits import LimitSnapshot
from ..._request.pages import PAYOUTS
from ..._runtime import Runtime
from ...arguments import PayoutPreparation
from ...client import AsyncPayments
from ...errors import ConfigurationError, GuardRefused, LimitStoreUnavailable, PaymentsError
from ...models import Page, Payout
from ...params import Instrument, PreparedRequest
from .._protocol.clocks import Timestamps
from .._protocol.records import LedgerRow
from .._protocol.responses import Posted, failed, headers_of, succeeded
from .._protocol.stop_rules import Account

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
_timestamps: Final = maker(Timestamps)


class Service:
    """One client's view of the service, for one run of the program."""

    def __init__(self, client: AsyncPayments, wall: Callable[[], float] | None = None) -> None:
        """`wall`: seconds since 1970, when another clock than the client's decides, as a database's does."""
        self._client = client.with_options(on_limit="wait")
        self._internal = self._client._internal
        self._internal.fail_closed()
        self._list = self._internal.reader(PAYOUTS)
        self.runtime: Runtime = self._internal.runtime
        """The client's time and chance."""
        self.now: Callable[[], float] = wall or (lambda: self.runtime.now().timestamp())
        """The clock that decides, in seconds since 1970."""
        self._session = self.runtime.token(8).hex()
        self._began = self.runtime.monotonic()
        self._heard: tuple[float, float] | None = None
        self._pattern: PreparedRequest | None = None
        self.listed: int = 0
        """Payouts that were read from the list."""
        self.started: Timestamps = self.moment()
        """The time when this session began: all that earlier ones recorded was past by then."""

    @property
    def place(self) -> Account:
        """The account that this client pays from."""
        key = self._internal.key()
        return Account(key.environment, self._internal.base_url, key.fingerprint)

    @property
    def guard(self) -> KeyGuard | None:
        """The guard of the client's key; None when it has none."""
        return self._internal.guard

    def moment(self) -> Timestamps:
        """Read the time on every clock; the service's is its last `Date`, advanced by our own clock."""
        elapsed = self.runtime.monotonic() - self._began
        server = None if self._heard is None else self._heard[0] + elapsed - self._heard[1]
        return _timestamps(self.now(), elapsed, self._session, server)

    def follow(self, wall: Callable[[], float]) -> None:
        """Let another clock decide from now on; the session begins anew by it."""
        self.now = wall
        self.started = self.moment()

    def limit(self) -> LimitSnapshot:
        """The limit of writes, as it is now."""
        return self._client.limits_snapshot()["write"]

    async def post(
        self, row: LedgerRow, seconds: float, may_send: Callable[[], bool] | None = None
    ) -> Posted:
        """Send a row's bytes once. Nothing is sent after `seconds`, or once `may_send` says no.

        Raises ConfigurationError, LimitStoreUnavailable, GuardRefused.
        """
        options = {"max_retries": 0, "deadline": seconds}
        try:
            prepared = self._prepared(row)
            payout = await self._internal.send(prepared, options, priority="bulk", may_send=may_send)
        except (ConfigurationError, LimitStoreUnavailable, GuardRefused):
            raise
        except PaymentsError as error:
            self._update_clock(headers_of(error))
            return failed(error, row.reference)
        self._update_clock(payout.response.headers)
        return succeeded(payout)

    def _prepared(self, row: LedgerRow) -> PreparedRequest:
        """Make the row's request."""
        pattern, key, base_url = self._pattern, self._internal.key(), self._internal.base_url
        here = (base_url, key.environment, key.fingerprint)
        if pattern is None or here != (pattern.base_url, pattern.environment, pattern.key_fingerprint):
            raise ConfigurationError("the API key was replaced during the run; run again, to have it checked")
        return _evolved(
            pattern,
            body=row.body,
            idempotency_key=row.idempotency_key,
            reference=row.reference,
            created_at=self.runtime.now(),
        )

    async def check_access(self) -> None:
        """Contact the service and learn its time. Raises PaymentsError when it cannot be used.

        Binds this run's posts to the client's present API key.
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
        """Read one page of the list, newest first; `deadline` in seconds. Raises PaymentsError."""
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
    """Parse a `Date` header to seconds since 1970; None when there is none, or it cannot be read."""
    try:
        said = parsedate_to_datetime(text) if text else None
        return None if said is None else (said if said.tzinfo else said.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def day_of(seconds: float) -> date:
    """Convert seconds since 1970 to the day, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).date()
