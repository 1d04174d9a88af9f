"""Which store an address names. The store's library is imported here, when it is first used."""

from __future__ import annotations

from .._extras import needs
from ..errors import ConfigurationError
from .store import LimitStore


def open_store(url: str) -> LimitStore:
    """The store at `postgresql://…`, `redis://…` or `rediss://…`; it connects when it is first used.

    Raises ConfigurationError for another scheme, an address that cannot be read, or a missing library. The
    address itself is never shown: it may contain a password.
    """
    scheme = url.partition(":")[0].lower()
    if scheme in ("postgresql", "postgres"):
        return _postgresql(url)
    if scheme in ("redis", "rediss"):
        return _redis(url)
    raise ConfigurationError("limit_store must be an address like postgresql://… or redis://…")


def _postgresql(url: str) -> LimitStore:
    try:
        from .store_postgresql import PostgresLimitStore
    except ImportError as error:
        raise ConfigurationError(needs("a limit_store in PostgreSQL needs", "machines")) from error
    return PostgresLimitStore(url)


def _redis(url: str) -> LimitStore:
    try:
        from .store_redis import RedisLimitStore
    except ImportError as error:
        raise ConfigurationError(needs("a limit_store in Redis needs", "redis")) from error
    return RedisLimitStore(url)
