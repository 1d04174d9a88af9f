"""One payout: create it, find it by its reference, wait for its end."""

from __future__ import annotations

import shlex
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import attrs

from ..._validation.tables import doubts, receiver_doubts
from ...bulk._texts.quantities import time_text
from ...client import AsyncPayments
from ...errors import SearchIncomplete, WaitTimeout
from ...models import Amount, Payout
from ...models._masking import clean
from ...models.common import amount_text
from ...params import Instrument, PayoutRequest
from .._exit_codes import CommandEnded, Exit
from .._text import print_message
from ..payouts.command_context import CommandContext, open_client
from .json_values import read_object
from .options import CallOptions, PayoutOptions
from .sending import confirm_amount, perform_call, require_clear_amount, send_surely

_OUTCOMES: Final = {
    True: ("Created", ""),
    False: ("Exists", ", created earlier; nothing was paid now"),
    None: ("Found", ", no answer came at first: this command made it, or an earlier one"),
}
"""{whether this command made the payout: what is said of it}."""


def create(order: PayoutOptions, call: CallOptions) -> Exit:
    """Send one payout. Raises CommandEnded for a file that cannot be used."""
    fields = attrs.asdict(order)
    given, wait = fields.pop("confirm"), fields.pop("wait")
    fields["instrument"] = account = read_object(order.instrument, "--instrument")
    known = attrs.fields_dict(Instrument)
    if account.keys() - known.keys():  # such a name is not shown: it may be account data
        problem = f"has a field that is not known; there are {', '.join(sorted(known))}"
        raise CommandEnded(f"--instrument: {problem}; nothing was sent", Exit.USAGE)

    async def work(context: CommandContext) -> Exit:
        async with open_client(call.base_url) as client:
            require_clear_amount(order.amount, order.currency)
            prepared = client.payouts.prepare(**fields)
            request = PayoutRequest(**fields)
            for doubt in [*doubts(request), *receiver_doubts(request)]:
                print_message(f"is this right? {doubt}")
            confirm_amount(order.currency, Decimal(order.amount), given, context)
            sent = await send_surely(client, prepared, _look_up(order.reference, call), context)
            name, note = _OUTCOMES[sent.is_new]
            _show_payout(name, note, sent.record, context, call, created=sent.is_new)
            if not sent.is_new and _has_failed(sent.record):
                retried = f"unless a batch has sent it again, under {clean(order.reference)}~g1"
                problem = f"it failed; to pay again use another --reference, {retried}"
                raise CommandEnded(problem, Exit.REFUSED)
            return await _until_final(client, sent.record, wait, context, call)

    return perform_call(work, about=order.reference, as_json=call.json)


def _has_failed(payout: Payout) -> bool:
    return payout.is_final and not payout.is_successful


def _look_up(reference: str, call: CallOptions) -> str:
    """What to do about a payout that may have been made."""
    address = f" --base-url {shlex.quote(call.base_url)}" if call.base_url else ""
    command = f"`payments payouts find {shlex.quote(reference)}{address}`"
    return f"{command} looks it up; do not pay it in another way"


def find(reference: str, since: str | None, wait: float | None, call: CallOptions) -> Exit:
    """Look one payout up, and wait for its end where that is asked for. Raises CommandEnded."""

    async def work(context: CommandContext) -> Exit:
        async with open_client(call.base_url) as client:
            try:
                found = await client.payouts.find(reference, created_on_or_after=since)
            except SearchIncomplete as error:
                problem = f"{error}; --created-on-or-after with a date near the payout's reads less"
                raise CommandEnded(problem, Exit.OUTCOME_UNKNOWN) from error
            if found is None:
                problem = f"no payout has the reference {shlex.quote(reference)}"
                hint = "one sent in the last 15 minutes may still appear; a row's key is for `payouts show`"
                raise CommandEnded(f"{problem}; {hint}", Exit.REFUSED)
            _show_payout("Found", "", found, context, call)
            return await _until_final(client, found, wait, context, call)

    return perform_call(work, about=reference, as_json=call.json)


async def _until_final(
    client: AsyncPayments, payout: Payout, wait: float | None, context: CommandContext, call: CallOptions
) -> Exit:
    """Wait for a payout's end and show it, unless `wait`, in seconds, is None. Raises CommandEnded."""
    if wait is None:
        if not payout.is_final:
            context.show.paragraph("It may still fail: --wait 15m waits until it has ended.")
        return Exit.DONE
    try:
        with context.spinner("Waiting for its end"):
            payout = await client.payouts.wait(payout, deadline=wait)
    except WaitTimeout as error:
        status = f" ({error.last.status})" if error.last is not None else ""
        problem = f"not ended after {wait:g} s{status}; the same command waits on"
        raise CommandEnded(problem, Exit.RESUMABLE) from error
    _show_payout("Arrived" if payout.is_successful else "Failed", "", payout, context, call)
    return Exit.DONE if payout.is_successful else Exit.REFUSED


def _show_payout(
    name: str, note: str, payout: Payout, context: CommandContext, call: CallOptions, **facts: Any
) -> None:
    """Show a payout: lines for people, all of it for programs."""
    fields = payout.to_dict(unmasked=call.accounts) | {"is_final": payout.is_final}
    facts["payout"] = {
        field: value.isoformat() if isinstance(value, datetime) else value for field, value in fields.items()
    }
    context.show.step(name, f"{payout.id}{note}", good=not _has_failed(payout), **facts)
    code = payout.failure.code.value if payout.failure is not None and payout.failure.code else None
    lines = {
        "Reference": payout.reference,
        "Amount": _money(payout.amount),
        "Status": ", ".join(filter(None, (payout.status, code))),
        "Created at": time_text(payout.created_at) if payout.created_at else None,
    }
    for label, text in lines.items():
        context.show.line(label, text or "not shown")


def _money(amount: Amount | None) -> str:
    return "" if amount is None or amount.value is None else amount_text(amount.currency or "", amount.value)
