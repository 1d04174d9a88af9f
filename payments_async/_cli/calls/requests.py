"""A checkout's link; `payments api`: one request to any endpoint."""

from __future__ import annotations

import shlex
import sys
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import attrs

from ...bulk._texts.quantities import time_text
from ...errors import OutcomeUnknown
from ...models import Checkout
from ...models._masking import clean
from .._exit_codes import CommandEnded, Exit
from ..payouts.command_context import CommandContext, open_client
from .json_values import read_object, shown_json, without_accounts
from .options import ApiOptions, CallOptions, CheckoutOptions
from .sending import advised, perform_call, require_clear_amount, send_surely

_NO_LINK: Final = "nobody has its link, so it collects nothing; the same command makes another one"


def create_checkout(order: CheckoutOptions, call: CallOptions) -> Exit:

    async def work(context: CommandContext) -> Exit:
        async with open_client(call.base_url) as client:
            require_clear_amount(order.amount, order.currency)
            prepared = client.checkouts.prepare(**attrs.asdict(order))
            sent = await send_surely(client, prepared, _NO_LINK, context)
            _show_link(sent.record, context)
        return Exit.DONE

    return perform_call(work, about="checkout", as_json=call.json)


def _show_link(made: Checkout, context: CommandContext) -> None:
    session = made.checkout
    assert session is not None  # a creation that is answered without it raises
    payment_id = made.payment.id if made.payment is not None else None
    until = time_text(session.expires_at) if session.expires_at else "not known"
    context.show.step("Link", session.url, wrap=False, url=session.url, id=session.id, payment_id=payment_id)
    for name, text in {"Checkout": session.id, "Payment": payment_id or "not shown", "Until": until}.items():
        context.show.line(name, text)


def send_request(method: str, path: str, request: ApiOptions, call: CallOptions) -> Exit:
    """Send a request and print its answer. Raises CommandEnded where that is not allowed."""
    bare, _, query = path.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    if problem := _problem(method, bare, pairs, request):
        raise CommandEnded(f"{problem}; nothing was sent", Exit.USAGE)
    options: dict[str, Any] = {"params": dict(pairs)}
    if request.body is not None:
        options["json"] = read_object(request.body, "--body")
    if request.idempotency_key is not None:
        options["idempotency_key"] = request.idempotency_key

    async def work(context: CommandContext) -> Exit:
        async with open_client(call.base_url) as client:
            with advised(_same_key, context):
                answer = await client.request(method, bare, **options)
            shown = answer if call.accounts else without_accounts(answer)
            sys.stdout.write(shown_json(shown, is_indented=sys.stdout.isatty()) + "\n")
        return Exit.DONE

    return perform_call(work, about=bare, as_json=call.json)


def _problem(method: str, path: str, pairs: list[tuple[str, str]], request: ApiOptions) -> str | None:
    """Why a request is not sent."""
    if method != "GET" and not request.write:
        return f"{clean(method)} may change records and move money: add --write if it is meant"
    if method == "GET" and (request.body is not None or request.idempotency_key is not None):
        return "GET takes no --body and no --idempotency-key"
    # however a server may read the path: the amount of a payout is confirmed by a person
    if method == "POST" and unquote(path).casefold().partition(";")[0].rstrip("/") == "/payouts":
        return "a payout is sent by `payments payouts create`"
    return "PATH: its query names a parameter twice" if len(dict(pairs)) != len(pairs) else None


def _same_key(error: OutcomeUnknown) -> str:
    key = f"--idempotency-key {shlex.quote(error.idempotency_key or '')}"
    return f"The same command with {key} sends the same request again, which is carried out once"
