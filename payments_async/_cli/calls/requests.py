"""A checkout's link; `payments api`: one request to any endpoint."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import attrs

from ...errors import OutcomeUnknown
from ...models import Checkout
from ...models._masking import clean
from ...models._record import json_text
from .._exit_codes import CommandEnded, Exit
from ..payouts.command_context import CommandContext, open_client
from .json_values import read_object, without_accounts
from .options import ApiOptions, CallOptions, CheckoutOptions
from .payouts import look_up
from .sending import Work, advised, confirm_amount, require_clear_amount, send_surely

_PAYOUTS: Final = "/payouts"
_NO_LINK: Final = "nobody has its link, so it collects nothing; the same command makes another one"


def create_checkout(order: CheckoutOptions, call: CallOptions) -> Work:
    """The work that makes a checkout."""

    async def work(context: CommandContext) -> Exit:
        async with open_client(call.base_url) as client:
            require_clear_amount(order.amount, order.currency)
            prepared = client.checkouts.prepare(**attrs.asdict(order))
            sent = await send_surely(client, prepared, _NO_LINK, context)
            _show_link(sent.record, context)
        return Exit.DONE

    return work


def _show_link(made: Checkout, context: CommandContext) -> None:
    session = made.checkout
    assert session is not None  # a creation that is answered without it raises
    payment_id = made.payment.id if made.payment is not None else None
    until = session.expires_at.strftime("%Y-%m-%d %H:%M UTC") if session.expires_at else "not known"
    context.show.step("Link", session.url, wrap=False, url=session.url, id=session.id, payment_id=payment_id)
    for name, text in {"Checkout": session.id, "Payment": payment_id or "not shown", "Until": until}.items():
        context.show.line(name, text)


def send_request(request: ApiOptions, call: CallOptions) -> Work:
    """The work that sends a request and prints its answer. Raises CommandEnded where that is not allowed."""
    if request.method != "GET" and not request.write:
        problem = f"{clean(request.method)} may change records and move money"
        raise CommandEnded(f"{problem}: add --write if it is meant; nothing was sent", Exit.USAGE)
    if request.method == "GET" and (request.body is not None or request.idempotency_key is not None):
        raise CommandEnded("GET takes no --body and no --idempotency-key", Exit.USAGE)
    path, _, query = request.path.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    if len(dict(pairs)) != len(pairs):
        raise CommandEnded("PATH: its query names a parameter twice; give each once", Exit.USAGE)
    options: dict[str, Any] = {"params": dict(pairs)}
    if request.body is not None:
        options["json"] = read_object(request.body, "--body")
    if request.idempotency_key is not None:
        options["idempotency_key"] = request.idempotency_key
    payout = options.get("json", {}) if _is_payout(request.method, path) else None
    if request.confirm is not None and payout is None:
        raise CommandEnded("--confirm is for POST /payouts alone; nothing was sent", Exit.USAGE)

    async def work(context: CommandContext) -> Exit:
        async with open_client(call.base_url) as client:
            if payout is not None:
                _confirm(payout, request.confirm, context)
            with advised(lambda error: _advice(payout or {}, error, call), context):
                answer = await client.request(request.method, path, **options)
            sys.stdout.write(clean(json_text(answer if call.accounts else without_accounts(answer))) + "\n")
        return Exit.DONE

    return work


def _is_payout(method: str, path: str) -> bool:
    """Whether a request makes a payout, however a server may read its path."""
    return method == "POST" and unquote(path).casefold().partition(";")[0].rstrip("/") == _PAYOUTS


def _confirm(payout: Mapping[str, Any], given: str | None, context: CommandContext) -> None:
    """Have the amount of a payout confirmed, as `payouts create` does; the service judges anything else."""
    amount, currency = payout.get("amount"), payout.get("currency")
    if isinstance(amount, Decimal | int) and not isinstance(amount, bool) and isinstance(currency, str):
        confirm_amount(currency, Decimal(amount), given, context)
        return
    raise CommandEnded("--body: a payout needs an amount (a number) and a currency", Exit.USAGE)


def _advice(payout: Mapping[str, Any], error: OutcomeUnknown, call: CallOptions) -> str:
    key = f"--idempotency-key {shlex.quote(error.idempotency_key or '')}"
    again = f"The same command with {key} sends the same request again, which is carried out once"
    reference = payout.get("reference")
    return f"{again}; {look_up(reference, call.base_url)}" if isinstance(reference, str) else again
