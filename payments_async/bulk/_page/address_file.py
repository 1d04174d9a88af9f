"""`LEDGER.page.json`: where the run that holds a ledger serves its page; and asking that run.

The run writes it while it has the ledger's lock, and removes it before it lets go. One that a killed run has
left names another process than the lock.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import attrs

from ..._files import PAGE_SUFFIX, write_text
from ..._loopback import HOST
from .access import PageAccess

_VERSION: Final = 1
_LONGEST: Final = 4 << 20
_TIMEOUT: Final = 5.0


@attrs.frozen
class PageAddress:
    """The content of the file."""

    pid: int
    address: str
    secret: str = attrs.field(repr=False)


def publish(ledger: str, access: PageAccess) -> None:
    """Write the file beside a ledger (mode 0600); a run goes on without it where it cannot be written."""
    facts = {"version": _VERSION, "pid": os.getpid(), "address": access.origin, "secret": access.rules.secret}
    with suppress(OSError):
        write_text(ledger + PAGE_SUFFIX, json.dumps(facts), durable=False)


def withdraw(ledger: str) -> None:
    """Remove the file."""
    with suppress(OSError):
        os.unlink(ledger + PAGE_SUFFIX)


def read(ledger: str) -> PageAddress | None:
    """The file's content; None when there is none that can be read."""
    try:
        facts = json.loads(Path(ledger + PAGE_SUFFIX).read_text(encoding="utf-8"))
        found = PageAddress(facts["pid"], facts["address"], facts["secret"])
        parts = urlsplit(found.address)
        is_here = (parts.scheme, parts.hostname) == ("http", HOST) and parts.port is not None
        known = facts["version"] == _VERSION and is_here
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return found if known else None


async def ask_running(ledger: str, pid: int | None, path: str, **query: str) -> dict[str, Any] | None:
    """Ask the run that holds a ledger. None when none answers: it serves no page, or has just ended.

    Args:
        ledger: the ledger's path.
        pid: the process that holds the ledger, as its lock says; a file of another is left over.
        path: such as `/api/row`; a 404 is answered by an object with `error`.
        query: the parameters.
    """
    found = read(ledger)
    if found is None or found.pid != pid:
        return None
    return await asyncio.to_thread(_get, found, f"{path}?{urlencode(query)}")


def _get(page: PageAddress, path: str) -> dict[str, Any] | None:
    parts = urlsplit(page.address)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=_TIMEOUT)
    try:
        connection.request("GET", f"/{page.secret}{path}")
        answer = connection.getresponse()
        value = json.loads(answer.read(_LONGEST)) if answer.status in (200, 404) else None
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return value if isinstance(value, dict) else None
