"""One payout: create it, find it by its reference, list the newest, wait for its end."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from ..._codec.decode import parse
from ..._validation.rules import suggestion
from ...bulk._texts.quantities import money_text
from ...errors import (
    APIStatusError,
    NotFoundError,
    ResponseMismatch,
    SearchIncomplete,
    UnprocessableError,
    WaitTimeout,
)
from ...models import Amount, Payout, PayoutStatus
from ...models._masking import clean
from ...models.common import amount_text
from ...models.statuses import words_of
from ...params import CustomerInput, Instrument
from .._exit_codes import CommandEnded, Exit, exit_of
from .._text import brief
from ..payouts.command_context import CommandContext, open_client
from ..payouts.confirm import ConfirmOptions, confirm_total, is_live, terminal
from .json_values import read_fields, without_accounts
from .sending import Work, require_clear_amount, send_surely

_OUTCOMES: Final = {
    True: ("Created", ""),
    False: ("Exists", "created earlier; nothing was paid now"),
    None: ("Found", "no answer came at first: this command made it, or an earlier one"),
}
"""{whether this command made the payout: what is said of it}."""
_COLUMNS: Final = ("Created (UTC)", "Reference", "Amount", "Status", "Id")
_ANY_WIDTH: Final = 1_000


def create(
    fields: Mapping[str, Any],
    instrument: str,
    customer: str | None,
    given: str | None,
    deadline: float,
    base_url: str | None,
    *,
    accounts: bool,
) -> Work:
    """The work that sends one payout. Raises CommandEnded for a file that cannot be used."""
    files: dict[str, Any] = {"instrument": read_fields(instrument, "--instrument", Instrument)}
    if customer is not None:
        files["customer"] = read_fields(customer, "--customer", CustomerInput)

    async def work(context: CommandContext) -> Exit:
        async with open_client(base_url) as client:
            require_clear_amount(fields)
            prepared = client.payouts.prepare(**fields, **files)
            sent = parse(prepared.body)
            confirm_amount(sent["currency"], Decimal(sent["amount"]), given, context)
            advice = look_up(fields["reference"], base_url)
            try:
                payout, is_new = await send_surely(client, prepared, deadline, advice, context)
            except UnprocessableError as error:
                raise CommandEnded(f"{error}; nothing was paid", exit_of(error)) from error
            except ResponseMismatch as error:
                if error.effect != "none":
                    raise
                raise _other(sent, error.record, {*error.differences}, advice) from error
            if not is_new:
                _require_alive(sent, payout)
            name, note = _OUTCOMES[is_new]
            show_payout(name, payout, context, note=note, accounts=accounts, created=is_new)
        return Exit.DONE

    return work


def _require_alive(asked: Mapping[str, Any], payout: Payout) -> None:
    """Raise CommandEnded for a payout that exists, as asked for, and has failed."""
    if payout.is_final and not payout.is_successful:
        problem = f"{payout.id} has this reference, and it failed ({payout.status}); nothing was paid now"
        retried = f"unless a batch has sent it again, under {clean(asked['reference'])}~g1"
        raise CommandEnded(f"{problem}; to pay again use another --reference, {retried}", Exit.REFUSED)


def _other(asked: Mapping[str, Any], payout: Payout, differing: set[str], advice: str) -> CommandEnded:
    """What ends the command where another payout has the reference: names, and no account data."""
    wanted = amount_text(asked["currency"], Decimal(asked["amount"]))
    amounts = f", {_money(payout.amount)}; you asked for {wanted}"
    amounts = amounts if differing & {"amount", "currency"} else ""
    names = ", ".join(sorted(differing))
    problem = f"another payout has the reference ({names}: not the same): {payout.id}{amounts}"
    command = advice.partition(";")[0]
    return CommandEnded(f"{problem}. Nothing was paid now; {command}", Exit.REFUSED)


def look_up(reference: str, base_url: str | None = None) -> str:
    """What to do about a payout that may have been made."""
    address = f" --base-url {shlex.quote(base_url)}" if base_url else ""
    return (
        f"`payments payouts find {shlex.quote(reference)}{address}` looks it up; do not pay it in another way"
    )


def confirm_amount(currency: str, amount: Decimal, given: str | None, context: CommandContext) -> None:
    """Have the amount confirmed where the key is live, or what is given compared. Raises CommandEnded."""
    asking = ConfirmOptions(
        [given] if given is not None else (),
        is_live(os.environ["PAYMENTS_API_KEY"]),
        context.interrupts.asking,
        terminal(),
        option="--confirm",
        what="payout",
    )
    how = confirm_total({currency: amount}, 1, asking)
    if how:
        context.show.step("Confirmed", f"{money_text({currency: amount})}, {how}", how=how)


def find(reference: str, since: str | None, base_url: str | None, *, accounts: bool) -> Work:
    """The work that looks one payout up."""

    async def work(context: CommandContext) -> Exit:
        async with open_client(base_url) as client:
            found = await _found(client.payouts, reference, since)
        show_payout("Found", found, context, accounts=accounts)
        return Exit.DONE

    return work


async def _found(payouts: Any, reference: str, since: str | None = None) -> Payout:
    """The payout. Raises CommandEnded where there is none, or it is not known."""
    try:
        found: Payout | None = await payouts.find(reference, created_on_or_after=since)
    except SearchIncomplete as error:
        problem = f"{error}; --created-on-or-after with a date near the payout's reads less"
        raise CommandEnded(problem, Exit.OUTCOME_UNKNOWN) from error
    if found is None:
        problem = f"no payout has the reference {shlex.quote(reference)}"
        raise CommandEnded(f"{problem}; one sent in the last 15 minutes may still appear", Exit.REFUSED)
    return found


def list_newest(filters: Mapping[str, Any], most: int, base_url: str | None, *, accounts: bool) -> Work:
    """The work that lists payouts. Raises CommandEnded for a status that is not known."""
    status, known = filters["status"], words_of(PayoutStatus)
    if status is not None and status not in known:
        meant = suggestion(status, known) or f"; there are {', '.join(sorted(known))}"
        raise CommandEnded(f"--status: {clean(status)} is no status of a payout{meant}", Exit.USAGE)

    async def work(context: CommandContext) -> Exit:
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for name in _COLUMNS:
            table.add_column(name, overflow="fold", justify="right" if name == "Amount" else "left")
        async with open_client(base_url) as client:
            async for payout in client.payouts.iterate(**filters, max_items=most):
                table.add_row(*(Text(brief(clean(cell))) for cell in _cells(payout)))
                if context.as_json:
                    context.show.step("Payout", "", payout=_facts(payout, accounts=accounts))
        shown = table.row_count
        if shown:
            if not context.console.is_terminal:
                context.console.width = _ANY_WIDTH  # what another program reads is not wrapped
            context.show.render(table)
        text = f"the newest {most}; --max-items shows more" if shown == most else f"{shown} in all"
        context.show.step("Listed", text, good=None, count=shown)
        return Exit.DONE

    return work


def wait(
    payout_id: str | None, reference: str | None, deadline: float, base_url: str | None, *, accounts: bool
) -> Work:
    """The work that waits for a payout's end. Raises CommandEnded unless it is named in one way."""
    if (payout_id is None) == (reference is None):
        raise CommandEnded("wait: give the payout's ID, or its --reference", Exit.USAGE)

    async def work(context: CommandContext) -> Exit:
        async with open_client(base_url) as client:
            known: Any = await _found(client.payouts, reference) if reference is not None else payout_id
            if reference is None:
                await _require_known(client.payouts, known)
            context.show.paragraph(f"Waiting until it has ended, {deadline:g} s at most.")
            try:
                with context.spinner("Waiting for its end"):
                    payout = await client.payouts.wait(known, deadline=deadline)
            except WaitTimeout as error:
                status = f" ({error.last.status})" if error.last is not None else ""
                problem = f"not ended after {deadline:g} s{status}; the same command waits on"
                raise CommandEnded(problem, Exit.RESUMABLE) from error
        name = "Arrived" if payout.is_successful else "Failed"
        show_payout(name, payout, context, accounts=accounts, good=payout.is_successful)
        return Exit.DONE if payout.is_successful else Exit.REFUSED

    return work


