"""`payments trigger`: an event of a record of the simulated service, through its control API."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final

from ...models._masking import clean
from .._exit_codes import CommandEnded, Exit
from .._output import show_for
from ..payouts.confirm import is_live
from ..webhooks.forward import ask_sandbox

_FAILED: Final = "fail:CUSTOMER_DECLINED"
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)


EVENTS: Final[Mapping[str, tuple[str, Mapping[str, object]]]] = {
    "payout.completed": ("records/{}/settle", {"outcome": "complete"}),
    "payout.failed": ("records/{}/settle", {"outcome": _FAILED}),
    "payment.completed": ("payments/{}/pay", {"outcome": "complete"}),
    "payment.failed": ("payments/{}/pay", {"outcome": _FAILED}),
    "payment.attempt.failed": ("payments/{}/pay", {"outcome": _FAILED}),
    "payment.expired": ("records/{}/settle", {"outcome": "expire"}),
    "payment.refunded": ("payments/{}/refund", {}),
}
"""{event, which begins with the kind of record: path and body of what brings it about}."""


def trigger(
    event: str, reference: str | None, record_id: str | None, sandbox: str | None, *, as_json: bool
) -> Exit:
    """Bring an event about. Raises CommandEnded, ConfigurationError."""
    if event not in EVENTS:
        raise CommandEnded(f"{clean(event)}: is none of {', '.join(EVENTS)}", Exit.USAGE)
    if (reference is None) == (record_id is None):
        raise CommandEnded("trigger: give the record's --reference, or its --id", Exit.USAGE)
    if is_live(os.environ.get("PAYMENTS_API_KEY", "")):
        problem = "PAYMENTS_API_KEY is a live key: events are triggered in `payments sandbox` only"
        raise CommandEnded(problem, Exit.USAGE)
    _require_sandbox(sandbox)
    kind = event.partition(".")[0]
    name = _id_of(kind, reference, sandbox) if reference is not None else record_id or ""
    if _ID.fullmatch(name) is None:
        raise CommandEnded("--id: must be as the sandbox shows it, such as po_00000001", Exit.USAGE)
    if event == "payment.failed":
        _require_direct(name, sandbox)
    path, body = EVENTS[event]
    ask_sandbox(path.format(name), sandbox, body)
    status = str(ask_sandbox(f"{kind}s/{name}", sandbox).get("status", ""))
    show = show_for(as_json=as_json)
    show.step("Triggered", f"{event}: {name} is {status}", event=event, id=name, status=status)
    return Exit.DONE


def _require_sandbox(sandbox: str | None) -> None:
    """Raise CommandEnded unless a sandbox answers: its control API lists what it can do."""
    try:
        known = ask_sandbox("state", sandbox)
    except CommandEnded as error:
        if error.__cause__ is not None:  # nobody answers
            raise
        known = {}
    if "profile" not in known:
        problem = "what answers there is not `payments sandbox`, or not yours: no event was triggered"
        raise CommandEnded(problem, Exit.USAGE)


def _require_direct(payment_id: str, sandbox: str | None) -> None:
    """Raise CommandEnded for the payment of a checkout, which no failed attempt ends."""
    if ask_sandbox(f"payments/{payment_id}", sandbox).get("channel") != "api":
        problem = f"{payment_id} is a checkout's payment: its payer may try again, so it does not fail"
        raise CommandEnded(f"{problem}; trigger payment.attempt.failed or payment.expired", Exit.REFUSED)


def _id_of(kind: str, reference: str, sandbox: str | None) -> str:
    """The id of the newest record with a reference. Raises CommandEnded."""
    listed: Any = ask_sandbox(f"{kind}s?limit=1000", sandbox).get(f"{kind}s", [])
    for record in listed:
        if record.get("reference") == reference:
            return str(record.get("id"))
    raise CommandEnded(f"no {kind} of the sandbox has the reference {clean(reference)}", Exit.REFUSED)
