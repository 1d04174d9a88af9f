"""A shared limit in Redis or Valkey: one key for each limit, one script for a reservation."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import attrs
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError, ResponseError

from .._http.addresses import exposed_by, has_raw_signs, is_here, is_host
from ..errors import ConfigurationError
from .store import PATIENCE, BlockRequest, BlockStore, Reservation, StoreUnavailable

# Reserve. A new or lost row has nothing saved up. One whose permits arrive more than a minute from now is
# from before the clock was set back: none does so.
_RESERVE: Final = """
local wanted, pause, step, saved, ahead = unpack(ARGV)
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local lead = (redis.call('GET', KEYS[1]) or now + saved) - now
lead = math.max(lead <= 60 and lead or 0, pause)
local granted = math.max(math.min(math.floor((saved + ahead - lead) / step), wanted), 0)
local arrival = now + math.min(lead + granted * step, 60)
redis.call('SET', KEYS[1], string.format('%.17g', arrival), 'EX', 3600)
return {granted, string.format('%.17g', lead)}
"""


class RedisBlockStore(BlockStore):
    """Rows under `payments:limit:…`, which hold the moment at which all permits reserved have arrived."""

    def __init__(self, url: str, *, insecure_database: bool = False) -> None:
        """Take an address. Raises ConfigurationError when it cannot be used.

        `insecure_database`: allow another host without TLS that proves its name.
        """
        self._client: Any = None
        with suppress(ValueError):
            if not has_raw_signs(url, "/?#"):
                self._client = redis.asyncio.Redis.from_url(url, **_OPTIONS)
        at = {} if self._client is None else self._client.connection_pool.connection_kwargs
        host = at.get("host", "localhost")
        if self._client is None or not is_host(
            host
        ):  # raised here: the frames of the first error hold the address
            raise ConfigurationError(
                "the limit store's address cannot be read: write redis://user:password@host:port/0, with "
                "special characters percent-encoded"
            )
        super().__init__(f"the limit store redis://{host}:{at.get('port', 6379)}")
        exposure = _exposure(self._client.connection_pool)
        if exposure is not None and not insecure_database and not is_here(host):
            raise ConfigurationError(f"{self._place}: {exposure}")

    async def reserve(self, row: str, request: BlockRequest) -> Reservation:
        key = f"payments:limit:{row}"
        try:
            granted, lead = await self._client.eval(_RESERVE, 1, key, *attrs.astuple(request))
        except ResponseError as error:
            raise self._refusal(error, key) from None
        except AuthenticationError:
            raise ConfigurationError(f"{self._place} refuses the user or the password") from None
        except (RedisError, OSError) as error:
            raise self._unavailable(type(error).__name__) from None
        return Reservation.of(request, granted, float(lead))

    async def aclose(self) -> None:
        await self._client.aclose()

    def _refusal(self, error: ResponseError, key: str) -> Exception:
        """The error for an answer of the server, whose own words may show values and are left out."""
        text = str(error)
        if "WRONGTYPE" in text:
            return ConfigurationError(f"{self._place} has something else in the key {key!r}: delete it")
        if isinstance(error, NoPermissionError) or any(words in text for words in _FORBIDDEN):
            return ConfigurationError(
                f"{self._place} forbids what is needed: allow its user EVAL, and "
                "GET, SET and TIME on keys payments:limit:*"
            )
        return self._unavailable(text.partition(" ")[0])

    def _unavailable(self, reason: str) -> StoreUnavailable:
        return StoreUnavailable(f"{self._place} cannot be reached, or did not answer in time ({reason})")


def _exposure(pool: redis.asyncio.ConnectionPool) -> str | None:
    """Describe why others could read or change what is sent to another host; None when they cannot."""
    at = pool.connection_kwargs
    if not issubclass(pool.connection_class, redis.asyncio.SSLConnection):
        return exposed_by("it is not rediss://…")
    proves = at.get("ssl_cert_reqs", "required") == "required" and at.get("ssl_check_hostname", True)
    return None if proves else exposed_by("ssl_cert_reqs or ssl_check_hostname lets any server answer")


_FORBIDDEN: Final = ("unknown command", "ACL failure", "can't run this command")
_OPTIONS: Final[dict[str, Any]] = {
    "decode_responses": True,
    "protocol": 2,
    "socket_timeout": PATIENCE,
    "socket_connect_timeout": PATIENCE,
    "retry": Retry(NoBackoff(), 0),  # the store client tries again, with a new reservation
}
