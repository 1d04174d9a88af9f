"""`payments webhooks resend`: through the control API of a sandbox that runs."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Final
from urllib.parse import urlsplit

from ..._masking import clean
from ...errors import ConfigurationError
from .._exit_codes import Ended, Exit
from .._output import show_for
from .forward import post, read_place

USUAL: Final = "http://127.0.0.1:7788"
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


def resend(webhook_id: str, sandbox: str | None, *, as_json: bool) -> Exit:
    """Have a delivery sent once more. ConfigurationError for what cannot be a sandbox or a delivery."""
    if _ID.fullmatch(webhook_id) is None:
        raise ConfigurationError("a delivery is named as the sandbox names it, such as wh_00000001")
    base = sandbox or os.environ.get("PAYMENTS_BASE_URL") or USUAL
    parts = urlsplit(base)
    named = "--sandbox" if sandbox else "PAYMENTS_BASE_URL"
    path = f"/_sandbox/api/webhooks/{webhook_id}/resend"
    place = read_place(f"{parts.scheme}://{parts.netloc}{path}", named, USUAL)
    try:
        status, body = post(place, b"{}", {"Content-Type": "application/json"})
    except OSError as failure:
        told = f"no sandbox answers at {parts.netloc}: {failure.strerror or failure}"
        raise Ended(told, Exit.REFUSED) from failure
    answer = _read(body)
    if not 200 <= status < 300:
        told = clean(str(answer.get("message", f"HTTP {status}")))
        raise Ended(f"the sandbox refused: {told}", Exit.REFUSED)
    again = str(answer.get("id", ""))
    show_for(as_json=as_json).step("Resent", f"{webhook_id} again, as {again}", id=again, repeats=webhook_id)
    return Exit.DONE


def _read(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}
