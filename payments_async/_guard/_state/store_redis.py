"""Rows of a fleet in Redis or Valkey: one hash for a row, one script that compares and sets.

Each key is in a hash tag, so that a cluster finds it.
"""

from __future__ import annotations

import hashlib
import warnings
from contextlib import suppress
from typing import Any, Final

import redis.asyncio
from redis.asyncio.cluster import RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    NoPermissionError,
    NoScriptError,
    RedisClusterException,
    RedisError,
    ResponseError,
)

from ..._http.addresses import exposed_by, has_raw_signs, is_here, is_host
from ..._rate_limit.store import PATIENCE, LimitRow, StoreUnavailable
from ...errors import ConfigurationError
from .compare_and_set import CompareAndSetStore, RowRead, RowWrite

KEPT: Final = 7_200
"""Seconds for which an unused row is kept: longer than any closing. A durable row never expires."""
CLOCK: Final = "local time = redis.call('TIME') local clock = time[1] + time[2] / 1000000"
"""Lua that puts the store's time, in seconds, into `clock`."""

_SCRIPT: Final = """
CLOCK
local key, sender, version, request, based_on, content, kept = KEYS[1], unpack(ARGV, 1, 6)
if redis.call('HGET', key, 'version') == based_on then
    for number = 7, #ARGV do redis.call('HDEL', key, 'request ' .. ARGV[number]) end
    redis.call('HSET', key, 'version', version, 'content', content)
else
    redis.call('HSETNX', key, 'version', version)
    redis.call('HSET', key, 'request ' .. sender, string.format('%.17g ', clock) .. request)
end
if kept ~= '' then redis.call('EXPIRE', key, kept) end
return {string.format('%.17g', clock), redis.call('HGETALL', key)}
"""


class RedisLimitStore(CompareAndSetStore):
    """Rows as hashes under `payments:limit:…`: version, content, and a field for each request that waits."""

    def __init__(self, url: str, *, insecure_database: bool = False, clock: str = CLOCK) -> None:
        """Take an address; `clock` is for tests. Raises ConfigurationError when it cannot be used.

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
        self._exposure = None if insecure_database else _exposure(self._client.connection_pool)
        if self._exposure is not None and not is_here(host):
            raise ConfigurationError(f"{self._place}: {self._exposure}")
        self._url = url
        self._seen = False
        self._script = _SCRIPT.replace("CLOCK", clock)
        self._sha = hashlib.sha1(self._script.encode(), usedforsecurity=False).hexdigest()

    async def exchange(self, row: LimitRow, write: RowWrite) -> RowRead:
        """Run the script on one row."""
        kept = ""
        message = (write.sender, write.version, write.request, write.based_on, write.content, kept)
        now, fields = await self._run(row, *message, *write.served)
        found = dict(zip(fields[::2], fields[1::2], strict=True))
        requests = {}
        for field, value in found.items():
            if field.startswith(_REQUEST):
                came, _, request = value.partition(" ")
                requests[field.removeprefix(_REQUEST)] = float(came), request
        return RowRead(found["version"], found.get("content", ""), requests, float(now))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _run(self, row: LimitRow, *values: Any) -> Any:
        """Run the script on one row."""
        key = f"payments:limit:{{{row.address} {row.fingerprint} {row.kind}}}"
        try:
            if not self._seen:
                await self._look()
            return await self._evaluate(key, *values)
        except ResponseError as error:
            raise self._refusal(error, key) from None
        except AuthenticationError:
            raise ConfigurationError(f"{self._place} refuses the user or the password") from None
        except (RedisError, RedisClusterException, OSError) as error:
            raise self._unavailable(type(error).__name__) from None

    async def _evaluate(self, *key_and_values: Any) -> Any:
        try:
            return await self._client.evalsha(self._sha, 1, *key_and_values)
        except NoScriptError:  # first use, or the server forgot its scripts
            return await self._client.eval(self._script, 1, *key_and_values)

    async def _look(self) -> None:
        """Look at the server once: is it a cluster's, and does it evict keys?"""
        facts = await self._client.info()
        if facts.get("cluster_enabled"):
            if self._exposure is not None:  # who answers at this address may name any other
                raise ConfigurationError(
                    f"{self._place} is a cluster, which names its nodes itself: {self._exposure}"
                )
            await self._client.aclose()
            self._client = RedisCluster.from_url(self._url, **_OPTIONS)
        self._seen = True
        policy = facts.get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            warnings.warn(
                f"{self._place} has maxmemory-policy {policy} and may forget the rate limit: set noeviction",
                RuntimeWarning,
                stacklevel=2,
            )

    def _refusal(self, error: ResponseError, key: str) -> Exception:
        """The error for an answer of the server, whose own words may show values and are left out."""
        text = str(error)
        if "WRONGTYPE" in text:
            return ConfigurationError(f"{self._place} has something else in the key {key!r}: delete it")
        if isinstance(error, NoPermissionError) or any(words in text for words in _FORBIDDEN):
            return ConfigurationError(
                f"{self._place} forbids what is needed: allow its user INFO, EVAL and EVALSHA, and "
                "HGET, HGETALL, HSET, HSETNX, HDEL, EXPIRE and TIME on keys payments:limit:*"
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


_REQUEST: Final = "request "
_FORBIDDEN: Final = ("unknown command", "ACL failure", "can't run this command")
_OPTIONS: Final[dict[str, Any]] = {
    "decode_responses": True,
    "protocol": 2,
    "socket_timeout": PATIENCE,
    "socket_connect_timeout": PATIENCE,
    "retry": Retry(NoBackoff(), 0),  # the store client tries again, with a new reservation
}
