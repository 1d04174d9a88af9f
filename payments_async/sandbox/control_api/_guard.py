"""Who may ask: programs of this machine and the sandbox's own pages, no page of another site.

Under which names it may be asked is looked at before, for every address of the server (`_hosts`).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..common.host_check import own_hosts
from ..common.json import JsonObject, decode_object
from ..common.values import Refused, Request

LARGEST = 65_536
"""Bytes of a request body."""

_FOREIGN = frozenset({"cross-site", "same-site"})


class Refusal(Exception):
    """A request is refused: `status`, what is wrong, and further members of the answer."""

    def __init__(self, status: int, message: str, extra: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.extra = extra or {}


def check_origin(request: Request, origin: str) -> None:
    """`Refusal` 403 for a request that another site's page sent."""
    sender = request.headers.get("origin")
    own = {f"http://{host}" for host in own_hosts(origin)}
    if sender is not None and sender.lower() not in own:
        raise Refusal(403, "Another site's page may not control the sandbox (Origin).")
    if request.headers.get("sec-fetch-site") in _FOREIGN:
        raise Refusal(403, "Another site's page may not control the sandbox (Sec-Fetch-Site).")


def read_body(request: Request) -> JsonObject:
    """The JSON object a POST carries, empty when it carries none; `Refusal` 413, 415 or 400."""
    if len(request.body) > LARGEST:
        raise Refusal(413, f"The body may be {LARGEST:,} bytes at most.")
    # JSON is asked for even of an empty body: a form of another site cannot send that type
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(415, "Send Content-Type: application/json.")
    try:
        return decode_object(request.body) if request.body.strip() else {}
    except Refused as unreadable:
        raise Refusal(400, unreadable.message) from unreadable