async def _require_known(payouts: Any, payout_id: str) -> None:
    """Raise CommandEnded for an id that the service does not know."""
    try:
        await payouts.sync(payout_id)
    except NotFoundError as error:
        if error.message is None:  # not the service's answer
            raise
        problem = f"there is no such payout: {clean(payout_id)} (your own name for it: --reference)"
        raise CommandEnded(problem, Exit.REFUSED) from error
    except APIStatusError as error:
        if error.status in (401, 403):
            raise


def show_payout(
    name: str,
    payout: Payout,
    context: CommandContext,
    *,
    note: str = "",
    accounts: bool,
    good: bool = True,
    **facts: Any,
) -> None:
    """Show a payout: lines for people, all of it for programs."""
    shown = _facts(payout, accounts=accounts)
    created, reference, amount, status, payout_id = _cells(payout)
    context.show.step(name, f"{payout_id}{note and f', {note}'}", good=good, payout=shown, **facts)
    if context.as_json:
        return
    code = payout.failure.code if payout.failure is not None else None
    status = f"{status}, {code.value}" if code is not None and code.value else status
    lines = {
        "Reference": reference,
        "Amount": amount,
        "Status": status,
        "Created at": f"{created} UTC" if created else "",
    }
    for label, text in {**lines, "To": _receiver(shown)}.items():
        context.show.step(label, text or "not shown", good=None)
    if not payout.is_final:
        waiting = f"`payments payouts wait {shlex.quote(payout_id)}` waits until it has ended"
        context.show.paragraph(f"{waiting}: it may still fail.")


def _facts(payout: Payout, *, accounts: bool) -> dict[str, Any]:
    fields = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in payout.to_dict(unmasked=True).items()
    }
    facts = fields | {"is_final": payout.is_final}
    return facts if accounts else dict(without_accounts(facts))


def _receiver(shown: Mapping[str, Any]) -> str:
    """The account's fields in a line, as they may be shown."""
    account = dict(shown.get("instrument") or {})
    country = account.pop("country", None)
    code = country.get("code") if isinstance(country, Mapping) else country
    fields = {"type": account.pop("type", None), **account, "country": code}
    return " ".join(f"{name}={value}" for name, value in fields.items() if value and name != "id")


def _cells(payout: Payout) -> tuple[str, str, str, str, str]:
    created = payout.created_at.strftime("%Y-%m-%d %H:%M:%S") if payout.created_at else ""
    return created, payout.reference or "", _money(payout.amount), payout.status or "", payout.id


def _money(amount: Amount | None) -> str:
    if amount is None or amount.value is None:
        return ""
    return amount_text(amount.currency or "", amount.value)
