"""The rate limit of a fleet in Redis or Valkey: one key for a row, one script for all that is done to it.

The script is `store.reserve` in Lua, step by step: `tests/rate_limit/test_stores.py` compares the two. Each
key is in a hash tag, so that a cluster finds it.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Sequence
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

from .._http.addresses import exposed_by, has_raw_signs, is_here, is_host
from ..errors import ConfigurationError
from .store import CONSTANTS, PATIENCE, LimitRow, PermitRequest, Reservation, StoreUnavailable, figures_of

KEPT: Final = 7_200
"""Seconds for which an unused row is kept: longer than any closing."""
CLOCK: Final = "local time = redis.call('TIME') local clock = time[1] + time[2] / 1000000"
"""Lua that puts the store's time, in seconds, into `clock`."""

_SCRIPT: Final = """
local key, task = KEYS[1], ARGV[1]
CLOCK
local old, workers = {}, {}
local found = redis.call('HGETALL', key)
for i = 1, #found, 2 do
    local name = string.match(found[i], '^w:(.*)$')
    if name then
        local alive, til, seen = string.match(found[i + 1], '^(%S+) (%S+) (%S+)$')
        workers[name] = {tonumber(alive), tonumber(til), tonumber(seen)}
    else
        old[found[i]] = tonumber(found[i + 1])
    end
end
local function exact(number)
    return string.format('%.17g', number)
end

if task == 'close' then
    if not old.at then return end
    local opens = clock + ARGV[2]
    if old.shut ~= 0 then opens = math.max(old.opens, opens) end
    redis.call('HSET', key, 'shut', exact(clock), 'opens', exact(opens), 'probe_until', '0', 'pause', ARGV[3])
    return
end
if task == 'end_probe' then
    if old.shut ~= tonumber(ARGV[2]) then return end
    redis.call('HSET', key, 'probe_until', '0')
    if ARGV[3] == '1' then redis.call('HSET', key, 'shut', '0') end
    return
end

local worker, urgent = ARGV[2], ARGV[3] == '1'
local limit, wanted = tonumber(ARGV[4]), tonumber(ARGV[5])
local held, lifetime = tonumber(ARGV[6]), tonumber(ARGV[7])
local burst, half, cap = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local ago, last_at = tonumber(ARGV[11]), tonumber(ARGV[12])
local last_born, last_peak = tonumber(ARGV[13]), tonumber(ARGV[14])

local new = not (old.at and old.born and old.tail and old.since) or old.at - clock > CLOCK_SLACK
if not new and last_at and last_born >= old.born and last_at - clock <= CLOCK_SLACK then
    new = old.born < last_born or old.at < last_at or math.abs(clock - last_at - ago) > CLOCK_STEP
end
local now, state = clock, old
if new then
    state = {born = now, tail = now, since = now}
    workers = {}
    redis.call('DEL', key)
else
    now = math.max(clock, old.at)
end
for _, name in ipairs({'peak', 'peak_before', 'interactive', 'shut', 'opens', 'probe_until', 'pause'}) do
    state[name] = state[name] or 0
end

local others, own, active = 0, nil, 1
for name, known in pairs(workers) do
    if known[2] < now then
        redis.call('HDEL', key, 'w:' .. name)
    elseif name == worker then
        own = known[1]
    else
        others = others + known[1]
        if now - known[3] < ACTIVE then active = active + 1 end
    end
end

local yields = not urgent and now - state.interactive < ACTIVE
local blocked = 0
if state.shut ~= 0 then
    if now < state.opens then
        blocked = state.opens - now
    else
        blocked = math.max(math.min(state.probe_until - now, PROBE_HINT), 0)
    end
end
local offered = 0
if blocked == 0 then
    local share = 1
    if state.shut == 0 then
        share = math.floor(((yields and half or burst) + active) / (active + 1))
    end
    offered = math.max(0, math.min(wanted, share, cap - others - math.max(held, own or 0)))
end

local alive = others + held + offered
if last_born and last_born ~= state.born and ago < WINDOW then alive = math.max(alive, last_peak) end
local counted = now - state.since
if counted < WINDOW then
    state.peak = math.max(state.peak, alive)
else
    state.peak_before = counted < 2 * WINDOW and state.peak or 0
    state.since = now
    state.peak = alive
end
local peak = math.max(state.peak, state.peak_before)
local rate = (limit - 2 * burst - math.min(peak, cap)) / WINDOW
local tail = math.max(state.tail, now - burst / rate)
if new then tail = now + math.max(burst, math.min(peak, burst + FORGOTTEN)) / rate end

local granted = offered
if yields and tail > now then granted = 0 end
tail = tail + granted / rate
local wait = ASK_AGAIN
if granted > 0 then
    wait = math.max(now, tail + (yields and half / rate or 0)) - now
elseif blocked > 0 then
    wait = blocked
elseif offered > 0 then
    wait = math.max(tail - now, LET_BY)
end
local ends, probe = now + wait + lifetime, 0
if granted > 0 and state.shut ~= 0 then
    probe = state.shut
    state.probe_until = ends
end
if urgent and wanted > 0 then state.interactive = now end
state.at, state.tail, held = now, tail, held + granted
for name, value in pairs(state) do
    redis.call('HSET', key, name, exact(value))
end
local lasts = held > 0 and ends or now + ACTIVE
redis.call('HSET', key, 'w:' .. worker, held .. ' ' .. exact(lasts) .. ' ' .. exact(now))
redis.call('EXPIRE', key, KEPT)
local closed_for = state.shut ~= 0 and math.max(state.opens - now, 0) or 0
local answer = {granted, wait, probe, closed_for, state.pause, peak, now, state.born}
for i, value in ipairs(answer) do answer[i] = exact(value) end
return answer
"""
_CONSTANTS: Final = {**CONSTANTS, "KEPT": KEPT}


