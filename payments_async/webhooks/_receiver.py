"""Shared base of the awaited and the blocking receiver: URLs, admission, one coalescer for each event loop.

No delivery is answered 200 before the handler has taken the record's state. So each state is handled at least
once, as long as the service tries again after a 500 or 503.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from .._request.auth import hidden
from .._runtime import Runtime
from ..errors import ConfigurationError, InvalidRequest
from . import _tokens
from ._coalescing import DeliveryCoalescer, ReceivedDelivery, Result
from ._deduplication import SeenStore
from ._lookup import Lookup
from ._payload import read_hint
from ._tokens import SealedSecrets, Signer, TokenClaims
from ._values import REFUSED, Headers, Kind

if TYPE_CHECKING:
    from ..client import AsyncPayments

LONGEST_URL: Final = 2048
"""Characters of a `webhook_url` (Endpoints)."""
PAYOUT_PAGES: Final = 5
"""Pages read for a payout before it is read by `sync`."""
_YEARS: Final = 10 * 365 * 86_400
_METHODS: Final = frozenset({"POST", "PUT", "PATCH"})
_LOOPBACK: Final = re.compile(r"localhost|127(?:\.\d{1,3}){3}|::1")


class DeliveryReceiver:
    """Makes URLs and admits deliveries to them; calls no handler."""

    def __init__(
        self, client: AsyncPayments, secrets: SealedSecrets, base_url: str, store: SeenStore, max_pages: int
    ) -> None:
        self._client = client
        self.runtime: Runtime = client._internal.runtime
        """The client's source of time and randomness."""
        self._signer = Signer(secrets)
        self.base_url = _checked(base_url)
        self._store = store
        if type(max_pages) is not int or max_pages < 1:
            raise ConfigurationError("max_pages must be a whole number, 1 or more")
        self._max_pages = max_pages
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, DeliveryCoalescer] = WeakKeyDictionary()
        client._internal.add_url_maker(self)

    def url(self, kind: Kind, reference: str, expires_in: float) -> str:
        """Make a URL. Raises InvalidRequest."""
        operation = f"webhooks.url_for_{kind}"
        if faults := _faults(reference, expires_in):
            raise InvalidRequest(faults, operation=operation)
        claims = TokenClaims.made_on(kind, reference, self.runtime.now().timestamp(), expires_in)
        url = f"{self.base_url}/{_tokens.make(self._signer, claims)}"
        if len(url) > LONGEST_URL:
            problem = (
                f"makes a URL of {len(url)} characters, more than {LONGEST_URL}: shorten it, or base_url"
            )
            raise InvalidRequest({"reference": [problem]}, operation=operation)
        return url

    def subject(self, url: str) -> tuple[Kind, str] | None:
        """The kind and reference of a URL of ours, expired or not; None for any other."""
        base_url, _, token = url.rpartition("/")
        claims = _tokens.read(self._signer, token, 0.0) if base_url == self.base_url else None
        return None if claims is None else (claims.kind, claims.reference)

    def admit(self, method: str, path: str, kinds: Collection[Kind]) -> ReceivedDelivery | None:
        """Admit a delivery whose path ends in a valid token of ours; costs one or two HMACs."""
        if method.upper() not in _METHODS or len(path) > LONGEST_URL:
            return None
        token, now = path.rpartition("/")[2], self.runtime.now()
        claims = _tokens.read(self._signer, token, now.timestamp())
        return None if claims is None or claims.kind not in kinds else ReceivedDelivery(token, claims, now)

    async def take(self, delivery: ReceivedDelivery, headers: Headers, body: bytes) -> Result:
        """Process an admitted delivery; returns the response, or the record for the handler."""
        hint = read_hint(delivery.claims.kind, headers, body)
        if hint.is_foreign:
            return REFUSED
        return await self._coalescer().join(delivery, hint)

    def _coalescer(self) -> DeliveryCoalescer:
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            client, runtime, most = self._client, self.runtime, self._max_pages
            payouts = Lookup(client, payouts=True, max_pages=min(most, PAYOUT_PAGES))
            payments = Lookup(client, payouts=False, max_pages=most)
            self._loops[loop] = DeliveryCoalescer(runtime, payouts, payments, self._store)
        return self._loops[loop]


def _checked(base_url: object) -> str:
    """Check the address below which URLs are made. Raises ConfigurationError."""
    base_url = hidden(base_url)
    if problem := _problem(base_url):
        raise ConfigurationError(f"base_url must be {problem}")
    return str(base_url).rstrip("/")


def _problem(base_url: object) -> str | None:
    """The fault of a base URL. A function of its own: the parts of an address may hold a password."""
    if not isinstance(base_url, str) or not re.fullmatch(r"[!-~]+", base_url):
        return "plain ASCII text without white space: https://…/hooks"
    try:
        parts = urlsplit(base_url)
        parts.port  # noqa: B018 - reading it checks it
    except ValueError:
        parts = urlsplit("")
    if not parts.hostname or "@" in base_url or "?" in base_url or "#" in base_url or "\\" in base_url:
        return "an address such as https://shop.example/hooks, no more"
    if parts.scheme != "https" and not (parts.scheme == "http" and _LOOPBACK.fullmatch(parts.hostname)):
        return "https (plain http is for this machine): tokens are in it"
    return None


def _faults(reference: object, expires_in: object) -> dict[str, list[str]]:
    faults = {}
    longest = _tokens.LONGEST_REFERENCE
    if not isinstance(reference, str) or not 1 <= len(reference) <= longest:
        faults["reference"] = [f"must be text of 1 to {longest} characters"]
    elif not reference.isprintable():
        faults["reference"] = ["must be printable text"]
    is_number = isinstance(expires_in, int | float) and not isinstance(expires_in, bool)
    if not is_number or not 1 <= float(expires_in) <= _YEARS:  # type: ignore[arg-type] # it is a number
        faults["expires_in"] = ["must be a number of seconds, 1 to ten years"]
    return faults
