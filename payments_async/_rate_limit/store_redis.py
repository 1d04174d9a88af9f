"""A shared limit in Redis or Valkey: one hash for each limit, one script for a reservation."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    NoPermissionError,
    RedisError,
    ResponseError,
)

from .._http.addresses import exposed_by, has_raw_signs, is_here, is_host
from ..errors import ConfigurationError
from .store import (
    PATIENCE,
    BlockRequest,
    BlockStore,
    LimitRow,
    Reservation,
    StoreUnavailable,
)

KEPT: Final = 7_200
"""Seconds for which an unused row is kept: longer than any closing."""
_NOW: Final = """
local row, time = KEYS[1], redis.call('TIME')
local now = time[1] + time[2] / 1000000
"""
_NUMBERS: Final = """
local function text(number) return string.format('%.17g', number) end
"""
# A new or lost row has nothing saved up.
_RESERVE: Final = f"""{_NOW} {_NUMBERS}
local wanted, charged, step, saved, ahead = unpack(ARGV)
local arrival, closed, probed = unpack(redis.call('HMGET', row, 'arrival', 'closed', 'probed'))
arrival, closed, probed = tonumber(arrival or now + saved), tonumber(closed or 0), tonumber(probed or 0)
local begins = arrival <= now + 60 and math.max(arrival, now) or now
local granted = 0
if math.max(closed, probed) <= now then
    local room = math.max(math.floor((now + saved + ahead - begins) / step), 0)
    granted = math.min(room, closed > 0 and 1 or tonumber(wanted))
end
if closed > 0 and granted > 0 then probed = now + 5 end
arrival = math.min(begins + (granted + charged) * step, now + 60)
redis.call('HSET', row, 'arrival', text(arrival), 'probed', text(probed))
redis.call('EXPIRE', row, {KEPT})
return {{text(now), text(granted), text(begins), text(closed), text(probed)}}
"""
_CLOSE: Final = f"""{_NOW} {_NUMBERS}
local closed = math.max(tonumber(redis.call('HGET', row, 'closed') or 0), now + ARGV[1])
redis.call('HSET', row, 'closed', text(closed), 'probed', 0)
redis.call('EXPIRE', row, {KEPT})
"""
_OPEN: Final = """
if redis.call('HGET', KEYS[1], 'probed') == ARGV[1] then redis.call('HDEL', KEYS[1], 'closed', 'probed') end
"""


class RedisBlockStore(BlockStore):
    """Rows as hashes under `payments:limit:…`."""

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

    async def reserve(self, row: LimitRow, request: BlockRequest) -> Reservation:
        """Reserve a block."""
        terms = request.wanted, request.charged, request.step, request.saved, request.ahead
        now, granted, begins, closed, probed = map(float, await self._run(_RESERVE, row, *terms))
        return Reservation.of(request, now, int(granted), begins, closed, probed)

    async def close_after_429(self, row: LimitRow, seconds: float) -> None:
        """Close the row."""
        await self._run(_CLOSE, row, seconds)

    async def open_after_probe(self, row: LimitRow, probe: float) -> None:
        """Open the row."""
        await self._run(_OPEN, row, f"{probe:.17g}")  # as the script wrote it

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _run(self, script: str, row: LimitRow, *values: Any) -> Any:
        """Run a script on one row."""
        key = f"payments:limit:{row.address} {row.fingerprint} {row.kind}"
        try:
            return await self._client.eval(script, 1, key, *values)
        except ResponseError as error:
            raise self._refusal(error, key) from None
        except AuthenticationError:
            raise ConfigurationError(f"{self._place} refuses the user or the password") from None
        except (RedisError, OSError) as error:
            raise self._unavailable(type(error).__name__) from None

    def _refusal(self, error: ResponseError, key: str) -> Exception:
        """The error for an answer of the server, whose own words may show values and are left out."""
        text = str(error)
        if "WRONGTYPE" in text:
            return ConfigurationError(f"{self._place} has something else in the key {key!r}: delete it")
        if text.startswith("MOVED"):
            return ConfigurationError(f"{self._place} is a cluster: use a server that is not part of one")
        if isinstance(error, NoPermissionError) or any(words in text for words in _FORBIDDEN):
            return ConfigurationError(
                f"{self._place} forbids what is needed: allow its user EVAL, and "
                "HGET, HMGET, HSET, HDEL, EXPIRE and TIME on keys payments:limit:*"
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