class RedisLimitStore:
    """Rows as hashes under `payments:limit:…`."""

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
        self._place = f"the limit store redis://{host}:{at.get('port', 6379)}"
        if not insecure_database and (why := _exposure(self._client.connection_pool)) is not None:
            raise ConfigurationError(f"{self._place}: {why}")
        self._url = url
        self._seen = False
        self._script = _script(clock)
        self._sha = hashlib.sha1(self._script.encode(), usedforsecurity=False).hexdigest()

    async def reserve(self, row: LimitRow, request: PermitRequest) -> Reservation:
        """Reserve permits."""
        return Reservation.of(await self._run(row, "reserve", *_values(request)))

    async def close_after_429(self, row: LimitRow, seconds: float, *, pause: float = 0.0) -> None:
        """Close the row for every process."""
        await self._run(row, "close", float(seconds), float(pause))

    async def end_probe(self, row: LimitRow, probe: float, *, answered: bool) -> None:
        """End a probe."""
        await self._run(row, "end_probe", probe, int(answered))

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
                "HGETALL, HSET, HDEL, DEL, EXPIRE and TIME on keys payments:limit:*"
            )
        return self._unavailable(text.partition(" ")[0])

    def _unavailable(self, reason: str) -> StoreUnavailable:
        return StoreUnavailable(f"{self._place} cannot be reached, or did not answer in time ({reason})")


def _exposure(pool: redis.asyncio.ConnectionPool) -> str | None:
    """Describe why others could read or change what is sent to a server; None when they cannot."""
    at = pool.connection_kwargs
    if is_here(at.get("host", "localhost")):
        return None
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


def _script(clock: str) -> str:
    """The script, with its constants filled in."""
    script = _SCRIPT.replace("CLOCK\n", f"{clock}\n", 1)
    return re.sub(
        "|".join(sorted(_CONSTANTS, key=len, reverse=True)), lambda name: str(_CONSTANTS[name[0]]), script
    )


def _values(request: PermitRequest) -> Sequence[Any]:
    """The values of a reservation's script, in its order."""
    figures, last = figures_of(request.limit), request.last
    return (
        request.worker,
        int(request.interactive),
        request.limit,
        request.wanted,
        request.held,
        float(request.lifetime),
        figures.burst,
        figures.half,
        figures.cap,
        float(request.ago),
        *(() if last is None else (last.at, last.born, last.peak)),
    )
